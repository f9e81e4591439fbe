#include "base/csv.h"

#include <utility>

#include "base/text.h"

namespace flopsight::base {
namespace {

// Reads one record that starts at `at`; leaves `at` behind its line end.
Result<CsvRow> read_record(std::string_view text, std::size_t& at, std::uint64_t& line) {
  CsvRow row;
  row.line = line;
  std::string field;
  bool quoted = false;
  for (; at < text.size(); ++at) {
    const char c = text[at];
    if (quoted) {
      if (c == '"' && at + 1 < text.size() && text[at + 1] == '"') {
        field += '"';
        ++at;
      } else if (c == '"') {
        quoted = false;
      } else {
        if (c == '\n') ++line;
        field += c;
      }
    } else if (c == '"' && field.empty()) {
      quoted = true;
    } else if (c == ',') {
      row.fields.push_back(std::move(field));
      field.clear();
    } else if (c == '\n') {
      break;
    } else {
      field += c;
    }
  }
  if (quoted) {
    return Error{ErrorCode::kInvalid,
                 "line " + std::to_string(row.line) + ": a quoted field is not closed"};
  }
  if (!field.empty() && field.back() == '\r') field.pop_back();
  row.fields.push_back(std::move(field));
  if (at < text.size()) ++at;
  ++line;
  return row;
}

}  // namespace

int CsvTable::column(std::string_view name) const {
  for (std::size_t i = 0; i < header.size(); ++i) {
    if (header[i] == name) return static_cast<int>(i);
  }
  return -1;
}

Result<CsvTable> parse_csv(std::string_view text) {
  CsvTable table;
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
  std::size_t at = 0;
  std::uint64_t line = 1;
  while (at < text.size()) {
    if (text[at] == '#' || text[at] == '\n' || text.substr(at).starts_with("\r\n")) {
      const std::size_t end = text.find('\n', at);
      at = end == std::string_view::npos ? text.size() : end + 1;
      ++line;
      continue;
    }
    FLOPSIGHT_ASSIGN_OR_RETURN(CsvRow row, read_record(text, at, line));
    if (table.header.empty()) {
      table.header = std::move(row.fields);
    } else if (row.fields.size() != table.header.size()) {
      return Error{ErrorCode::kInvalid,
                   "line " + std::to_string(row.line) + ": " + std::to_string(row.fields.size()) +
                       " fields, expected " + std::to_string(table.header.size()) +
                       " as in the header"};
    } else {
      table.rows.push_back(std::move(row));
    }
  }
  if (table.header.empty()) return Error{ErrorCode::kInvalid, "empty, expected a header line"};
  return table;
}

std::string csv_cell(std::string_view text) {
  std::string value = printable(text, 1000);
  if (!value.empty() && std::string_view("=+-@").find(value[0]) != std::string_view::npos) value.insert(0, "'");
  if (value.find_first_of(",\"\n") == std::string::npos) return value;
  std::string out = "\"";
  for (const char c : value) {
    if (c == '"') out += '"';
    out += c;
  }
  return out + "\"";
}

}  // namespace flopsight::base
