#include "analysis/report.h"

#include <algorithm>
#include <cstdio>
#include <map>

#include "analysis/tally_internal.h"
#include "rollups/screen.h"

namespace flopsight::analysis {
namespace {

using Key = std::vector<std::pair<std::string, std::optional<std::string>>>;

constexpr std::pair<GroupBy, std::string_view> kGroupBys[] = {
    {GroupBy::kJob, "job"},   {GroupBy::kUser, "user"}, {GroupBy::kTeam, "team"},
    {GroupBy::kNamespace, "namespace"}, {GroupBy::kHost, "host"}, {GroupBy::kGpu, "gpu"},
    {GroupBy::kModel, "model"}};

std::optional<std::string> known(const std::string& text) {
  if (text.empty()) return std::nullopt;
  return text;
}

// The key of the group that a portion of a GPU falls into.
Key key_of(GroupBy by, const rollups::GpuTime& gpu, const samples::Holder* holder) {
  const samples::Holder nobody;
  const samples::Holder& h = holder != nullptr ? *holder : nobody;
  switch (by) {
    case GroupBy::kJob:
      return {{"job", known(h.job)}, {"namespace", known(h.name_space)}, {"user", known(h.user)},
              {"team", known(h.team)}};
    case GroupBy::kUser: return {{"user", known(h.user)}};
    case GroupBy::kTeam: return {{"team", known(h.team)}};
    case GroupBy::kNamespace: return {{"namespace", known(h.name_space)}};
    case GroupBy::kHost: return {{"host", known(gpu.gpu.host)}};
    case GroupBy::kGpu:
      return {{"gpu", known(gpu.gpu.uuid.empty() ? rollups::gpu_label(gpu.gpu) : gpu.gpu.uuid)},
              {"mig_instance", known(gpu.gpu.mig_instance)},
              {"host", known(gpu.gpu.host)},
              {"index", known(gpu.gpu.index)}};
    case GroupBy::kModel:
      return {{"model", gpu.device != nullptr ? known(gpu.device->model) : std::nullopt},
              {"model_raw", gpu.device != nullptr ? std::nullopt : known(gpu.gpu.model_raw)}};
  }
  return {};
}

void add_gpu(const rollups::GpuTime& gpu, GroupBy by, const jobs::HolderTable& holders,
             const ClockVariance& variance, const Prices& prices, Tally& fleet,
             std::map<Key, Tally>& groups) {
  std::map<Key, std::vector<const rollups::Portion*>> mine;
  std::vector<const rollups::Portion*> all;
  for (const rollups::Portion& portion : gpu.portions) {
    const samples::Holder* holder = portion.holder ? &holders.at(*portion.holder) : nullptr;
    mine[key_of(by, gpu, holder)].push_back(&portion);
    all.push_back(&portion);
  }
  fleet.add(gpu, all, variance, prices);
  for (const auto& [key, portions] : mine) groups[key].add(gpu, portions, variance, prices);
}

void add_once(std::vector<std::string>& list, const std::string& text) {
  if (std::find(list.begin(), list.end(), text) == list.end()) list.push_back(text);
}

GpuRow gpu_row(const rollups::GpuTime& gpu, const jobs::HolderTable& holders) {
  GpuRow row;
  row.gpu = gpu.gpu;
  row.model = gpu.device != nullptr ? gpu.device->model : "";
  row.shared_by = gpu.holders_at_once_max;
  for (const rollups::Portion& portion : gpu.portions) {
    if (!portion.holder) continue;
    const samples::Holder& holder = holders.at(*portion.holder);
    add_once(row.jobs, holder.job);
    add_once(row.attributed_by, holder.rule + (portion.bridged_seconds > 0 ? " (label gaps bridged)" : ""));
  }
  if (gpu.reference) {
    row.reference_clock_hertz = gpu.reference->clock.value;
    row.reference_clock_source = model::reference_source_name(gpu.reference->source);
  }
  // A MIG instance's own ratios do not depend on its share of the GPU.
  Tally tally;
  std::vector<const rollups::Portion*> all;
  for (const rollups::Portion& portion : gpu.portions) all.push_back(&portion);
  const rollups::Fleet alone;
  tally.add(gpu, all, ClockVariance(alone), Prices());
  const Summary s = tally.summary(false);
  row.tensor_active_ratio = s.tensor_active_ratio;
  row.sm_clock_hertz = s.sm_clock_hertz_mean;
  row.ofu_ratio = s.ofu_ratio;
  row.coverage_ratio = s.coverage_ratio;
  if (!s.ofu_ratio) row.absent_reason = tally.absent_reason();
  return row;
}

std::string megahertz_text(double hertz) {
  char text[32];
  std::snprintf(text, sizeof text, "%.0f MHz", hertz / 1e6);
  return text;
}

// One line per model and reference clock.
void add_clock_assumptions(const rollups::Fleet& fleet, std::vector<std::string>& out) {
  std::vector<std::string> lines;
  for (const rollups::GpuTime& gpu : fleet.gpus) {
    if (!gpu.reference || !(gpu.sum().measured_seconds > 0)) continue;
    const std::string model = gpu.device != nullptr ? gpu.device->model : gpu.gpu.model_raw;
    std::string line = model + ": reference clock " + megahertz_text(gpu.reference->clock.value);
    switch (gpu.reference->source) {
      case model::ReferenceSource::kOverride: line += ", given by the user"; break;
      case model::ReferenceSource::kCatalogTensorPeak:
        line += ", at which its tensor peak is quoted (catalogue" +
                std::string(gpu.device->from_user ? " row of the user" : "") + ", confidence " +
                (gpu.device->confidence.empty() ? "not stated" : gpu.device->confidence) + ")";
        break;
      case model::ReferenceSource::kScrapedNvmlMax:
        line += ", the maximum SM clock that was scraped; not verified to be the tensor peak's";
        break;
      case model::ReferenceSource::kCatalogNvmlMax:
        line += ", the catalogue's maximum SM clock; not verified to be the tensor peak's";
        break;
    }
    add_once(lines, line);
  }
  std::sort(lines.begin(), lines.end());
  out.insert(out.end(), lines.begin(), lines.end());
}

std::vector<std::string> assumptions_of(const rollups::Fleet& fleet, const jobs::HolderTable& holders,
                                        const ReportOptions& options) {
  std::vector<std::string> out = options.assumptions;
  add_clock_assumptions(fleet, out);
  bool mig = false, shared = false, counters = false;
  std::map<std::string, std::uint64_t> rules;
  for (const rollups::GpuTime& gpu : fleet.gpus) {
    mig = mig || !gpu.gpu.mig_instance.empty();
    shared = shared || gpu.holders_at_once_max > 1;
    counters = counters || gpu.from_cycle_counters;
    std::vector<std::string> mine;
    for (const rollups::Portion& portion : gpu.portions) {
      if (portion.holder) add_once(mine, holders.at(*portion.holder).rule);
    }
    if (mine.empty()) mine.emplace_back("nothing (no job)");
    for (const std::string& rule : mine) rules[rule] += gpu.is_many ? gpu.members.size() : 1;
  }
  std::string attributed = "GPUs attributed by:";
  for (const auto& [rule, count] : rules) attributed += " " + rule + " " + std::to_string(count) + ",";
  if (!rules.empty()) out.push_back(attributed.substr(0, attributed.size() - 1));
  std::map<std::string, std::uint64_t> drivers;
  for (const rollups::GpuTime& gpu : fleet.gpus) {
    if (!gpu.gpu.driver_version.empty()) ++drivers[gpu.gpu.driver_version];
  }
  std::string driver_text = "driver versions:";
  for (const auto& [version, count] : drivers) driver_text += " " + version + " on " + std::to_string(count) + " GPUs,";
  if (!drivers.empty()) out.push_back(driver_text.substr(0, driver_text.size() - 1));
  if (!fleet.has_times) {
    out.emplace_back("no times in the input: every ratio is of that instant, hours and dollars are unknown");
  } else {
    out.emplace_back("a sample holds until the next one; after more than 2.5 of its own steps it is a gap, "
                     "which is unmeasured");
  }
  if (mig) out.emplace_back("a MIG instance of n slices counts as n/7 of a GPU (n/4 on A30 and GB202)");
  if (shared) out.emplace_back("a GPU shared by n jobs was split into n equal parts; the band says how far "
                               "that can be wrong");
  if (counters) out.emplace_back("OFU from cycle counters where both ends of a step have them");
  out.emplace_back("OFU needs no number format; no FLOP rate is shown, as the format is not known");
  return out;
}

void add_route_comparison(const rollups::Fleet& fleet, samples::QualityLog& quality) {
  std::uint64_t count = 0;
  double by_counter = 0, by_gauge = 0;
  for (const rollups::GpuTime& gpu : fleet.gpus) {
    count += gpu.both_routes_count;
    by_counter += gpu.counter_route_ratio_sum;
    by_gauge += gpu.gauge_route_ratio_sum;
  }
  if (count == 0) return;
  const double n = static_cast<double>(count);
  char text[96];
  std::snprintf(text, sizeof text, "mean OFU %.4f from cycle counters, %.4f from activity times clock",
                by_counter / n, by_gauge / n);
  quality.add("counter_route_difference", text, count);
}

std::vector<std::pair<std::string, double>> absent_ratios(const rollups::Totals& totals) {
  std::vector<std::pair<std::string, double>> out;
  for (std::size_t i = 0; i < samples::kAbsentReasonCount; ++i) {
    if (totals.absent_seconds[i] > 1e-9 * totals.allocated_seconds) {
      out.emplace_back(samples::absent_reason_name(static_cast<samples::AbsentReason>(i)),
                       totals.absent_seconds[i] / totals.allocated_seconds);
    }
  }
  std::stable_sort(out.begin(), out.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
  return out;
}

}  // namespace

std::optional<GroupBy> parse_group_by(std::string_view text) {
  for (const auto& [by, name] : kGroupBys) {
    if (name == text) return by;
  }
  return std::nullopt;
}

std::string_view group_by_name(GroupBy by) {
  for (const auto& [value, name] : kGroupBys) {
    if (value == by) return name;
  }
  return "";
}

Report build_report(const rollups::Fleet& fleet, const jobs::HolderTable& holders,
                    samples::QualityLog quality, const ReportOptions& options) {
  Report report;
  if (fleet.has_times) report.window = fleet.window;
  report.source = options.source;
  if (quality.count("simulated") > 0) report.source = "SIMULATED fleet, " + report.source;
  report.by = options.by;
  const ClockVariance variance(fleet);
  Tally all;
  std::map<Key, Tally> groups;
  for (const auto* list : {&fleet.gpus, &fleet.rests}) {
    for (const rollups::GpuTime& gpu : *list) {
      add_gpu(gpu, options.by, holders, variance, options.prices, all, groups);
      if (!options.prices.empty() &&
          !options.prices.of(gpu.device != nullptr ? gpu.device->model : "", gpu.gpu.model_raw)) {
        quality.add("price_unknown", gpu.device != nullptr          ? gpu.device->model
                                     : !gpu.gpu.model_raw.empty() ? gpu.gpu.model_raw
                                                                  : "no model name: " + rollups::gpu_label(gpu.gpu));
      }
    }
  }
  report.fleet = all.summary(fleet.has_times);
  report.fleet_waterfall = all.waterfall();
  report.fleet_absent_ratios = absent_ratios(all.totals());
  if (all.band_from_limits()) quality.add("band_from_clock_limits", "fleet");
  for (const auto& [key, tally] : groups) {
    const rollups::Totals& t = tally.totals();
    report.groups.push_back({key, tally.summary(fleet.has_times), tally.waterfall(),
                             tally.absent_reason(), t.measured_seconds - t.delivered_seconds});
  }
  std::stable_sort(report.groups.begin(), report.groups.end(), [](const Group& a, const Group& b) {
    return a.weight_seconds > b.weight_seconds;
  });
  if (options.top && report.groups.size() > *options.top) {
    report.groups_omitted_count = report.groups.size() - *options.top;
    report.groups.resize(*options.top);
  }
  for (const rollups::GpuTime& gpu : fleet.gpus) {
    if (!gpu.is_many) report.gpus.push_back(gpu_row(gpu, holders));
  }
  add_route_comparison(fleet, quality);
  report.quality = quality.entries();
  report.assumptions = assumptions_of(fleet, holders, options);
  return report;
}

}  // namespace flopsight::analysis
