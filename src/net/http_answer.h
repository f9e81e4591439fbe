#pragma once
// What has arrived of one HTTP answer: the status line, the few headers that matter, and the body under its
// limits. Fed by the transport as bytes come in; knows no transport.

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace flopsight::net {

struct HttpAnswer {
  std::size_t body_bytes_max = 0;  // of a 2xx answer; of another at most its first 64 KiB

  int status = 0;           // 0: no status line yet
  std::string status_line;  // "503 Service Unavailable"
  std::string location;
  std::string content_type;
  std::optional<std::chrono::seconds> retry_after;  // at most a day; a date instead of seconds is ignored
  std::string body;
  bool over_limit = false;

  // One header line, or a status line, which starts anew (after "100 Continue" or a proxy's answer).
  void take_header(std::string_view line);
  // False: the limit is reached, the rest is not wanted. What fits has been kept.
  bool take_body(std::string_view bytes);

  // "HTTP 503 Service Unavailable: " and the first 200 bytes of the body, on one line.
  std::string failure_text() const;

  bool succeeded() const { return status >= 200 && status < 300; }
  bool redirects() const;
  bool may_succeed_later() const { return status == 408 || status == 429 || status >= 500; }
};

}  // namespace flopsight::net
