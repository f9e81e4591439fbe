#pragma once
// The embedded store's parts: ids and flushes (sqlite_store.cc), reading (sqlite_read.cc, sqlite_members.cc), housekeeping
// (sqlite_maintain.cc), and what is given to a job that was told of late (sqlite_give.cc).

#include <limits>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "base/hash_numbers.h"
#include "base/room.h"
#include "jobs/holder_list.h"
#include "store/job_columns.h"
#include "store/sqlite.h"
#include "store/instance_index.h"
#include "store/store.h"

namespace flopsight::store {

enum class BlockKind : std::int64_t { kGpu = 0, kJob = 1, kJobSums = 2, kJobSpreads = 3, kFleet = 4, kFleetSums = 5 };

// Where cells are: as they were closed, and their sums in longer slots.
struct CellKinds {
  BlockKind closed;
  BlockKind sums;
};
inline constexpr CellKinds kOfJobs{BlockKind::kJob, BlockKind::kJobSums};
// Everybody's and nobody's together, as one cell for each slot: of job 0 and model 0.
inline constexpr CellKinds kOfFleet{BlockKind::kFleet, BlockKind::kFleetSums};

// Ids that share blocks: neighbours are usually read together (the GPUs of a host, jobs of a time).
inline constexpr std::uint32_t kGroupSize = 256;
inline constexpr int kCheckpointCompressionLevel = 3;
inline constexpr std::int64_t milliseconds(std::int64_t seconds) { return seconds * 1000; }
inline constexpr std::int64_t kMiddleSeconds = 600;
inline constexpr std::int64_t kCoarseSeconds = 3600;
// Sums of jobs only: a day of thousands of jobs is a few of these and some hours.
inline constexpr std::int64_t kWideSeconds = 6 * 3600;

// The names of a GPU, and their columns in the same order.
inline constexpr std::string samples::GpuIdentity::*kGpuNames[] = {
    &samples::GpuIdentity::uuid,  &samples::GpuIdentity::mig_instance, &samples::GpuIdentity::mig_profile,
    &samples::GpuIdentity::host,  &samples::GpuIdentity::index,        &samples::GpuIdentity::pci_bus_id,
    &samples::GpuIdentity::model_raw, &samples::GpuIdentity::driver_version};
inline constexpr const char* kGpuColumns =
    "uuid, mig_instance, mig_profile, host, gpu_index, pci_bus_id, model_raw, driver_version";

struct BlockRow {
  std::int64_t id = 0;
  std::int64_t slot_seconds = 0;
  std::int64_t group = 0;
  units::Instant start;
  units::Instant end;
  std::string_view bytes;  // while it is in the sink
};

class SqliteStore : public Store {
 public:
  SqliteStore(Database database, std::string path, SqliteStoreOptions options);
  base::Status load();
  void note(std::string line);
  void miss(std::string_view place, std::string line);  // noted, and counted as unreadable()
  Database& database() { return database_; }

  GpuId gpu(const samples::GpuIdentity& identity) override;
  JobId job(const samples::Holder& holder) override;
  ModelId model(std::string_view model_raw) override;
  const std::string& model_name(ModelId id) const override;
  samples::Holder holder(JobId id) const override { return jobs_[id - 1]; }
  std::optional<std::uint64_t> names_version() const override { return names_version_; }
  JobId job_count() const override { return static_cast<JobId>(jobs_.size()); }
  base::Status begin() override;
  base::Status add(const GpuCell& cell, ModelId model) override;
  base::Status commit(const Checkpoint& checkpoint) override;
  void roll_back() override;
  base::Result<std::vector<GpuCell>> unheld(const std::vector<GpuId>& gpus, units::Window window) override;
  base::Status give(std::span<const GpuCell> cells, JobId job, ModelId model) override;
  units::Seconds slot() const override { return options_.slot; }
  void mark_simulated() override { simulated_ = true; }
  units::Window answered(units::Window window, units::Seconds step) override;
  base::Result<units::Seconds> longest_slot(units::Window window) override;
  bool simulated() const override { return simulated_; }
  std::uint32_t log_segment() const override { return log_segment_; }
  std::vector<std::pair<base::Hash128, units::Instant>> closed_until() const override;
  std::vector<std::pair<base::Hash128, rollups::DividedGpu>> divided() const override;
  std::vector<JobId> last_jobs(const base::Hash128& gpu_key) const override;

