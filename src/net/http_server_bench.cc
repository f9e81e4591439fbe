// Requests a second over loopback, client and server on the same cores: each thread is a client
// that waits for its answer before it asks again, as agents and scrapers do. Slow is the case that
// ends servers with a thread per connection: 1,000 connections, each amid a body of which a byte
// comes now and then, beside the same traffic. The 1 MB body is a large remote-write request.
#include <benchmark/benchmark.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/check.h"
#include "net/http_server.h"
#include "net/test_echo_server.h"
#include "net/test_raw_client.h"

namespace flopsight::net {
namespace {

ServerResponse ok(const ServerRequest& request) {
  ServerResponse response;
  response.body = std::to_string(request.body.size());
  return response;
}

HttpServer& server() {
  static const std::unique_ptr<HttpServer> the_server = start_server({}, ok);
  return *the_server;
}

// Connections with an endless upload, until destroyed.
class SlowClients {
 public:
  explicit SlowClients(int count) {
    allow_many_sockets();
    for (int i = 0; i < count; ++i) {
      clients_.emplace_back(server().port());
      FLOPSIGHT_CHECK(
          clients_.back().say(request_text("POST /slow", "Content-Length: 60000000\r\n")));
    }
    talker_ = std::thread([this] {
      while (!done_) {
        for (const RawClient& client : clients_) {
          if (done_) return;
          client.say("x");
          // A byte from each in about a second.
          std::this_thread::sleep_for(std::chrono::milliseconds(1));
        }
      }
    });
  }
  ~SlowClients() {
    done_ = true;
    talker_.join();
  }
  SlowClients(const SlowClients&) = delete;
  SlowClients& operator=(const SlowClients&) = delete;

 private:
  std::vector<RawClient> clients_;
  std::atomic<bool> done_ = false;
  std::thread talker_;
};

void requests(benchmark::State& state, const std::string& text) {
  RawClient client(server().port());
  for (auto _ : state) {
    if (client.ask(text).status != 200) {
      state.SkipWithError("not answered with 200");
      break;
    }
  }
  state.SetItemsProcessed(state.iterations());
}

void Get(benchmark::State& state) { requests(state, request_text("GET /api/v1/query?query=up")); }
BENCHMARK(Get)->Threads(1)->Threads(16)->UseRealTime();

void GetBesideSlow(benchmark::State& state) {
  std::unique_ptr<SlowClients> slow;
  if (state.thread_index() == 0) slow = std::make_unique<SlowClients>(1'000);
  requests(state, request_text("GET /api/v1/query?query=up"));
}
BENCHMARK(GetBesideSlow)->Threads(16)->UseRealTime();

void PostMegabyte(benchmark::State& state) {
  requests(state, post_text("/api/v1/write", std::string(1'000'000, 'x')));
}
BENCHMARK(PostMegabyte)->Threads(1)->Threads(4)->UseRealTime();

void ConnectAndGet(benchmark::State& state) {
  const std::string text = request_text("GET /", "Connection: close\r\n");
  for (auto _ : state) {
    RawClient client(server().port());
    if (client.ask(text).status != 200) {
      state.SkipWithError("not answered with 200");
      break;
    }
  }
  state.SetItemsProcessed(state.iterations());
}
BENCHMARK(ConnectAndGet)->Threads(4)->UseRealTime();

}  // namespace
}  // namespace flopsight::net
