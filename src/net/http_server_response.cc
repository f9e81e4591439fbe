#include "net/http_server_response.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <utility>

#include "base/json.h"
#include "base/text.h"

namespace flopsight::net {
namespace {

constexpr std::pair<int, std::string_view> kReasons[] = {{200, "OK"},
                                                         {201, "Created"},
                                                         {202, "Accepted"},
                                                         {204, "No Content"},
                                                         {206, "Partial Content"},
                                                         {301, "Moved Permanently"},
                                                         {302, "Found"},
                                                         {303, "See Other"},
                                                         {304, "Not Modified"},
                                                         {307, "Temporary Redirect"},
                                                         {308, "Permanent Redirect"},
                                                         {400, "Bad Request"},
                                                         {401, "Unauthorized"},
                                                         {403, "Forbidden"},
                                                         {404, "Not Found"},
                                                         {405, "Method Not Allowed"},
                                                         {406, "Not Acceptable"},
                                                         {408, "Request Timeout"},
                                                         {409, "Conflict"},
                                                         {410, "Gone"},
                                                         {411, "Length Required"},
                                                         {412, "Precondition Failed"},
                                                         {413, "Content Too Large"},
                                                         {414, "URI Too Long"},
                                                         {415, "Unsupported Media Type"},
                                                         {416, "Range Not Satisfiable"},
                                                         {417, "Expectation Failed"},
                                                         {421, "Misdirected Request"},
                                                         {422, "Unprocessable Content"},
                                                         {429, "Too Many Requests"},
                                                         {431, "Request Header Fields Too Large"},
                                                         {500, "Internal Server Error"},
                                                         {501, "Not Implemented"},
                                                         {502, "Bad Gateway"},
                                                         {503, "Service Unavailable"},
                                                         {504, "Gateway Timeout"},
                                                         {505, "HTTP Version Not Supported"}};

constexpr std::string_view kOurs[] = {"content-length", "content-type", "transfer-encoding",
                                      "connection",     "keep-alive",   "trailer",
                                      "upgrade",        "date"};

std::string_view reason_of(int status) {
  const auto* found = std::find_if(std::begin(kReasons), std::end(kReasons),
                                   [&](const auto& row) { return row.first == status; });
  return found == std::end(kReasons) ? "Unknown" : found->second;
}

bool is_token(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return c > 0x20 && c < 0x7f &&
           std::string_view("\"(),/:;<=>?@[\\]{}").find(c) == std::string_view::npos;
  });
}

void append_header(std::string& head, std::string_view name, std::string_view value) {
  head.append(name).append(": ");
  for (const char c : value) head += static_cast<unsigned char>(c) < 0x20 || c == 0x7f ? ' ' : c;
  head += "\r\n";
}

}  // namespace

bool status_has_body(int status) { return status != 204 && status != 304; }

std::string response_head(const ServerResponse& response, const ResponseFraming& framing) {
  const int status = response.status >= 200 && response.status <= 599 ? response.status : 500;
  std::string head = "HTTP/1.1 " + std::to_string(status) + " ";
  head.append(reason_of(status)).append("\r\n");
  if (!framing.date.empty()) append_header(head, "Date", framing.date);
  if (status_has_body(status)) {
    if (!response.content_type.empty()) append_header(head, "Content-Type", response.content_type);
    append_header(head, "Content-Length", std::to_string(response.body.size()));
  }
  if (!framing.keep_alive) {
    append_header(head, "Connection", "close");
  } else if (framing.http_1_0) {
    append_header(head, "Connection", "keep-alive");
  }
  for (const auto& [name, value] : response.headers) {
    const bool ours =
        std::find(std::begin(kOurs), std::end(kOurs), base::to_lower(name)) != std::end(kOurs);
    if (is_token(name) && !ours) append_header(head, name, value);
  }
  return head + "\r\n";
}

std::string http_date(std::time_t seconds) {
  constexpr std::array kDays = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
  constexpr std::array kMonths = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                  "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
  std::tm utc{};
  if (gmtime_r(&seconds, &utc) == nullptr) return {};
  char text[64];
  std::snprintf(text, sizeof text, "%s, %02d %s %04d %02d:%02d:%02d GMT",
                kDays[static_cast<std::size_t>(utc.tm_wday)], utc.tm_mday,
                kMonths[static_cast<std::size_t>(utc.tm_mon)], utc.tm_year + 1900, utc.tm_hour,
                utc.tm_min, utc.tm_sec);
  return text;
}

ServerResponse error_response(int status, std::string_view reason) {
  ServerResponse response;
  response.status = status;
  response.content_type = "application/json";
  std::string text = std::to_string(status) + " " + std::string(reason_of(status));
  if (!reason.empty()) text.append(": ").append(reason);
  response.body = base::json::dump(base::json::Object{{"error", base::printable(text, 500)}}, 0) + "\n";
  // Who sends series again at once makes the overload last.
  if (status == 503) response.headers.emplace_back("Retry-After", "1");
  return response;
}

}  // namespace flopsight::net
