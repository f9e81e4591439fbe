#include "wire/exposition_lines.h"

#include <algorithm>

namespace flopsight::wire {
namespace {

// The parser takes any spaces before the word.
bool is_end_marker(std::string_view comment) {
  const std::size_t word = comment.find_first_not_of(" \t");
  return word != std::string_view::npos && comment.substr(word).starts_with("EOF");
}

bool is_wanted(std::string_view line, const std::function<bool(std::string_view)>& wanted) {
  const std::size_t begin = line.find_first_not_of(" \t\r");
  if (begin == std::string_view::npos) return false;
  if (line[begin] == '#') return is_end_marker(line.substr(begin + 1));
  const std::string_view name = line.substr(begin, line.find_first_of("{ \t", begin) - begin);
  return name.empty() || wanted(name);
}

}  // namespace

void append_lines_of(std::string_view text, const std::function<bool(std::string_view metric)>& wanted, std::string& out) {
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (is_wanted(line, wanted)) (out += line) += '\n';
  }
}

}  // namespace flopsight::wire
