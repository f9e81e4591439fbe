#pragma once
// A line of a log without what launchers and terminals put around it: escape sequences, ranks, time stamps.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/zone.h"
#include "units/time.h"

namespace flopsight::training_logs {

// A date as printed: seconds as if it were UTC, and the offset where one stands there.
struct PrintedTime {
  std::int64_t local_milliseconds = 0;
  std::optional<std::int64_t> offset_seconds;
};

struct Line {
  std::string_view text;  // without escape sequences
  std::optional<PrintedTime> time;
  std::optional<std::int64_t> rank;
  // "10/22/2026 10:00:01" as month, day and year; only some formats are known to print it so, and where the day is above 12 it is no question.
  std::optional<PrintedTime> month_first;
  bool is_month_first = false;
  bool has_other_time = false;  // a time of day without a date, or with one that has no year
};

// The text of a last line that has no end, up to the figure that it breaks off in; whole where that is none.
std::string_view without_broken_figure(std::string_view text);
// Without its last word, which may go on.
std::string_view without_last_word(std::string_view text);

// `buffer` keeps the text where sequences had to be taken out; the Line borrows from it or from `raw`.
Line clean_line(std::string_view raw, std::string& buffer);

// A line that a container's runtime or a collector of logs keeps as JSON: {"log": "…", "time": "…"}, {"message": …, "@timestamp": …},
// {"jsonPayload": {"message": …}, "timestamp": …}, fluentd's "TIME\ttag\t{…}", a member of such a record on a line of its own, or an answer of a store
// of logs that has many of them. A text may have several lines. Empty for what is no such record.
struct Recorded {
  std::string text;
  std::optional<PrintedTime> time;
};
std::vector<Recorded> recorded_lines(std::string_view raw);

// A line as Kubernetes' runtimes write it, "TIME stdout P text": P of a part, which the next lines of the stream go on with up to one with F.
struct RuntimeLine {
  bool is_error_stream = false;
  bool is_part = false;
  std::string_view text;
};
std::optional<RuntimeLine> runtime_line(std::string_view raw);

// "2024-04-06 02:55:45", "2025/07/21T15:57:42,774", "…Z", "…+02:00" at this place. `size`: its characters.
std::optional<PrintedTime> read_date(std::string_view text, std::size_t& size);

// Milliseconds since 1970 of a calendar date as if in UTC; nothing for what is no date.
std::optional<std::int64_t> calendar_milliseconds(int year, int month, int day, int hour, int minute, int second,
                                                  int millisecond);

// The instant of a printed date; nothing without an offset and without a zone. Dates go on: in the hour that is repeated,
// the one that is not before `last` is meant.
std::optional<units::Instant> instant_of(const PrintedTime& time, const std::optional<base::Zone>& zone,
                                         const std::optional<units::Instant>& last);

}  // namespace flopsight::training_logs
