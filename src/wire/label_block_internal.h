#pragma once
// The grammar of one label block, `{name="value", …}`, from bytes to labels. It never looks past
// the closing brace: whether a block is valid, and what it says, depends on the block's own bytes
// alone. The parser's memory of blocks (exposition.cc) rests on that.
//
// Threads: one. Lifetime: labels and metric point into the text that was read, or, where an escape
// had to be resolved, into this object, until the next read.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "wire/exposition.h"

namespace flopsight::wire {

// What is wrong with a line, and at which byte. Cheap to return; the text is composed when
// reported.
struct [[nodiscard]] Fault {
  const char* at = nullptr;   // null: nothing is wrong
  std::string_view expected;  // '%' stands for the limit
  std::uint64_t limit = 0;

  explicit operator bool() const { return at != nullptr; }
};

// The unread rest of one line.
struct Cursor {
  const char* at;
  const char* end;

  bool done() const { return at == end; }
  bool on(char c) const { return at != end && *at == c; }
  std::size_t left() const { return static_cast<std::size_t>(end - at); }
  void skip_blanks() {
    while (at != end && (*at == ' ' || *at == '\t')) ++at;
  }
  // All up to the next blank; empty at the end of the line.
  std::string_view take_word() {
    const char* const begin = at;
    while (at != end && *at != ' ' && *at != '\t') ++at;
    return {begin, static_cast<std::size_t>(at - begin)};
  }
};

bool is_metric_name_start(char c);
bool is_metric_name_part(char c);

class LabelBlock {
 public:
  struct Limits {
    std::uint32_t labels_max;
    std::uint32_t value_bytes_max;
  };
  enum class QuotedMetric { kAccepted, kRefused };

  explicit LabelBlock(Limits limits) : limits_(limits) {}

  // Reads the block whose '{' the cursor stands on, and leaves the cursor behind its '}'.
  Fault read(Cursor& cursor, QuotedMetric quoted_metric);
  std::span<const Label> labels() const { return labels_; }
  // The metric's name where it stood inside the block (`{"name", label="x"}`), else empty.
  std::string_view metric() const { return metric_; }

  // Reads a quoted metric name (`"name"`) outside of a block, which metric() then returns.
  Fault read_quoted_metric(Cursor& cursor);

 private:
  Fault read_item(Cursor& cursor, QuotedMetric quoted_metric);
  Fault read_value(Cursor& cursor, std::string_view name);
  Fault read_quoted(Cursor& cursor, std::string_view& text);
  std::string_view resolve(std::string_view raw, const char* line_end);
  void reset();

  Limits limits_;
  std::vector<Label> labels_;
  std::string_view metric_;
  std::string resolved_;
};

}  // namespace flopsight::wire
