#pragma once
// What a change was predicted to gain and what it did gain, kept line by line in a file (JSON lines), so that the advisor's record can be read.
// Threads: pure.

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "units/time.h"

namespace flopsight::tuning {

// By what two runs are compared: tokens a second where both have them, else OFU, which holds where the FLOPs of a token are the same.
enum class GainBy : std::uint8_t { kTokens, kOfu };
std::string_view gain_by_name(GainBy by);  // "tokens_per_second", "ofu"

struct GainRecord {
  std::string time;    // RFC 3339, when it was verified
  std::string change;  // as the user says
  std::string before;  // which run
  std::string after;
  std::optional<double> predicted_gain_ratio;
  double obtained_gain_ratio = 0;
  GainBy by = GainBy::kTokens;
};

inline constexpr std::size_t kRecordBytesMax = std::size_t{64} << 20;
inline constexpr std::size_t kRecordsMax = 1'000'000;

std::string record_line(const GainRecord& record);  // with its newline
// Errors: kInvalid with the line; kLimit past the maxima.
base::Result<std::vector<GainRecord>> read_records(std::string_view text);

struct RecordSummary {
  std::size_t verified_total = 0;   // with a prediction
  std::optional<double> error_median_ratio;           // of obtained - predicted
  std::optional<double> error_absolute_median_ratio;
  std::size_t worse_total = 0;      // lost where a gain was predicted
};
RecordSummary summary_of(const std::vector<GainRecord>& records);

}  // namespace flopsight::tuning
