#include "report/reported_mfu_query.h"

#include <map>
#include <set>

#include "base/json.h"
#include "base/median.h"

namespace flopsight::app {
namespace {

// Finer than jobs change.
constexpr const char* kStep = "60s";

std::string expression(const training_logs::ExportedMetrics::Scaled& metric, const jobs::LabelRules& rules, const std::string& range) {
  std::set<std::string> labels;
  for (const jobs::HolderRule& rule : rules.holders()) {
    for (const std::string& name : {rule.job, rule.name_space}) {
      if (!name.empty()) labels.insert(name);
    }
  }
  std::string by;
  for (const std::string& label : labels) by += (by.empty() ? "" : ",") + label;
  const std::string selector = "{__name__=\"" + metric.name + "\"}";
  return "quantile_over_time(0.5, (quantile by (" + by + ") (0.5, (" + selector + " > 0) <= " +
         base::json::number_text(1 / metric.base_unit_scale) + "))[" + range + ":" + kStep + "])";
}

}  // namespace

void ask_reported_mfu(sources::PrometheusClient& client, const ReportSettings& settings, units::Window window, SourceResult& out) {
  const auto metrics = settings.metrics.named("mfu");
  if (metrics.empty()) return;
  std::map<std::string, std::pair<samples::Holder, std::vector<double>>> found;
  for (const auto& metric : metrics) {
    const base::Status asked = client.query_halved(
        window, [&](const std::string& range) { return expression(metric, settings.rules, range); },
        [&](const wire::ApiAnswer& answer) {
          for (const wire::ApiSeries& series : answer.series) {
            std::vector<jobs::LabelView> labels;
            for (const auto& [name, value] : series.labels) labels.push_back({name, value});
            const samples::Holder holder = settings.rules.apply(labels).holder;
            if (holder.unallocated() || series.points.empty()) continue;
            auto& [kept, values] = found[holder.job + '\0' + holder.name_space];
            kept = holder;
            values.push_back(series.points.back().value * metric.base_unit_scale);
          }
        });
    if (!asked.ok()) out.quality.add("reported_mfu_not_told", asked.error().message);
  }
  for (auto& [key, of] : found) out.reported.push_back({std::move(of.first), *base::median(std::move(of.second))});
}

void keep_reported_mfu(const ReportSettings& settings, sources::Collector& collector) {
  std::set<std::string, std::less<>> names;
  for (const auto& metric : settings.metrics.named("mfu")) names.insert(metric.name);
  collector.keep(std::move(names));
}

void take_reported_mfu(const ReportSettings& settings, const std::optional<units::Window>& window, const sources::Collector& collector,
                       SourceResult& out) {
  for (const auto& metric : settings.metrics.named("mfu")) {
    const auto of_metric = collector.kept().find(metric.name);
    if (of_metric == collector.kept().end()) continue;
    for (const auto& [holder, samples] : of_metric->second) {
      std::vector<double> values;
      for (const auto& [time, raw] : samples) {
        const double mfu = raw * metric.base_unit_scale;
        // As on a server: zero is no measurement, and more than the peak none of an MFU.
        if (mfu > 0 && mfu <= 1 && (!window || window->contains(time))) values.push_back(mfu);
      }
      if (!values.empty()) out.reported.push_back({out.holders.at(holder), *base::median(std::move(values))});
    }
  }
}

void add_reported_mfu(const SourceResult& source, const std::function<samples::Holder(const samples::Holder&)>& group_of,
                      analysis::Report& report) {
  std::map<std::pair<std::string, std::string>, std::vector<double>> by_job;
  for (const SourceResult::ReportedMfu& one : source.reported) {
    const samples::Holder group = group_of(one.holder);
    by_job[{group.job, group.name_space}].push_back(one.mfu_ratio);
  }
  if (by_job.empty() || report.by != analysis::GroupBy::kJob) return;
  std::vector<analysis::MfuPoint> points;
  for (analysis::Group& group : report.groups) {
    const auto at = by_job.find(analysis::job_of(group));
    if (at == by_job.end()) continue;
    group.reported_mfu_ratio = base::median(at->second);
    if (!group.summary.ofu_ratio) continue;
    points.push_back({at->first.first, at->first.second, group.summary.gpu_count, *group.reported_mfu_ratio, *group.summary.ofu_ratio, false});
  }
  if (points.empty()) return;
  report.mfu = analysis::compare_mfu(std::move(points));
  report.assumptions.emplace_back("reported MFU: the median over the window of what trainers exported, beside the OFU of the whole window");
}

}  // namespace flopsight::app
