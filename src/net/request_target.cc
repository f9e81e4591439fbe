#include "net/request_target.h"

#include <algorithm>
#include <optional>

#include "base/text.h"

namespace flopsight::net {
namespace {

base::Error invalid(std::string message) {
  return base::Error{base::ErrorCode::kInvalid, std::move(message)};
}

std::optional<unsigned> hex_digit(char c) {
  if (c >= '0' && c <= '9') return static_cast<unsigned>(c - '0');
  if (c >= 'a' && c <= 'f') return static_cast<unsigned>(c - 'a' + 10);
  if (c >= 'A' && c <= 'F') return static_cast<unsigned>(c - 'A' + 10);
  return std::nullopt;
}

std::optional<std::string> decode(std::string_view text, bool plus_is_space) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '+' && plus_is_space) {
      out += ' ';
    } else if (text[i] != '%') {
      out += text[i];
    } else {
      const auto high = i + 1 < text.size() ? hex_digit(text[i + 1]) : std::nullopt;
      const auto low = i + 2 < text.size() ? hex_digit(text[i + 2]) : std::nullopt;
      if (!high || !low) return std::nullopt;
      out += static_cast<char>(*high << 4 | *low);
      i += 2;
    }
  }
  return out;
}

bool is_control(char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; }

// "http://host:9090/path?query" without what is before the path, which may be absent; others as
// they are.
std::string without_origin(std::string_view target) {
  for (const std::string_view scheme : {"http://", "https://"}) {
    if (base::to_lower(target.substr(0, scheme.size())) != scheme) continue;
    target.remove_prefix(scheme.size());
    target.remove_prefix(std::min(target.find_first_of("/?"), target.size()));
    return (target.starts_with('/') ? "" : "/") + std::string(target);
  }
  return std::string(target);
}

}  // namespace

base::Result<QueryPairs> parse_query(std::string_view text) {
  QueryPairs pairs;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('&'), text.size());
    const std::string_view piece = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (piece.empty()) continue;
    const std::size_t equals = std::min(piece.find('='), piece.size());
    auto name = decode(piece.substr(0, equals), true);
    auto value = decode(piece.substr(std::min(equals + 1, piece.size())), true);
    if (!name || !value) return invalid("bad percent escape in the query");
    if (name->find('\0') != std::string::npos || value->find('\0') != std::string::npos) {
      return invalid("NUL in the query");
    }
    pairs.emplace_back(std::move(*name), std::move(*value));
  }
  return pairs;
}

base::Result<RequestTarget> parse_request_target(std::string_view text) {
  // Would end the path in a URL, and is never sent: who sends it disagrees with us on the path.
  if (text.find('#') != std::string_view::npos) return invalid("'#' in the request target");
  const std::string target = without_origin(text);
  if (!target.starts_with('/') && target != "*") {
    return invalid("a request target starts with '/'");
  }
  const std::size_t mark = std::min(target.find('?'), target.size());
  auto path = decode(std::string_view(target).substr(0, mark), false);
  if (!path) return invalid("bad percent escape in the path");
  if (std::any_of(path->begin(), path->end(), is_control)) {
    return invalid("control character in the path");
  }
  RequestTarget out;
  out.path = std::move(*path);
  FLOPSIGHT_ASSIGN_OR_RETURN(
      out.query, parse_query(std::string_view(target).substr(std::min(mark + 1, target.size()))));
  return out;
}

}  // namespace flopsight::net
