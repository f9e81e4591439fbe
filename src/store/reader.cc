// Answers that a reader can give out of its others, slowly; one that knows better says so itself.
#include <algorithm>
#include <cctype>

#include "store/store.h"

namespace flopsight::store {
namespace {

bool contains_in_any_case(const std::string& text, const std::string& part) {
  const auto same = [](char a, char b) {
    return std::tolower(static_cast<unsigned char>(a)) == std::tolower(static_cast<unsigned char>(b));
  };
  return std::search(text.begin(), text.end(), part.begin(), part.end(), same) != text.end();
}

// The steps that a window touches.
std::vector<units::Window> steps_of(units::Window window, units::Seconds step) {
  const auto length = static_cast<std::int64_t>(step.value * 1000 + 0.5);
  std::vector<units::Window> steps;
  for (std::int64_t t = window.start.unix_milliseconds / length * length; t < window.end.unix_milliseconds; t += length) {
    steps.push_back({{t}, {t + length}});
  }
  return steps;
}

}  // namespace

bool is_looked_for(const GpuLookup& lookup, const samples::GpuIdentity& gpu) {
  if (!lookup.host.empty()) return gpu.host == lookup.host;
  if (!lookup.uuid.empty()) return gpu.uuid == lookup.uuid;
  return contains_in_any_case(gpu.host, lookup.part) || contains_in_any_case(gpu.uuid, lookup.part);
}

base::Result<std::vector<GpuCell>> Reader::gpu_series(const GpuChoice& choice, units::Window window, units::Seconds step) {
  std::vector<GpuCell> series;
  for (const units::Window& one : steps_of(window, step)) {
    FLOPSIGHT_ASSIGN_OR_RETURN(const std::vector<GpuTotal> totals, gpu_totals(one, choice.job));
    for (const GpuTotal& total : totals) {
      if (choice.gpus && !std::binary_search(choice.gpus->begin(), choice.gpus->end(), total.gpu)) continue;
      series.push_back({total.gpu, total.job, one.start, total.cell});
    }
  }
  return series;
}

base::Result<std::vector<std::pair<units::Instant, rollups::Cell>>> Reader::fleet_series(
    units::Window window, units::Seconds step, const std::function<bool(JobId)>& wanted) {
  std::vector<std::pair<units::Instant, rollups::Cell>> series;
  for (const units::Window& one : steps_of(window, step)) {
    FLOPSIGHT_ASSIGN_OR_RETURN(const std::vector<JobTotal> totals, job_sums(one));
    rollups::Cell sum;
    bool any = false;
    for (const JobTotal& total : totals) {
      if (wanted && !wanted(total.job)) continue;
      sum.merge(total.cell);
      any = true;
    }
    if (any) series.emplace_back(one.start, sum);
  }
  return series;
}

base::Result<std::vector<GpuRecord>> Reader::find_gpus(const GpuLookup& lookup, units::Window window) {
  FLOPSIGHT_ASSIGN_OR_RETURN(const std::vector<GpuTotal> totals, gpu_totals(window, std::nullopt));
  std::vector<GpuId> ids;
  for (const GpuTotal& total : totals) {
    if (ids.empty() || ids.back() != total.gpu) ids.push_back(total.gpu);
  }
  FLOPSIGHT_ASSIGN_OR_RETURN(std::vector<GpuRecord> records, gpus(ids));
  std::erase_if(records, [&](const GpuRecord& record) { return !is_looked_for(lookup, record.identity); });
  if (records.size() > lookup.gpus_max) records.resize(lookup.gpus_max);
  return records;
}

}  // namespace flopsight::store
