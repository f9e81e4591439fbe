#pragma once
// Detection while the service runs: each minute of data that is closed goes to all detectors, in order, and what they see to the findings
// (finding_service.h). Audits that found a discrepancy, and jobs that lose more dollars a day than the configuration allows, are findings as well.
//
// A minute is looked at when it is closed for every GPU; while samples come in live, also when it is `settle` older than the newest sample of
// the last flush, so that a silent GPU holds nobody up. What comes later is not looked at again. The first time, it begins a day back.
// While nothing comes in at all, no minute goes by and nothing is resolved; but jobs that are held and silent are looked for by the clock on the wall.
// After a restart detectors are given their past: jobs twelve hours, or twelve before the oldest open finding of the job; GPUs forty minutes; families
// the levels of their runs, which are kept once an hour of data.
// Cells come from the store of this process: with several processes on one engine, each looks at the GPUs that it takes in.
//
// Threads: one of its own, begun by start(); every function may be called by any.

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "base/result.h"
#include "jobs/audit_finding.h"
#include "serve/finding_service.h"
#include "serve/finding_watch.h"
#include "serve/ingest.h"
#include "serve/self_metrics.h"
#include "serve/silent_jobs.h"

namespace flopsight::app {

struct FindingRoundOptions {
  bool use = true;
  WatchOptions watch;
  double waste_usd_per_day = 0;  // 0: waste is no finding
  units::Seconds settle{240};
  units::Seconds retention{90 * 86'400.0};
};

class FindingRounds {
 public:
  // All are borrowed.
  FindingRounds(Ingest& ingest, JobService& jobs, FindingService& findings, std::shared_ptr<const AnswerSettings> settings,
                FindingRoundOptions options);
  ~FindingRounds() { stop(); }
  // Hosts whose exporters do not answer (silent_jobs.h); before start().
  void set_hosts_down(std::function<std::set<std::string>()> hosts_down) { silent_.set_hosts_down(std::move(hosts_down)); }
  // Where discrepancies come from; before start().
  void set_audits(std::function<std::vector<jobs::AuditFinding>()> audits) { audits_ = std::move(audits); }

  void start(std::function<units::Instant()> now);
  void stop();
  void replace(std::shared_ptr<const AnswerSettings> settings, FindingRoundOptions options);

  // Looks at up to an hour of minutes that are closed. True: there is more.
  base::Result<bool> step(units::Instant now);

  FindingHealth health() const;
  std::vector<std::string> take_notes();

 private:
  void run(const std::function<units::Instant()>& now);
  std::optional<units::Instant> closed_until(units::Instant now) const;  // the store is held
  base::Status begin(units::Instant horizon);
  base::Result<std::vector<FleetMinute>> read(units::Window window);
  base::Status warm_jobs(store::Store& store, const FleetMinute& minute);
  units::Instant past_of(std::uint32_t job, units::Instant minute) const;
  std::string family_of(std::uint32_t job, const JobMinute& minute, units::Instant start) const;
  base::Status look_at(units::Instant start, const FleetMinute* minute, units::Instant now, bool more_follow);
  void look_beside(units::Instant start, units::Instant now);
  base::Status add_silent(units::Instant minute, units::Instant now, std::vector<findings::Sighting>& seen);
  base::Status look_at_silence(units::Instant horizon, units::Instant now);
  base::Status learn_silent();
  base::Status keep_levels(units::Instant minute);

  Ingest& ingest_;
  JobService& jobs_;
  FindingService& findings_;
  std::function<std::vector<jobs::AuditFinding>()> audits_;

  // Of the thread that steps.
  MinuteReader reader_;
  FindingWatch watch_;
  SilentJobs silent_;
  AnswerSettings answers_;
  FindingRoundOptions how_;
  std::optional<units::Instant> next_;  // minute to look at
  std::map<std::string, units::Instant> open_since_;  // by job: of what was open before the restart
  std::int64_t minutes_at_once_ = 60;
  bool has_read_ = false;  // since memory was given back
  units::Instant looked_beside_, looked_at_silence_, forgotten_, jobs_forgotten_, levels_kept_;
  std::optional<units::Instant> waste_until_;
  std::vector<findings::Sighting> beside_;  // audits and waste as they were last

  mutable std::mutex mutex_;
  std::shared_ptr<const AnswerSettings> settings_;
  FindingRoundOptions options_;
  bool is_new_ = true;  // settings and options
  FindingHealth health_;
  std::string trouble_;
  std::vector<std::string> notes_;

  std::condition_variable wake_;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace flopsight::app
