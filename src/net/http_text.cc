#include "net/http_text.h"

#include <algorithm>

#include "base/text.h"
#include "net/http_client.h"

namespace flopsight::net {
namespace {

bool is_letter_or_digit(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

bool is_space(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\n'; }

// The bytes of the UTF-8 character at the front that may be printed, or 0.
std::size_t printable_character(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  if (byte(0) < 0x80) return byte(0) >= 0x20 && byte(0) != 0x7f ? 1 : 0;
  const std::size_t length = byte(0) >= 0xf0 ? 4 : byte(0) >= 0xe0 ? 3 : 2;
  if (byte(0) < 0xc2 || byte(0) > 0xf4 || text.size() < length) return 0;
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return 0;
  }
  return byte(0) == 0xc2 && byte(1) < 0xa0 ? 0 : length;  // U+0080–U+009F can move a cursor
}

}  // namespace

std::string single_line(std::string_view text, std::size_t bytes_max) {
  std::string out;
  text = base::trim(text);
  while (!text.empty()) {
    if (is_space(text.front())) {
      if (!out.empty() && out.back() != ' ') out += ' ';
      text.remove_prefix(1);
      continue;
    }
    const std::size_t length = printable_character(text);
    if (out.size() + length > bytes_max) return std::string(base::trim(out)) + "...";
    out += text.substr(0, length);
    text.remove_prefix(std::max<std::size_t>(length, 1));
  }
  return std::string(base::trim(out));
}

std::string duration_text(std::chrono::milliseconds duration) {
  const auto count = duration.count();
  if (count % 1000 == 0) return std::to_string(count / 1000) + " s";
  return std::to_string(count) + " ms";
}

base::Error attempt_error(base::ErrorCode code, std::string_view url, const std::string& cause,
                          int attempts) {
  return base::Error{code, single_line(url_without_credentials(url), kUrlTextBytesMax) + ": " +
                               cause + " (" + std::to_string(attempts) +
                               (attempts == 1 ? " attempt)" : " attempts)")};
}

base::Status check_headers(const std::vector<std::pair<std::string, std::string>>& headers) {
  for (const auto& [name, value] : headers) {
    const bool token = !name.empty() && std::all_of(name.begin(), name.end(), [](char c) {
      return is_letter_or_digit(c) ||
             std::string_view("!#$%&'*+-.^_`|~").find(c) != std::string_view::npos;
    });
    if (!token) {
      return base::Error{base::ErrorCode::kInvalid, "header name \"" + single_line(name, 100) +
                                                        "\": expected letters, digits and dashes"};
    }
    const bool clean = std::none_of(value.begin(), value.end(), [](char c) {
      return (static_cast<unsigned char>(c) < 0x20 && c != '\t') || c == 0x7f;
    });
    if (!clean) {
      return base::Error{base::ErrorCode::kInvalid,
                         "header " + name + ": its value has a line break or control character"};
    }
  }
  return {};
}

std::string url_encode(std::string_view text) {
  constexpr std::string_view kHexDigits = "0123456789ABCDEF";
  std::string out;
  out.reserve(text.size() + text.size() / 4);
  for (const char c : text) {
    if (is_letter_or_digit(c) || c == '-' || c == '_' || c == '.' || c == '~') {
      out += c;
    } else {
      const auto byte = static_cast<unsigned char>(c);
      out += '%';
      out += kHexDigits[byte >> 4];
      out += kHexDigits[byte & 15];
    }
  }
  return out;
}

std::string url_without_credentials(std::string_view url) {
  const std::size_t scheme = url.find("://");
  const std::size_t start = scheme == std::string_view::npos ? 0 : scheme + 3;
  const std::string_view rest = url.substr(start);
  const std::size_t end = std::min(rest.find_first_of("/?#\\"), rest.size());
  std::size_t at = rest.substr(0, end).rfind('@');
  if (at == std::string_view::npos) {
    // "user:pa/ss@host": what follows the colon is no port, so the '@' beyond the slash ends a
    // password.
    const std::string_view authority = rest.substr(0, end);
    const std::size_t colon =
        authority.starts_with('[') ? authority.find("]:") : authority.find(':');
    const bool port = colon == std::string_view::npos ||
                      authority.find_first_not_of("0123456789", authority.find(':', colon) + 1) ==
                          std::string_view::npos;
    if (!port) at = rest.rfind('@');
  }
  if (at == std::string_view::npos) return std::string(url);
  return std::string(url.substr(0, start)) + std::string(rest.substr(at + 1));
}

}  // namespace flopsight::net
