// Every limit of the server at its value and one past it, and what it refuses to read at all.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <future>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "net/http_server.h"
#include "net/test_echo_server.h"
#include "net/test_raw_client.h"

namespace flopsight::net {
namespace {

using testing::HasSubstr;

// A handler that waits at "/wait" until the test opens the gate.
class Gate {
 public:
  Handler handler() {
    return [this](ServerRequest request) {
      if (request.path == "/wait") {
        entered_.set_value();
        opened_.wait();
      }
      return echo(std::move(request));
    };
  }
  void wait_until_entered() {
    entered_.get_future().wait();
    entered_ = {};
  }
  void open() { open_.set_value(); }

 private:
  std::promise<void> entered_;
  std::promise<void> open_;
  std::shared_future<void> opened_{open_.get_future()};
};

std::string head_of_bytes(std::size_t bytes) {
  std::string head = request_text("GET /", "X-Fill: \r\n");
  head.insert(head.size() - 4, std::string(bytes - head.size(), 'x'));
  return head;
}

TEST(HttpServerLimits, a_head_at_its_limit_is_read_and_one_byte_more_is_431) {
  ServerOptions options;
  options.head_bytes_max = 5'000;
  const auto server = start_server(options);
  RawClient client(server->port());
  EXPECT_EQ(client.ask(head_of_bytes(5'000)).status, 200);
  const RawReply refused = client.ask(head_of_bytes(5'001));
  EXPECT_EQ(refused.status, 431);
  EXPECT_TRUE(refused.has("connection: close"));
  EXPECT_TRUE(client.closed());
  EXPECT_EQ(server->counters().malformed_total, 1u);
}

TEST(HttpServerLimits, a_head_without_end_is_431_as_soon_as_it_is_too_long) {
  ServerOptions options;
  options.head_bytes_max = 5'000;
  const auto server = start_server(options);
  RawClient client(server->port());
  EXPECT_EQ(client.ask("GET /" + std::string(4'995, 'x')).status, 431);
}

TEST(HttpServerLimits, a_body_at_its_limit_is_read_and_one_byte_more_is_413) {
  ServerOptions options;
  options.body_bytes_max = 100'000;
  const auto server = start_server(options);
  const std::string body(100'000, 'x');
  RawClient client(server->port());
  EXPECT_EQ(client.ask(post_text("/", body)).body, "POST / " + body);
  const RawReply refused = client.ask(post_text("/", body + "x"));
  EXPECT_EQ(refused.status, 413);
  EXPECT_TRUE(refused.has("connection: close"));
  EXPECT_EQ(refused.body, "{\"error\":\"413 Content Too Large: body over 100000 bytes\"}\n");
  EXPECT_EQ(server->counters().body_too_large_total, 1u);
  EXPECT_EQ(server->counters().malformed_total, 0u);
}

TEST(HttpServerLimits, a_body_that_is_announced_as_too_large_is_refused_before_it_is_sent) {
  const auto server = start_server();
  RawClient client(server->port());
  const RawReply reply = client.ask(
      request_text("POST /", "Expect: 100-continue\r\nContent-Length: 18446744073709551615\r\n"));
  EXPECT_EQ(reply.status, 413);
}

TEST(HttpServerLimits, a_chunked_body_at_its_limit_is_read_and_one_byte_more_is_413) {
  ServerOptions options;
  options.body_bytes_max = 10;
  const auto server = start_server(options);
  RawClient client(server->port());
  const std::string chunked = "Transfer-Encoding: chunked\r\n";
  EXPECT_EQ(
      client.ask(request_text("POST /", chunked, "6\r\nabcdef\r\n4\r\nghij\r\n0\r\n\r\n")).body,
      "POST / abcdefghij");
  EXPECT_EQ(
      client.ask(request_text("POST /", chunked, "6\r\nabcdef\r\n5\r\nghijk\r\n0\r\n\r\n")).status,
      413);
  EXPECT_EQ(server->counters().body_too_large_total, 1u);
  RawClient huge(server->port());
  EXPECT_EQ(huge.ask(request_text("POST /", chunked, "ffffffffffffffff\r\nabcdefghijk")).status,
            413);
  // As a later chunk, which a sum of sizes would take for a step back.
  RawClient later(server->port());
  EXPECT_EQ(later.ask(request_text("POST /", chunked, "6\r\nabcdef\r\nffffffffffffffff\r\nabcdefghijk")).status, 413);
}

TEST(HttpServerLimits, bodies_in_flight_together_have_a_limit) {
  ServerOptions options;
  options.bodies_bytes_max = 1'000;
  Gate gate;
  const auto server = start_server(options, gate.handler());
  RawClient holder(server->port());
  holder.say(post_text("/wait", std::string(600, 'x')));
  gate.wait_until_entered();

  EXPECT_EQ(RawClient(server->port()).ask(post_text("/", std::string(400, 'x'))).status, 200);
  RawClient announced(server->port());
  const RawReply refused = announced.ask(post_text("/", std::string(401, 'x')));
  EXPECT_EQ(refused.status, 503);
  EXPECT_TRUE(refused.has("retry-after: 1"));
  RawClient chunked(server->port());
  const std::string body = "190\r\n" + std::string(400, 'x') + "\r\n1\r\nx\r\n0\r\n\r\n";
  EXPECT_EQ(chunked.ask(request_text("POST /", "Transfer-Encoding: chunked\r\n", body)).status,
            503);
  EXPECT_EQ(server->counters().overloaded_total, 2u);

  gate.open();
  EXPECT_EQ(holder.hear().status, 200);
  // Its bytes are free again, once the connection has come to its next request.
  EXPECT_EQ(holder.ask(post_text("/", std::string(1'000, 'x'))).status, 200);
}

TEST(HttpServerLimits, a_connection_over_the_limit_is_told_503_and_closed) {
  ServerOptions options;
  options.connections_max = 2;
  const auto server = start_server(options);
  std::optional<RawClient> first(server->port());
  RawClient second(server->port());
  EXPECT_EQ(first->ask(request_text("GET /1")).status, 200);
  EXPECT_EQ(second.ask(request_text("GET /2")).status, 200);
  EXPECT_EQ(server->counters().connections_open, 2u);

  RawClient third(server->port());
  const RawReply refused = third.hear();
  EXPECT_EQ(refused.status, 503);
  EXPECT_TRUE(refused.has("connection: close"));
  EXPECT_TRUE(third.closed());
  EXPECT_EQ(server->counters().connections_refused_total, 1u);
  EXPECT_EQ(server->counters().connections_total, 2u);

  first.reset();
  // The server notices that on its own time.
  while (RawClient(server->port()).ask(request_text("GET /")).status != 200) {
  }
  EXPECT_EQ(second.ask(request_text("GET /2")).status, 200);
}

TEST(HttpServerLimits,
     a_request_that_finds_the_queue_of_handlers_full_is_503_and_keeps_its_connection) {
  ServerOptions options;
  options.handler_threads = 1;
  options.handler_queue_max = 2;
  Gate gate;
  const auto server = start_server(options, gate.handler());
  RawClient working(server->port());
  working.say(request_text("GET /wait"));
  gate.wait_until_entered();
  RawClient waiting[] = {RawClient(server->port()), RawClient(server->port())};
  for (RawClient& client : waiting) client.say(request_text("GET /queued"));
  // One more than fit; which of the three it is depends on the order in which the server reads
  // them.
  RawClient last(server->port());
  last.say(request_text("GET /queued"));
  while (server->counters().overloaded_total == 0) std::this_thread::yield();
  gate.open();
  EXPECT_EQ(working.hear().status, 200);
  std::vector<RawClient*> refused;
  for (RawClient* client : {&waiting[0], &waiting[1], &last}) {
    const RawReply reply = client->hear();
    if (reply.status == 503) {
      refused.push_back(client);
      EXPECT_FALSE(reply.has("connection: close"));
    } else {
      EXPECT_EQ(reply.body, "GET /queued");
    }
  }
  ASSERT_EQ(refused.size(), 1u);
  EXPECT_EQ(refused[0]->ask(request_text("GET /again")).status, 200);
  EXPECT_EQ(server->counters().overloaded_total, 1u);
}

TEST(HttpServerLimits, a_process_without_a_free_descriptor_accepts_again_once_it_has_one) {
  const auto server = start_server();
  EXPECT_EQ(RawClient(server->port()).ask(request_text("GET /")).status, 200);
  while (server->counters().connections_open > 0) std::this_thread::yield();
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &before), 0);
  const int lowest_free = dup(0);
  ASSERT_GE(lowest_free, 0);
  close(lowest_free);
  // The client takes the last descriptor, and none is left to accept it with.
  const rlimit tight{static_cast<rlim_t>(lowest_free) + 1, before.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &tight), 0);
  RawClient client(server->port());
  client.say(request_text("GET /"));
  const bool connected = client.connected();
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &before), 0);
  ASSERT_TRUE(connected);
  EXPECT_EQ(client.hear().status, 200);
}

// ---- what is no request

struct Malformed {
  int status;
  std::string bytes;
};

const std::string kHost = "Host: a\r\n";
const std::string kChunked = "Transfer-Encoding: chunked\r\n";
const std::string kNul(1, '\0');
const std::vector<Malformed> kMalformed = {
    {400, "\x16\x03\x01\x02"},  // TLS to a plain port
    {400, " GET / HTTP/1.1\r\n"},
    {400, "GET / HTTP/1.1\n"},
    {400, "GET / HTTP/1.1\r\r\n"},
    {400, "GET /\r\n\r\n"},
    {400, "GET  / HTTP/1.1\r\n" + kHost + "\r\n"},
    {400, "GET / HTTP/1.1 \r\n" + kHost + "\r\n"},
    {400, "GET / http/1.1\r\n" + kHost + "\r\n"},
    {400, "G(T / HTTP/1.1\r\n" + kHost + "\r\n"},
    {400, "GET path HTTP/1.1\r\n" + kHost + "\r\n"},
    {400, "CONNECT a:443 HTTP/1.1\r\n" + kHost + "\r\n"},
    {400, "GET /%zz HTTP/1.1\r\n" + kHost + "\r\n"},
    {400, "GET /%2 HTTP/1.1\r\n" + kHost + "\r\n"},
    {400, "GET /?a=%f HTTP/1.1\r\n" + kHost + "\r\n"},
    {400, "GET /%00 HTTP/1.1\r\n" + kHost + "\r\n"},
    {400, "GET /%0d%0aEvil HTTP/1.1\r\n" + kHost + "\r\n"},
    {400, "GET /?a=%00 HTTP/1.1\r\n" + kHost + "\r\n"},
    {400, "GET /\x01 HTTP/1.1\r\n" + kHost + "\r\n"},
    {400, "GET /" + kNul + " HTTP/1.1\r\n" + kHost + "\r\n"},
    {400, "GET /#fragment HTTP/1.1\r\n" + kHost + "\r\n"},
    {400, "GET / HTTP/1.1\r\n\r\n"},
    {400, "GET / HTTP/1.1\r\n" + kHost + kHost + "\r\n"},
    {400, "GET / HTTP/1.1\r\n" + kHost + "No colon\r\n\r\n"},
    {400, "GET / HTTP/1.1\r\n" + kHost + "Space : a\r\n\r\n"},
    {400, "GET / HTTP/1.1\r\n" + kHost + ": no name\r\n\r\n"},
    {400, "GET / HTTP/1.1\r\n" + kHost + "A: b" + kNul + "\r\n\r\n"},
    {400, "GET / HTTP/1.1\r\n" + kHost + "A: b\r\n folded\r\n\r\n"},
    {400, "POST / HTTP/1.1\r\n" + kHost + "Content-Length: 3\r\n" + kChunked + "\r\nabc"},
    {400, "POST / HTTP/1.1\r\n" + kHost + kChunked + "Content-Length: 3\r\n\r\nabc"},
    {400, "POST / HTTP/1.1\r\n" + kHost + "Content-Length: 3\r\nContent-Length: 3\r\n\r\nabc"},
    {400, "POST / HTTP/1.1\r\n" + kHost + "Content-Length: 3\r\nContent-Length: 4\r\n\r\nabc"},
    {400, "POST / HTTP/1.1\r\n" + kHost + "Content-Length: 3, 3\r\n\r\nabc"},
    {400, "POST / HTTP/1.1\r\n" + kHost + "Content-Length: +3\r\n\r\nabc"},
    {400, "POST / HTTP/1.1\r\n" + kHost + "Content-Length: -1\r\n\r\n"},
    {400, "POST / HTTP/1.1\r\n" + kHost + "Content-Length: 0x3\r\n\r\nabc"},
    {400, "POST / HTTP/1.1\r\n" + kHost + "Content-Length:\r\n\r\n"},
    {400, "POST / HTTP/1.1\r\n" + kHost + "Content-Length: 18446744073709551616\r\n\r\n"},
    {400,
     "POST / HTTP/1.1\r\n" + kHost + "Content-Length: 3\r\nTransfer-Encoding: gzip\r\n\r\nabc"},
    {400, "POST / HTTP/1.1\r\n" + kHost + kChunked + kChunked + "\r\n0\r\n\r\n"},
    {400, "POST / HTTP/1.0\r\n" + kHost + kChunked + "\r\n0\r\n\r\n"},
    {501, "POST / HTTP/1.1\r\n" + kHost + "Transfer-Encoding: identity\r\n\r\n"},
    {501, "POST / HTTP/1.1\r\n" + kHost + "Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n"},
    {501, "POST / HTTP/1.1\r\n" + kHost + "Transfer-Encoding: chunked, gzip\r\n\r\n0\r\n\r\n"},
    {501, "POST / HTTP/1.1\r\n" + kHost + "Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n"},
    {400, "POST / HTTP/1.1\r\n" + kHost + kChunked + "\r\nx\r\nabc\r\n"},
    {400, "POST / HTTP/1.1\r\n" + kHost + kChunked + "\r\n-1\r\nabc\r\n"},
    {400, "POST / HTTP/1.1\r\n" + kHost + kChunked + "\r\n3\r\nabcd\r\n0\r\n\r\n"},
    {400, "POST / HTTP/1.1\r\n" + kHost + kChunked + "\r\n10000000000000000\r\nabc\r\n"},
    {400, "POST / HTTP/1.1\r\n" + kHost + kChunked + "\r\n0\r\nContent-Length: 3\r\n\r\n"},
    {505, "GET / HTTP/2.0\r\n" + kHost + "\r\n"},
    {505, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"},
    {505, "GET / HTTP/0.9\r\n\r\n"},
    {505, "GET / HTTP/1.2\r\n" + kHost + "\r\n"},
};

TEST(HttpServerLimits, what_is_malformed_is_refused_and_the_connection_closed) {
  const auto server = start_server();
  for (const Malformed& malformed : kMalformed) {
    RawClient client(server->port());
    const RawReply reply = client.ask(malformed.bytes);
    EXPECT_EQ(reply.status, malformed.status)
        << testing::PrintToString(malformed.bytes) << reply.body;
    EXPECT_TRUE(reply.has("connection: close")) << testing::PrintToString(malformed.bytes);
    EXPECT_TRUE(client.closed()) << testing::PrintToString(malformed.bytes);
  }
  EXPECT_EQ(server->counters().malformed_total, kMalformed.size());
  EXPECT_EQ(RawClient(server->port()).ask(request_text("GET /")).status, 200);
}

TEST(HttpServerLimits, a_line_of_a_chunk_has_an_end) {
  const auto server = start_server();
  RawClient client(server->port());
  client.say(
      request_text("POST /", "Transfer-Encoding: chunked\r\n", "3;" + std::string(70'000, 'x')));
  EXPECT_THAT(client.hear().body, HasSubstr("chunk line too long"));
}

TEST(HttpServerLimits, a_refusal_does_not_repeat_what_it_was_sent) {
  const auto server = start_server();
  RawClient client(server->port());
  EXPECT_EQ(client.ask(request_text("GET /<script>%zz")).body,
            "{\"error\":\"400 Bad Request: bad percent escape in the path\"}\n");
}

TEST(HttpServerLimits, a_client_that_breaks_off_leaves_nothing_behind) {
  const auto server = start_server();
  for (const std::string bytes : {"", "GET", "GET / HTTP/1.1\r\n",
                                  "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\nabc"}) {
    RawClient client(server->port());
    client.say(bytes);
    client.end_of_saying();
    EXPECT_TRUE(client.closed()) << bytes;
  }
  EXPECT_EQ(server->counters().malformed_total, 0u);
}

}  // namespace
}  // namespace flopsight::net
