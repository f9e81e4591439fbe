#include "serve/finding_minutes.h"

#include <algorithm>
#include <set>

#include "base/room.h"
#include "jobs/job_name.h"
#include "rollups/screen.h"
#include "serve/job_answers.h"

namespace flopsight::app {
namespace {

using base::Result;
using rollups::Cell;
using store::GpuCell;

constexpr std::int64_t kMinuteMilliseconds = 60'000;
constexpr std::int64_t kHourMilliseconds = 3'600'000;
constexpr std::int64_t kUnseenMillisecondsMax = 24 * kHourMilliseconds;
static_assert(MinuteReader::kForgetHours * kHourMilliseconds > kUnseenMillisecondsMax);

}  // namespace

std::uint32_t MinuteReader::number_of(base::HashNumbers& numbers, const std::string& name) {
  return numbers.emplace(base::hash128(name), static_cast<std::uint32_t>(numbers.size())).first;
}

std::vector<detect::GpuMinute> gpus_of(const FleetMinute& minute, const JobMinute& job) {
  std::vector<detect::GpuMinute> gpus;
  gpus.reserve(job.gpus.size());
  auto shared = job.shared.begin();
  auto at = minute.gpus.begin();
  for (const std::uint32_t number : job.gpus) {
    if (shared != job.shared.end() && shared->gpu == number) {
      gpus.push_back(*shared++);
      continue;
    }
    at = std::lower_bound(at, minute.gpus.end(), number, [](const detect::GpuMinute& gpu, std::uint32_t n) { return gpu.gpu < n; });
    gpus.push_back(*at);
  }
  return gpus;
}

std::optional<std::uint32_t> MinuteReader::gpu_number(const std::string& name) const { return gpu_numbers_.find(base::hash128(name)); }
std::optional<std::uint32_t> MinuteReader::job_number(const std::string& id) const { return job_numbers_.find(base::hash128(id)); }
std::string MinuteReader::job_id(std::uint32_t job) const { return jobs::job_text(holders_[job]); }

std::uint32_t MinuteReader::job_number_of(const samples::Holder& holder) {
  const auto next = free_jobs_.empty() ? static_cast<std::uint32_t>(jobs_.size()) : free_jobs_.back();
  const auto [number, is_new] = job_numbers_.emplace(base::hash128(jobs::job_text(holder)), next);
  if (!is_new) {
    holders_.replace(number, holder);
  } else if (free_jobs_.empty()) {
    base::add_one(jobs_);
    holders_.push_back(holder);
  } else {
    free_jobs_.pop_back();
    holders_.replace(number, holder);
  }
  return number;
}

base::Status MinuteReader::learn_gpus(store::Store& store, const AnswerSettings& settings, const std::vector<GpuCell>& cells) {
  std::vector<store::GpuId> unknown;
  for (const GpuCell& cell : cells) {
    base::fill_up_to(gpu_of_id_, std::size_t{cell.gpu} + 1, kUnknown);
    if (gpu_of_id_[cell.gpu] == kUnknown) unknown.push_back(cell.gpu);
  }
  if (unknown.empty()) return {};
  std::sort(unknown.begin(), unknown.end());
  unknown.erase(std::unique(unknown.begin(), unknown.end()), unknown.end());
  FLOPSIGHT_ASSIGN_OR_RETURN(const std::vector<store::GpuRecord> records, store.gpus(unknown));
  for (const store::GpuRecord& record : records) {
    const samples::GpuIdentity& identity = record.identity;
    std::string name = identity.uuid.empty() ? rollups::gpu_label(identity) : identity.uuid;
    if (!identity.mig_instance.empty()) name += "/" + identity.mig_instance;
    const std::uint32_t number = number_of(gpu_numbers_, name);
    gpu_of_id_[record.id] = number;
    if (number < gpus_.size()) continue;
    Gpu& gpu = base::add_one(gpus_);
    gpu.is_mig = !identity.mig_instance.empty();
    // A GPU whose host is not known has one to itself: two of them are not neighbours.
    gpu.host = number_of(host_numbers_, identity.host.empty() ? "\n" + name : identity.host);
    if (gpu.host >= host_names_.size()) host_names_.push_back(identity.host);
    gpu.model = number_of(model_numbers_, identity.model_raw);
    if (gpu.model >= models_.size()) {
      const catalog::Device* device = settings.fleet.catalog->find(identity.model_raw);
      models_.push_back({device != nullptr ? device->model : "", identity.model_raw});
    }
    gpu_names_.push_back(name);
  }
  return {};
}

void MinuteReader::learn_jobs(store::Store& store, const AnswerSettings& settings, const std::vector<GpuCell>& cells) {
  const HolderIndex::Basis basis{store.names_version().value_or(0), jobs_service_ != nullptr ? jobs_service_->owners_version() : 0,
                                 settings.grouping};
  if (!(basis == basis_)) {
    job_of_id_.clear();
    for (Job& job : jobs_) job.ids.clear();
  }
  basis_ = basis;
  for (const GpuCell& cell : cells) {
    if (cell.job == 0 || job_of_id_.contains(cell.job)) continue;
    const std::uint32_t number = job_number_of(group_of(store.holder(cell.job), jobs_service_, settings));
    job_of_id_[cell.job] = number;
    jobs_[number].ids.push_back(cell.job);
  }
}

void MinuteReader::add_unseen(Building& building) {
  FleetMinute& minute = building.minute;
  std::vector<detect::GpuMinute> unseen;
  for (std::uint32_t number = 0; number < gpus_.size(); ++number) {
    Gpu& gpu = gpus_[number];
    const std::int64_t silent_milliseconds = minute.start.unix_milliseconds - gpu.seen_unix_milliseconds;
    if (silent_milliseconds <= 0 || silent_milliseconds > kUnseenMillisecondsMax || !gpu.has_job) continue;
    const auto job = building.jobs.find(gpu.job);
    if (job == building.jobs.end()) continue;
    Cell nothing;
    nothing.absent(samples::AbsentReason::kNotSeen) = static_cast<std::int64_t>(kMinuteSeconds * 1e6);
    unseen.push_back({number, gpu.host, gpu.is_mig, detect::point_of(nothing, minute.start)});
    job->second.cell.merge(nothing);
  }
  if (unseen.empty()) return;
  minute.gpus.insert(minute.gpus.end(), unseen.begin(), unseen.end());
  std::sort(minute.gpus.begin(), minute.gpus.end(), [](const auto& a, const auto& b) { return a.gpu < b.gpu; });
}

void MinuteReader::add(store::Store& store, Building& building, std::span<const GpuCell> cells) {
  FleetMinute& minute = building.minute;
  if (!cells.empty()) minute.start = cells.front().slot_start;
  for (std::size_t i = 0; i < cells.size();) {
    const std::uint32_t number = gpu_of_id_[cells[i].gpu];
    std::size_t end = i;
    while (end < cells.size() && cells[end].gpu == cells[i].gpu) ++end;
    if (number != kUnknown) {
      Gpu& gpu = gpus_[number];
      Cell whole = cells[i].cell;
      for (std::size_t k = i + 1; k < end; ++k) whole.merge(cells[k].cell);
      minute.gpus.push_back({number, gpu.host, gpu.is_mig, detect::point_of(whole, minute.start)});
      const bool was_held = gpu.is_held;
      const std::uint32_t before = gpu.job;
      gpu.has_job = end == i + 1 && cells[i].job != 0;
      gpu.is_held = false;
      gpu.seen_unix_milliseconds = minute.start.unix_milliseconds;
      for (std::size_t k = i; k < end; ++k) {
        if (cells[k].job == 0) continue;
        const std::uint32_t job = job_of_id_.at(cells[k].job);
        gpu.job = job;
        gpu.is_held = true;
        jobs_[job].seen_unix_milliseconds = minute.start.unix_milliseconds;
        see_member(store, job, cells[k].job, minute.start);
        Building::OfJob& of = building.jobs[job];
        of.cell.merge(cells[k].cell);
        // Pods of one group may share a GPU.
        const bool is_there = !of.minute.gpus.empty() && of.minute.gpus.back() == number;
        if (!is_there) of.minute.gpus.push_back(number);
        if (end == i + 1) continue;
        if (is_there) of.minute.shared.pop_back();
        of.minute.shared.push_back({number, gpu.host, gpu.is_mig, detect::point_of(cells[k].cell, minute.start)});
      }
      const bool is_still_there = std::any_of(cells.begin() + static_cast<std::ptrdiff_t>(i), cells.begin() + static_cast<std::ptrdiff_t>(end),
                                              [&](const GpuCell& cell) { return cell.job != 0 && job_of_id_.at(cell.job) == before; });
      if (was_held && !is_still_there) jobs_[before].left_unix_milliseconds = minute.start.unix_milliseconds;
    }
    i = end;
  }
}

FleetMinute MinuteReader::finish(Building& building) {
  const auto by_number = [](const auto& a, const auto& b) { return a.gpu < b.gpu; };
  std::sort(building.minute.gpus.begin(), building.minute.gpus.end(), by_number);
  add_unseen(building);
  FleetMinute minute = std::move(building.minute);
  for (auto& [job, of] : building.jobs) {
    JobMinute& one = minute.jobs.emplace_back(std::move(of.minute));
    one.job = job;
    one.point = detect::point_of(of.cell, minute.start);
    std::sort(one.gpus.begin(), one.gpus.end());
    std::sort(one.shared.begin(), one.shared.end(), by_number);
  }
  return minute;
}

void MinuteReader::see_member(store::Store& store, std::uint32_t job, store::JobId id, units::Instant minute) {
  std::vector<Member>& members = jobs_[job].members;
  const auto known = std::find_if(members.begin(), members.end(), [&](const Member& member) { return member.id == id; });
  if (known != members.end()) {
    known->last = minute;
    return;
  }
  std::erase_if(members, [&](const Member& member) { return (minute - member.last).value > kMemberHours * 3'600.0; });
  members.push_back({id, minute, minute, nullptr});
  if (members.size() == 1) return;
  for (Member& member : members) {
    if (member.holder == nullptr) member.holder = std::make_unique<const samples::Holder>(store.holder(member.id));
  }
}

std::vector<detect::LabelChange> MinuteReader::changes(std::uint32_t job) const {
  constexpr double kReplacedSeconds = 600;
  std::vector<detect::LabelChange> out;
  const std::vector<Member>& members = jobs_[job].members;
  for (const Member& after : members) {
    const auto is_replaced = [&](const Member& before) {
      const double away_seconds = (after.first - before.last).value;
      return before.first < after.first && away_seconds >= 0 && away_seconds <= kReplacedSeconds && before.last < after.last;
    };
    const auto before = std::find_if(members.begin(), members.end(), is_replaced);
    const bool is_said = std::any_of(out.begin(), out.end(), [&](const auto& change) { return change.time == after.first; });
    if (before != members.end() && !is_said) out.push_back({after.first, after.holder->rule, before->holder->job, after.holder->job});
  }
  return out;
}

void MinuteReader::forget(units::Instant minute, const std::function<bool(std::uint32_t)>& is_needed) {
  std::vector<bool> is_over(jobs_.size());
  for (const std::uint32_t job : free_jobs_) is_over[job] = true;  // already
  const std::size_t free_before = free_jobs_.size();
  for (std::uint32_t job = 0; job < jobs_.size(); ++job) {
    const std::int64_t silent_milliseconds = minute.unix_milliseconds - jobs_[job].seen_unix_milliseconds;
    if (is_over[job] || silent_milliseconds <= kForgetHours * kHourMilliseconds || is_needed(job)) continue;
    is_over[job] = true;
    jobs_[job] = {};
    holders_.replace(job, {});
    free_jobs_.push_back(job);
  }
  if (free_jobs_.size() == free_before) return;
  job_numbers_.erase_numbers([&](std::uint32_t job) { return is_over[job]; });
  for (Gpu& gpu : gpus_) {
    if (is_over[gpu.job]) gpu.has_job = gpu.is_held = false;
  }
  tsl::robin_map<store::JobId, std::uint32_t> left;
  for (const auto& [id, job] : job_of_id_) {
    if (!is_over[job]) left.emplace(id, job);
  }
  job_of_id_ = std::move(left);
}

std::vector<MinuteReader::Silence> MinuteReader::silent(units::Instant minute, int minutes) const {
  std::map<std::uint32_t, Silence> silent;
  for (std::uint32_t number = 0; number < gpus_.size(); ++number) {
    const Gpu& gpu = gpus_[number];
    if (!gpu.has_job || minute.unix_milliseconds - gpu.seen_unix_milliseconds > kUnseenMillisecondsMax) continue;
    const Job& job = jobs_[gpu.job];
    const std::int64_t silent_milliseconds = minute.unix_milliseconds - job.seen_unix_milliseconds;
    if (silent_milliseconds < minutes * kMinuteMilliseconds || silent_milliseconds > kUnseenMillisecondsMax) continue;
    if (job.left_unix_milliseconds >= job.seen_unix_milliseconds) continue;
    Silence& silence = silent[gpu.job];
    silence.job = gpu.job;
    silence.seen = units::Instant{job.seen_unix_milliseconds};
    silence.gpus.push_back(number);
  }
  std::vector<Silence> out;
  out.reserve(silent.size());
  for (auto& [job, silence] : silent) out.push_back(std::move(silence));
  return out;
}

Result<std::vector<FleetMinute>> MinuteReader::read(store::Store& store, const AnswerSettings& settings, units::Window window) {
  std::vector<FleetMinute> out;
  const auto cells_of = [&](const store::GpuChoice& choice, units::Window part) -> Result<std::vector<GpuCell>> {
    FLOPSIGHT_ASSIGN_OR_RETURN(std::vector<GpuCell> cells, store.gpu_series(choice, part, units::Seconds(kMinuteSeconds)));
    FLOPSIGHT_RETURN_IF_ERROR(learn_gpus(store, settings, cells));
    learn_jobs(store, settings, cells);
    return cells;
  };
  std::vector<store::GpuId> present;
  for (const auto& [gpu, seen] : store.present(window)) present.push_back(gpu);
  if (present.size() <= gpus_at_once_) {
    FLOPSIGHT_ASSIGN_OR_RETURN(const std::vector<GpuCell> cells, cells_of({}, window));
    for (std::size_t i = 0; i < cells.size();) {
      std::size_t end = i;
      while (end < cells.size() && cells[end].slot_start == cells[i].slot_start) ++end;
      Building one;
      add(store, one, std::span(cells).subspan(i, end - i));
      out.push_back(finish(one));
      i = end;
    }
    return out;
  }
  // One minute after another: what is known of a GPU is what was known before that minute.
  const units::Seconds step(std::max(kMinuteSeconds, store.slot().value));
  for (units::Instant start = window.start; start < window.end; start = start + step) {
    Building one;
    one.minute.gpus.reserve(present.size());
    for (std::size_t i = 0; i < present.size(); i += gpus_at_once_) {
      const auto first = present.begin() + static_cast<std::ptrdiff_t>(i);
      const auto last = present.begin() + static_cast<std::ptrdiff_t>(std::min(present.size(), i + gpus_at_once_));
      FLOPSIGHT_ASSIGN_OR_RETURN(const std::vector<GpuCell> cells,
                                 cells_of({std::nullopt, std::vector<store::GpuId>(first, last)}, {start, start + step}));
      add(store, one, cells);
    }
    if (!one.minute.gpus.empty()) out.push_back(finish(one));
  }
  return out;
}

Result<std::vector<detect::MinutePoint>> MinuteReader::course(store::Store& store, std::uint32_t job, units::Window window) const {
  std::map<units::Instant, Cell> minutes;
  for (const store::JobId id : jobs_[job].ids) {
    FLOPSIGHT_ASSIGN_OR_RETURN(const std::vector<store::JobCell> cells, store.job_sum_series(id, window, units::Seconds(kMinuteSeconds)));
    for (const store::JobCell& cell : cells) {
      const units::Instant start{cell.slot_start.unix_milliseconds / kMinuteMilliseconds * kMinuteMilliseconds};
      const auto [at, is_new] = minutes.try_emplace(start, cell.cell);
      if (!is_new) at->second.merge(cell.cell);
    }
  }
  std::vector<detect::MinutePoint> out;
  out.reserve(minutes.size());
  for (const auto& [start, cell] : minutes) out.push_back(detect::point_of(cell, start));
  return out;
}

}  // namespace flopsight::app
