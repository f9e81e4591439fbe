#include "engine/engine_store.h"

#include <algorithm>
#include <cmath>
#include <random>

namespace flopsight::engine {
namespace {

using rollups::CellField;
using store::GpuCell;
using store::JobCell;
using store::JobId;
using units::Instant;
using units::Window;

// Cells of one parcel, which is one to a few messages.
constexpr std::size_t kParcelCells = 1'000;
// Of the slots that are remembered.
constexpr std::size_t kRecentCellsMax = 100'000;
// How far the newest slot has to be past an hour for it to be written.
constexpr std::int64_t kHourSlackMilliseconds = 600'000;
constexpr int kHoursAtOnce = 48;
// Up to so many jobs are looked for one by one where parts of old slots come; more by whole slots.
constexpr std::size_t kJobsOneByOne = 64;
constexpr const char* kHoursUntilKey = "engine_hours_until_unix_milliseconds";
constexpr const char* kStoreIdKey = "engine_store_id";

std::int64_t hour_of(std::int64_t unix_milliseconds) {
  return unix_milliseconds / kHourMilliseconds * kHourMilliseconds;
}

void add_to(JobCell& into, const JobCell& cell) {
  into.cell.merge(cell.cell);
  into.spread.merge(cell.spread);
}

}  // namespace

EngineStore::EngineStore(store::StoreWithOutbox local, const EngineStoreOptions& options)
    : local_(std::move(local)), options_(options), slot_milliseconds_(std::llround(options.slot.value * 1000)) {}

base::Result<std::unique_ptr<EngineStore>> EngineStore::open(const std::string& folder, const EngineStoreOptions& options) {
  store::SqliteStoreOptions local_options;
  local_options.slot = options.slot;
  local_options.one_job_a_name = true;
  FLOPSIGHT_ASSIGN_OR_RETURN(store::StoreWithOutbox local, store::open_sqlite_store_with_outbox(folder, local_options));
  std::unique_ptr<EngineStore> store(new EngineStore(std::move(local), options));
  FLOPSIGHT_RETURN_IF_ERROR(store->load());
  return store;
}

base::Status EngineStore::load() {
  FLOPSIGHT_ASSIGN_OR_RETURN(std::optional<std::int64_t> id, local_.outbox->recall(kStoreIdKey));
  if (!id) {
    std::random_device random;
    id = static_cast<std::int64_t>(random() & 0x7FFF'FFFFU);
    FLOPSIGHT_RETURN_IF_ERROR(local_.outbox->remember(kStoreIdKey, *id));
  }
  char hex[9];
  std::snprintf(hex, sizeof hex, "%08llx", static_cast<unsigned long long>(*id));
  shard_ = std::to_string(options_.shard) + "-" + hex;
  FLOPSIGHT_ASSIGN_OR_RETURN(const auto until, local_.outbox->recall(kHoursUntilKey));
  progress_.hours_until = until.value_or(0);
  for (const auto& [gpu, time] : local_.store->closed_until()) {
    progress_.newest = std::max(progress_.newest, time.unix_milliseconds);
  }
  committed_ = progress_;
  FLOPSIGHT_ASSIGN_OR_RETURN(const std::vector<store::JobRecord> jobs, local_.store->jobs());
  for (const store::JobRecord& job : jobs) firsts_[job.id] = job.first.unix_milliseconds;
  return {};
}

// ---- A flush

base::Status EngineStore::begin() {
  if (flushing_) roll_back();
  FLOPSIGHT_RETURN_IF_ERROR(local_.store->begin());
  flushing_ = true;
  return {};
}

void EngineStore::roll_back() {
  local_.store->roll_back();
  // What was remembered of the slots may have been of this flush.
  if (flushing_) recent_.clear();
  flushing_ = false;
  progress_ = committed_;
  pending_.clear();
  gpu_cells_.clear();
  pairs_.clear();
}

base::Status EngineStore::add(const GpuCell& cell, store::ModelId model) {
  FLOPSIGHT_RETURN_IF_ERROR(local_.store->add(cell, model));
  const std::int64_t slot = cell.slot_start.unix_milliseconds;
  JobCell& merged = pending_[slot][{cell.job, model}];
  merged.job = cell.job;
  merged.model = model;
  merged.slot_start = cell.slot_start;
  merged.cell.merge(cell.cell);
  const std::int64_t measured = cell.cell[CellField::kMeasured];
  if (measured > 0) {
    merged.spread.add(static_cast<double>(cell.cell[CellField::kDelivered]) / static_cast<double>(measured), measured);
  }
  const std::tuple pair(hour_of(slot), cell.gpu, cell.job);
  if (pairs_.empty() || pairs_.back() != pair) pairs_.push_back(pair);
  gpu_cells_.push_back(cell);
  if (gpu_cells_.size() >= kParcelCells) return put_gpus();
  return {};
}

base::Status EngineStore::commit(const Checkpoint& checkpoint) {
  const auto steps = [&]() -> base::Status {
    FLOPSIGHT_RETURN_IF_ERROR(put_all());
    return local_.store->commit(checkpoint);
  };
  if (const base::Status done = steps(); !done.ok()) {
    roll_back();
    return done;
  }
  flushing_ = false;
  committed_ = progress_;
  pending_.clear();
  pairs_.clear();
  forget_recent();
  if (const std::uint64_t dropped = std::exchange(dropped_late_, 0); dropped > 0 && notes_.size() < 100) {
    notes_.push_back(std::to_string(dropped) + " parts of slots came later than retention.fine and are not in the engine");
  }
  return {};
}

bool EngineStore::is_too_late(std::int64_t slot) const {
  // An hour less than what the own store keeps.
  return slot + std::llround(options_.late_max.value * 1000) - kHourMilliseconds < committed_.newest;
}

base::Status EngineStore::put_all() {
  FLOPSIGHT_RETURN_IF_ERROR(put_gpus());
  if (pending_.empty()) return {};
  progress_.newest = std::max(progress_.newest, pending_.rbegin()->first + slot_milliseconds_);
  std::sort(pairs_.begin(), pairs_.end());
  pairs_.erase(std::unique(pairs_.begin(), pairs_.end()), pairs_.end());
  FLOPSIGHT_RETURN_IF_ERROR(put_job_slots());
  for (auto at = pending_.begin(); at != pending_.end();) {
    if (is_too_late(at->first)) {
      dropped_late_ += at->second.size();
      at = pending_.erase(at);
    } else {
      ++at;
    }
  }
  if (progress_.hours_until == 0 && !pending_.empty()) progress_.hours_until = hour_of(pending_.begin()->first);
  FLOPSIGHT_RETURN_IF_ERROR(put_hours());
  return put_until(progress_.hours_until != committed_.hours_until || simulated() != committed_.told_simulated);
}

base::Status EngineStore::put_gpus() {
  if (gpu_cells_.empty()) return {};
  std::sort(gpu_cells_.begin(), gpu_cells_.end(), [](const GpuCell& a, const GpuCell& b) {
    return std::tie(a.gpu, a.slot_start, a.job) < std::tie(b.gpu, b.slot_start, b.job);
  });
  Instant oldest = gpu_cells_.front().slot_start;
  for (const GpuCell& cell : gpu_cells_) oldest = std::min(oldest, cell.slot_start);
  const base::Status put = local_.outbox->put(gpu_parcel(gpu_cells_, options_.slot), oldest);
  gpu_cells_.clear();
  return put;
}

base::Status EngineStore::put_cells(Level level, std::vector<JobCell>& cells) {
  std::sort(cells.begin(), cells.end(), [](const JobCell& a, const JobCell& b) {
    return std::tie(a.job, a.model, a.slot_start) < std::tie(b.job, b.model, b.slot_start);
  });
  for (std::span<const JobCell> rest(cells); !rest.empty();) {
    const auto part = rest.first(std::min(rest.size(), kParcelCells));
    Instant oldest = part.front().slot_start;
    for (const JobCell& cell : part) oldest = std::min(oldest, cell.slot_start);
    FLOPSIGHT_RETURN_IF_ERROR(local_.outbox->put(job_parcel(level, part, options_.slot), oldest));
    rest = rest.subspan(part.size());
  }
  return {};
}

// What is written already of slots that are neither new nor remembered, for the jobs that get more of them.
base::Result<std::map<std::int64_t, EngineStore::JobCells>> EngineStore::bases() {
  std::map<JobId, Window> jobs;
  std::vector<std::int64_t> slots;
  for (const auto& [slot, cells] : pending_) {
    if (slot >= committed_.newest || recent_.contains(slot) || is_too_late(slot)) continue;
    slots.push_back(slot);
    for (const auto& [key, cell] : cells) {
      const auto [at, is_new] = jobs.emplace(key.first, Window{{slot}, {slot}});
      at->second.end = Instant{slot + slot_milliseconds_};
    }
  }
  std::map<std::int64_t, JobCells> found;
  if (jobs.size() <= kJobsOneByOne) {
    for (const auto& [job, window] : jobs) {
      FLOPSIGHT_ASSIGN_OR_RETURN(std::vector<JobCell> cells, local_.store->job_series(job, window, options_.slot));
      for (JobCell& cell : cells) found[cell.slot_start.unix_milliseconds][{cell.job, cell.model}] = std::move(cell);
    }
    return found;
  }
  for (const std::int64_t slot : slots) {
    const Window window{{slot}, {slot + slot_milliseconds_}};
    FLOPSIGHT_ASSIGN_OR_RETURN(const auto totals, local_.store->job_totals(window, std::nullopt));
    for (const store::JobTotal& total : totals) {
      found[slot][{total.job, total.model}] = {total.job, total.model, {slot}, total.cell, total.spread};
    }
  }
  return found;
}

std::int64_t EngineStore::first_of(JobId job, std::int64_t slot) {
  std::int64_t& first = firsts_.emplace(job, slot).first->second;
  first = std::min(first, slot);
  return first;
}

base::Status EngineStore::put_job_slots() {
  FLOPSIGHT_ASSIGN_OR_RETURN(const auto found, bases());
  std::vector<JobCell> cells;
  std::vector<JobSeen> seen;
  for (const auto& [slot, parts] : pending_) {
    if (is_too_late(slot)) continue;
    const bool is_new = slot >= committed_.newest;
    const auto remembered = recent_.find(slot);
    JobCells* whole = remembered != recent_.end() ? &remembered->second : is_new ? &recent_[slot] : nullptr;
    const auto at = found.find(slot);
    for (const auto& [key, part] : parts) {
      JobCell full = part;
      const JobCell* base = nullptr;
      if (whole != nullptr) {
        const auto known = whole->find(key);
        if (known != whole->end()) base = &known->second;
      } else if (at != found.end()) {
        const auto known = at->second.find(key);
        if (known != at->second.end()) base = &known->second;
      }
      if (base != nullptr) {
        add_to(full, *base);
      } else if (key.first != 0) {
        seen.push_back({key.first, {slot}, {first_of(key.first, slot)}, {slot + slot_milliseconds_}});
      }
      if (whole != nullptr) (*whole)[key] = full;
      cells.push_back(std::move(full));
    }
  }
  FLOPSIGHT_RETURN_IF_ERROR(put_cells(Level::kSlot, cells));
  if (seen.empty()) return {};
  std::sort(seen.begin(), seen.end(), [](const JobSeen& a, const JobSeen& b) {
    return std::tie(a.job, a.slot_start) < std::tie(b.job, b.slot_start);
  });
  return local_.outbox->put(seen_parcel(Level::kSlot, seen), {pending_.begin()->first});
}

// ---- Hours

base::Status EngineStore::put_hours() {
  std::int64_t last = 0;
  for (const auto& [slot, cells] : pending_) {
    const std::int64_t hour = hour_of(slot);
    if (hour >= progress_.hours_until) break;
    if (hour != last) FLOPSIGHT_RETURN_IF_ERROR(put_hour(hour, true));
    last = hour;
  }
  for (int i = 0; i < kHoursAtOnce; ++i) {
    const std::int64_t end = progress_.hours_until + kHourMilliseconds;
    if (progress_.hours_until == 0 || end + kHourSlackMilliseconds > progress_.newest) break;
    FLOPSIGHT_RETURN_IF_ERROR(put_hour(progress_.hours_until, false));
    progress_.hours_until = end;
  }
  return local_.outbox->remember(kHoursUntilKey, progress_.hours_until);
}

base::Status EngineStore::put_hour(std::int64_t hour, bool is_late) {
  const Window window{{hour}, {hour + kHourMilliseconds}};
  JobCells whole;
  FLOPSIGHT_ASSIGN_OR_RETURN(const auto totals, local_.store->job_totals(window, std::nullopt));
  for (const store::JobTotal& total : totals) {
    whole[{total.job, total.model}] = {total.job, total.model, window.start, total.cell, total.spread};
  }
  JobCells touched;
  std::map<JobId, std::int64_t> lasts;
  for (auto at = pending_.lower_bound(hour); at != pending_.end() && at->first < window.end.unix_milliseconds; ++at) {
    for (const auto& [key, part] : at->second) {
      const auto [place, is_new] = whole.emplace(key, part);
      place->second.slot_start = window.start;
      if (!is_new) add_to(place->second, part);
      touched[key] = {};
      if (key.first != 0) lasts[key.first] = at->first + slot_milliseconds_;
    }
  }
  std::vector<JobCell> cells;
  for (auto& [key, cell] : whole) {
    if (!is_late || touched.contains(key)) cells.push_back(std::move(cell));
  }
  FLOPSIGHT_RETURN_IF_ERROR(put_cells(Level::kHour, cells));
  return put_hour_members(hour, is_late, lasts);
}

base::Status EngineStore::put_hour_members(std::int64_t hour, bool is_late, const std::map<JobId, std::int64_t>& lasts) {
  const std::int64_t end = hour + kHourMilliseconds;
  FLOPSIGHT_ASSIGN_OR_RETURN(const std::vector<store::Member> members, local_.store->members({{hour}, {end}}, std::nullopt));
  std::vector<std::pair<store::GpuId, JobId>> pairs;
  std::map<JobId, std::int64_t> ends = lasts;
  for (const store::Member& member : members) {
    if (member.job != 0 && (!is_late || ends.contains(member.job))) {
      ends[member.job] = std::max(ends[member.job], std::min(end, member.ever.end.unix_milliseconds));
    }
    if (is_late) continue;
    for (const store::GpuId gpu : member.gpus) pairs.emplace_back(gpu, member.job);
  }
  for (auto at = std::lower_bound(pairs_.begin(), pairs_.end(), std::tuple(hour, store::GpuId{0}, JobId{0}));
       at != pairs_.end() && std::get<0>(*at) == hour; ++at) {
    pairs.emplace_back(std::get<1>(*at), std::get<2>(*at));
  }
  std::sort(pairs.begin(), pairs.end());
  pairs.erase(std::unique(pairs.begin(), pairs.end()), pairs.end());
  std::vector<GpuCell> held;
  for (const auto& [gpu, job] : pairs) {
    held.push_back({gpu, job, {hour}, {}});
    held.back().cell[CellField::kCellCount] = 1;
  }
  for (std::span<const GpuCell> rest(held); !rest.empty();) {
    const auto part = rest.first(std::min(rest.size(), 10 * kParcelCells));
    FLOPSIGHT_RETURN_IF_ERROR(local_.outbox->put(held_parcel(part), {hour}));
    rest = rest.subspan(part.size());
  }
  std::vector<JobSeen> seen;
  for (const auto& [job, last] : ends) seen.push_back({job, {hour}, {first_of(job, last - slot_milliseconds_)}, {last}});
  return seen.empty() ? base::Status{} : local_.outbox->put(seen_parcel(Level::kHour, seen), {hour});
}

base::Status EngineStore::put_until(bool is_changed) {
  if (!is_changed) return {};
  progress_.told_simulated = simulated();
  const Instant newest{progress_.newest - slot_milliseconds_};
  return local_.outbox->put(until_parcel({{progress_.hours_until}, Instant{newest.unix_milliseconds + 1}, simulated()}), newest);
}

void EngineStore::forget_recent() {
  std::size_t cells = 0;
  for (const auto& [slot, jobs] : recent_) cells += jobs.size();
  while (recent_.size() > 1 && cells > kRecentCellsMax) {
    cells -= recent_.begin()->second.size();
    recent_.erase(recent_.begin());
  }
  // Parts that are later than an hour are seldom.
  while (recent_.size() > 1 && recent_.begin()->first + kHourMilliseconds < committed_.newest) recent_.erase(recent_.begin());
}

// ---- The outbox

Names EngineStore::names() {
  Names names;
  names.holder = [this](JobId job) { return job >= 1 && job <= job_count() ? holder(job) : samples::Holder{}; };
  names.model = [this](store::ModelId model) { return model_name(model); };
  names.gpu = [this](store::GpuId gpu) {
    const auto records = local_.store->gpus({gpu});
    return records.ok() && !records->empty() ? records->front().identity : samples::GpuIdentity{};
  };
  const auto is_due = [](auto& written, auto id, Instant slot_start) {
    const std::int64_t hour = hour_of(slot_start.unix_milliseconds);
    const auto [at, is_new] = written.emplace(id, hour);
    return is_new || std::exchange(at->second, hour) != hour;
  };
  names.job_info_due = [this, is_due](JobId job, Instant slot_start) { return is_due(job_info_, job, slot_start); };
  names.gpu_info_due = [this, is_due](store::GpuId gpu, Instant slot_start) { return is_due(gpu_info_, gpu, slot_start); };
  return names;
}

base::Result<std::shared_ptr<const EngineStore::Letter>> EngineStore::next() {
  for (;;) {
    if (letter_ != nullptr) return letter_;
    FLOPSIGHT_ASSIGN_OR_RETURN(const auto parcel, local_.outbox->oldest());
    if (!parcel) return std::shared_ptr<const Letter>();
    auto series = series_of(parcel->bytes, names(), {options_.slot, shard_, options_.gpu_cells});
    if (series.ok()) {
      letter_ = std::make_shared<const Letter>(Letter{parcel->id, std::move(series).value()});
      continue;
    }
    notes_.push_back(series.error().message + "; what it had is not in the engine");
    FLOPSIGHT_RETURN_IF_ERROR(local_.outbox->remove(parcel->id));
  }
}

base::Status EngineStore::delivered(std::int64_t id) {
  letter_.reset();
  return local_.outbox->remove(id);
}

base::Result<EngineStore::State> EngineStore::state() {
  FLOPSIGHT_ASSIGN_OR_RETURN(const store::Outbox::State outbox, local_.outbox->state());
  State state;
  state.bytes = outbox.bytes;
  state.parcels = outbox.parcels;
  if (outbox.parcels > 0) state.lag = Instant{committed_.newest} - outbox.oldest_slot;
  state.is_full = outbox.bytes >= options_.outbox_bytes_max;
  return state;
}

// ---- Housekeeping

base::Result<bool> EngineStore::maintain(Instant now, const store::Retention& retention) {
  store::Retention own;
  own.fine = own.middle = own.coarse = retention.fine;
  options_.late_max = std::min(options_.late_max, retention.fine);
  return local_.store->maintain(std::min(now, Instant{committed_.newest}), own);
}

std::vector<std::string> EngineStore::take_notes() {
  std::vector<std::string> notes = local_.store->take_notes();
  for (std::string& note : std::exchange(notes_, {})) notes.push_back(std::move(note));
  return notes;
}

}  // namespace flopsight::engine
