#pragma once
// The writing side of a fleet whose rollups lie in a Prometheus-compatible engine: a store of its own for names, checkpoint and the
// slots of the last days, and an outbox in the same file. A flush puts into both, in one transaction, so what was acknowledged
// reaches the engine exactly as often as counts: killed anywhere, the same is sent again, and the same twice is once.
//
// Slots are sent as full values so far (series.h). What a late part of a slot is added to is read from the own store, which
// therefore keeps `late_max` of slots; parts that come even later are dropped and counted (take_notes()).
// An hour is sent when the newest slot is ten minutes past it, and again when a late part comes.
// Questions answered by it are of its own store; those to the whole fleet are engine_reader.h's.
// Threads: one at a time.

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "base/result.h"
#include "engine/series.h"
#include "store/store.h"

namespace flopsight::engine {

struct EngineStoreOptions {
  units::Seconds slot{60};
  std::uint64_t shard = 0;  // of several processes, which this is; a random part is added, so that no two write one series
  bool gpu_cells = true;
  std::uint64_t outbox_bytes_max = std::uint64_t{2} << 30;
  units::Seconds late_max{7 * 86'400.0};
};

class EngineStore : public store::Store {
 public:
  static base::Result<std::unique_ptr<EngineStore>> open(const std::string& folder, const EngineStoreOptions& options);

  // ---- The outbox
  struct Letter {
    std::int64_t id = 0;
    std::vector<Series> series;
  };
  // The oldest one; nothing when the outbox is empty. A parcel that cannot be read is dropped with a note.
  base::Result<std::shared_ptr<const Letter>> next();
  base::Status delivered(std::int64_t id);
  struct State {
    std::uint64_t bytes = 0;
    std::uint64_t parcels = 0;
    units::Seconds lag{0};  // from the oldest slot that waits to the newest there is
    bool is_full = false;
  };
  base::Result<State> state();
  const std::string& shard() const { return shard_; }

  // ---- Store
  store::GpuId gpu(const samples::GpuIdentity& identity) override { return local_.store->gpu(identity); }
  store::JobId job(const samples::Holder& holder) override { return local_.store->job(holder); }
  store::ModelId model(std::string_view model_raw) override { return local_.store->model(model_raw); }
  const std::string& model_name(store::ModelId id) const override { return local_.store->model_name(id); }
  samples::Holder holder(store::JobId id) const override { return local_.store->holder(id); }
  base::Result<std::vector<store::JobId>> find_job(std::string_view text) override { return local_.store->find_job(text); }
  store::JobId job_count() const override { return local_.store->job_count(); }
  base::Status begin() override;
  base::Status add(const store::GpuCell& cell, store::ModelId model) override;
  base::Status commit(const Checkpoint& checkpoint) override;
  void roll_back() override;
  units::Seconds slot() const override { return local_.store->slot(); }
  void mark_simulated() override { local_.store->mark_simulated(); }
  bool simulated() const override { return local_.store->simulated(); }
  std::uint32_t log_segment() const override { return local_.store->log_segment(); }
  std::vector<std::pair<base::Hash128, units::Instant>> closed_until() const override { return local_.store->closed_until(); }
  std::vector<std::pair<base::Hash128, rollups::DividedGpu>> divided() const override { return local_.store->divided(); }
  std::vector<store::JobId> last_jobs(const base::Hash128& gpu_key) const override { return local_.store->last_jobs(gpu_key); }
  base::Result<std::vector<store::JobTotal>> job_totals(units::Window window, std::optional<store::JobId> job) override {
    return local_.store->job_totals(window, job);
  }
  base::Result<std::vector<store::JobCell>> job_series(store::JobId job, units::Window window, units::Seconds step) override {
    return local_.store->job_series(job, window, step);
  }
  base::Result<std::vector<store::JobCell>> job_sum_series(store::JobId job, units::Window window, units::Seconds step) override {
    return local_.store->job_sum_series(job, window, step);
  }
  base::Result<std::vector<store::GpuTotal>> gpu_totals(units::Window window, std::optional<store::JobId> job) override {
    return local_.store->gpu_totals(window, job);
  }
  base::Result<std::vector<store::JobRecord>> jobs() override { return local_.store->jobs(); }
  base::Result<std::vector<store::GpuRecord>> gpus() override { return local_.store->gpus(); }
  base::Result<std::vector<store::GpuRecord>> gpus(const std::vector<store::GpuId>& ids) override {
    return local_.store->gpus(ids);
  }
  base::Result<std::vector<store::Member>> members(units::Window window, std::optional<store::JobId> job) override {
    return local_.store->members(window, job);
  }
  void make_whole(std::vector<store::GpuId>& gpus) const override { local_.store->make_whole(gpus); }
  std::vector<std::pair<store::GpuId, units::Window>> present(units::Window window) const override {
    return local_.store->present(window);
  }
  base::Result<std::vector<store::Held>> held(std::optional<store::JobId> job, units::Window window) override {
    return local_.store->held(job, window);
  }
  // By the time of the newest slot, since a slot that is late by days may be added to.
  base::Result<bool> maintain(units::Instant now, const store::Retention& retention) override;
  base::Result<store::StoreSize> size() override { return local_.store->size(); }
  std::vector<std::string> take_notes() override;
  samples::QualityLog unreadable() const override { return local_.store->unreadable(); }

 private:
  using JobKey = std::pair<store::JobId, store::ModelId>;
  using JobCells = std::map<JobKey, store::JobCell>;
  // Unix milliseconds. What a flush that fails takes back.
  struct Progress {
    std::int64_t newest = 0;       // end of the newest slot that is written
    std::int64_t hours_until = 0;  // hours before it are written; 0: none yet
    bool told_simulated = false;
  };

  EngineStore(store::StoreWithOutbox local, const EngineStoreOptions& options);
  base::Status load();
  bool is_too_late(std::int64_t slot) const;
  base::Status put_all();
  base::Status put_gpus();
  base::Status put_job_slots();
  base::Status put_hours();
  base::Status put_hour(std::int64_t hour, bool is_late);
  base::Status put_hour_members(std::int64_t hour, bool is_late, const std::map<store::JobId, std::int64_t>& lasts);
  base::Status put_cells(Level level, std::vector<store::JobCell>& cells);
  base::Status put_until(bool is_changed);
  base::Result<std::map<std::int64_t, JobCells>> bases();
  void forget_recent();
  std::int64_t first_of(store::JobId job, std::int64_t slot);
  Names names();

  store::StoreWithOutbox local_;
  EngineStoreOptions options_;
  std::int64_t slot_milliseconds_;
  std::string shard_;
  Progress progress_, committed_;
  std::uint64_t dropped_late_ = 0;
  std::vector<std::string> notes_;
  std::map<store::JobId, std::int64_t> firsts_;  // slot that a job was first seen in
  // Whole slots of the last minutes, so that a part that comes a little later need not be looked for.
  std::map<std::int64_t, JobCells> recent_;
  // Hours in which names were written.
  std::map<store::JobId, std::int64_t> job_info_;
  std::map<store::GpuId, std::int64_t> gpu_info_;
  std::shared_ptr<const Letter> letter_;  // the one that next() gave

  // Of the flush under way.
  bool flushing_ = false;
  std::map<std::int64_t, JobCells> pending_;  // by slot: what this flush adds
  std::vector<store::GpuCell> gpu_cells_;
  std::vector<std::tuple<std::int64_t, store::GpuId, store::JobId>> pairs_;  // hour, GPU, holder
};

}  // namespace flopsight::engine
