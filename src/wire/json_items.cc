#include "wire/json_items.h"

#include <simdjson.h>

#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "base/utf8.h"

namespace flopsight::wire {
namespace {

namespace od = simdjson::ondemand;
using base::Error;
using base::ErrorCode;
using base::Status;
using base::json::Value;

constexpr int kDepthMax = 64;
constexpr std::size_t kTextBytesMax = 0xFFFF'FF00;  // simdjson counts in 32 bits
constexpr double kExactMax = 9007199254740992.0;    // 2^53

std::string_view without_digits(std::string_view text) {
  const std::size_t end = text.find_first_not_of("0123456789");
  return text.substr(std::min(end, text.size()));
}

// Whether a text is a number in JSON's grammar, of any size.
bool is_number(std::string_view text) {
  if (text.starts_with('-')) text.remove_prefix(1);
  std::string_view rest = without_digits(text);
  const std::size_t whole = text.size() - rest.size();
  if (whole == 0 || (whole > 1 && text.front() == '0')) return false;
  if (rest.starts_with('.')) {
    const std::string_view after = without_digits(rest.substr(1));
    if (after.size() + 1 == rest.size()) return false;
    rest = after;
  }
  if (!rest.starts_with('e') && !rest.starts_with('E')) return rest.empty();
  rest.remove_prefix(1);
  if (rest.starts_with('+') || rest.starts_with('-')) rest.remove_prefix(1);
  return !rest.empty() && without_digits(rest).empty();
}

class Reader {
 public:
  Reader(std::string_view json, const JsonItemsOptions& options) : text_(json), options_(options) {}

  Status run(const std::function<Status(std::string_view, Value)>& entry,
             const std::function<void(std::string_view, Value)>& member) {
    if (auto code = parser_.iterate(text_).get(document_)) {
      if (code == simdjson::UTF8_ERROR) return not_utf8();
      // The first pass looks at the text as a whole (UTF-8, quotes) and says no place.
      return Error{ErrorCode::kInvalid, "JSON of " + std::to_string(text_.size()) + " bytes: " +
                                            base::printable(simdjson::error_message(code), 120)};
    }
    od::object root;
    if (auto code = document_.get_object().get(root)) return at(code);
    for (auto field : root) {
      std::string_view key;
      od::value value;
      if (auto code = field.unescaped_key().get(key)) return at(code);
      const std::string name(key);  // its buffer is used again
      if (auto code = field.value().get(value)) return at(code);
      if (contains(options_.skip, name)) continue;
      od::json_type type;
      if (auto code = value.type().get(type)) return at(code);
      if (contains(options_.lists, name) && type == od::json_type::array) {
        member(name, Value(base::json::Array{}));
        FLOPSIGHT_RETURN_IF_ERROR(list(name, value, entry));
        continue;
      }
      Value out;
      FLOPSIGHT_RETURN_IF_ERROR(convert(value, 0, out));
      member(name, std::move(out));
    }
    const char* location = nullptr;
    if (document_.current_location().get(location)) return {};  // beyond the end: nothing follows
    return Error{ErrorCode::kInvalid, where() + "text after the end, expected nothing"};
  }

 private:
  static bool contains(std::span<const std::string_view> names, std::string_view name) {
    return std::find(names.begin(), names.end(), name) != names.end();
  }

  Error not_utf8() const {
    const std::string_view text(text_.data(), text_.size());
    return {ErrorCode::kInvalid, "JSON at byte " + std::to_string(base::utf8_bytes(text)) + ": " + base::not_utf8_text(text)};
  }

  std::string where() {
    const char* location = nullptr;
    std::size_t byte = text_.size();
    if (!document_.current_location().get(location))
      byte = static_cast<std::size_t>(location - text_.data());
    return "JSON at byte " + std::to_string(std::min(byte, text_.size())) + ": ";
  }
  Error at(simdjson::error_code code) {
    return {ErrorCode::kInvalid, where() + base::printable(simdjson::error_message(code), 120)};
  }

