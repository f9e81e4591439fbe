#pragma once
// Audits of all jobs that report and whose model is known, while the service runs: a round every ten minutes over the jobs of the last day, of
// which those are audited that reported something new, were told another model, or were audited over an hour ago. What was found last of
// each is kept in the book of jobs; a discrepancy that is new is said.
//
// Threads: one of its own, begun by start(); every function may be called by any.

#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/result.h"
#include "serve/ingest.h"
#include "serve/job_audit.h"
#include "serve/job_models.h"
#include "serve/self_metrics.h"

namespace flopsight::app {

class AuditRounds {
 public:
  AuditRounds(JobService& jobs, std::shared_ptr<const AnswerSettings> settings) : jobs_(jobs), settings_(std::move(settings)) {}
  ~AuditRounds() { stop(); }

  using OpenReader = std::function<base::Result<Ingest::ReaderHandle>(units::Instant now)>;
  void start(OpenReader open_reader, std::function<units::Instant()> now);
  void stop();  // ends with the job that is looked at
  // A round follows at once.
  void replace(std::shared_ptr<const AnswerSettings> settings);

  // Soon and not with the next round: its model was told.
  void ask(const samples::Holder& holder);

  // Looks at one job, or begins a round that is due. True: there is more to look at.
  base::Result<bool> step(store::Reader& reader, units::Instant now);

  AuditingHealth health() const;
  // What is new since the last call, a line each.
  std::vector<std::string> take_notes();

 private:
  struct Due {
    std::string id;
    std::optional<units::Instant> last;  // reported; absent: look in any case
  };
  struct Known {
    units::Instant audited;
    std::optional<units::Instant> last;  // reported when it was audited
    std::string model;
    bool is_audited = false;
  };
  void run(const OpenReader& open_reader, const std::function<units::Instant()>& now);
  base::Status begin_round(units::Instant now);
  base::Status look_at(store::Reader& reader, const Due& due, units::Instant now);
  void keep(jobs::AuditFinding finding, const std::string& id);

  JobService& jobs_;
  JobAudits audits_;
  // Of the thread that steps.
  units::Instant round_;
  std::deque<Due> due_;
  std::map<std::string, Known> known_;

  mutable std::mutex mutex_;
  std::shared_ptr<const AnswerSettings> settings_;
  std::map<std::string, jobs::AuditFinding> findings_;  // of the last day, by id
  std::deque<std::string> asked_;                       // ids
  std::uint64_t audits_total_ = 0;
  std::uint64_t failures_total_ = 0;
  bool is_loaded_ = false;
  bool is_asked_ = true;  // for a round: there was none yet, or settings are new
  std::string trouble_;
  std::vector<std::string> notes_;

  std::condition_variable wake_;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace flopsight::app
