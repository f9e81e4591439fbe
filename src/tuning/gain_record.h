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

// Gains are finite, and of -1 or more.
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

struct KeptRecords {
  std::vector<GainRecord> records;
  std::size_t unread_total = 0;   // lines that are no record among those that are: a program or a disk stopped in the middle
  std::string first_unread;       // "line 3: ...", empty where all were read
  bool ends_in_line = true;       // false: the last line has no newline, so that what is appended would be part of it
};
// Errors: kInvalid, with the line, where the first line does not even begin as a record does: another file. kLimit past the maxima.
base::Result<KeptRecords> read_records(std::string_view text);

struct RecordSummary {
  std::size_t verified_total = 0;   // with a prediction
  std::optional<double> error_median_ratio;           // of obtained - predicted
  std::optional<double> error_absolute_median_ratio;
  std::size_t worse_total = 0;      // lost where a gain was predicted
};
RecordSummary summary_of(const std::vector<GainRecord>& records);

}  // namespace flopsight::tuning
