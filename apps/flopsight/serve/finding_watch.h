#pragma once
// All detectors (src/detect) of a fleet, minute after minute, and what they see as sightings: with whose it is, on which GPU model, at which
// price. A job's detectors begin with its past (warm()), so that a restart of the service forgets nothing that they need.
//
// Limits: jobs_max jobs are watched at once; those past it are counted and their GPUs' faults still found.
// Threads: one at a time. The reader of minutes is borrowed.

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "base/regex.h"
#include "detect/faults.h"
#include "detect/job.h"
#include "findings/book.h"
#include "serve/family_levels.h"
#include "serve/finding_minutes.h"

namespace flopsight::app {

struct WatchOptions {
  std::set<std::string> kinds_off;
  std::shared_ptr<const std::vector<base::Regex>> daily_load;  // names of jobs; may be null
  std::uint64_t jobs_max = 5'000;
};

class FindingWatch {
 public:
  FindingWatch(const MinuteReader& names, WatchOptions options) : names_(names), options_(std::move(options)) {}
  void set_options(WatchOptions options) { options_ = std::move(options); }

  bool watches(std::uint32_t job) const { return jobs_.contains(job); }
  // There is room for one more.
  bool has_room() const { return jobs_.size() < options_.jobs_max; }
  // Begins to watch a job at a minute, with its minutes before that; `family`: empty where it has none.
  void warm(std::uint32_t job, units::Instant minute, std::span<const detect::MinutePoint> past, std::string family);

  // The next minute, and all that shows in it.
  std::vector<findings::Sighting> minute(const FleetMinute& minute, const AnswerSettings& settings);

  // With whose it is, on what, at which price. Nothing for a kind that is off, and for what is long over.
  std::optional<findings::Sighting> sighting(const detect::Finding& finding, units::Instant minute, const AnswerSettings& settings) const;

  // Of runs, also ended ones, to compare with within a family.
  FamilyLevels& families() { return families_; }

  std::size_t jobs_watched() const { return jobs_.size(); }
  std::size_t jobs_unwatched() const { return unwatched_; }  // in the last minute

 private:
  struct Watched {
    Watched(std::string id, detect::RegressionOptions options) : detector(std::move(id), options) {}
    detect::JobDetector detector;
    std::string family;
    std::int64_t seen_unix_milliseconds = 0;
  };
  void name_owner(const detect::Finding& finding, findings::Record& record, std::vector<std::uint32_t>& gpus) const;
  std::map<std::uint32_t, std::vector<detect::Finding>> by_job(const std::vector<detect::Finding>& faults) const;
  void keep_level(std::uint32_t job, const Watched& watched);
  void forget(std::int64_t now_unix_milliseconds);

  const MinuteReader& names_;
  WatchOptions options_;
  detect::FaultDetector faults_;
  std::map<std::uint32_t, Watched> jobs_;
  FamilyLevels families_;
  // Of the minute that is looked at: which GPUs jobs and hosts have.
  std::map<std::uint32_t, std::vector<std::uint32_t>> gpus_of_job_;
  std::map<std::string, std::vector<std::uint32_t>, std::less<>> gpus_of_host_;
  std::size_t unwatched_ = 0;
};

}  // namespace flopsight::app
