#pragma once
// Reading members of JSON objects that this program wrote, or that somebody sent. Errors: kInvalid, naming key, what was found and what was
// expected. Threads: pure.

#include <optional>
#include <string>
#include <string_view>

#include "base/json.h"
#include "base/json_mistake.h"
#include "units/time.h"

namespace flopsight::findings {

inline base::json::Value text_or_null(const std::string& text) { return text.empty() ? base::json::Value() : base::json::Value(text); }
inline base::json::Value time_or_null(const std::optional<units::Instant>& time) {
  return time ? base::json::Value(units::to_rfc3339(*time)) : base::json::Value();
}

// Null and a missing member are the empty text.
base::Status read_text(const base::json::Value& object, std::string_view key, std::string& out);
// A missing one stays as it is.
base::Status read_flag(const base::json::Value& object, std::string_view key, bool& out);
base::Status read_time(const base::json::Value& object, std::string_view key, std::optional<units::Instant>& out);
base::Status read_time(const base::json::Value& object, std::string_view key, units::Instant& out);  // must be there
base::Status read_number(const base::json::Value& object, std::string_view key, std::optional<double>& out);

}  // namespace flopsight::findings