  base::Result<std::vector<JobId>> find_job(std::string_view text) override;
  base::Result<std::vector<Member>> members(units::Window window, std::optional<JobId> job) override {
    return members_in(database_, window, job);
  }
  std::function<base::Result<std::vector<Member>>()> members_beside(units::Window window) override;
  void make_whole(std::vector<GpuId>& gpus) const override;
  base::Result<std::vector<JobTotal>> job_totals(units::Window window, std::optional<JobId> job) override;
  base::Result<std::vector<JobTotal>> job_sums(units::Window window) override { return sums_of(window, std::nullopt); }
  base::Result<std::vector<JobCell>> job_series(JobId job, units::Window window, units::Seconds step) override;
  base::Result<std::vector<JobCell>> job_sum_series(JobId job, units::Window window, units::Seconds step) override;
  base::Result<std::vector<GpuTotal>> gpu_totals(units::Window window, std::optional<JobId> job) override;
  base::Result<std::vector<GpuCell>> gpu_series(const GpuChoice& choice, units::Window window, units::Seconds step) override;
  base::Result<std::vector<std::pair<units::Instant, rollups::Cell>>> fleet_series(
      units::Window window, units::Seconds step, const std::function<bool(JobId)>& wanted) override;
  base::Result<std::vector<GpuRecord>> find_gpus(const GpuLookup& lookup, units::Window window) override;
  base::Result<std::vector<JobRecord>> jobs() override;
  base::Result<std::vector<GpuRecord>> gpus() override;
  base::Result<std::vector<GpuRecord>> gpus(const std::vector<GpuId>& ids) override;
  std::vector<std::pair<GpuId, units::Window>> present(units::Window window) const override;
  base::Result<std::vector<Held>> held(std::optional<JobId> job, units::Window window) override { return held_in(database_, job, window); }
  base::Result<bool> maintain(units::Instant now, const Retention& retention) override;
  base::Result<StoreSize> size() override;
  std::vector<std::string> take_notes() override;
  samples::QualityLog unreadable() const override { return unreadable_; }

 private:
  // Names stay in the file: of a million GPUs they are most of what there is.
  struct Gpu {
    base::Hash128 key;
    std::int64_t first = 0;
    std::int64_t closed_until = 0;
    std::uint8_t names = 0;  // which are known, a bit each
    bool first_changed = false;
  };
  JobId add_job(const samples::Holder& holder);
  static std::uint64_t next_version();  // never the same twice
  struct Span {
    JobId job = 0;
    bool is_written = false;
    std::int64_t start = 0;
    std::int64_t end = 0;
  };
  using SpanRows = std::map<std::tuple<JobId, std::int64_t, std::int64_t>, std::vector<GpuId>>;  // job, start, end
  using JobKey = std::tuple<std::int64_t, JobId, ModelId>;  // slot start first
  using Merged = std::map<JobKey, JobCell>;

  base::Status add_cell(const GpuCell& cell, ModelId model);
  base::Result<std::vector<GpuRecord>> gpus_of(Statement& select);  // whose first column is their ids
  base::Status write_names();
  base::Status write_gpu_names();
  base::Status write_gpu_group(std::uint32_t group);
  base::Status write_jobs();
  base::Status write_fleet();
  base::Status write_closed(BlockKind kind, std::int64_t group, const std::vector<JobCell>& cells);
  base::Status write_sums(BlockKind kind, std::int64_t slot_seconds, std::int64_t group, std::vector<JobCell> cells);
  static base::Status read_sums(std::string_view bytes, units::Seconds slot, std::vector<JobCell>& cells);
  static base::Status read_spreads(std::string_view bytes, units::Seconds slot, std::vector<JobCell>& cells);
  base::Status write_job_rows(std::int64_t slot_seconds, const std::vector<JobCell>& cells);
  base::Status write_spans();
  base::Status write_span_rows(SpanRows& rows, bool is_open);
  base::Status count_gpus_of(const std::set<JobId>& jobs);
  base::Status replace_block(std::int64_t id, BlockKind kind, std::int64_t slot_seconds, std::int64_t group, units::Window window,
                             std::size_t cells, std::string_view bytes);
  base::Status write_block(BlockKind kind, std::int64_t slot_seconds, std::int64_t group, units::Window window,
                           std::size_t cells, std::string_view bytes);
  base::Status write_checkpoint(const Checkpoint& checkpoint);
  void extend_span(const GpuCell& cell);
  template <typename Use>
  void keep_spans(GpuId gpu, Use use);
  void add_span(GpuId gpu, const Span& span);
  void add_rests(std::vector<std::pair<GpuId, units::Window>>& present, units::Window window) const;
  // Out of this connection or another of the same file; of the rest of the store they only read.
  base::Result<std::vector<Held>> held_in(Database& database, std::optional<JobId> job, units::Window window) const;
  base::Result<std::vector<Member>> members_in(Database& database, units::Window window, std::optional<JobId> job) const;
  void add_open(Held span, units::Window window, std::vector<Held>& spans) const;
  base::Status load_checkpoint();
  base::Status load_divided();
  std::string encode_divided() const;
  base::Status load_spans();
  // Prepared once for all GPUs of a question: preparing takes longer than reading.
  base::Result<Statement> select_names();
  base::Result<samples::GpuIdentity> names_of(Statement& select, GpuId id);

