#pragma once
// Where rollups live: a small interface with two stores behind it, SQLite in one file and a Prometheus-compatible engine
// (src/engine). Reader is what questions need, Store what writing needs besides.
//
// Names become numbers once (ids from 1; job 0 is nobody). Cells are written in flushes that happen whole or not at all, with
// how far each GPU is closed and from which log segment on a restart has to read again. Writing a slot of a GPU twice
// adds up: the caller closes each slot once.
// Errors: kLimit when the disk is full (reading goes on), kCorrupt for damaged pages or blocks, kIo; of an engine also
// kUnavailable when it does not answer, and kLimit for more than it gives at once.
// Threads: one at a time.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/hash.h"
#include "base/result.h"
#include "rollups/cell.h"
#include "rollups/divided_gpu.h"
#include "samples/gpu.h"
#include "samples/quality.h"
#include "store/block.h"
#include "units/time.h"

namespace flopsight::store {

// Identity without spelling, as a number.
base::Hash128 gpu_key(const samples::GpuIdentity& identity);

struct JobRecord {
  JobId id = 0;
  samples::Holder holder;
  units::Instant first;  // slots: [first, last)
  units::Instant last;
  std::uint32_t gpu_count = 0;  // distinct, ever
};

struct GpuRecord {
  GpuId id = 0;
  samples::GpuIdentity identity;
  units::Instant first;
  units::Instant closed_until;
};

// A job on GPUs of one model, over some time.
struct JobTotal {
  JobId job = 0;
  ModelId model = 0;
  rollups::Cell cell;
  rollups::Spread spread;
};

struct GpuTotal {
  GpuId gpu = 0;
  JobId job = 0;
  rollups::Cell cell;
};

// GPUs that a job had from one time to another; slots. Of a job there may be several, of a shared GPU as well.
struct Held {
  JobId job = 0;
  units::Window window;
  std::vector<GpuId> gpus;  // ascending
};

// A job with slots in a window; job 0 for what nobody held.
struct Member {
  JobId job = 0;
  units::Window ever;        // its first and last slot, also outside of the window; empty for nobody
  std::vector<GpuId> gpus;   // that it had in the window: distinct, ascending
};

// Which GPUs a question is about: of one job, and then its time only; or some by number; or all.
struct GpuChoice {
  std::optional<JobId> job;
  std::optional<std::vector<GpuId>> gpus;  // ascending
};

// What GPUs are looked for by: the first that is not empty. Names are compared whole, `part` as a piece of a host's name or of a UUID, in
// any case.
struct GpuLookup {
  std::string host;
  std::string uuid;
  std::string part;
  std::size_t gpus_max = 10'000;  // that are found at most
};

struct StoreSize {
  std::uint64_t bytes = 0;
  std::uint64_t gpu_cells = 0;
  std::uint64_t job_cells = 0;
};

struct Retention {
  units::Seconds fine{7 * 86'400.0};      // slots as they were closed
  units::Seconds middle{60 * 86'400.0};   // ten minutes
  units::Seconds coarse{730 * 86'400.0};  // hours
  std::uint64_t bytes_max = 0;            // 0: no limit; past it the oldest hours go, in every form
};

// Numbers of GPUs, jobs and models are the reader's own; jobs::job_text() of a holder is what others may keep. Windows are of whole slots, as
// those of answered() are: of a slot that a window cuts, which answers have it is not said.
class Reader {
 public:
  virtual ~Reader() = default;

  virtual const std::string& model_name(ModelId id) const = 0;
  virtual samples::Holder holder(JobId id) const = 0;  // of a job that this reader has named
  // By jobs::job_text(), also without the namespace where only one namespace has the name: its ids, ascending, one for each user and team
  // that had it. kNotFound for one that is not there, kInvalid where several namespaces have it.
  virtual base::Result<std::vector<JobId>> find_job(std::string_view text) = 0;

  // All jobs, "nobody" included, or one; the models of a job follow each other.
  virtual base::Result<std::vector<JobTotal>> job_totals(units::Window window, std::optional<JobId> job) = 0;
  // The same of all, perhaps without their spreads, which cost as much again as all else.
  virtual base::Result<std::vector<JobTotal>> job_sums(units::Window window) { return job_totals(window, std::nullopt); }
  // Slots of one job, ascending, merged to `step` (a multiple of the slot); models apart.
  virtual base::Result<std::vector<JobCell>> job_series(JobId job, units::Window window, units::Seconds step) = 0;
  // The same, perhaps without their spreads.
  virtual base::Result<std::vector<JobCell>> job_sum_series(JobId job, units::Window window, units::Seconds step) {
    return job_series(job, window, step);
  }
  // For each GPU and job; what a GPU had follows each other. Of one job when given.
  virtual base::Result<std::vector<GpuTotal>> gpu_totals(units::Window window, std::optional<JobId> job) = 0;
  // GPUs that gpu_totals() has named.
  virtual base::Result<std::vector<GpuRecord>> gpus(const std::vector<GpuId>& ids) = 0;
  // The same in steps (a multiple of the slot), ascending by time, then by GPU and job.
  virtual base::Result<std::vector<GpuCell>> gpu_series(const GpuChoice& choice, units::Window window, units::Seconds step);
  // All jobs that `wanted` takes together, 0 for what nobody held; an empty function takes all, which may be much quicker. Ascending steps that
  // have anything.
  virtual base::Result<std::vector<std::pair<units::Instant, rollups::Cell>>> fleet_series(
      units::Window window, units::Seconds step, const std::function<bool(JobId)>& wanted);
  // GPUs by name; those with time in the window, where only a question to it can tell.
  virtual base::Result<std::vector<GpuRecord>> find_gpus(const GpuLookup& lookup, units::Window window);
  // Ascending by job; of one job when given, also when it had nothing in the window.
  virtual base::Result<std::vector<Member>> members(units::Window window, std::optional<JobId> job) = 0;
  // members() of all, for another thread to call once while this reader answers job_sums(); empty where that cannot be.
  virtual std::function<base::Result<std::vector<Member>>()> members_beside(units::Window window) {
    static_cast<void>(window);
    return {};
  }
  // For counting: instances of one GPU become one number, which is the whole GPU's where that has one. Distinct and ascending before and after.
  virtual void make_whole(std::vector<GpuId>& gpus) const = 0;
  // The window that an answer to a question about `window`, in steps of `step` where it has any, is really of: widened to the whole slots, and
  // steps, that its ends cut, since nobody knows of a part of one what was in it; and without what was forgotten. What answers say of
  // themselves is this one.
  virtual units::Window answered(units::Window window, units::Seconds step = units::Seconds(0)) {
    static_cast<void>(step);
    return window;
  }
  // The longest slots that something in the window is kept in: steps can be no shorter. 0: nothing is known of it.
  virtual base::Result<units::Seconds> longest_slot(units::Window window) {
    static_cast<void>(window);
    return units::Seconds(0);
  }
  // Something in it does not exist.
  virtual bool simulated() const = 0;
  // What was kept, cannot be read and is missing from answers, as far as questions have met it: samples::kNotReadable.
  virtual samples::QualityLog unreadable() const { return {}; }
  // While it is the same, from whichever reader of this process, each job's number that was named is that of the same holder. Nothing: numbers
  // are good for one question.
  virtual std::optional<std::uint64_t> names_version() const { return std::nullopt; }
};

// Whether a GPU is one of those that are looked for.
bool is_looked_for(const GpuLookup& lookup, const samples::GpuIdentity& gpu);

class Store : public Reader {
 public:
  // Known already, or new with the next flush.
  virtual GpuId gpu(const samples::GpuIdentity& identity) = 0;
  virtual JobId job(const samples::Holder& holder) = 0;
  virtual ModelId model(std::string_view model_raw) = 0;
  virtual JobId job_count() const = 0;

  // One flush: begin, add, commit. An error in between means that nothing of it is written, and begin starts anew.
  virtual base::Status begin() = 0;
  virtual base::Status add(const GpuCell& cell, ModelId model) = 0;
  struct Checkpoint {
    std::uint32_t log_segment = 1;  // read the log from here on
    std::vector<std::pair<GpuId, units::Instant>> closed_until;  // of all GPUs that are known
    std::vector<std::pair<GpuId, rollups::DividedGpu>> divided = {};  // by an instance of each; those of others stay as they are
  };
  virtual base::Status commit(const Checkpoint& checkpoint) = 0;
  virtual void roll_back() = 0;

  // What nobody held of GPUs: cells of slots as they were closed that lie wholly in the window, ascending by GPU and time. Coarser ones are left
  // out. kUnsupported where what is written cannot be given to somebody else.
  virtual base::Result<std::vector<GpuCell>> unheld(const std::vector<GpuId>& gpus, units::Window window) {
    static_cast<void>(gpus);
    static_cast<void>(window);
    return base::Error{base::ErrorCode::kUnsupported, "what is written cannot be given to another job"};
  }
  // In a flush, instead of add(): gives such cells of one GPU, ascending, to a job. How nobody's time was spread stays as it was.
  virtual base::Status give(std::span<const GpuCell> cells, JobId job, ModelId model) {
    static_cast<void>(cells);
    static_cast<void>(job);
    static_cast<void>(model);
    return base::Error{base::ErrorCode::kUnsupported, "what is written cannot be given to another job"};
  }
  virtual units::Seconds slot() const = 0;

  // Stays so, and is written with the next flush.
  virtual void mark_simulated() = 0;

  virtual std::uint32_t log_segment() const = 0;
  // By gpu_key(), of all GPUs that were ever closed.
  virtual std::vector<std::pair<base::Hash128, units::Instant>> closed_until() const = 0;
  // Divided GPUs as the last commit left them, by gpu_key() of the whole GPU.
  virtual std::vector<std::pair<base::Hash128, rollups::DividedGpu>> divided() const { return {}; }
  // Who had the GPU of that key up to where it is closed; nobody, or several where it was shared.
  virtual std::vector<JobId> last_jobs(const base::Hash128& gpu_key) const = 0;

  virtual base::Result<std::vector<JobRecord>> jobs() = 0;
  using Reader::gpus;
  virtual base::Result<std::vector<GpuRecord>> gpus() = 0;
  // GPUs with slots in the window, and from when to when; ascending by id.
  virtual std::vector<std::pair<GpuId, units::Window>> present(units::Window window) const = 0;
  virtual base::Result<std::vector<Held>> held(std::optional<JobId> job, units::Window window) = 0;

  // A bounded piece of housekeeping: merging small blocks, coarsening old ones, forgetting the oldest. True: there is more.
  virtual base::Result<bool> maintain(units::Instant now, const Retention& retention) = 0;
  virtual base::Result<StoreSize> size() = 0;
  // What was wrong when it was opened or read, one line each; empties the list.
  virtual std::vector<std::string> take_notes() = 0;
};

// What is on its way from a store to somewhere else: put in with a flush, in its transaction, and taken out once it has arrived.
// Of the store's thread.
class Outbox {
 public:
  struct Parcel {
    std::int64_t id = 0;  // ascending
    std::string bytes;
  };
  struct State {
    std::uint64_t bytes = 0;
    std::uint64_t parcels = 0;
    units::Instant oldest_slot;  // of those that wait
  };
  virtual ~Outbox() = default;

  // Between begin() and commit().
  virtual base::Status put(std::string_view bytes, units::Instant slot_start) = 0;
  virtual base::Status remember(const std::string& key, std::int64_t value) = 0;

  virtual base::Result<std::optional<std::int64_t>> recall(const std::string& key) = 0;
  virtual base::Result<std::optional<Parcel>> oldest() = 0;
  virtual base::Status remove(std::int64_t id) = 0;
  virtual base::Result<State> state() = 0;
};

struct SqliteStoreOptions {
  units::Seconds slot{60};
  bool read_only = false;
  // Whatever users and teams it had: for an engine, whose series tell jobs apart by name and namespace.
  bool one_job_a_name = false;
};

// Opens or makes FOLDER/flopsight.db. A file that is no database, or whose pages are damaged, is put aside as
// flopsight.db.damaged-N and a new one is begun, with a note. A file of a newer version is kUnsupported.
base::Result<std::unique_ptr<Store>> open_sqlite_store(const std::string& folder, SqliteStoreOptions options);

struct StoreWithOutbox {
  std::unique_ptr<Store> store;
  std::unique_ptr<Outbox> outbox;  // in the store's own file; must go first
};
base::Result<StoreWithOutbox> open_sqlite_store_with_outbox(const std::string& folder, SqliteStoreOptions options);

}  // namespace flopsight::store
