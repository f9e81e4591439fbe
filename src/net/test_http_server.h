#pragma once
// A small HTTP/1.1 server on a loopback port, for tests only: it answers what the test's function
// says, or misbehaves as the reply asks. One thread for each connection; connections are kept
// alive.

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <condition_variable>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "base/check.h"
#include "base/text.h"

namespace flopsight::net {

struct TestRequest {
  std::string method;
  std::string target;                          // "/path?query"
  std::map<std::string, std::string> headers;  // names in lower case
  std::string body;

  std::string header(const std::string& name) const {
    const auto found = headers.find(name);
    return found == headers.end() ? "" : found->second;
  }
};

struct TestReply {
  std::string status = "200 OK";
  std::vector<std::pair<std::string, std::string>> headers = {};
  std::string body = {};
  bool chunked = false;
  std::optional<std::size_t> drop_after = {};  // close after this many bytes, head included
  std::optional<std::size_t> hold_after =
      {};  // send no more, keep the connection open till the end
  std::string chunk_size = {};  // said of each chunk in place of its own, in hexadecimal
};

class TestHttpServer {
 public:
  using Handler = std::function<TestReply(const TestRequest&)>;  // called from many threads

  explicit TestHttpServer(Handler handler) : handler_(std::move(handler)) {
    setenv("no_proxy", "127.0.0.1,localhost", 1);  // a developer's proxy is not for loopback
    listener_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    FLOPSIGHT_CHECK(bind(listener_, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0);
    FLOPSIGHT_CHECK(listen(listener_, 256) == 0);
    socklen_t size = sizeof address;
    FLOPSIGHT_CHECK(getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size) == 0);
    port_ = ntohs(address.sin_port);
    acceptor_ = std::thread([this] { accept_all(); });
  }

  ~TestHttpServer() {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
      for (const int connection : connections_) shutdown(connection, SHUT_RDWR);
    }
    stopped_.notify_all();
    shutdown(listener_, SHUT_RDWR);
    acceptor_.join();
    for (std::thread& thread : threads_) thread.join();
    close(listener_);
  }

  TestHttpServer(const TestHttpServer&) = delete;
  TestHttpServer& operator=(const TestHttpServer&) = delete;

  int port() const { return port_; }
  std::string url(const std::string& path = "") const {
    return "http://127.0.0.1:" + std::to_string(port_) + path;
  }

  std::vector<TestRequest> requests() const {
    const std::lock_guard lock(mutex_);
    return requests_;
  }

 private:
  void accept_all() {
    while (true) {
      const int connection = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
      const std::lock_guard lock(mutex_);
      if (stopping_) {
        if (connection >= 0) close(connection);
        return;
      }
      if (connection < 0) continue;
      connections_.push_back(connection);
      threads_.emplace_back([this, connection] {
        serve(connection);
        const std::lock_guard closing(mutex_);
        std::erase(connections_, connection);
        close(connection);
      });
    }
  }

  void serve(int connection) {
    std::string unread;
    while (auto request = read_request(connection, unread)) {
      {
        const std::lock_guard lock(mutex_);
        requests_.push_back(*request);
      }
      if (!answer(connection, handler_(*request))) return;
    }
  }

  static std::optional<TestRequest> read_request(int connection, std::string& unread) {
    std::size_t head = 0;
    while ((head = unread.find("\r\n\r\n")) == std::string::npos) {
      if (!receive(connection, unread)) return {};
    }
    TestRequest request;
    const std::vector<std::string> lines = base::split(unread.substr(0, head), '\n');
    const std::vector<std::string> first = base::split(base::trim(lines[0]), ' ');
    request.method = first[0];
    request.target = first.size() > 1 ? first[1] : "";
    for (std::size_t i = 1; i < lines.size(); ++i) {
      const std::size_t colon = lines[i].find(':');
      if (colon == std::string::npos) continue;
      request.headers[base::to_lower(lines[i].substr(0, colon))] =
          base::trim(std::string_view(lines[i]).substr(colon + 1));
    }
    const std::size_t length = std::strtoul(request.header("content-length").c_str(), nullptr, 10);
    while (unread.size() < head + 4 + length) {
      if (!receive(connection, unread)) return {};
    }
    request.body = unread.substr(head + 4, length);
    unread.erase(0, head + 4 + length);
    return request;
  }

  static bool receive(int connection, std::string& into) {
    char buffer[4096];
    const ssize_t got = recv(connection, buffer, sizeof buffer, 0);
    if (got > 0) into.append(buffer, static_cast<std::size_t>(got));
    return got > 0;
  }

  static std::string bytes_of(const TestReply& reply) {
    std::string bytes = "HTTP/1.1 " + reply.status + "\r\n";
    for (const auto& [name, value] : reply.headers) bytes += name + ": " + value + "\r\n";
    if (!reply.chunked) {
      return bytes + "Content-Length: " + std::to_string(reply.body.size()) + "\r\n\r\n" +
             reply.body;
    }
    bytes += "Transfer-Encoding: chunked\r\n\r\n";
    constexpr std::size_t kChunk = 7;
    for (std::size_t at = 0; at < reply.body.size(); at += kChunk) {
      const std::string chunk = reply.body.substr(at, kChunk);
      // Below 10, so hexadecimal too.
      bytes += (reply.chunk_size.empty() ? std::to_string(chunk.size()) : reply.chunk_size) + "\r\n" + chunk + "\r\n";
    }
    return bytes + "0\r\n\r\n";
  }

  // False: the connection is done for.
  bool answer(int connection, const TestReply& reply) {
    const std::string bytes = bytes_of(reply);
    const std::size_t cut =
        std::min(reply.drop_after.value_or(bytes.size()), reply.hold_after.value_or(bytes.size()));
    for (std::size_t sent = 0; sent < std::min(cut, bytes.size());) {
      const ssize_t n =
          send(connection, bytes.data() + sent, std::min(cut, bytes.size()) - sent, MSG_NOSIGNAL);
      if (n <= 0) return false;
      sent += static_cast<std::size_t>(n);
    }
    if (reply.hold_after) {
      std::unique_lock lock(mutex_);
      stopped_.wait(lock, [this] { return stopping_; });
    }
    return !reply.hold_after && !reply.drop_after;
  }

  Handler handler_;
  int listener_ = -1;
  int port_ = 0;
  mutable std::mutex mutex_;
  std::condition_variable stopped_;
  bool stopping_ = false;
  std::vector<int> connections_;
  std::vector<TestRequest> requests_;
  std::vector<std::thread> threads_;
  std::thread acceptor_;
};

}  // namespace flopsight::net
