#pragma once
// What others say of jobs: schedulers who held what and when, the jobs themselves how fast they
// trained. Beside the rollups, in a file of its own (FOLDER/flopsight-jobs.db,
// docs/formats/job-book.md), so that neither waits for the other, a damaged one leaves the other
// whole, and every process of a fleet on an engine keeps its own.
//
// Jobs are kept by (cluster, id, start): two tellings of one are merged (schedulers/merge.h). A run told without a cluster is that of the only
// cluster with its id and start, whichever was told first; where several clusters have it, it stays apart. A job
// that has not started holds nothing and is not kept. What is put is durable when the call returns,
// whole or not at all. A job that its scheduler stops listing without an end was over some time
// after `told`, when it was last heard of. Errors: kLimit when the disk is full or the book is,
// kCorrupt, kIo. Threads: any.

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "jobs/audit_finding.h"
#include "jobs/owners.h"
#include "schedulers/job.h"
#include "store/sqlite.h"
#include "training_logs/report.h"
#include "units/time.h"

namespace flopsight::store {

struct ToldJob {
  schedulers::Job job;
  units::Instant told;  // when it was last in a telling
};

// The same without what is only shown: for sums over many.
struct RunRow {
  std::string cluster;
  std::string id;
  std::string user;
  std::string account;
  units::Instant start;
  std::optional<units::Instant> end;
  units::Instant told;
  std::optional<std::uint32_t> gpu_count;
  bool is_mig = false;
};

// What a job said of itself: one source (a log, an API client) of one job.
struct ReportedKey {
  std::string job;  // as in samples::Holder
  std::string name_space;
  std::string source;  // "api", "log /scratch/a.log", "prometheus"
  bool operator==(const ReportedKey&) const = default;
};

struct ReportedSteps {
  ReportedKey key;
  std::string format;
  std::vector<training_logs::Step> steps;  // ascending by attempt and step
};

// What a pod belongs to (jobs/owners.h).
struct PodOwner {
  std::string name_space;
  std::string pod;
  jobs::Owner owner;
};

// The model that a job trains, as it was told (audit/told_model.h).
struct ToldModel {
  std::string text;
  units::Instant told;
};

// When a job that reports was last heard of.
struct Reporter {
  std::string job;
  std::string name_space;
  units::Instant last;  // time of its last step
};

struct JobBookOptions {
  bool read_only = false;
  std::uint64_t jobs_max = 20'000'000;
  std::uint64_t steps_max = 200'000'000;  // of all jobs together
  std::uint64_t models_max = 10'000;      // jobs whose model was told
  std::uint64_t audits_max = 100'000;     // past that the oldest goes
};

class JobBook {
 public:
  static base::Result<std::unique_ptr<JobBook>> open(const std::string& folder,
                                                     JobBookOptions options);

  struct Put {
    std::uint64_t added = 0;
    std::uint64_t changed = 0;
    std::uint64_t unchanged = 0;
    std::uint64_t not_started = 0;
    std::uint64_t ambiguous = 0;  // of the added: no cluster was told, and several clusters have that id and start
    std::string first_ambiguous;  // which, in a sentence; empty: none
  };
  // A job that is over and told again as it is known is not written: `told` stays that of its last change.
  base::Result<Put> put_jobs(std::span<const schedulers::Job> jobs, units::Instant now);
  // Held at some time in the window, ascending by start; at most `limit`, then kLimit.
  base::Result<std::vector<ToldJob>> jobs(units::Window window, std::uint64_t limit);
  // Held at some time in the window, ascending by cluster, id and start.
  base::Result<std::vector<RunRow>> run_rows(units::Window window);
  // Of the same runs, as far as `wants` says yes to them: the names of their hosts, each once, and none where the scheduler left some out. A row has
  // only its key and its times here. Without reading back what was told: for many.
  base::Status for_run_hosts(units::Window window, const std::function<bool(const RunRow&)>& wants,
                             const std::function<void(const RunRow&, std::span<const std::string>)>& sink);
  // Runs that were told, or told to have other GPUs, when they had begun some time ago: rollups may have been closed without them. They stay
  // in this list until they are dropped from it. Ascending by start, at most `limit`.
  base::Result<std::vector<ToldJob>> late_jobs(std::uint64_t limit);
  base::Status drop_late(std::span<const ToldJob> jobs);
  // Puts all runs that held GPUs at or after `since` into the list: more is known of hosts than when they were told.
  base::Status look_again(units::Instant since);
  // All runs of an id; of every cluster when none is given.
  base::Result<std::vector<ToldJob>> runs(std::string_view id,
                                          const std::optional<std::string>& cluster);

