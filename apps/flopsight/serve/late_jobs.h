#pragma once
// Jobs that were told of after slots of their GPUs had been closed (store::JobBook::late_jobs): what nobody held of these slots becomes
// theirs. Whole slots only; the parts of a minute at a job's begin and end stay nobody's, because nothing says what was whose within it.
// What somebody held by label stays with him.
//
// In pieces of 256 GPUs and an hour, each of which is written whole or not at all, and finds nothing left when it is done again.
// Threads: one; the caller holds the store.

#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <vector>

#include "base/result.h"
#include "serve/job_service.h"
#include "store/store.h"

namespace flopsight::app {

class LateJobs {
 public:
  explicit LateJobs(JobService& jobs) : jobs_(jobs) {}

  // A bounded piece of the work. True: there is more. Errors: of the book and the store. Where an engine keeps the rollups, nothing can be
  // given, and late jobs are only taken off the list.
  base::Result<bool> step(store::Store& store);

  // GPU time that was given to jobs, since the start.
  double gpu_seconds() const { return static_cast<double>(microseconds_) / 1e6; }

 private:
  struct Piece {
    units::Window window;
    samples::Holder holder;
  };
  struct Unit {
    std::uint32_t group = 0;
    std::int64_t hour = 0;
    auto operator<=>(const Unit&) const = default;
  };
  base::Status begin_batch(store::Store& store);
  base::Status read_gpus(store::Store& store);
  bool may_have_gpus(const schedulers::Job& job) const;
  void add_record(const jobs::JobRecord& record, units::Seconds slot);
  base::Status do_unit(store::Store& store, const Unit& unit);

  JobService& jobs_;
  std::vector<store::ToldJob> batch_;
  std::vector<store::GpuRecord> gpus_;
  std::map<std::string, std::vector<std::size_t>> by_short_host_;  // places in gpus_
  std::map<std::string, std::vector<std::size_t>> by_uuid_;
  std::map<store::GpuId, std::vector<Piece>> pieces_;
  std::deque<Unit> units_;
  std::int64_t microseconds_ = 0;
};

}  // namespace flopsight::app
