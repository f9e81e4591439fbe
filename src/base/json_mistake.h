#pragma once
// What is told of a value that is not what a key should have. Threads: pure.

#include <string_view>

#include "base/json.h"

namespace flopsight::base::json {

// kInvalid: `key: found "x", expected …`; text is cut and made printable, lists and objects are named by their kind.
Error wrong(std::string_view key, const Value& found, std::string_view expected);

}  // namespace flopsight::base::json
