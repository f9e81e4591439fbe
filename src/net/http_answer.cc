#include "net/http_answer.h"

#include <algorithm>

#include "base/text.h"
#include "net/http_text.h"

namespace flopsight::net {
namespace {

constexpr std::size_t kErrorBodyBytesMax = 64 * 1024;  // an explanation, not data
constexpr std::size_t kErrorTextBytesMax = 200;        // of it, in a message
constexpr double kRetryAfterSecondsMax = 86'400;       // longer is as good as never

std::optional<std::chrono::seconds> parse_retry_after(std::string_view value) {
  if (value.empty() || value.find_first_not_of("0123456789") != std::string_view::npos) return {};
  const double seconds = base::parse_number(value).value_or(kRetryAfterSecondsMax);
  return std::chrono::seconds(static_cast<int>(std::min(seconds, kRetryAfterSecondsMax)));
}

}  // namespace

void HttpAnswer::take_header(std::string_view line) {
  line = base::trim(line);
  if (line.starts_with("HTTP/")) {
    const std::size_t limit = body_bytes_max;
    *this = HttpAnswer{};
    body_bytes_max = limit;
    const std::size_t space = std::min(line.find(' '), line.size());
    const std::string_view rest = base::trim(line.substr(space));
    status = static_cast<int>(base::parse_number(rest.substr(0, 3)).value_or(0));
    status_line = single_line(rest, 80);
    return;
  }
  const std::size_t colon = line.find(':');
  if (colon == std::string_view::npos) return;
  const std::string name = base::to_lower(line.substr(0, colon));
  const std::string_view value = base::trim(line.substr(colon + 1));
  if (name == "location") location = value;
  if (name == "content-type") content_type = value;
  if (name == "retry-after") retry_after = parse_retry_after(value);
}

bool HttpAnswer::take_body(std::string_view bytes) {
  const std::size_t limit =
      succeeded() ? body_bytes_max : std::min(body_bytes_max, kErrorBodyBytesMax);
  const std::size_t room = limit - body.size();
  body.append(bytes.substr(0, room));
  over_limit = bytes.size() > room;
  return !over_limit;
}

std::string HttpAnswer::failure_text() const {
  const std::string text = single_line(body, kErrorTextBytesMax);
  return "HTTP " + status_line + (text.empty() ? "" : ": " + text);
}

bool HttpAnswer::redirects() const {
  return (status == 301 || status == 302 || status == 303 || status == 307 || status == 308) &&
         !location.empty();
}

}  // namespace flopsight::net
