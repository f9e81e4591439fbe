#include "findings/json_fields_internal.h"

namespace flopsight::findings {

using base::Status;
using base::json::Value;
using base::json::wrong;

Status read_text(const Value& object, std::string_view key, std::string& out) {
  const Value* value = object.find(key);
  if (value == nullptr || value->is_null()) return {};
  if (value->as_string() == nullptr) return wrong(key, *value, "text");
  out = *value->as_string();
  return {};
}

Status read_flag(const Value& object, std::string_view key, bool& out) {
  const Value* value = object.find(key);
  if (value == nullptr) return {};
  if (value->as_bool() == nullptr) return wrong(key, *value, "true or false");
  out = *value->as_bool();
  return {};
}

Status read_time(const Value& object, std::string_view key, std::optional<units::Instant>& out) {
  const Value* value = object.find(key);
  if (value == nullptr || value->is_null()) return {};
  if (value->as_string() != nullptr) out = units::parse_instant(*value->as_string());
  if (value->as_number() != nullptr) out = units::parse_instant(base::json::number_text(*value->as_number()));
  return out ? Status() : wrong(key, *value, "RFC 3339 with an offset, or Unix seconds");
}

Status read_time(const Value& object, std::string_view key, units::Instant& out) {
  std::optional<units::Instant> time;
  FLOPSIGHT_RETURN_IF_ERROR(read_time(object, key, time));
  if (!time) return wrong(key, Value(), "RFC 3339 with an offset, or Unix seconds");
  out = *time;
  return {};
}

Status read_number(const Value& object, std::string_view key, std::optional<double>& out) {
  const Value* value = object.find(key);
  if (value == nullptr || value->is_null()) return {};
  if (value->as_number() == nullptr) return wrong(key, *value, "a number");
  out = *value->as_number();
  return {};
}

}  // namespace flopsight::findings
