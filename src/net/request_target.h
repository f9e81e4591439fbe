#pragma once
// What a request asks for: the target of its first line ("/api/v1/query?query=up"), and query
// strings, which forms use too. Pure. Errors: kInvalid, for an escape that is none, a byte that no
// path may have, or a form that only proxies understand.

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

namespace flopsight::net {

using QueryPairs = std::vector<std::pair<std::string, std::string>>;

struct RequestTarget {
  std::string path;  // starts with '/', or is "*"; dots and doubled slashes stay as they came
  QueryPairs query;
};

// "/path?query", "http://host/path?query" (as sent to proxies, and every server has to take it),
// "*".
base::Result<RequestTarget> parse_request_target(std::string_view text);

// "a=1&b=x%20y+z". A name without '=' has an empty value; empty pieces ("a=1&&b=2") are nothing.
// Line breaks may be in a value, as PromQL has them; NUL may not.
base::Result<QueryPairs> parse_query(std::string_view text);

}  // namespace flopsight::net
