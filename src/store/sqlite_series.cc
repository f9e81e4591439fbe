// Courses over time in the embedded store: of GPUs, of all jobs together; and GPUs by name.
#include <algorithm>

#include "store/sqlite_store_internal.h"

namespace flopsight::store {
namespace {

std::int64_t floor_to(std::int64_t value, std::int64_t step) { return value / step * step; }
std::int64_t ceil_to(std::int64_t value, std::int64_t step) { return (value + step - 1) / step * step; }

units::Window whole_steps(units::Window window, std::int64_t step_milliseconds) {
  return {{floor_to(window.start.unix_milliseconds, step_milliseconds)},
          {ceil_to(window.end.unix_milliseconds, step_milliseconds)}};
}

// LIKE with what a user wrote taken literally.
std::string like_pattern(const std::string& part) {
  std::string out = "%";
  for (const char c : part) {
    if (c == '%' || c == '_' || c == '\\') out += '\\';
    out += c;
  }
  return out + "%";
}

}  // namespace

base::Result<std::vector<GpuCell>> SqliteStore::gpu_series(const GpuChoice& choice, units::Window window, units::Seconds step) {
  const std::int64_t step_milliseconds =
      milliseconds(std::max(slot_seconds_, static_cast<std::int64_t>(step.value + 0.5)));
  std::map<std::tuple<std::int64_t, GpuId, JobId>, rollups::Cell> merged;
  FLOPSIGHT_RETURN_IF_ERROR(for_gpu_cells(choice, whole_steps(window, step_milliseconds), [&](const GpuCell& cell) {
    merged[{floor_to(cell.slot_start.unix_milliseconds, step_milliseconds), cell.gpu, cell.job}].merge(cell.cell);
  }));
  std::vector<GpuCell> series;
  series.reserve(merged.size());
  for (const auto& [key, cell] : merged) series.push_back({std::get<1>(key), std::get<2>(key), {std::get<0>(key)}, cell});
  return series;
}

base::Result<std::vector<std::pair<units::Instant, rollups::Cell>>> SqliteStore::fleet_series(
    units::Window window, units::Seconds step, const std::function<bool(JobId)>& wanted) {
  const std::int64_t step_seconds = std::max(slot_seconds_, static_cast<std::int64_t>(step.value + 0.5));
  const std::int64_t step_milliseconds = milliseconds(step_seconds);
  std::int64_t from = slot_seconds_;
  for (const std::int64_t level : {kMiddleSeconds, kCoarseSeconds, kWideSeconds}) {
    if (step_seconds % level == 0) from = level;
  }
  std::map<std::int64_t, rollups::Cell> merged;
  std::vector<rollups::Cell*> targets;
  const auto take = [&](std::int64_t, const JobColumns& columns, units::Window part) {
    targets.assign(columns.size(), nullptr);
    for (std::size_t i = 0; i < columns.size(); ++i) {
      const units::Instant start = columns.slot_start(i);
      if (part.contains(start) && (!wanted || wanted(columns.job(i)))) targets[i] = &merged[floor_to(start.unix_milliseconds, step_milliseconds)];
    }
    columns.add_to(targets);
  };
  window = whole_steps(window, step_milliseconds);
  const units::Instant since{std::clamp(fleet_since_, window.start.unix_milliseconds, window.end.unix_milliseconds)};
  const units::Instant by_jobs_until = wanted ? window.end : since;
  FLOPSIGHT_RETURN_IF_ERROR(for_job_columns(kOfJobs, {window.start, by_jobs_until}, std::nullopt, from, take));
  FLOPSIGHT_RETURN_IF_ERROR(for_job_columns(kOfFleet, {by_jobs_until, window.end}, std::nullopt, from, take));
  std::vector<std::pair<units::Instant, rollups::Cell>> series;
  for (const auto& [start, cell] : merged) series.emplace_back(units::Instant{start}, cell);
  return series;
}

base::Result<std::vector<GpuRecord>> SqliteStore::find_gpus(const GpuLookup& lookup, units::Window window) {
  static_cast<void>(window);  // the names of all GPUs are at hand
  const std::string condition = !lookup.host.empty()   ? "host = ?1"
                                : !lookup.uuid.empty() ? "uuid = ?1"
                                                       : "host LIKE ?1 ESCAPE '\\' OR uuid LIKE ?1 ESCAPE '\\'";
  FLOPSIGHT_ASSIGN_OR_RETURN(Statement select,
                             database_.prepare("SELECT id FROM gpus WHERE " + condition + " ORDER BY id LIMIT ?2"));
  const std::string sought = !lookup.host.empty() ? lookup.host : !lookup.uuid.empty() ? lookup.uuid : like_pattern(lookup.part);
  select.bind_text(1, sought);
  select.bind(2, static_cast<std::int64_t>(lookup.gpus_max));
  return gpus_of(select);
}

}  // namespace flopsight::store
