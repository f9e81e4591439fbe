#include "serve/late_jobs.h"

#include <algorithm>
#include <set>

#include "units/milliseconds.h"

namespace flopsight::app {
namespace {

constexpr std::uint64_t kJobsAtOnce = 500;
constexpr std::uint32_t kGroupSize = 256;
constexpr std::int64_t kHour = 3'600'000;

// The whole slots of a window.
units::Window whole_slots(units::Window window, units::Seconds slot) {
  const std::int64_t length = units::milliseconds(slot);
  return {{(window.start.unix_milliseconds + length - 1) / length * length}, {window.end.unix_milliseconds / length * length}};
}

}  // namespace

base::Status LateJobs::read_gpus(store::Store& store) {
  FLOPSIGHT_ASSIGN_OR_RETURN(gpus_, store.gpus());
  by_short_host_.clear();
  by_uuid_.clear();
  for (std::size_t i = 0; i < gpus_.size(); ++i) {
    const samples::GpuIdentity& gpu = gpus_[i].identity;
    if (!gpu.host.empty()) by_short_host_[jobs::short_host(gpu.host)].push_back(i);
    if (!gpu.uuid.empty()) by_uuid_[samples::normalized_uuid(gpu.uuid)].push_back(i);
  }
  return {};
}

bool LateJobs::may_have_gpus(const schedulers::Job& job) const {
  return std::any_of(job.allocations.begin(), job.allocations.end(), [&](const schedulers::Allocation& allocation) {
    return std::any_of(allocation.hosts.begin(), allocation.hosts.end(),
                       [&](const std::string& host) { return by_short_host_.contains(jobs::short_host(host)); }) ||
           std::any_of(allocation.gpu_uuids.begin(), allocation.gpu_uuids.end(),
                       [&](const std::string& uuid) { return by_uuid_.contains(samples::normalized_uuid(uuid)); });
  });
}

// On which GPUs of the store the record says that its job was, while they were seen.
void LateJobs::add_record(const jobs::JobRecord& record, units::Seconds slot) {
  std::set<std::size_t> places;
  const auto collect = [&](const std::map<std::string, std::vector<std::size_t>>& index, const std::string& key) {
    if (const auto at = index.find(key); at != index.end()) places.insert(at->second.begin(), at->second.end());
  };
  for (const std::string& host : record.hosts) collect(by_short_host_, jobs::short_host(host));
  for (const std::string& uuid : record.gpu_uuids) collect(by_uuid_, samples::normalized_uuid(uuid));
  for (const std::size_t place : places) {
    const store::GpuRecord& gpu = gpus_[place];
    if (!record.holds(gpu.identity)) continue;
    const units::Window window = whole_slots({std::max(record.start.value_or(gpu.first), gpu.first),
                                              std::min(record.end.value_or(gpu.closed_until), gpu.closed_until)}, slot);
    if (!(window.start < window.end)) continue;
    pieces_[gpu.id].push_back({window, record.holder()});
    for (std::int64_t hour = window.start.unix_milliseconds / kHour; hour * kHour < window.end.unix_milliseconds; ++hour) {
      units_.push_back({gpu.id / kGroupSize, hour});
    }
  }
}

base::Status LateJobs::begin_batch(store::Store& store) {
  FLOPSIGHT_ASSIGN_OR_RETURN(batch_, jobs_.book().late_jobs(kJobsAtOnce));
  if (batch_.empty()) return {};
  FLOPSIGHT_RETURN_IF_ERROR(read_gpus(store));
  units::Window window{*batch_.front().job.start, *batch_.front().job.start + units::Seconds(1)};
  std::set<std::string> keys;
  for (const store::ToldJob& late : batch_) {
    window.end = std::max({window.end, *late.job.start + units::Seconds(1), late.job.end.value_or(window.end)});
    keys.insert(late.job.key());
  }
  // Where no GPU of theirs was ever seen, nothing can be given.
  if (std::none_of(batch_.begin(), batch_.end(), [&](const store::ToldJob& late) { return may_have_gpus(late.job); })) return {};
  // With the others that were there, which may leave no choice.
  FLOPSIGHT_ASSIGN_OR_RETURN(const std::vector<JobService::Placed> placed, jobs_.placed(window));
  for (const JobService::Placed& one : placed) {
    if (!keys.contains(one.key)) continue;
    for (const jobs::JobRecord& record : one.records) add_record(record, store.slot());
  }
  std::sort(units_.begin(), units_.end());
  units_.erase(std::unique(units_.begin(), units_.end()), units_.end());
  return {};
}

base::Status LateJobs::do_unit(store::Store& store, const Unit& unit) {
  std::vector<store::GpuId> ids;
  for (auto at = pieces_.lower_bound(unit.group * kGroupSize); at != pieces_.end() && at->first / kGroupSize == unit.group; ++at) {
    ids.push_back(at->first);
  }
  FLOPSIGHT_ASSIGN_OR_RETURN(const std::vector<store::GpuCell> cells, store.unheld(ids, {{unit.hour * kHour}, {(unit.hour + 1) * kHour}}));
  std::map<std::pair<store::GpuId, store::JobId>, std::vector<store::GpuCell>> given;
  for (const store::GpuCell& cell : cells) {
    for (const Piece& piece : pieces_[cell.gpu]) {
      if (cell.slot_start < piece.window.start || cell.slot_start >= piece.window.end) continue;
      given[{cell.gpu, store.job(piece.holder)}].push_back(cell);
      break;
    }
  }
  if (given.empty()) return {};
  const auto steps = [&]() -> base::Status {
    FLOPSIGHT_RETURN_IF_ERROR(store.begin());
    for (const auto& [key, of] : given) {
      const auto gpu = std::find_if(gpus_.begin(), gpus_.end(), [id = key.first](const store::GpuRecord& record) { return record.id == id; });
      FLOPSIGHT_RETURN_IF_ERROR(store.give(of, key.second, store.model(gpu->identity.model_raw)));
    }
    return store.commit({store.log_segment(), {}});
  };
  if (const base::Status done = steps(); !done.ok()) {
    store.roll_back();
    return done;
  }
  for (const auto& [key, of] : given) {
    for (const store::GpuCell& cell : of) microseconds_ += cell.cell.allocated_microseconds();
  }
  return {};
}

base::Result<bool> LateJobs::step(store::Store& store) {
  if (batch_.empty()) FLOPSIGHT_RETURN_IF_ERROR(begin_batch(store));
  if (batch_.empty()) return false;
  base::Status done;
  if (!units_.empty()) {
    done = do_unit(store, units_.front());
    if (done.ok()) units_.pop_front();
  }
  if (done.ok() && !units_.empty()) return true;
  const bool is_over = done.ok() || done.error().code == base::ErrorCode::kUnsupported;
  const base::Status dropped = is_over ? jobs_.book().drop_late(batch_) : done;
  // After a disk that was full it begins anew.
  batch_.clear();
  pieces_.clear();
  units_.clear();
  gpus_.clear();
  if (!dropped.ok()) return dropped.error();
  return true;
}

}  // namespace flopsight::app
