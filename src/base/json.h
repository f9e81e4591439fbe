#pragma once
// A JSON value for small documents: configuration, job files, answers. Objects keep their order, so that
// output is stable. Large documents have their own readers in wire/.
//
// Numbers: integers and doubles are one type, double; integers up to 2^53 are exact and print without a
// fraction. A double that is not finite has no JSON form: it prints as null, and making one is a mistake
// of the caller (absent values are json::Value() with a reason beside them).

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "base/result.h"

namespace flopsight::base::json {

class Value;
using Array = std::vector<Value>;
using Object = std::vector<std::pair<std::string, Value>>;

class Value {
 public:
  Value() = default;                                                  // null
  Value(bool value) : state_(value) {}                                // NOLINT: implicit by design
  Value(double value) : state_(value) {}                              // NOLINT
  Value(int value) : state_(static_cast<double>(value)) {}            // NOLINT
  Value(std::int64_t value) : state_(static_cast<double>(value)) {}   // NOLINT
  Value(std::uint64_t value) : state_(static_cast<double>(value)) {}  // NOLINT
  Value(std::string value) : state_(std::move(value)) {}              // NOLINT
  Value(std::string_view value) : state_(std::string(value)) {}       // NOLINT
  Value(const char* value) : state_(std::string(value)) {}            // NOLINT
  Value(Array value) : state_(std::move(value)) {}                    // NOLINT
  Value(Object value) : state_(std::move(value)) {}                   // NOLINT
  template <typename T>
  Value(const std::optional<T>& value) {  // NOLINT: absent becomes null
    if (value) *this = Value(*value);
  }

  bool is_null() const { return state_.index() == 0; }
  const bool* as_bool() const { return std::get_if<bool>(&state_); }
  const double* as_number() const { return std::get_if<double>(&state_); }
  const std::string* as_string() const { return std::get_if<std::string>(&state_); }
  const Array* as_array() const { return std::get_if<Array>(&state_); }
  const Object* as_object() const { return std::get_if<Object>(&state_); }

  // The member of an object, or nullptr (also when this is no object).
  const Value* find(std::string_view key) const;

  // "null", "boolean", "number", "string", "array", "object": for messages.
  std::string_view kind() const;

 private:
  std::variant<std::monostate, bool, double, std::string, Array, Object> state_;
};

// Errors: kInvalid, "line L, column C: …"; kLimit for nesting deeper than 200. Duplicate keys: the last wins.
Result<Value> parse(std::string_view text);

// Compact with indent 0; otherwise indented by that many spaces a level, small arrays of scalars on one line.
std::string dump(const Value& value, int indent = 2);
std::string dump(const Array& array, int indent = 2);
std::string dump(const Object& object, int indent = 2);

// The shortest text that reads back as the same double.
std::string number_text(double value);

}  // namespace flopsight::base::json
