#pragma once
// Bytes of a connection to a ServerRequest: Beast's parser, and the rules against smuggling that it
// leaves to its user. Knows no sockets, so that it can be fuzzed.
//
// Threads: one at a time. Errors are HTTP statuses, with a reason for the person at the other end.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "net/http_server.h"

namespace flopsight::net {

// Bytes of all bodies that are read or worked on.
class BodyBudget {
 public:
  explicit BodyBudget(std::size_t bytes_max) : bytes_max_(bytes_max) {}
  bool take(std::size_t bytes) {
    if (bytes > bytes_max_ - used_) return false;
    used_ += bytes;
    return true;
  }
  void give_back(std::size_t bytes) { used_ -= bytes; }
  std::size_t left() const { return bytes_max_ - used_; }

 private:
  std::size_t bytes_max_;
  std::size_t used_ = 0;
};

enum class HeadScan { kMore, kComplete, kBad };

// Looks for the empty line that ends a head, from `scanned` on, which it moves: to behind that line
// when complete. Bad as soon as a byte says so (a bare line feed, a control character, a folded
// line, TLS to a plain port), because who waits for the rest of something that is no HTTP waits for
// ever.
HeadScan scan_head(std::string_view bytes, std::size_t& scanned);

struct RequestRefusal {
  int status = 400;
  std::string reason;
};

class RequestParser {
 public:
  RequestParser(std::size_t body_bytes_max, BodyBudget& budget);
  ~RequestParser();  // gives back what the body took from the budget
  RequestParser(const RequestParser&) = delete;
  RequestParser& operator=(const RequestParser&) = delete;

  // The whole head, empty line included. Once. False: see refusal().
  bool read_head(std::string_view head);
  // How many bytes were taken; the rest belongs to the next request (when done) or is to be shown
  // again with more behind it.
  std::size_t read_body(std::string_view bytes);
  // From now on the body is skipped and not kept.
  void discard_body();

  bool done() const;  // nothing of the body is missing
  const std::optional<RequestRefusal>& refusal() const;

  // After the head:
  ServerRequest& request();
  std::optional<std::uint64_t> content_length() const;
  bool expects_continue() const;
  bool keep_alive() const;
  bool http_1_0() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace flopsight::net