  // A step that is there already (same source, attempt and number; without a number, same time) is
  // replaced.
  base::Status put_reported(const ReportedKey& key, std::string_view format,
                            std::span<const training_logs::Step> steps, units::Instant now);
  // Of many jobs, in one transaction. For sources whose steps have times and are read again after a crash: what is no later than
  // the last that is known of its source is left out.
  base::Status add_reported(std::span<const ReportedSteps> reported, units::Instant now);
  // Of one job, with a time in the window, or received in it where they have no time.
  base::Result<std::vector<ReportedSteps>> reported(std::string_view job,
                                                    std::string_view name_space,
                                                    units::Window window);
  // Jobs that reported in the window, ascending by job and namespace.
  base::Result<std::vector<Reporter>> reporters(units::Window window);

  // Told again it is replaced. Past models_max the one told longest ago goes whose job was neither told a model nor reported for 30 days;
  // kLimit where there is none.
  base::Status put_model(std::string_view job, std::string_view name_space, std::string_view model, units::Instant now);
  base::Result<std::optional<ToldModel>> model(std::string_view job, std::string_view name_space);
  base::Result<std::uint64_t> models_total();
  // The last of each job is kept.
  base::Status put_audit(const jobs::AuditFinding& finding);
  base::Result<std::optional<jobs::AuditFinding>> audit(std::string_view job, std::string_view name_space);
  // Made at or after `since`, ascending by job and namespace, without evidence.
  base::Result<std::vector<jobs::AuditFinding>> audits(units::Instant since);

  // Told again they stay; not told of for as long as forget() says, they go.
  base::Status put_owners(std::span<const PodOwner> owners, units::Instant now);
  base::Result<std::vector<PodOwner>> owners();
  // Hosts and how many GPUs they have.
  base::Status put_hosts(std::span<const std::pair<std::string, std::uint32_t>> hosts);
  base::Result<std::vector<std::pair<std::string, std::uint32_t>>> hosts();

  // Small things that a process wants to find again: where a log was read up to.
  base::Status put_note(std::string_view key, std::string_view value);
  base::Result<std::optional<std::string>> note(std::string_view key);
  // Of all keys that begin so.
  base::Result<std::vector<std::string>> notes(std::string_view prefix);

  // Jobs that ended and steps that came before it. True: there is more.
  base::Result<bool> forget(units::Instant before);
  base::Result<std::pair<std::uint64_t, std::uint64_t>> counts();  // jobs, steps
  // What was wrong when it was opened; empty: nothing.
  const std::string& damage() const { return damage_; }

 private:
  JobBook(Database database, JobBookOptions options)
      : database_(std::move(database)), options_(options) {}
  struct PutJobs;  // job_book_put.cc
  base::Result<std::optional<units::Instant>> last_reported(const ReportedKey& key);
  base::Result<std::uint64_t> put_steps(const ReportedKey& key, std::string_view format, std::span<const training_logs::Step> steps,
                                        units::Instant now);
  base::Status count_rows();

  std::mutex mutex_;
  Database database_;
  JobBookOptions options_;
  std::uint64_t jobs_total_ = 0;
  std::uint64_t steps_total_ = 0;
  std::string damage_;
  bool has_hosts_ = true;  // a book of version 1 that is only read has no such column
};

}  // namespace flopsight::store