  Status list(const std::string& name, od::value& value,
              const std::function<Status(std::string_view, Value)>& entry) {
    od::array items;
    if (auto code = value.get_array().get(items)) return at(code);
    for (auto item : items) {
      od::value element;
      if (auto code = item.get(element)) return at(code);
      Value out;
      FLOPSIGHT_RETURN_IF_ERROR(convert(element, 0, out));
      FLOPSIGHT_RETURN_IF_ERROR(entry(name, std::move(out)));
    }
    return {};
  }

  Status convert(od::value& value, int depth, Value& out) {
    if (depth > kDepthMax) {
      return Error{ErrorCode::kLimit, where() + "nested deeper than " + std::to_string(kDepthMax)};
    }
    od::json_type type;
    if (auto code = value.type().get(type)) return at(code);
    switch (type) {
      case od::json_type::object:
        return object(value, depth, out);
      case od::json_type::array:
        return array(value, depth, out);
      case od::json_type::number:
        return number(value, out);
      case od::json_type::string: {
        std::string_view text;
        if (auto code = value.get_string().get(text)) return at(code);
        out = Value(text);
        return {};
      }
      case od::json_type::boolean: {
        bool flag = false;
        if (auto code = value.get_bool().get(flag)) return at(code);
        out = Value(flag);
        return {};
      }
      case od::json_type::null:
        break;
    }
    bool is_null = false;
    if (auto code = value.is_null().get(is_null)) return at(code);
    if (!is_null) return at(simdjson::N_ATOM_ERROR);
    out = Value();
    return {};
  }

  Status number(od::value& value, Value& out) {
    const std::string_view digits = base::trim(value.raw_json_token());
    double number = 0;
    if (auto code = value.get_double().get(number)) {
      if (!is_number(digits)) return at(code);
      out = Value(digits);  // beyond what a double holds
      return {};
    }
    const bool whole = digits.find_first_of(".eE") == std::string_view::npos;
    out = whole && std::abs(number) >= kExactMax ? Value(digits) : Value(number);
    return {};
  }

  Status object(od::value& value, int depth, Value& out) {
    od::object fields;
    if (auto code = value.get_object().get(fields)) return at(code);
    base::json::Object object;
    for (auto field : fields) {
      std::string_view key;
      od::value inner;
      if (auto code = field.unescaped_key().get(key)) return at(code);
      std::string name(key);
      if (auto code = field.value().get(inner)) return at(code);
      if (contains(options_.skip, name)) continue;
      Value converted;
      FLOPSIGHT_RETURN_IF_ERROR(convert(inner, depth + 1, converted));
      object.emplace_back(std::move(name), std::move(converted));
    }
    out = Value(std::move(object));
    return {};
  }

  Status array(od::value& value, int depth, Value& out) {
    od::array items;
    if (auto code = value.get_array().get(items)) return at(code);
    base::json::Array array;
    for (auto item : items) {
      od::value inner;
      if (auto code = item.get(inner)) return at(code);
      FLOPSIGHT_RETURN_IF_ERROR(convert(inner, depth + 1, array.emplace_back()));
    }
    out = Value(std::move(array));
    return {};
  }

  simdjson::padded_string text_;
  const JsonItemsOptions& options_;
  od::parser parser_;
  od::document document_;
};

}  // namespace

Status read_json_items(std::string_view json, const JsonItemsOptions& options,
                       const std::function<Status(std::string_view list, Value entry)>& entry,
                       const std::function<void(std::string_view key, Value value)>& member) {
  if (json.size() > kTextBytesMax) return Error{ErrorCode::kLimit, "JSON: over 4 GiB"};
  if (base::trim(json).empty())
    return Error{ErrorCode::kInvalid, "JSON at byte 0: empty, expected an object"};
  return Reader(json, options).run(entry, member);
}

}  // namespace flopsight::wire
