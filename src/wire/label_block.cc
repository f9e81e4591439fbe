#include <array>
#include <functional>

#include "wire/label_block_internal.h"

namespace flopsight::wire {
namespace {

enum : std::uint8_t { kLabelPart = 1, kMetricPart = 2, kDigit = 4, kEndsPlainText = 8 };

constexpr std::array<std::uint8_t, 256> kClasses = [] {
  std::array<std::uint8_t, 256> classes{};
  const auto add = [&classes](unsigned char c, unsigned bits) {
    classes[c] = static_cast<std::uint8_t>(classes[c] | bits);
  };
  for (unsigned c = 0; c < 256; ++c) {
    const auto byte = static_cast<unsigned char>(c);
    const bool digit = c >= '0' && c <= '9';
    if (digit) add(byte, kDigit);
    if (digit || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_') {
      add(byte, kLabelPart | kMetricPart);
    }
    if (c >= 0x80 || c == '"' || c == '\\') add(byte, kEndsPlainText);
  }
  add(':', kMetricPart);
  return classes;
}();

bool is(char c, std::uint8_t bits) { return (kClasses[static_cast<unsigned char>(c)] & bits) != 0; }

// The first byte that is not part of well-formed UTF-8 (no overlong forms, no surrogates, nothing
// above U+10FFFF), or `end`.
const char* first_invalid_utf8(const char* at, const char* end) {
  const auto byte = [](const char* p) { return static_cast<unsigned char>(*p); };
  while (at != end) {
    const unsigned char lead = byte(at);
    if (lead < 0x80) {
      ++at;
      continue;
    }
    const int more = lead >= 0xF0 ? 3 : lead >= 0xE0 ? 2 : 1;
    if (lead < 0xC2 || lead > 0xF4 || end - at <= more) return at;
    const unsigned char next = byte(at + 1);
    if ((lead == 0xE0 && next < 0xA0) || (lead == 0xED && next > 0x9F) ||
        (lead == 0xF0 && next < 0x90) || (lead == 0xF4 && next > 0x8F)) {
      return at;
    }
    for (int i = 1; i <= more; ++i) {
      if ((byte(at + i) & 0xC0) != 0x80) return at;
    }
    at += more + 1;
  }
  return end;
}

}  // namespace

bool is_metric_name_start(char c) { return is(c, kMetricPart) && !is(c, kDigit); }
bool is_metric_name_part(char c) { return is(c, kMetricPart); }

void LabelBlock::reset() {
  labels_.clear();
  metric_ = {};
  resolved_.clear();
}

Fault LabelBlock::read(Cursor& cursor, QuotedMetric quoted_metric) {
  reset();
  ++cursor.at;
  cursor.skip_blanks();
  while (!cursor.on('}')) {
    if (const Fault fault = read_item(cursor, quoted_metric)) return fault;
    cursor.skip_blanks();
    if (cursor.on(',')) {
      ++cursor.at;
      cursor.skip_blanks();
    } else if (!cursor.on('}')) {
      return Fault{cursor.at, "',' or '}'"};
    }
  }
  ++cursor.at;
  return {};
}

Fault LabelBlock::read_quoted_metric(Cursor& cursor) {
  reset();
  const char* const begin = cursor.at;
  if (const Fault fault = read_quoted(cursor, metric_)) return fault;
  if (metric_.empty()) return Fault{begin, "a metric name"};
  return {};
}

Fault LabelBlock::read_item(Cursor& cursor, QuotedMetric quoted_metric) {
  const char* const begin = cursor.at;
  std::string_view name;
  if (cursor.on('"')) {
    if (const Fault fault = read_quoted(cursor, name)) return fault;
    const char* const behind = cursor.at;
    cursor.skip_blanks();
    if (cursor.on(',') || cursor.on('}')) {
      if (quoted_metric == QuotedMetric::kRefused || !metric_.empty()) {
        return Fault{behind, "'=' after the label name"};
      }
      if (name.empty()) return Fault{begin, "a metric name"};
      metric_ = name;
      return {};
    }
  } else {
    while (!cursor.done() && is(*cursor.at, kLabelPart)) ++cursor.at;
    name = {begin, static_cast<std::size_t>(cursor.at - begin)};
  }
  if (name.empty() || (*begin != '"' && is(*begin, kDigit))) return Fault{begin, "a label name"};
  if (labels_.size() >= limits_.labels_max)
    return Fault{begin, "at most % labels", limits_.labels_max};
  for (const Label& label : labels_) {
    if (label.name == name) return Fault{begin, "a label name that this line does not have yet"};
  }
  return read_value(cursor, name);
}

Fault LabelBlock::read_value(Cursor& cursor, std::string_view name) {
  cursor.skip_blanks();
  if (!cursor.on('=')) return Fault{cursor.at, "'=' after the label name"};
  ++cursor.at;
  cursor.skip_blanks();
  if (!cursor.on('"')) return Fault{cursor.at, "'\"' before the label value"};
  const char* const begin = cursor.at;
  std::string_view value;
  if (const Fault fault = read_quoted(cursor, value)) return fault;
  if (value.size() > limits_.value_bytes_max) {
    return Fault{begin, "at most % bytes in a label value", limits_.value_bytes_max};
  }
  labels_.push_back({name, value});
  return {};
}

Fault LabelBlock::read_quoted(Cursor& cursor, std::string_view& text) {
  const char* const begin = ++cursor.at;
  bool ascii = true;
  bool escaped = false;
  while (true) {
    while (!cursor.done() && !is(*cursor.at, kEndsPlainText)) ++cursor.at;
    if (cursor.done()) return Fault{cursor.end, "a closing '\"'"};
    if (*cursor.at == '"') break;
    if (*cursor.at == '\\') {
      escaped = true;
      ++cursor.at;
      if (cursor.done()) return Fault{cursor.end, "a closing '\"'"};
    }
    if (static_cast<unsigned char>(*cursor.at) >= 0x80) ascii = false;
    ++cursor.at;
  }
  if (!ascii) {
    const char* const invalid = first_invalid_utf8(begin, cursor.at);
    if (invalid != cursor.at) return Fault{invalid, "valid UTF-8"};
  }
  text = {begin, static_cast<std::size_t>(cursor.at - begin)};
  if (escaped) text = resolve(text, cursor.end);
  ++cursor.at;
  return {};
}

// Of the text between quotes: \\ \" \n resolved, any other escape left as it is.
std::string_view LabelBlock::resolve(std::string_view raw, const char* line_end) {
  // Room for all that the line can still hold, so that no later growth moves what was handed out.
  if (resolved_.empty()) resolved_.reserve(static_cast<std::size_t>(line_end - raw.data()));
  const std::size_t begin = resolved_.size();
  for (std::size_t i = 0; i < raw.size(); ++i) {
    const char next = raw[i] == '\\' ? raw[i + 1] : '\0';
    if (next == '\\' || next == '"' || next == 'n') {
      resolved_ += next == 'n' ? '\n' : next;
      ++i;
    } else {
      resolved_ += raw[i];
    }
  }
  return std::string_view(resolved_).substr(begin);
}

}  // namespace flopsight::wire
