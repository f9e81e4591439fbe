// Any bytes as CSV. Every row has as many fields as the header, rows know their line, and a table that is
// written as RFC 4180 says, every field quoted, reads back as itself.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "base/csv.h"

namespace {

void append_row(const std::vector<std::string>& fields, std::string& out) {
  for (std::size_t i = 0; i < fields.size(); ++i) {
    out += i == 0 ? "\"" : ",\"";
    for (const char c : fields[i]) out += c == '"' ? std::string("\"\"") : std::string(1, c);
    out += '"';
  }
  out += "\r\n";
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto table = flopsight::base::parse_csv(text);
  if (!table.ok()) {
    FLOPSIGHT_CHECK(!table.error().message.empty());
    FLOPSIGHT_CHECK(table.error().message.find('\n') == std::string::npos);
    return 0;
  }
  const auto lines = static_cast<std::uint64_t>(std::count(text.begin(), text.end(), '\n')) + 1;
  std::uint64_t line = 0;
  std::string written;
  append_row(table->header, written);
  for (const flopsight::base::CsvRow& row : table->rows) {
    FLOPSIGHT_CHECK(row.fields.size() == table->header.size());
    FLOPSIGHT_CHECK(row.line > line && row.line <= lines);
    line = row.line;
    append_row(row.fields, written);
  }
  for (const std::string& name : table->header) {
    const int at = table->column(name);
    FLOPSIGHT_CHECK(at >= 0 && table->header[static_cast<std::size_t>(at)] == name);
  }
  const auto again = flopsight::base::parse_csv(written);
  FLOPSIGHT_CHECK(again.ok());
  FLOPSIGHT_CHECK(again->header == table->header);
  FLOPSIGHT_CHECK(again->rows.size() == table->rows.size());
  for (std::size_t i = 0; i < table->rows.size(); ++i) {
    FLOPSIGHT_CHECK(again->rows[i].fields == table->rows[i].fields);
  }
  return 0;
}
