// Any bytes as a request target and as a query: what is accepted has no control characters in its
// path, and means the same once it is encoded again.
#include <cstdint>
#include <string>
#include <string_view>

#include "base/check.h"
#include "net/http_client.h"
#include "net/request_target.h"

namespace {

using flopsight::net::parse_query;
using flopsight::net::parse_request_target;
using flopsight::net::url_encode;

std::string encoded(const flopsight::net::QueryPairs& pairs) {
  std::string text;
  for (const auto& [name, value] : pairs) {
    if (!text.empty()) text += '&';
    text += url_encode(name) + "=" + url_encode(value);
  }
  return text;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  const auto query = parse_query(text);
  if (query.ok()) {
    FLOPSIGHT_CHECK(parse_query(encoded(*query)).value() == *query);
  } else {
    FLOPSIGHT_CHECK(query.error().code == flopsight::base::ErrorCode::kInvalid);
  }
  const auto target = parse_request_target(text);
  if (!target.ok()) return 0;
  FLOPSIGHT_CHECK(target->path == "*" || target->path.front() == '/');
  for (const char c : target->path)
    FLOPSIGHT_CHECK(static_cast<unsigned char>(c) >= 0x20 && c != 0x7f);
  if (target->path == "*") return 0;
  const auto again =
      parse_request_target("/" + url_encode(target->path.substr(1)) + "?" + encoded(target->query));
  FLOPSIGHT_CHECK(again->path == target->path && again->query == target->query);
  return 0;
}
