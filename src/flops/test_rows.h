#pragma once
// For tests: the published training runs of tests/fixtures/flops/rows.csv, one Row each. Not part of the program.

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/csv.h"
#include "base/file.h"
#include "base/text.h"

namespace flopsight::flops::test {

struct Row {
  std::map<std::string, std::string> cells;
  const std::string& text(const std::string& name) const { return cells.at(name); }
  double number(const std::string& name) const { return base::parse_number(cells.at(name)).value_or(0); }
  std::uint64_t count(const std::string& name) const { return static_cast<std::uint64_t>(number(name)); }
  // 1 where the cell is empty or 0.
  std::uint64_t count_or_one(const std::string& name) const { return std::max<std::uint64_t>(1, count(name)); }
  int id() const { return static_cast<int>(number("row_id")); }
};

inline std::vector<Row> rows() {
  const auto table = base::parse_csv(base::read_file(FLOPSIGHT_SOURCE_DIR "/tests/fixtures/flops/rows.csv").value());
  std::vector<Row> list;
  for (const base::CsvRow& row : table->rows) {
    Row one;
    for (std::size_t i = 0; i < table->header.size(); ++i) one.cells[table->header[i]] = row.fields[i];
    list.push_back(std::move(one));
  }
  return list;
}

// A member of a config.json with its comma.
inline std::string field(const char* name, std::uint64_t value) { return std::string("\"") + name + "\":" + std::to_string(value) + ","; }

}  // namespace flopsight::flops::test
