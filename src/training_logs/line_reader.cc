#include "training_logs/line_reader_internal.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace flopsight::training_logs {
namespace {

constexpr std::size_t kNone = std::string_view::npos;

// The first end of a line from `from` on. A progress bar ends its lines with a carriage return.
std::size_t line_end(std::string_view text, std::size_t from) {
  const std::size_t newline = text.find('\n', from);
  const std::size_t carriage = text.substr(0, newline).find('\r', from);
  return std::min(newline, carriage);
}

std::uint64_t count_newlines(std::string_view text) {
  // memchr is many times faster than a loop over bytes, which the compiler does not turn into vector instructions.
  std::uint64_t count = 0;
  for (const char* at = text.data(); at < text.data() + text.size(); ++at, ++count) {
    at = static_cast<const char*>(std::memchr(at, '\n', static_cast<std::size_t>(text.data() + text.size() - at)));
    if (at == nullptr) break;
  }
  return count;
}

}  // namespace

void LineReader::start_at(SourceLine at) {
  tail_.clear();
  skipping_ = false;
  first_ = false;
  line_begun_ = false;
  consumed_ = at.offset_bytes;
  newlines_ = at.line > 0 ? at.line - 1 : 0;
}

void LineReader::feed(std::string_view bytes) {
  if (!bytes.empty()) line_begun_ = bytes.back() != '\n';
  while (!bytes.empty()) {
    if (skipping_) {
      const std::size_t end = line_end(bytes, 0);
      const std::size_t skipped = end == kNone ? bytes.size() : end + 1;
      newlines_ += count_newlines(bytes.substr(0, skipped));
      consumed_ += skipped;
      skipping_ = end == kNone;
      bytes.remove_prefix(skipped);
      continue;
    }
    if (!tail_.empty()) {
      const std::size_t end = line_end(bytes, 0);
      const std::size_t room = Limits::line_bytes_max - tail_.size();
      const bool whole = end != kNone && end <= room;
      if (!whole && end == kNone && bytes.size() <= room) {
        tail_.append(bytes);
        return;
      }
      const std::size_t taken = whole ? end + 1 : room;
      tail_.append(bytes.substr(0, taken));
      bytes.remove_prefix(taken);
      block(tail_);
      tail_.clear();
      skipping_ = !whole;
      cut_ += whole ? 0 : 1;
      continue;
    }
    const std::size_t last = bytes.find_last_of("\n\r");
    const std::size_t whole = last == kNone ? 0 : last + 1;
    block(bytes.substr(0, whole));
    bytes.remove_prefix(whole);
    const std::size_t taken = std::min(bytes.size(), Limits::line_bytes_max);
    tail_.assign(bytes.substr(0, taken));
    bytes.remove_prefix(taken);
    if (bytes.empty()) return;
  }
}

void LineReader::finish() {
  if (!tail_.empty()) {
    is_broken_off_ = true;
    block(tail_);
    is_broken_off_ = false;
    tail_.clear();
  }
  // A last line without its end is a line, and so are progress bars that nothing but carriage returns end.
  if (std::exchange(line_begun_, false)) ++newlines_;
}

void LineReader::line(std::string_view text, std::size_t begin, std::size_t end) {
  std::string_view content = text.substr(begin, end - begin);
  if (content.size() > Limits::line_bytes_max) {
    ++cut_;
    content = content.substr(0, Limits::line_bytes_max);
  }
  if (!content.empty()) line_(content, {consumed_ + begin, newlines_ + 1});
}

void LineReader::block(std::string_view text) {
  std::size_t counted = 0;
  const auto count_to = [&](std::size_t to) {
    newlines_ += count_newlines(text.substr(counted, to - counted));
    counted = to;
  };
  std::size_t at = 0;
  while (at < text.size()) {
    // The first line of all says whether the text is a table, and is always looked at.
    if (words_ == nullptr || first_) {
      first_ = false;
      const std::size_t end = std::min(line_end(text, at), text.size());
      count_to(at);
      line(text, at, end);
      at = end + 1;
      continue;
    }
    const std::size_t from = at;
    at = text.size();
    words_->find_lines(text.substr(from), found_);
    for (const std::size_t found_at : found_) {
      const std::size_t found = from + found_at;
      const std::size_t before = text.find_last_of("\n\r", found - 1);
      const std::size_t begin = before == kNone ? 0 : before + 1;
      const std::size_t end = std::min(line_end(text, found), text.size());
      count_to(begin);
      line(text, begin, end);
      if (words_ != nullptr) continue;
      at = end + 1;  // every line from here on was asked for
      break;
    }
  }
  count_to(text.size());
  consumed_ += text.size();
}

}  // namespace flopsight::training_logs
