// Any bytes as JSON. What is read is written and read again, compact and indented, and must be the same;
// what is not read must be told in one line.
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/check.h"
#include "base/json.h"
#include "base/json_keys.h"

namespace {

namespace json = flopsight::base::json;

bool same(const json::Value& a, const json::Value& b);

bool same_items(const json::Array& a, const json::Array& b) {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (!same(a[i], b[i])) return false;
  }
  return true;
}

bool same_members(const json::Object& a, const json::Object& b) {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (a[i].first != b[i].first || !same(a[i].second, b[i].second)) return false;
  }
  return true;
}

bool same(const json::Value& a, const json::Value& b) {
  if (a.kind() != b.kind()) return false;
  if (a.as_bool() != nullptr) return *a.as_bool() == *b.as_bool();
  if (a.as_number() != nullptr) return *a.as_number() == *b.as_number();
  if (a.as_string() != nullptr) return *a.as_string() == *b.as_string();
  if (a.as_array() != nullptr) return same_items(*a.as_array(), *b.as_array());
  if (a.as_object() != nullptr) return same_members(*a.as_object(), *b.as_object());
  return true;
}

// Keys are unique and found, and numbers are finite.
void check_value(const json::Value& value) {
  if (value.as_number() != nullptr) FLOPSIGHT_CHECK(std::isfinite(*value.as_number()));
  if (const json::Array* array = value.as_array()) {
    for (const json::Value& item : *array) check_value(item);
  }
  if (const json::Object* object = value.as_object()) {
    for (const auto& [key, member] : *object) {
      FLOPSIGHT_CHECK(value.find(key) == &member);
      check_value(member);
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto repeated = json::repeated_key(text);
  if (repeated) FLOPSIGHT_CHECK(!repeated->empty());
  const auto value = json::parse(text);
  if (!value.ok()) {
    FLOPSIGHT_CHECK(!value.error().message.empty());
    FLOPSIGHT_CHECK(value.error().message.find('\n') == std::string::npos);
    return 0;
  }
  check_value(*value);
  for (const int indent : {0, 2}) {
    const std::string written = json::dump(*value, indent);
    FLOPSIGHT_CHECK(!json::repeated_key(written));
    const auto again = json::parse(written);
    FLOPSIGHT_CHECK(again.ok());
    FLOPSIGHT_CHECK(same(*value, *again));
    FLOPSIGHT_CHECK(json::dump(*again, indent) == written);
  }
  return 0;
}
