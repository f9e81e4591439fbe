#include "views/text_table.h"

#include <algorithm>
#include <cstdio>

#include "base/text.h"

namespace flopsight::views::text_table {
namespace {

constexpr std::size_t kNameWidthMax = 52;

// Columns on screen, counting characters and not bytes.
std::size_t width(std::string_view text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0) != 0x80;
  }));
}

}  // namespace

std::string short_name(std::string_view text) {
  if (width(text) <= kNameWidthMax) return base::printable(text, text.size());
  const std::string head = base::printable(text, kNameWidthMax / 2 - 2);
  std::string_view tail = text.substr(text.size() - (kNameWidthMax / 2 - 2));
  while (!tail.empty() && (static_cast<unsigned char>(tail[0]) & 0xC0) == 0x80)
    tail.remove_prefix(1);
  return head + base::printable(tail, tail.size());
}

std::string gpu_count(std::uint64_t count, bool is_told) { return std::to_string(count) + (is_told ? " told" : ""); }

std::string number(double value, const char* format) {
  char text[400];  // a double has up to 309 digits before its point
  std::snprintf(text, sizeof text, format, value);
  return text;
}

std::string percent(double ratio) { return number(ratio * 100, "%.1f %%"); }

void drop_unknown(std::vector<Column>& columns, std::size_t first) {
  for (std::size_t i = columns.size(); i-- > first;) {
    const auto& cells = columns[i].cells;
    if (std::all_of(cells.begin(), cells.end(),
                    [](const auto& c) { return c.empty() || c == kUnknownCell; })) {
      columns.erase(columns.begin() + static_cast<std::ptrdiff_t>(i));
    }
  }
}

std::string render(const std::vector<Column>& columns, std::size_t rule_before) {
  std::vector<std::size_t> widths;
  for (const Column& column : columns) {
    std::size_t most = width(column.head);
    for (const std::string& cell : column.cells) most = std::max(most, width(cell));
    widths.push_back(most);
  }
  std::string out;
  const auto line = [&](auto cell_of) {
    std::string text;
    for (std::size_t i = 0; i < columns.size(); ++i) {
      const std::string& cell = cell_of(columns[i]);
      const std::string pad(widths[i] - width(cell), ' ');
      text += (i == 0 ? "" : "  ") + (columns[i].left ? cell + pad : pad + cell);
    }
    text.resize(text.find_last_not_of(' ') + 1);
    out += text + "\n";
  };
  const auto rule = [&] {
    std::size_t total = 2 * (columns.size() - 1);
    for (const std::size_t w : widths) total += w;
    out += std::string(total, '-') + "\n";
  };
  line([](const Column& c) -> const std::string& { return c.head; });
  rule();
  for (std::size_t row = 0; row < columns.front().cells.size(); ++row) {
    if (row == rule_before) rule();
    line([&](const Column& c) -> const std::string& { return c.cells[row]; });
  }
  return out;
}

}  // namespace flopsight::views::text_table