  // A piece of a window, and of which slots it is read: 0 for those as they were closed, or what became of them.
  struct Part {
    std::int64_t slot_seconds = 0;
    units::Window window;
  };
  std::vector<Part> parts_of(units::Window window, std::int64_t coarsest_seconds) const;
  units::Instant newest_end() const;
  struct FoundBlock {
    std::int64_t group = 0;
    std::size_t part_index = 0;
    std::int64_t start = 0;
    std::int64_t id = 0;
    auto operator<=>(const FoundBlock&) const = default;
  };
  base::Status find_blocks(BlockKind kind, std::size_t part_index, const Part& part, std::optional<std::int64_t> group,
                           std::vector<FoundBlock>& found);
  // One that cannot be read costs its own cells and is noted.
  base::Status read_found(std::vector<FoundBlock> found, const std::function<base::Status(const BlockRow&, std::size_t)>& sink);
  base::Result<std::vector<JobCell>> series_of_job(JobId job, units::Window window, units::Seconds step, bool with_spreads);
  base::Status for_job_columns(CellKinds kinds, units::Window window, std::optional<JobId> job, std::int64_t coarsest_seconds,
                               const std::function<void(std::int64_t, const JobColumns&, units::Window)>& sink);
  base::Result<std::vector<JobTotal>> sums_of(units::Window window, std::optional<JobId> job);
  base::Status find_gpu_blocks(const GpuChoice& choice, units::Window window, std::vector<FoundBlock>& found);
  // Every cell of the chosen GPUs in a window of whole slots, in no order.
  base::Status for_gpu_cells(const GpuChoice& choice, units::Window window, const std::function<void(const GpuCell&)>& sink);
  base::Status for_job_spreads(units::Window window, std::optional<JobId> job, std::int64_t coarsest_seconds,
                               const std::function<void(JobSpread)>& sink);

  base::Result<bool> merge_one_chunk(units::Instant now, const Retention& retention);
  base::Result<bool> give_back();
  base::Result<bool> forget_one(units::Instant now, const Retention& retention);
  base::Result<bool> forget_oldest_hour(std::uint64_t bytes_max);
  base::Result<bool> forget_aged(std::int64_t before_milliseconds, std::int64_t middle_milliseconds);
  base::Result<bool> remove_forgotten();
  // The window without what was forgotten to keep the size.
  units::Window kept(units::Window window) const { return {std::max(window.start, units::Instant{forgotten_until_}), window.end}; }
  base::Result<std::int64_t> longest_slot_over(units::Window window);
  base::Status replace_blocks(BlockKind kind, std::int64_t slot_seconds, std::int64_t group, units::Window chunk,
                              std::int64_t to_seconds);

  Database database_;
  std::optional<Database> beside_;  // what reads while the other one does, once there was a question for it
  std::string path_;
  SqliteStoreOptions options_;
  std::int64_t slot_seconds_;
  std::uint32_t log_segment_ = 1;
  bool simulated_ = false;
  // From here on there are cells of the fleet; before, a store of version 2 had none. A multiple of kWideSeconds.
  std::int64_t fleet_since_ = std::numeric_limits<std::int64_t>::max();
  // Before it nothing is answered any more, in whatever form it may still be there. A whole hour.
  std::int64_t forgotten_until_ = 0;
  bool said_too_large_ = false;
  std::uint64_t names_version_ = next_version();
  std::vector<std::string> notes_;
  samples::QualityLog unreadable_;
  std::set<std::int64_t> unreadable_blocks_;  // which questions have met, so many at most
  static constexpr std::size_t kUnreadableBlocksMax = 10'000;

  std::vector<Gpu> gpus_;  // id - 1
  base::HashNumbers gpu_ids_;
  InstanceIndex instances_;
  std::map<base::Hash128, std::pair<GpuId, rollups::DividedGpu>> divided_;  // by the whole GPU; an instance of it
  std::map<GpuId, samples::GpuIdentity> new_names_;  // to be written
  jobs::HolderList jobs_;             // id - 1
  std::set<JobId> jobs_to_write_;
  base::HashNumbers job_ids_;         // by job and namespace: the first of them
  std::vector<JobId> next_of_name_;  // of each job the next with both, of another user or team; 0: none
  std::vector<std::string> models_;
  std::vector<bool> models_dirty_;
  std::unordered_map<std::string, ModelId> model_ids_;

  // Of the flush under way.
  bool flushing_ = false;
  std::map<std::uint32_t, std::vector<GpuCell>> gpu_cells_;  // by group
  std::size_t gpu_cells_held_ = 0;
  Merged job_cells_;
  // Spans of each GPU that may go on; and what has to be written of them.
  std::vector<Span> first_spans_;  // by id - 1; job 0: none
  std::map<GpuId, std::vector<Span>> more_spans_;  // of GPUs that are shared
  std::vector<std::pair<GpuId, Span>> spans_to_write_;  // closed, or new
};

}  // namespace flopsight::store
