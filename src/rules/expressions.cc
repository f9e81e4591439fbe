#include <algorithm>
#include <cmath>
#include <map>

#include "base/text.h"
#include "rules/expressions_internal.h"

namespace flopsight::rules {
namespace {

// Values of a process or under a further label do not describe a GPU, and AMD's activity is tied to FLOPs by nothing. Of
// utilization the largest is asked for, which is at most the GPU's.
bool is_usable(const catalog::MetricAlias& alias) {
  const bool is_of_gpu = !alias.per_process || alias.metric == catalog::Metric::kGpuUtil;
  return alias.calibrated && is_of_gpu && alias.label_name.empty() && !alias.raw_name.starts_with("slurm_job_");
}

}  // namespace

Labels::Labels(const Options& options) : gpu(options.gpu_label) {
  const auto first = [&](std::string_view field, const char* otherwise) {
    const auto names = options.labels.names_of(field);
    return names.empty() ? std::string(otherwise) : names.front();
  };
  instance = first("mig_instance", "GPU_I_ID");
  profile = first("mig_profile", "GPU_I_PROFILE");
  unit = gpu + ", " + instance;
  job = "flopsight_job, flopsight_namespace";
  for (const std::string& name : options.group_by) job += ", " + name;
}

sources::Reading reading_of(const Options& options) {
  // A GPU without a name, or whose name somebody masked, would be one with all others like it.
  std::string match = options.gpu_label + "!~\"" + std::string(sources::kMaskedUuids) + "\"";
  if (!options.match.empty()) match += "," + options.match;
  return {match, sources::sample_hold(options.scrape_interval)};
}

std::string quantity(const Options& options, catalog::Metric metric, const std::string& aggregation, const std::string& match) {
  sources::Reading reading = reading_of(options);
  if (!match.empty()) reading.match += "," + match;
  std::map<double, std::vector<std::string>, std::greater<>> by_scale;
  for (const catalog::MetricAlias& alias : catalog::metric_aliases()) {
    if (alias.metric == metric && is_usable(alias)) by_scale[alias.scale].emplace_back(alias.raw_name);
  }
  std::vector<std::string> terms;
  for (auto& [scale, names] : by_scale) {
    std::sort(names.begin(), names.end());
    std::string term = sources::held_in_range(aggregation, {metric, base::joined(names, "|"), scale}, reading);
    if (scale != 1) term += " * " + sources::promql_number(scale);
    terms.push_back(std::move(term));
  }
  return base::joined(terms, "\nor\n");
}

std::string all_names(const std::vector<catalog::Metric>& metrics) {
  std::vector<std::string> names;
  for (const catalog::MetricAlias& alias : catalog::metric_aliases()) {
    if (std::find(metrics.begin(), metrics.end(), alias.metric) != metrics.end() && is_usable(alias)) names.emplace_back(alias.raw_name);
  }
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return base::joined(names, "|");
}

std::string duration(units::Seconds length) {
  const auto milliseconds = std::llround(length.value * 1000);
  if (milliseconds % 1000 != 0) return std::to_string(milliseconds) + "ms";
  if (milliseconds % 60'000 != 0 || milliseconds == 0) return std::to_string(milliseconds / 1000) + "s";
  return std::to_string(milliseconds / 60'000) + "m";
}

bool is_label_name(std::string_view text) {
  const auto is_letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; };
  return !text.empty() && is_letter(text.front()) &&
         std::all_of(text.begin(), text.end(), [&](char c) { return is_letter(c) || (c >= '0' && c <= '9'); });
}

}  // namespace flopsight::rules
