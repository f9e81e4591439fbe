#pragma once
// Where a request goes, taken apart, and who may learn the credentials that were meant for it.

#include <optional>
#include <string>
#include <utility>

namespace flopsight::net {

struct HttpTarget {
  std::string url;  // without credentials and fragment
  std::string scheme, host, port;
  std::optional<std::pair<std::string, std::string>> basic;  // of user:password@
};

// The same origin; or its port 80 to its port 443, where they have only been overheard before.
inline bool shares_credentials(const HttpTarget& from, const HttpTarget& to) {
  if (from.host != to.host) return false;
  if (from.scheme == to.scheme && from.port == to.port) return true;
  return from.scheme == "http" && from.port == "80" && to.scheme == "https" && to.port == "443";
}

}  // namespace flopsight::net
