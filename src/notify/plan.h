#pragma once
// What a receiver is to be told now: the difference between the findings and what it was told of them (store/notify_ledger.h).
//
// An open finding is told once, and again when it gets worse; its end is told where it was told as open, at once; what came and went while the receiver
// was away is told as ended. Silenced and acknowledged findings are not told; if one was told before, its end still is. An Alertmanager
// is sent what is open again and again, as its API wants it, and the end of what was silenced or acknowledged.
//
// Threads: values, pure functions; `now` is an argument.

#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "findings/record.h"
#include "notify/receiver.h"
#include "store/notify_ledger.h"

namespace flopsight::notify {

enum class Telling : std::uint8_t {
  kOpened,    // not told before, or its end was
  kChanged,   // worse than it was told
  kReminder,  // still open
  kResolved,
  kResent,    // to an Alertmanager: still open
  kEnded,     // to an Alertmanager: resolved or withdrawn
};
std::string_view telling_name(Telling telling);  // "opened", "changed", "reminder", "resolved", …

using Records = std::vector<std::shared_ptr<const findings::Record>>;

struct Due {
  const findings::Record* record = nullptr;  // borrowed
  Telling telling = Telling::kOpened;
};

struct Plan {
  std::vector<Due> due;  // most severe first, then the oldest change
  std::optional<units::Instant> next;  // when something else becomes due by time alone
};

// How long the end of an alert is sent again to an Alertmanager that may have been restarted since; Prometheus has the same.
inline constexpr units::Seconds kEndRepeated{900};

// `since`: when the receiver became known; what ended before and was not told is history.
Plan plan(const Receiver& receiver, const Records& records, const store::ToldFindings& told, units::Instant since, units::Instant now);

// What to note once it was told, or given up.
store::ToldFinding noted(const Due& due, const Receiver& receiver, const store::ToldFindings& told, units::Instant now, bool is_given_up);

}  // namespace flopsight::notify
