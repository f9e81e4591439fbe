#pragma once
// Jobs as the service knows them: told by schedulers, files, the API and kube-state-metrics, kept
// in the book of jobs, and handed on as what the fleet needs (who holds which GPUs) and what
// answers need (which pods are one job, what a job said of itself).
//
// Threads: any.

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "analysis/reported.h"
#include "base/result.h"
#include "jobs/grouping.h"
#include "jobs/job_file.h"
#include "schedulers/job.h"
#include "schedulers/place.h"
#include "store/job_book.h"
#include "training_logs/exported_steps.h"
#include "units/time.h"

namespace flopsight::app {

class JobService {
 public:
  static base::Result<std::unique_ptr<JobService>> open(const std::string& folder, bool read_only);

  // Held time is counted up to now by this clock: of the future nobody knows. Without one, up to the end of the window.
  void use_clock(std::function<units::Instant()> now) { now_ = std::move(now); }

  // Durable when it returns.
  base::Result<store::JobBook::Put> tell(std::span<const schedulers::Job> jobs, units::Instant now);
  // How many GPUs hosts have, which places jobs that hold whole hosts.
  base::Status tell_nodes(std::span<const schedulers::Node> nodes, units::Instant now);
  base::Status tell_reported(const store::ReportedKey& key, std::string_view format,
                             std::span<const training_logs::Step> steps, units::Instant now);

  // What trainers exported as metrics; steps that are known already, from before a restart, are left out.
  base::Status tell_exported(const std::vector<training_logs::ExportedSteps::OfJob>& steps, units::Instant now);

  // A whole listing of a cluster's jobs was read at that time: what it did not list, and never
  // ended, is over.
  void listed(const std::string& cluster, units::Instant time);

  // Which GPUs the jobs of the window held (schedulers/place.h). Jobs of which that is not known are left out.
  struct Placed {
    std::string key;  // schedulers::Job::key()
    std::vector<jobs::JobRecord> records;
  };
  base::Result<std::vector<Placed>> placed(units::Window window);
  // The same, for the table that attributes GPUs.
  base::Result<std::vector<jobs::JobRecord>> records(units::Window window);
  // Of the index map in them, which places MIG instances; borrowed.
  void use_rules(const jobs::LabelRules& rules) { rules_ = &rules; }

  // Owners of pods are kept, so that pods of the past have theirs after a restart.
  base::Status keep_owners(const std::vector<store::PodOwner>& pods, units::Instant now);
  // For Grouping::group_of; the service outlives it.
  jobs::Grouping::OwnerOf owner_of() const;
  // Grows whenever owner_of says something new.
  std::uint64_t owners_version() const;

  // What a scheduler says that a job held in the window.
  struct Held {
    samples::Holder holder;             // job, cluster as namespace, user, team
    std::optional<double> gpu_seconds;  // absent where a run does not say how many GPUs, or counts MIG instances
    bool is_mig = false;                // some run counts MIG instances
    std::uint32_t gpu_count_max = 0;    // of a run
    units::Instant first;
    units::Instant last;
  };
  // Ascending by cluster and id.
  base::Result<std::vector<Held>> held(units::Window window);
  // The job that `text` ("700_3", "700_3@alpha") names as a task of an array; nothing for other texts, and where none was told in the window.
  base::Result<std::optional<samples::Holder>> task_of(const std::string& text, units::Window window);
  // Runs of a holder's job in the window, ascending by start; of the holder's cluster where it
  // names one.
  base::Result<std::vector<schedulers::Job>> runs_of(const samples::Holder& holder,
                                                     units::Window window);
  // Of runs that are in held(), as far as `wants` (cluster, id) says yes: the names of all hosts of each, none where its scheduler left some out.
  base::Status for_held_hosts(units::Window window, const std::function<bool(const std::string&, const std::string&)>& wants,
                              const std::function<void(const std::string&, const std::string&, std::span<const std::string>)>& sink);
  // Of a job that may have had several holders (the pods of a group): what several say of one step through sources of one name
  // is one, and of the sources the one with an MFU and the most steps that count in the window. Nothing when nobody said anything.
  // Of more holders than have 500,000 steps together, the first speak.
  base::Result<std::optional<analysis::Reported>> reported_of(std::span<const samples::Holder> holders,
                                                              units::Window window);
  // What the holders told through each source, merged as in reported_of; ascending by attempt and number.
  struct Source {
    std::string format;
    std::vector<training_logs::Step> steps;
  };
  base::Result<std::map<std::string, Source>> sources_of(std::span<const samples::Holder> holders, units::Window window);
  // The steps of which reported_of tells; none where nobody said anything.
  base::Result<std::vector<training_logs::Step>> reported_steps_of(std::span<const samples::Holder> holders, units::Window window);
  base::Result<std::vector<store::Reporter>> reporters(units::Window window) {
    return book_->reporters(window);
  }

  store::JobBook& book() { return *book_; }

 private:
  explicit JobService(std::unique_ptr<store::JobBook> book) : book_(std::move(book)) {}
  base::Status load();
  units::Instant until(units::Window window) const;  // its end, or now
  units::Instant end_of(const store::RunRow& run, units::Window window) const;  // mutex_ held
  bool is_gone(const std::string& cluster, units::Instant told) const;  // mutex_ held
  schedulers::Job with_life(store::ToldJob told) const;                 // mutex_ held

  std::unique_ptr<store::JobBook> book_;
  const jobs::LabelRules* rules_ = nullptr;
  std::function<units::Instant()> now_;
  mutable std::mutex mutex_;
  std::map<std::string, units::Instant> listed_;  // by cluster
  schedulers::HostGpus gpus_of_host_;
  units::Instant owners_told_;
  std::uint64_t owners_version_ = 0;
  std::map<std::pair<std::string, std::string>, jobs::Owner> owners_;  // by namespace and pod
};

}  // namespace flopsight::app
