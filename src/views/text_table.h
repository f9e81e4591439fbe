#pragma once
// Tables for a terminal: columns as wide as what is in them, counted in characters. Cells must be
// printable already; short_name() makes them so. Threads: pure.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace flopsight::views::text_table {

inline constexpr std::string_view kUnknownCell = "-";

struct Column {
  std::string head;
  std::vector<std::string> cells;
  bool left = false;
};

// Printable, and cut in the middle where it is long, as names differ at both ends.
std::string short_name(std::string_view text);
// "4", or "4 told" where a scheduler says so and fewer were seen.
std::string gpu_count(std::uint64_t count, bool is_told);
// A number by a printf format of one double; what is more than 63 characters is cut.
std::string number(double value, const char* format);
// "41.0 %".
std::string percent(double ratio);
// From column `first` on, those in which nothing is known are left out rather than shown as dashes.
void drop_unknown(std::vector<Column>& columns, std::size_t first);
// A line under the head, and one before row `rule_before` if there is such a row.
std::string render(const std::vector<Column>& columns, std::size_t rule_before);

}  // namespace flopsight::views::text_table
