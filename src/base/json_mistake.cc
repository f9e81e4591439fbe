#include "base/json_mistake.h"

#include "base/text.h"

namespace flopsight::base::json {

Error wrong(std::string_view key, const Value& found, std::string_view expected) {
  const std::string shown =
      found.as_string() != nullptr   ? "\"" + printable(*found.as_string(), 40) + "\""
      : found.as_number() != nullptr ? number_text(*found.as_number())
      : found.as_bool() != nullptr   ? (*found.as_bool() ? "true" : "false")
                                     : std::string(found.kind());
  return {ErrorCode::kInvalid,
          std::string(key) + ": found " + shown + ", expected " + std::string(expected)};
}

}  // namespace flopsight::base::json
