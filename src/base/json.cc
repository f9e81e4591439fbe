#include "base/json.h"
#include "base/json_keys.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <unordered_map>
#include <unordered_set>

#include <nlohmann/json.hpp>

namespace flopsight::base::json {
namespace {

constexpr std::size_t kDepthMax = 200;
constexpr std::size_t kIndexedFrom = 32;  // members of an object

// Builds our Value from nlohmann's events, so that no second tree is made.
class Builder : public nlohmann::json_sax<nlohmann::json> {
 public:
  std::optional<Error> error;
  Value root;

  bool null() override { return put(Value()); }
  bool boolean(bool value) override { return put(Value(value)); }
  bool number_integer(number_integer_t value) override {
    return put(Value(static_cast<double>(value)));
  }
  bool number_unsigned(number_unsigned_t value) override {
    return put(Value(static_cast<double>(value)));
  }
  bool number_float(number_float_t value, const string_t&) override { return put(Value(value)); }
  bool string(string_t& value) override { return put(Value(std::move(value))); }
  bool binary(binary_t&) override { return false; }
  bool start_object(std::size_t) override { return open(Value(Object{})); }
  bool start_array(std::size_t) override { return open(Value(Array{})); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }
  bool key(string_t& value) override {
    keys_.back() = std::move(value);
    return true;
  }
  bool parse_error(std::size_t position, const std::string& /*token*/,
                   const nlohmann::detail::exception&) override {
    error_position = position;
    return false;
  }

  std::size_t error_position = 0;

 private:
  bool put(Value value) {
    if (stack_.empty()) {
      root = std::move(value);
      return true;
    }
    Value& parent = stack_.back();
    if (parent.as_array() != nullptr) {
      const_cast<Array*>(parent.as_array())->push_back(std::move(value));
    } else {
      auto& object = *const_cast<Object*>(parent.as_object());
      if (Value* old = member(object, keys_.back())) {
        *old = std::move(value);
        return true;
      }
      if (object.size() >= kIndexedFrom) indices_.back().emplace(keys_.back(), object.size());
      object.emplace_back(std::move(keys_.back()), std::move(value));
    }
    return true;
  }
  bool open(Value value) {
    if (stack_.size() >= kDepthMax) {
      error = Error{ErrorCode::kLimit,
                    "nested deeper than " + std::to_string(kDepthMax) + " levels"};
      return false;
    }
    stack_.push_back(std::move(value));
    keys_.emplace_back();
    indices_.emplace_back();
    return true;
  }
  bool close() {
    Value done = std::move(stack_.back());
    stack_.pop_back();
    keys_.pop_back();
    indices_.pop_back();
    return put(std::move(done));
  }

  // The first members one by one, the others by the index: an object of 100,000 keys takes no time that grows with its square.
  Value* member(Object& object, const std::string& key) {
    for (std::size_t i = 0; i < std::min(object.size(), kIndexedFrom); ++i) {
      if (object[i].first == key) return &object[i].second;
    }
    const auto found = indices_.back().find(key);
    return found == indices_.back().end() ? nullptr : &object[found->second].second;
  }

