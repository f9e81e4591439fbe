#include "wire/json_stream.h"

#include <algorithm>
#include <array>

#include "base/text.h"
#include "wire/json_items.h"
#include "base/utf8.h"

namespace flopsight::wire {
namespace {

using base::Error;
using base::ErrorCode;
using base::Status;

constexpr std::size_t kBatchBytes = std::size_t{256} << 10;
constexpr std::size_t kKeyBytesMax = 256;
constexpr std::string_view kMark = "\xEF\xBB\xBF";

bool blank(std::string_view text) { return text.find_first_not_of(" \t\r\n") == std::string_view::npos; }

// Characters that end a plain piece, inside a string and outside.
constexpr std::array<bool, 256> stops_at(std::string_view characters) {
  std::array<bool, 256> table{};
  for (const char c : characters) table[static_cast<unsigned char>(c)] = true;
  return table;
}
constexpr std::array<bool, 256> kInString = stops_at("\"\\"), kOutside = stops_at("\"{}[],:");

std::size_t plain_bytes(std::string_view text, const std::array<bool, 256>& stops) {
  std::size_t length = 0;
  while (length < text.size() && !stops[static_cast<unsigned char>(text[length])]) ++length;
  return length;
}

bool may_be_word(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

// What is outside of strings and called so in the text becomes null, from a byte on.
void null_non_numbers(std::string& text, std::size_t from) {
  constexpr std::string_view kWords[] = {"nan", "inf", "infinity"};
  if (text.find("an", from) == std::string::npos && text.find("aN", from) == std::string::npos && text.find("nf", from) == std::string::npos && text.find("NAN", from) == std::string::npos) return;
  bool in_string = false;
  for (std::size_t at = from; at < text.size(); ++at) {
    if (text[at] == '\\' && in_string) {
      ++at;
    } else if (text[at] == '"') {
      in_string = !in_string;
    } else if (!in_string && may_be_word(text[at])) {
      std::size_t end = at;
      while (end < text.size() && may_be_word(text[end])) ++end;
      const std::string word = base::to_lower(std::string_view(text).substr(at, end - at));
      if (std::find(std::begin(kWords), std::end(kWords), word) != std::end(kWords)) {
        const std::size_t begin = at > from && (text[at - 1] == '-' || text[at - 1] == '+') ? at - 1 : at;
        text.replace(begin, end - begin, "null");
        end = begin + 4;
      }
      at = end - 1;
    }
  }
}

}  // namespace

Error JsonStream::mistake(std::string_view what) const {
  return {ErrorCode::kInvalid, "JSON near byte " + std::to_string(bytes_) + ": " + std::string(what)};
}

Status JsonStream::keep(std::string_view bytes) {
  if (!in_list()) {
    if (rest_.size() + bytes.size() > options_.rest_bytes_max) {
      return Error{ErrorCode::kLimit, "JSON near byte " + std::to_string(bytes_) + ": over " + std::to_string(options_.rest_bytes_max) + " bytes outside the list " + std::string(options_.list)};
    }
    rest_ += bytes;
    return {};
  }
  if (batch_.size() - entry_from_ + bytes.size() > options_.entry_bytes_max) {
    return Error{ErrorCode::kLimit, "JSON near byte " + std::to_string(bytes_) + ": an entry of " + std::string(options_.list) + " over " + std::to_string(options_.entry_bytes_max) + " bytes"};
  }
  batch_ += bytes;
  return {};
}

// What is between structural characters is kept in one piece.
Status JsonStream::feed(std::string_view bytes) {
  while (mark_bytes_ == bytes_ && mark_bytes_ < kMark.size() && !bytes.empty() && bytes.front() == kMark[mark_bytes_]) {
    ++mark_bytes_;
    ++bytes_;
    bytes.remove_prefix(1);
  }
  if (!bytes.empty() && mark_bytes_ > 0 && mark_bytes_ < kMark.size()) return mistake("expected '{' or '['");
  while (!bytes.empty()) {
    std::size_t plain = 0;
    if (escaped_) {
      escaped_ = false;
      plain = 1;
    } else {
      plain = plain_bytes(bytes, in_string_ ? kInString : kOutside);
    }
    if (plain > 0) {
      const std::string_view piece = bytes.substr(0, plain);
      if (depth_ == 0 && !blank(piece)) return mistake(blank(rest_) ? "expected '{' or '['" : "text after the end, expected nothing");
      if (depth_ == 1 && in_string_ && key_.size() < kKeyBytesMax) key_ += piece.substr(0, kKeyBytesMax - key_.size());
      if (!in_string_ && !in_list() && depth_ <= 1 && !blank(piece)) before_ = 'v';
      FLOPSIGHT_RETURN_IF_ERROR(keep(piece));
      bytes_ += plain;
      bytes.remove_prefix(plain);
      continue;
    }
    FLOPSIGHT_RETURN_IF_ERROR(take(bytes.front()));
    ++bytes_;
    bytes.remove_prefix(1);
  }
  return {};
}

Status JsonStream::take(char c) {
  const std::string_view one(&c, 1);
  if (in_string_) {
    if (c == '\\') escaped_ = true;
    if (c == '"') in_string_ = false;
    return keep(one);
  }
  switch (c) {
    case '"':
      in_string_ = true;
      if (depth_ == 1 && !in_list()) key_.clear();
      break;
    case '{':
    case '[': return open(c);
    case '}':
    case ']': return close(c);
    case ',':
      if (at_list_level()) return end_entry(c);
      break;
    default: break;
  }
  if (!in_list() && depth_ == 1) before_ = c;
  return keep(one);
}

Status JsonStream::open(char c) {
  const std::string_view one(&c, 1);
  const bool root = depth_ == 0 && c == '[' && blank(rest_);
  const bool member = depth_ == 1 && !in_list() && c == '[' && before_ == ':' && key_ == options_.list && rest_.find('{') != std::string::npos;
  FLOPSIGHT_RETURN_IF_ERROR(keep(one));
  ++depth_;
  if (root || member) {
    list_depth_ = depth_;
    list_seen_ = true;
    batch_from_ = bytes_ + 1;
    entry_from_ = 0;
    after_comma_ = false;
  }
  return {};
}

// What was read since the last comma of the list is an entry, or nothing where the list is empty.
Status JsonStream::end_entry(char c) {
  null_non_numbers(batch_, entry_from_);
  const std::string_view text = std::string_view(batch_).substr(entry_from_);
  if (blank(text)) {
    if (c == ',' || after_comma_) return mistake(std::string("'") + c + "' where an entry was expected");
    return {};
  }
  if (options_.wanted && !options_.wanted(text)) {
    batch_.resize(entry_from_);
  } else {
    batch_ += ',';
    entry_from_ = batch_.size();
  }
  after_comma_ = c == ',';
  return batch_.size() >= kBatchBytes ? flush() : Status();
}

Status JsonStream::close(char c) {
  if (at_list_level()) {
    if (c != ']') return mistake("'}' where ',' or ']' was expected");
    FLOPSIGHT_RETURN_IF_ERROR(end_entry(c));
    FLOPSIGHT_RETURN_IF_ERROR(flush());
    list_depth_ = 0;
  }
  if (depth_ == 0) return mistake("more is closed than was opened");
  --depth_;
  if (depth_ == 1) before_ = c;
  return keep(std::string_view(&c, 1));
}

Status JsonStream::flush() {
  if (!batch_.empty()) {
    batch_.pop_back();  // the comma
    constexpr std::string_view kEntries[] = {"e"};
    // A byte that an error names is of this text, six after that of the batch.
    const std::string text = "{\"e\":[" + batch_ + "]}";
    FLOPSIGHT_RETURN_IF_ERROR(read_json_items(
                                  text, {kEntries, options_.skip},
                                  [&](std::string_view, base::json::Value value) { return entry_(std::move(value)); },
                                  [](std::string_view, base::json::Value) {})
                                  .within("entries of " + std::string(options_.list) + " from byte " + std::to_string(batch_from_)));
  }
  batch_.clear();
  entry_from_ = 0;
  batch_from_ = bytes_ + 1;
  return {};
}

base::Result<base::json::Value> JsonStream::finish() {
  if (in_string_ || depth_ > 0) {
    return Error{ErrorCode::kInvalid, "JSON ends at byte " + std::to_string(bytes_) + (in_list() ? ", inside the list " + std::string(options_.list) : in_string_ ? ", inside a string" : ", before the root is closed")};
  }
  null_non_numbers(rest_, 0);
  if (blank(rest_)) return Error{ErrorCode::kInvalid, "empty, expected JSON"};
  if (!base::is_utf8(rest_)) return Error{ErrorCode::kInvalid, "JSON outside of the list " + std::string(options_.list) + ": " + base::not_utf8_text(rest_)};
  return base::json::parse(rest_).within("JSON outside of the list " + std::string(options_.list));
}

}  // namespace flopsight::wire
