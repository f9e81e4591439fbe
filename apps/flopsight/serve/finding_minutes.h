#pragma once
// Closed minutes out of the store, as detectors look at them: each GPU once, and each job with its GPUs. Names become numbers that stay the same for
// as long as the reader lives; pods of one owner are one job, as in answers.
//
// A GPU that was a job's and of which nothing comes while other GPUs of the job go on is a GPU that is not seen: it gets minutes without
// anything, for a day at most. One that is silent with its whole job is none: the job may be over. silent() lists such jobs.
// Jobs that are over are forgotten (forget()), GPUs are not.
// Threads: one at a time; the store is used by read() only.

#include <tsl/robin_map.h>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/hash_numbers.h"
#include "base/result.h"
#include "base/text_list.h"
#include "detect/peers.h"
#include "detect/suspects.h"
#include "jobs/holder_list.h"
#include "rollups/cell.h"
#include "serve/answer.h"
#include "store/store.h"

namespace flopsight::app {

struct JobMinute {
  std::uint32_t job = 0;  // number of MinuteReader::holder_of()
  detect::MinutePoint point;
  std::vector<std::uint32_t> gpus;        // ascending
  std::vector<detect::GpuMinute> shared;  // of these, such that others had as well: what each had for this job, ascending
};

struct FleetMinute {
  units::Instant start;
  std::vector<detect::GpuMinute> gpus;  // each once, ascending
  std::vector<JobMinute> jobs;          // ascending
};

// What each GPU of a job of the minute had for it, ascending.
std::vector<detect::GpuMinute> gpus_of(const FleetMinute& minute, const JobMinute& job);

class MinuteReader {
 public:
  static constexpr double kMinuteSeconds = 60;
  static constexpr int kMemberHours = 2;
  static constexpr int kForgetHours = 25;  // longer than silences are looked for

  struct Gpu {
    // Of its last minute in which anything was known of it.
    std::int64_t seen_unix_milliseconds = 0;
    std::uint32_t host = 0;   // number of host_names()
    std::uint32_t model = 0;  // number of models()
    std::uint32_t job = 0;
    bool is_mig = false;
    bool has_job = false;  // and one only
    bool is_held = false;  // by one or several
  };
  struct Model {
    std::string name;  // canonical; empty: not in the catalogue
    std::string raw;
  };

  // A job of which nothing was seen for a while, neither of it nor of any GPU that it had last.
  struct Silence {
    std::uint32_t job = 0;
    units::Instant seen;              // start of its last minute
    std::vector<std::uint32_t> gpus;  // ascending
  };

  // `jobs` may be null, and is borrowed.
  // Cells of at most `gpus_at_once` GPUs are in memory at a time.
  explicit MinuteReader(JobService* jobs, std::size_t gpus_at_once = 8'192) : jobs_service_(jobs), gpus_at_once_(gpus_at_once) {}

  // Minutes with anything in the window, ascending. The window has to be of whole minutes.
  base::Result<std::vector<FleetMinute>> read(store::Store& store, const AnswerSettings& settings, units::Window window);
  // The course of one job without its GPUs, ascending; empty where the store does not have it.
  base::Result<std::vector<detect::MinutePoint>> course(store::Store& store, std::uint32_t job, units::Window window) const;

  // Jobs that are silent for `minutes` before the end of this minute, and no longer than a day; ascending. A job is left out that
  // a GPU of it was seen without since: that is how jobs end.
  std::vector<Silence> silent(units::Instant minute, int minutes) const;

  // When pods of a job were replaced by others, as a new image, commit or configuration is brought out, or a restart. A job that only
  // grew or shrank has none.
  std::vector<detect::LabelChange> changes(std::uint32_t job) const;

  // Forgets jobs without a minute for kForgetHours before this one, but for those that `is_needed` names; their numbers are given to others.
  void forget(units::Instant minute, const std::function<bool(std::uint32_t)>& is_needed);
  std::size_t job_count() const { return jobs_.size() - free_jobs_.size(); }

  const std::vector<Gpu>& gpus() const { return gpus_; }
  const std::vector<Model>& models() const { return models_; }
  // jobs::job_text() of holder_of().
  std::string job_id(std::uint32_t job) const;
  samples::Holder holder_of(std::uint32_t job) const { return holders_[job]; }
  // By name and by id; nothing for what no minute had yet.
  std::optional<std::uint32_t> gpu_number(const std::string& name) const;
  std::optional<std::uint32_t> job_number(const std::string& id) const;
  // UUID and MIG instance, or host and index, by number.
  const base::NameList& gpu_names() const { return gpu_names_; }
  const std::vector<std::string>& host_names() const { return host_names_; }

 private:
  // A pod of a job, or whatever else of the store is one job with others.
  struct Member {
    store::JobId id = 0;
    units::Instant first, last;                     // minutes in which it had GPUs
    std::unique_ptr<const samples::Holder> holder;  // once the job had several
  };
  struct Job {
    std::int64_t seen_unix_milliseconds = 0;  // its last minute
    std::int64_t left_unix_milliseconds = 0;  // the last minute in which a GPU of it was seen without it
    std::vector<Member> members;              // of the last kMemberHours
    std::vector<store::JobId> ids;            // of the store, as far as `basis_` knows them
  };

  std::uint32_t job_number_of(const samples::Holder& holder);
  base::Status learn_gpus(store::Store& store, const AnswerSettings& settings, const std::vector<store::GpuCell>& cells);
  void learn_jobs(store::Store& store, const AnswerSettings& settings, const std::vector<store::GpuCell>& cells);
  struct Building {
    FleetMinute minute;
    struct OfJob {
      rollups::Cell cell;
      JobMinute minute;
    };
    std::map<std::uint32_t, OfJob> jobs;
  };
  // All cells of some GPUs in one minute, by GPU.
  void add(store::Store& store, Building& building, std::span<const store::GpuCell> cells);
  FleetMinute finish(Building& building);
  void see_member(store::Store& store, std::uint32_t job, store::JobId member, units::Instant minute);
  void add_unseen(Building& building);

  JobService* jobs_service_;
  std::size_t gpus_at_once_;
  // Of 100,000 GPUs: names once, and what they are looked up by is a hash.
  static std::uint32_t number_of(base::HashNumbers& numbers, const std::string& name);
  base::HashNumbers gpu_numbers_, host_numbers_, job_numbers_, model_numbers_;
  std::vector<Gpu> gpus_;
  std::vector<Model> models_;
  std::vector<Job> jobs_;
  jobs::HolderList holders_;  // of jobs_
  std::vector<std::uint32_t> free_jobs_;
  base::NameList gpu_names_;
  std::vector<std::string> host_names_;
  static constexpr std::uint32_t kUnknown = UINT32_MAX;
  std::vector<std::uint32_t> gpu_of_id_;  // by the store's numbers
  tsl::robin_map<store::JobId, std::uint32_t> job_of_id_;
  HolderIndex::Basis basis_;  // of job_of_id_
};

}  // namespace flopsight::app