  std::vector<Value> stack_;
  std::vector<std::string> keys_;  // of the member being read, one per open container
  std::vector<std::unordered_map<std::string, std::size_t>> indices_;  // of members from kIndexedFrom on, one per open container
};

std::string position_text(std::string_view text, std::size_t position) {
  std::size_t line = 1, column = 1;
  for (std::size_t i = 0; i + 1 < position && i < text.size(); ++i) {
    if (text[i] == '\n') {
      ++line;
      column = 1;
    } else {
      ++column;
    }
  }
  return "line " + std::to_string(line) + ", column " + std::to_string(column);
}

// A run of characters that stand for themselves is appended as a whole.
void append_string(std::string_view text, std::string& out) {
  out += '"';
  std::size_t from = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (static_cast<unsigned char>(c) >= 0x20 && c != '"' && c != '\\') continue;
    out.append(text, from, i - from);
    from = i + 1;
    switch (c) {
      case '"': out += "\\\""; break;
      case '\\': out += "\\\\"; break;
      case '\n': out += "\\n"; break;
      case '\r': out += "\\r"; break;
      case '\t': out += "\\t"; break;
      default: {
        char escaped[8];
        std::snprintf(escaped, sizeof escaped, "\\u%04x", static_cast<unsigned>(c));
        out += escaped;
      }
    }
  }
  out.append(text, from, text.size() - from);
  out += '"';
}

// What number_text() says; at most 32 characters.
void append_number(double value, std::string& out) {
  if (!std::isfinite(value)) {
    out += "null";
    return;
  }
  char text[32];
  const bool is_whole = value == std::trunc(value) && std::abs(value) < 9007199254740992.0;
  const auto written = is_whole ? std::to_chars(text, text + sizeof text, static_cast<std::int64_t>(value))
                                : std::to_chars(text, text + sizeof text, value);
  out.append(text, written.ptr);
}

bool is_scalar(const Value& value) {
  return value.as_array() == nullptr && value.as_object() == nullptr;
}

void append(const Value& value, int indent, int level, std::string& out);

void new_line(int indent, int level, std::string& out) {
  if (indent == 0) return;
  out += '\n';
  out.append(static_cast<std::size_t>(indent * level), ' ');
}

void append_array(const Array& array, int indent, int level, std::string& out) {
  bool flat = array.size() <= 16;
  for (const Value& item : array) flat = flat && is_scalar(item) && item.as_string() == nullptr;
  out += '[';
  for (std::size_t i = 0; i < array.size(); ++i) {
    if (i > 0) out += flat && indent > 0 ? ", " : ",";
    if (!flat) new_line(indent, level + 1, out);
    append(array[i], indent, level + 1, out);
  }
  if (!flat && !array.empty()) new_line(indent, level, out);
  out += ']';
}

void append_object(const Object& object, int indent, int level, std::string& out) {
  out += '{';
  for (std::size_t i = 0; i < object.size(); ++i) {
    if (i > 0) out += ',';
    new_line(indent, level + 1, out);
    append_string(object[i].first, out);
    out += indent > 0 ? ": " : ":";
    append(object[i].second, indent, level + 1, out);
  }
  if (!object.empty()) new_line(indent, level, out);
  out += '}';
}

void append(const Value& value, int indent, int level, std::string& out) {
  if (value.is_null()) {
    out += "null";
  } else if (const bool* flag = value.as_bool()) {
    out += *flag ? "true" : "false";
  } else if (const double* number = value.as_number()) {
    append_number(*number, out);
  } else if (const std::string* text = value.as_string()) {
    append_string(*text, out);
  } else if (const Array* array = value.as_array()) {
    append_array(*array, indent, level, out);
  } else if (const Object* object = value.as_object()) {
    append_object(*object, indent, level, out);
  }
}

}  // namespace

const Value* Value::find(std::string_view key) const {
  if (const Object* object = as_object()) {
    for (const auto& [name, value] : *object) {
      if (name == key) return &value;
    }
  }
  return nullptr;
}

std::string_view Value::kind() const {
  constexpr std::string_view kNames[] = {"null", "boolean", "number", "string", "array", "object"};
  return kNames[state_.index()];
}

namespace {

// Looks at keys only.
class KeyWatch : public nlohmann::json_sax<nlohmann::json> {
 public:
  std::string repeated;

  bool null() override { return true; }
  bool boolean(bool) override { return true; }
  bool number_integer(number_integer_t) override { return true; }
  bool number_unsigned(number_unsigned_t) override { return true; }
  bool number_float(number_float_t, const string_t&) override { return true; }
  bool string(string_t&) override { return true; }
  bool binary(binary_t&) override { return false; }
  bool start_object(std::size_t) override {
    keys_.emplace_back();
    return keys_.size() <= kDepthMax;
  }
  bool start_array(std::size_t) override { return true; }
  bool end_object() override {
    keys_.pop_back();
    return true;
  }
  bool end_array() override { return true; }
  bool key(string_t& key) override {
    if (repeated.empty() && !keys_.back().insert(key).second) repeated = key.empty() ? "\"\"" : key;
    return true;
  }
  bool parse_error(std::size_t, const std::string&, const nlohmann::detail::exception&) override { return false; }

 private:
  std::vector<std::unordered_set<std::string>> keys_;  // of the open objects
};

}  // namespace

std::optional<std::string> repeated_key(std::string_view text) {
  KeyWatch watch;
  // What is no JSON is told by who reads it.
  const bool is_json = !text.empty() && nlohmann::json::sax_parse(text.begin(), text.end(), &watch);
  if (!is_json || watch.repeated.empty()) return std::nullopt;
  return watch.repeated;
}

Result<Value> parse(std::string_view text) {
  Builder builder;
  const bool ok = nlohmann::json::sax_parse(text.begin(), text.end(), &builder);
  if (builder.error) return *builder.error;
  if (!ok) {
    return Error{ErrorCode::kInvalid, position_text(text, builder.error_position) +
                                          ": not JSON, expected a value, a comma or a closing bracket"};
  }
  return std::move(builder.root);
}

std::string dump(const Value& value, int indent) {
  std::string out;
  append(value, indent, 0, out);
  return out;
}

std::string dump(const Array& array, int indent) {
  std::string out;
  append_array(array, indent, 0, out);
  return out;
}

std::string dump(const Object& object, int indent) {
  std::string out;
  append_object(object, indent, 0, out);
  return out;
}

std::string number_text(double value) {
  std::string out;
  append_number(value, out);
  return out;
}

}  // namespace flopsight::base::json
