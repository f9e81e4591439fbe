#pragma once
// Bytes to lines: the lines that may say something, with their places. Knows of ends of lines, long lines and the words by which
// lines are picked; not of formats.

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "training_logs/report.h"
#include "training_logs/words_internal.h"

namespace flopsight::training_logs {

class LineReader {
 public:
  // `line` gets lines without their ends. With `words`, only lines that have one of them.
  using Line = std::function<void(std::string_view text, SourceLine at)>;
  explicit LineReader(Line line) : line_(std::move(line)) {}

  // nullptr: every line.
  void pick(const Words* words) { words_ = words; }
  void start_at(SourceLine at);
  void feed(std::string_view bytes);
  // The last line may have no end.
  void finish();
  // What was fed after the last end of a line was not.
  void drop_tail() {
    line_begun_ &= tail_.empty();
    tail_.clear();
  }

  // The line at hand is the last of the text and has no end: a figure may be cut in its middle.
  bool is_broken_off() const { return is_broken_off_; }

  std::uint64_t bytes() const { return consumed_ + tail_.size(); }
  std::uint64_t lines() const { return newlines_; }
  std::uint64_t cut() const { return cut_; }  // lines longer than is read
  // The start of the line that is not whole yet.
  std::uint64_t whole_lines_end_bytes() const { return consumed_; }

 private:
  void block(std::string_view text);
  void line(std::string_view text, std::size_t begin, std::size_t end);

  Line line_;
  const Words* words_ = nullptr;
  std::string tail_;          // the beginning of a line whose end has not come
  std::vector<std::size_t> found_;
  bool skipping_ = false;     // the rest of a line that is too long
  bool first_ = true;
  bool is_broken_off_ = false;
  bool line_begun_ = false;   // something came since the last newline
  std::uint64_t consumed_ = 0;
  std::uint64_t newlines_ = 0;
  std::uint64_t cut_ = 0;
};

}  // namespace flopsight::training_logs
