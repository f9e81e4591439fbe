#pragma once
// Keys of a JSON document, for where one that comes twice hides a mistake (json.cc). Threads: pure.

#include <optional>
#include <string>
#include <string_view>

namespace flopsight::base::json {

// A key that comes twice in an object of a document; nothing for what is no JSON.
std::optional<std::string> repeated_key(std::string_view text);

}  // namespace flopsight::base::json
