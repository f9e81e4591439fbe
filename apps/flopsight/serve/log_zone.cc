#include "serve/log_zone.h"

#include <algorithm>
#include <cmath>

#include "base/json.h"
#include "training_logs/zone_check.h"

namespace flopsight::app {
namespace {

constexpr units::Seconds kLookBack{3 * 86'400.0};
constexpr units::Seconds kZones{14 * 3600.0};
constexpr units::Seconds kMinute{60};

// What the job's GPUs did in each minute that is known.
base::Result<std::vector<training_logs::ActivitySample>> activity_of(store::Reader& reader, std::span<const store::JobId> jobs,
                                                                     units::Window window) {
  std::vector<training_logs::ActivitySample> out;
  for (const store::JobId job : jobs) {
    FLOPSIGHT_ASSIGN_OR_RETURN(const std::vector<store::JobCell> cells, reader.job_sum_series(job, window, kMinute));
    for (const store::JobCell& cell : cells) {
      const double measured = static_cast<double>(cell.cell[rollups::CellField::kMeasured]);
      if (measured <= 0) continue;
      out.push_back({cell.slot_start, static_cast<double>(cell.cell[rollups::CellField::kDelivered]) / measured});
    }
  }
  return out;
}

// "-1 h", "+5.5 h".
std::string hours_text(std::int64_t seconds) {
  return (seconds > 0 ? "+" : "") + base::json::number_text(static_cast<double>(seconds) / 3600) + " h";
}

std::string two_decimals(double value) { return base::json::number_text(std::round(value * 100) / 100); }

std::string finding(const std::string& source, const training_logs::ZoneCheck& check) {
  std::string out = source + ": " + hours_text(check.offset_seconds) + " fits better, with a correlation of " + two_decimals(check.correlation_ratio);
  if (check.unshifted_correlation_ratio) out += " instead of " + two_decimals(*check.unshifted_correlation_ratio);
  out += " over " + std::to_string(check.minutes) + " minutes";
  if (check.minutes_outside > 0) out += "; " + std::to_string(check.minutes_outside) + " minutes with steps in which the job had no GPUs";
  return out;
}

}  // namespace

base::Status check_log_zones(store::Reader& reader, JobService& service, std::span<const store::JobId> jobs,
                             const analysis::JobAnswer& answer, samples::QualityLog& quality) {
  const units::Window life{std::max(answer.first, answer.last - kLookBack), answer.last};
  if (jobs.empty() || life.end <= life.start) return {};
  std::vector<samples::Holder> holders = {answer.holder};
  for (const store::JobId job : jobs) {
    samples::Holder holder = reader.holder(job);
    if (holder.job != answer.holder.job || holder.name_space != answer.holder.name_space) holders.push_back(std::move(holder));
  }
  // In a wrong zone the job may report nothing in the window that is asked about.
  FLOPSIGHT_ASSIGN_OR_RETURN(auto sources, service.sources_of(holders, {life.start - kZones, life.end + kZones}));
  std::optional<std::vector<training_logs::ActivitySample>> activity;
  for (auto& [name, source] : sources) {
    if (!name.starts_with("log ")) continue;
    std::vector<training_logs::Step>& steps = source.steps;
    if (std::none_of(steps.begin(), steps.end(), [](const training_logs::Step& step) { return step.time.has_value(); })) {
      quality.add("reported_without_times", name);
    }
    std::erase_if(steps, [](const training_logs::Step& step) { return !step.is_zone_assumed; });
    if (steps.empty()) continue;
    std::stable_sort(steps.begin(), steps.end(), [](const auto& a, const auto& b) { return a.time < b.time; });
    if (!activity) {
      FLOPSIGHT_ASSIGN_OR_RETURN(activity, activity_of(reader, jobs, life));
    }
    const auto check = training_logs::check_zone(steps, *activity, life);
    if (check && check->is_doubtful) quality.add("log_zone_doubtful", finding(name, *check));
  }
  return {};
}

}  // namespace flopsight::app
