#pragma once
// What each receiver was told of each finding, so that after a crash nothing is forgotten and little is told twice: `flopsight-notify.db`.
// docs/formats/notify.md describes it.
//
// What is still to be told is the difference between this and the findings themselves; nothing else is queued, so that a receiver that is away for
// days costs no memory, and a finding that came and went meanwhile is told once.
//
// Errors: those of sqlite.h. Threads: any; one at a time inside.

#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "store/sqlite.h"
#include "units/time.h"

namespace flopsight::store {

struct ToldFinding {
  std::string finding;   // its id
  bool is_open = false;  // it was told as open, and its end was not told yet
  bool is_given_up = false;  // the receiver would not take it
  units::Instant told;   // the last time
  std::string severity;  // as it was told
  std::string labels;    // an Alertmanager's: those of the alert, as text
};
using ToldFindings = std::map<std::string, ToldFinding, std::less<>>;  // by id

class NotifyLedger {
 public:
  // Of one receiver; the oldest ended ones go. An open one never does, so this many findings may be open at once.
  static constexpr std::size_t kRowsMax = 100'000;

  // A damaged file is put aside and a new one begun: damage() says so.
  static base::Result<std::unique_ptr<NotifyLedger>> open(const std::string& folder, std::size_t rows_max = kRowsMax);
  const std::string& damage() const { return damage_; }

  // Since when the receiver is known: from its first call on. What ended before is not told to it.
  base::Result<units::Instant> since(std::string_view receiver, units::Instant now);
  base::Result<ToldFindings> told(std::string_view receiver);
  // All of them or none; durable when it returns.
  base::Status put(std::string_view receiver, const std::vector<ToldFinding>& rows);
  // Ended rows that were told before `before`, and what is over rows_max.
  base::Status forget(std::string_view receiver, units::Instant before);

 private:
  NotifyLedger(Database database, std::size_t rows_max) : database_(std::move(database)), rows_max_(rows_max) {}

  std::mutex mutex_;
  Database database_;
  std::size_t rows_max_;
  std::string damage_;
};

}  // namespace flopsight::store
