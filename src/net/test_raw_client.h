#pragma once
// A socket that says to a server whatever the test likes, also what no HTTP client would.
// Test-only; plain, on loopback.

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <utility>

#include "base/check.h"
#include "base/text.h"

namespace flopsight::net {

// For both ends of a few thousand connections, where the usual limit is 1,024 files.
inline void allow_many_sockets() {
  rlimit files{};
  getrlimit(RLIMIT_NOFILE, &files);
  files.rlim_cur = std::max(files.rlim_cur, std::min<rlim_t>(files.rlim_max, 8192));
  setrlimit(RLIMIT_NOFILE, &files);
}

struct RawReply {
  int status = 0;    // 0: the connection ended before a whole head
  std::string head;  // in lower case
  std::string body;
  bool has(std::string_view header) const {
    return head.find(base::to_lower(header)) != std::string::npos;
  }
};

class RawClient {
 public:
  // Connects, or is not connected(). A small receive buffer makes a stalled reader of a few bytes.
  explicit RawClient(std::uint16_t port, int receive_bytes = 0) {
    socket_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    FLOPSIGHT_CHECK(socket_ >= 0);
    if (receive_bytes > 0) {
      setsockopt(socket_, SOL_SOCKET, SO_RCVBUF, &receive_bytes, sizeof receive_bytes);
    }
    // Catches a hang; nothing waits for its end.
    const timeval limit{60, 0};
    setsockopt(socket_, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    connected_ = connect(socket_, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
  }
  ~RawClient() {
    if (socket_ >= 0) close(socket_);
  }
  RawClient(RawClient&& other) noexcept
      : socket_(std::exchange(other.socket_, -1)),
        connected_(other.connected_),
        unread_(std::move(other.unread_)) {}
  RawClient(const RawClient&) = delete;
  RawClient& operator=(const RawClient&) = delete;

  bool connected() const { return connected_; }

  // False once the server has closed.
  bool say(std::string_view bytes) const {
    while (!bytes.empty()) {
      const ssize_t sent = send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (sent <= 0) return false;
      bytes.remove_prefix(static_cast<std::size_t>(sent));
    }
    return true;
  }
  void end_of_saying() const { shutdown(socket_, SHUT_WR); }

  // One response; 1xx are responses too. `without_body`: to HEAD.
  RawReply hear(bool without_body = false) {
    RawReply reply;
    std::size_t end = 0;
    while ((end = unread_.find("\r\n\r\n")) == std::string::npos) {
      if (!receive()) return {};
    }
    reply.head = base::to_lower(unread_.substr(0, end + 2));
    unread_.erase(0, end + 4);
    reply.status = std::atoi(reply.head.c_str() + 9);
    const std::size_t at = reply.head.find("\r\ncontent-length: ");
    if (at == std::string::npos || without_body) return reply;
    const std::size_t length = std::strtoul(reply.head.c_str() + at + 18, nullptr, 10);
    while (unread_.size() < length && receive()) {
    }
    reply.body = unread_.substr(0, length);
    unread_.erase(0, length);
    return reply;
  }
  RawReply ask(std::string_view bytes) {
    say(bytes);
    return hear();
  }

  // Everything up to the end of the connection.
  std::string hear_all() {
    while (receive()) {
    }
    return std::exchange(unread_, {});
  }
  // Nothing more came, and the server closed.
  bool closed() { return hear_all().empty(); }

 private:
  bool receive() {
    char buffer[65536];
    const ssize_t got = recv(socket_, buffer, sizeof buffer, 0);
    FLOPSIGHT_CHECK(got >= 0 || (errno != EAGAIN && errno != EWOULDBLOCK));
    if (got > 0) unread_.append(buffer, static_cast<std::size_t>(got));
    return got > 0;
  }

  int socket_ = -1;
  bool connected_ = false;
  std::string unread_;
};

}  // namespace flopsight::net
