#pragma once
// Comma-separated values (RFC 4180): a header line, quoted fields with doubled quotes, CRLF or LF.
// Lines that are empty or start with '#' are skipped. Rows know their line for error messages.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace flopsight::base {

struct CsvRow {
  std::uint64_t line = 0;  // of its first character, from 1
  std::vector<std::string> fields;
};

struct CsvTable {
  std::vector<std::string> header;
  std::vector<CsvRow> rows;  // each with exactly header.size() fields

  // The column's index, or -1.
  int column(std::string_view name) const;
};

// A text as a cell: in quotes where it has to be, control characters replaced, and behind an apostrophe where a spreadsheet would take it
// for a formula (it begins with =, +, - or @). Not for numbers. Texts over 1000 bytes are cut.
std::string csv_cell(std::string_view text);

// Errors: kInvalid with the line: an unclosed quote, a row with another number of fields, no header.
Result<CsvTable> parse_csv(std::string_view text);

}  // namespace flopsight::base
