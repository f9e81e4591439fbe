#pragma once
// The paths of the API: which methods they take and who may use them. One table, in the order in
// which they are tried. Threads: pure.

#include <optional>
#include <string>
#include <string_view>

#include "serve/access.h"

namespace flopsight::app {

struct PathRule {
  std::string_view method;
  std::string_view path;
  std::string_view suffix =
      "";  // of what comes after a path that ends in '/': "/api/v1/jobs/ID/mfu"
  std::optional<Role> role = std::nullopt;  // none: anybody
};

struct FoundPath {
  const PathRule* rule =
      nullptr;          // for this method; null: the path is not there, or not with this method
  std::string allowed;  // methods that the path has, "GET, POST"; empty: no such path
};
// HEAD is taken for GET.
FoundPath find_path(std::string_view method, std::string_view path);

}  // namespace flopsight::app
