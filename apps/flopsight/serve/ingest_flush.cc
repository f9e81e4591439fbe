// The second half of Ingest: from the live fleet to the store, and what is said of both.
#include <algorithm>
#include <chrono>
#include <cmath>

#include "base/room.h"
#include "serve/ingest.h"

namespace flopsight::app {
namespace {

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace

base::Status Ingest::flush(units::Instant now, bool everything) {
  // A slow question holds the store; samples come in meanwhile.
  std::unique_lock store_guard(store_mutex_);
  // Nothing is lost by waiting: samples are refused until there is room again.
  FLOPSIGHT_RETURN_IF_ERROR(look_at_outbox());
  {
    const std::scoped_lock guard(fleet_mutex_);
    if (needs_recovery_) {
      // The disk had no room for a flush; everything is still in the log.
      const auto free = store::real_disk().free_bytes(options_.folder);
      if (free.ok() && *free < options_.log.free_bytes_min) return base::Error{base::ErrorCode::kLimit, why_not_};
      FLOPSIGHT_RETURN_IF_ERROR(recover());
      why_not_.clear();
    }
  }
  const auto start = std::chrono::steady_clock::now();
  wants_flush_ = false;
  units::Instant newest;
  {
    const std::scoped_lock guard(fleet_mutex_);
    newest = newest_sample_;
  }
  const base::Status written = write_cells(now, everything);
  store_guard.unlock();
  const std::scoped_lock guard(fleet_mutex_);
  if (written.ok() && !more_) newest_written_ = newest;
  counters_.flush_seconds = seconds_since(start);
  if (!written.ok()) {
    ++counters_.flush_failures;
    needs_recovery_ = true;
    stop_accepting(written.error());
  } else {
    look_for_room();
    forget_unused(now);
  }
  return written;
}

void Ingest::stop_accepting(const base::Error& error) {
  if (error.code == base::ErrorCode::kLimit) wants_flush_ = true;  // which is what makes room
  why_not_ = (error.code == base::ErrorCode::kLimit ? "no room: " : "") + error.message;
}

// Also without a write: who waits for /readyz before writing would wait for ever if only a write could tell that there is room again, and who is
// told that all is well would learn only by a refusal that it is not.
void Ingest::look_for_room() {
  if (needs_recovery_) return;  // flush() looks
  if (const base::Status room = log_->look_for_room(); !room.ok()) {
    stop_accepting(room.error());
    return;
  }
  reserve_.keep(options_.log.free_bytes_min);
  const std::uint64_t most = options_.log.bytes_max - options_.log.bytes_max / 16;
  if (log_->bytes() < most) why_not_.clear();
}

// Cells on their way from the fleet to the store, with the names that the store does not have yet.
struct Ingest::Batch {
  std::vector<live::ClosedCell> cells;
  std::vector<std::pair<live::GpuIndex, samples::GpuIdentity>> gpus;
  std::vector<std::pair<samples::HolderId, samples::Holder>> holders;
};

void Ingest::take(const live::ClosedCell& closed, Batch& batch) {
  base::fill_up_to(known_gpus_, closed.gpu + 1);
  const KnownGpu& gpu = known_gpus_[closed.gpu];
  if (gpu.id == 0 || (!gpu.has_model && fleet_->has_model(closed.gpu))) {
    batch.gpus.emplace_back(closed.gpu, fleet_->identity(closed.gpu));
  }
  if (closed.holder) {
    if (known_holders_.size() <= *closed.holder) known_holders_.resize(*closed.holder + 1);
    const KnownHolder& known = known_holders_[*closed.holder];
    const samples::Holder& holder = fleet_->holders().at(*closed.holder);
    const bool is_complete = !holder.user.empty() && !holder.team.empty();
    if (known.id == 0 || (!known.is_complete && is_complete)) batch.holders.emplace_back(*closed.holder, holder);
  }
  batch.cells.push_back(closed);
}

void Ingest::remember(const Batch& batch) {
  counters_.cells += batch.cells.size();
  for (const live::ClosedCell& closed : batch.cells) {
    if (closed.holder) {
      LatestJob& job = latest_jobs_[*closed.holder];
      if (job.slot_start < closed.slot_start) job = {closed.slot_start, 0, 0, 0};
      if (job.slot_start == closed.slot_start) {
        job.allocated_microseconds += closed.cell.allocated_microseconds();
        job.measured_microseconds += closed.cell[rollups::CellField::kMeasured];
        job.delivered_microseconds += closed.cell[rollups::CellField::kDelivered];
      }
    }
    base::fill_up_to(latest_gpus_, closed.gpu + 1);
    const auto measured = closed.cell[rollups::CellField::kMeasured];
    const auto delivered = closed.cell[rollups::CellField::kDelivered];
    latest_gpus_[closed.gpu] = {
        measured > 0 ? static_cast<float>(static_cast<double>(delivered) / static_cast<double>(measured)) : -1.0F,
        closed.slot_start.unix_milliseconds};
  }
}

base::Status Ingest::write(Batch& batch, bool& begun) {
  if (batch.cells.empty()) return {};
  if (!begun) FLOPSIGHT_RETURN_IF_ERROR(store_->begin());
  begun = true;
  for (const auto& [index, identity] : batch.gpus) {
    known_gpus_[index] = {store_->gpu(identity), store_->model(identity.model_raw), !identity.model_raw.empty()};
  }
  for (const auto& [id, holder] : batch.holders) {
    known_holders_[id] = {store_->job(holder), !holder.user.empty() && !holder.team.empty()};
  }
  for (const live::ClosedCell& closed : batch.cells) {
    const KnownGpu& gpu = known_gpus_[closed.gpu];
    const store::JobId job = closed.holder ? known_holders_[*closed.holder].id : 0;
    FLOPSIGHT_RETURN_IF_ERROR(store_->add({gpu.id, job, closed.slot_start, closed.cell}, gpu.model));
  }
  return {};
}

base::Status Ingest::write_cells(units::Instant now, bool everything) {
  // So many GPUs are closed under the fleet's lock at a time, and their cells are in memory.
  constexpr live::GpuIndex kGpusAtOnce = 2'048;
  // And about so many cells are one transaction: seconds, not minutes, after which others get the store.
  constexpr std::int64_t kCellsAtOnce = 500'000;
  bool begun = false;
  std::size_t gpu_count = 0;
  const auto step = [&](const std::function<void(const live::LiveFleet::CellSink&)>& close) -> base::Status {
    Batch batch;
    {
      const std::scoped_lock guard(fleet_mutex_);
      const auto count = static_cast<std::int64_t>(fleet_->gpu_count());
      fleet_->set_hurried(log_->bytes() > options_.log.bytes_max / 2);
      fleet_->set_slots_at_once(everything ? 0 : std::max(std::int64_t{1}, kCellsAtOnce / std::max(std::int64_t{1}, count)));
      close([&](const live::ClosedCell& closed) { take(closed, batch); });
      remember(batch);
      gpu_count = fleet_->gpu_count();
    }
    return write(batch, begun);
  };
  const auto steps = [&]() -> base::Status {
    FLOPSIGHT_RETURN_IF_ERROR(step([&](const auto& sink) { fleet_->close_instances(now, sink, everything); }));
    for (live::GpuIndex first = 0; first < gpu_count; first += kGpusAtOnce) {
      FLOPSIGHT_RETURN_IF_ERROR(step([&](const auto& sink) {
        fleet_->close_range(first, first + kGpusAtOnce, now, sink, everything);
      }));
    }
    return step([&](const auto& sink) { fleet_->close_rests(sink); });
  };
  if (const base::Status done = steps(); !done.ok()) {
    if (begun) store_->roll_back();
    return done;
  }
  if (!begun) {
    more_ = false;
    return let_go_of_log();
  }
  store::Store::Checkpoint checkpoint;
  bool is_simulated = false;
  {
    const std::scoped_lock guard(fleet_mutex_);
    checkpoint = checkpoint_of_all();
    ++counters_.flushes;
    is_simulated = fleet_->simulated();
    more_ = fleet_->take_more();
  }
  if (is_simulated) store_->mark_simulated();
  FLOPSIGHT_RETURN_IF_ERROR(store_->commit(checkpoint));
  look_at_store();
  static_cast<void>(look_at_outbox());
  FLOPSIGHT_RETURN_IF_ERROR(log_->drop_before(checkpoint.log_segment));
  return log_->rotate();
}

store::Store::Checkpoint Ingest::checkpoint_of_all() const {
  store::Store::Checkpoint checkpoint;
  checkpoint.log_segment = needed_segment();
  for (live::GpuIndex i = 0; i < known_gpus_.size(); ++i) {
    const units::Instant closed = fleet_->closed_until(i);
    if (known_gpus_[i].id != 0 && closed.unix_milliseconds > 0) {
      checkpoint.closed_until.emplace_back(known_gpus_[i].id, closed);
    }
  }
  fleet_->for_divided([&](std::span<const live::GpuIndex> instances, const rollups::DividedGpu& divided) {
    const auto is_known = [&](live::GpuIndex index) { return index < known_gpus_.size() && known_gpus_[index].id != 0; };
    const auto known = std::find_if(instances.begin(), instances.end(), is_known);
    if (known != instances.end()) checkpoint.divided.emplace_back(known_gpus_[*known].id, divided);
  });
  return checkpoint;
}

// A sample that comes in between is in a later segment than any that is not in a cell.
std::uint32_t Ingest::needed_segment() const {
  const std::uint32_t current = log_->current_segment();
  return std::min({fleet_->oldest_segment(current).value_or(current), reported_.oldest_segment().value_or(current),
                   reported_unkept_segment_.value_or(current)});
}

// What came last is in cells now, and with the flush that made them the log was begun anew: where nothing more comes, no other flush lets go of it.
base::Status Ingest::let_go_of_log() {
  store::Store::Checkpoint checkpoint;
  bool is_simulated = false;  // and the store does not know it
  {
    const std::scoped_lock guard(fleet_mutex_);
    checkpoint.log_segment = needed_segment();
    is_simulated = fleet_->simulated() && !store_->simulated();
  }
  if (checkpoint.log_segment <= log_->first_segment() && !is_simulated) return {};
  FLOPSIGHT_RETURN_IF_ERROR(store_->begin());
  if (is_simulated) store_->mark_simulated();
  FLOPSIGHT_RETURN_IF_ERROR(store_->commit(checkpoint));
  return log_->drop_before(checkpoint.log_segment);
}

void Ingest::look_at_store() {
  if (const auto size = store_->size(); size.ok()) store_bytes_ = size->bytes;
  store_simulated_ = store_->simulated();
  store_unreadable_ = store_->unreadable().count(samples::kNotReadable);
}

bool Ingest::maintain(units::Instant now) {
  {
    const std::scoped_lock fleet(fleet_mutex_);
    look_for_room();
  }
  const std::scoped_lock guard(store_mutex_);
  if (store_ == nullptr) return false;
  const auto more = store_->maintain(now, options_.retention);
  look_at_store();
  // Once, not every second.
  const std::string trouble = more.ok() ? "" : "housekeeping of the store: " + more.error().message;
  if (trouble != maintain_trouble_ && !trouble.empty()) {
    const std::scoped_lock fleet(fleet_mutex_);
    notes_.push_back(trouble);
  }
  maintain_trouble_ = trouble;
  return more.ok() && *more;
}

void Ingest::set_jobs(std::vector<jobs::JobRecord> records) {
  const std::scoped_lock guard(fleet_mutex_);
  fleet_->holders().for_each([&](samples::HolderId id, samples::Holder holder) {
    if (owners_.complete(holder)) fleet_->complete_holder(id, holder);
    const auto end = owners_.ended(holder.name_space, holder.job);
    if (!end) return;
    jobs::JobRecord record;
    record.job = holder.job;
    record.name_space = holder.name_space;
    record.end = end;
    record.rule = "kube_pod_completion_time";
    records.push_back(std::move(record));
  });
  jobs_ = jobs::JobTable(std::move(records));
  fleet_->set_jobs(jobs_);
}

std::vector<store::PodOwner> Ingest::owned_pods() const {
  const std::scoped_lock guard(fleet_mutex_);
  std::vector<store::PodOwner> out;
  if (owners_.pod_count() == 0) return out;
  fleet_->holders().for_each([&](samples::HolderId, const samples::Holder& holder) {
    if (auto owner = owners_.owner_of(holder.name_space, holder.job)) {
      out.push_back({holder.name_space, holder.job, std::move(*owner)});
    }
  });
  return out;
}

void Ingest::set_retention(const store::Retention& retention) {
  const std::scoped_lock guard(store_mutex_);
  options_.retention = retention;
}

Ingest::StoreHandle Ingest::store() { return {store_mutex_, *store_}; }

IngestCounters Ingest::counters() const {
  const std::scoped_lock guard(fleet_mutex_);
  return counters_;
}

IngestHealth Ingest::health() const {
  IngestHealth health;
  {
    const std::scoped_lock guard(fleet_mutex_);
    health.accepting = why_not_.empty() && outbox_full_.empty();
    health.why_not = why_not_.empty() ? outbox_full_ : why_not_;
    health.newest_sample = newest_sample_;
    health.newest_written = newest_written_;
    health.gpus = fleet_->gpu_count();
    health.label_sets = fleet_->label_set_count();
    health.pending_rows = fleet_->pending_row_count();
    health.simulated = fleet_->simulated();
    health.log_bytes = log_->bytes();
  }
  health.store_bytes = store_bytes_;
  health.simulated = health.simulated || store_simulated_;
  return health;
}

std::vector<samples::QualityEntry> Ingest::quality() const {
  const std::scoped_lock guard(fleet_mutex_);
  samples::QualityLog all = quality_;
  all.merge(log_unreadable_);
  all.add(samples::kNotReadable, "the store", store_unreadable_);
  return all.entries();
}

samples::QualityLog Ingest::log_unreadable() const {
  const std::scoped_lock guard(fleet_mutex_);
  return log_unreadable_;
}

std::vector<std::string> Ingest::take_notes() {
  const std::scoped_lock guard(store_mutex_, fleet_mutex_);
  std::vector<std::string> notes = std::exchange(notes_, {});
  if (store_ != nullptr) {
    for (std::string& note : store_->take_notes()) notes.push_back(std::move(note));
  }
  return notes;
}

void Ingest::for_latest(units::Instant since,
                        const std::function<void(const samples::GpuIdentity&, const LatestGpu&)>& gpu,
                        const std::function<void(const samples::Holder&, const LatestJob&)>& job) const {
  const std::scoped_lock guard(fleet_mutex_);
  for (std::size_t i = 0; i < latest_gpus_.size(); ++i) {
    if (latest_gpus_[i].slot_start >= since.unix_milliseconds && latest_gpus_[i].slot_start > 0) {
      gpu(fleet_->identity(static_cast<live::GpuIndex>(i)), latest_gpus_[i]);
    }
  }
  for (const auto& [holder, latest] : latest_jobs_) {
    if (latest.slot_start >= since) job(fleet_->holders().at(holder), latest);
  }
}

}  // namespace flopsight::app
