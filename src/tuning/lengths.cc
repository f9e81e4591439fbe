#include "tuning/lengths.h"

#include "base/csv.h"
#include "base/text.h"
#include "tuning/settings.h"

namespace flopsight::tuning {
namespace {

constexpr double kCountMax = 1e15;

}  // namespace

base::Result<Histogram> read_lengths(std::string_view text) {
  FLOPSIGHT_ASSIGN_OR_RETURN(const base::CsvTable table, base::parse_csv(text));
  const int tokens = table.column("tokens"), count = table.column("count");
  if (tokens < 0 || count < 0) return base::Error{base::ErrorCode::kInvalid, "line 1: expected the columns tokens and count"};
  if (table.rows.size() > kLengthsMax) return base::Error{base::ErrorCode::kLimit, "more than " + std::to_string(kLengthsMax) + " lengths"};
  Histogram out;
  double documents = 0;
  for (const base::CsvRow& row : table.rows) {
    const auto length = base::parse_number(base::trim(row.fields[static_cast<std::size_t>(tokens)]));
    const auto weight = base::parse_number(base::trim(row.fields[static_cast<std::size_t>(count)]));
    if (!length || *length < 1 || *length > static_cast<double>(kSequenceTokensMax)) {
      return base::Error{base::ErrorCode::kInvalid, "line " + std::to_string(row.line) + ", column tokens: expected 1 to " + std::to_string(kSequenceTokensMax)};
    }
    if (!weight || *weight < 0 || *weight > kCountMax) return base::Error{base::ErrorCode::kInvalid, "line " + std::to_string(row.line) + ", column count: expected 0 to 1e15"};
    out.emplace_back(static_cast<std::uint64_t>(*length), *weight);
    documents += *weight;
  }
  if (documents <= 0) return base::Error{base::ErrorCode::kInvalid, "no documents"};
  return out;
}

}  // namespace flopsight::tuning
