#include "sources/contradiction_query.h"

#include <algorithm>
#include <cmath>

#include "catalog/metrics.h"
#include "sources/promql_parts.h"

namespace flopsight::sources {
namespace {

using catalog::Metric;

std::string either(const std::string& a, const std::string& b) { return a.empty() || b.empty() ? a + b : a + " or " + b; }

class Expressions {
 public:
  Expressions(const Plan& plan, const PushdownOptions& options) : plan_(plan), reading_{options.match, sample_hold(plan.interval)} {}

  // Names that the server has, by their scale.
  std::map<double, std::string> names_of(Metric metric) const {
    std::map<double, std::string> out;
    for (const catalog::MetricAlias& alias : catalog::metric_aliases()) {
      const bool is_there = std::find(plan_.gpu_metrics.begin(), plan_.gpu_metrics.end(), alias.raw_name) != plan_.gpu_metrics.end();
      if (alias.metric != metric || !alias.label_name.empty() || !is_there) continue;
      std::string& names = out[alias.scale];
      names += (names.empty() ? "" : "|") + std::string(alias.raw_name);
    }
    return out;
  }
  // In our unit; empty when the server has none.
  std::string quantity(const char* aggregation, Metric metric) const {
    std::string out;
    for (const auto& [scale, names] : names_of(metric)) {
      out = either(out, held_in_range(by(aggregation), {metric, names, scale}, reading_) + (scale == 1 ? "" : " * " + promql_number(scale)));
    }
    return out.empty() ? out : "(" + out + ")";
  }
  // Where one of these is exactly 0, in whatever unit.
  std::string zero(std::initializer_list<Metric> metrics) const {
    std::string out;
    for (const Metric metric : metrics) {
      for (const auto& [scale, names] : names_of(metric)) out += (out.empty() ? "" : "|") + names;
    }
    return out.empty() ? out : "(" + held(by("min"), out, reading_) + " == 0)";
  }
  std::string on() const { return " on(" + plan_.gpu_label + ") "; }

 private:
  std::string by(const char* aggregation) const { return std::string(aggregation) + " by (" + plan_.gpu_label + ")"; }

  const Plan& plan_;
  Reading reading_;
};

}  // namespace

base::Result<Suspects> ask_contradictions(PrometheusClient& client, const Plan& plan, const PushdownOptions& options,
                                          const ContradictionLimits& limits) {
  const Expressions e(plan, options);
  const std::string step = std::to_string(std::llround(coarse_step(options.window, options.step).value * 1000)) + "ms";
  Suspects out;
  // The largest value of `inside` for each GPU that has any.
  const auto ask = [&](const std::string& inside, const auto& take) {
    return client.query_halved(
        options.window, [&](const std::string& range) { return "max_over_time((" + inside + ")[" + range + ":" + step + "])"; },
        [&](const wire::ApiAnswer& answer) {
          for (const wire::ApiSeries& series : answer.series) {
            for (const auto& [label, value] : series.labels) {
              if (label == plan.gpu_label && !series.points.empty()) take(samples::normalized_uuid(value), series.points.back().value);
            }
          }
        });
  };
  const auto suspect = [&](const std::string& uuid, double) { out.gpus.insert(uuid); };
  const std::string utilization = e.quantity("max", Metric::kGpuUtil), power = e.quantity("max", Metric::kPower),
                    limit = e.quantity("min", Metric::kPowerLimit), engine = e.zero({Metric::kGraphicsEngineActive}),
                    activity = e.zero({Metric::kGraphicsEngineActive, Metric::kSmActive});
  if (!utilization.empty() && !engine.empty()) {
    FLOPSIGHT_RETURN_IF_ERROR(ask(utilization + " >= " + promql_number(limits.utilization_ratio_min) + " and" + e.on() + engine, suspect));
  }
  if (power.empty() || activity.empty()) return out;
  FLOPSIGHT_RETURN_IF_ERROR(ask(power + " and" + e.on() + activity, [&](const std::string& uuid, double watts) {
    units::Watts& most = out.power_while_idle.try_emplace(uuid, units::Watts(0)).first->second;
    most = std::max(most, units::Watts(watts));
  }));
  if (limit.empty()) return out;
  FLOPSIGHT_RETURN_IF_ERROR(
      ask(power + " >" + e.on() + "(" + promql_number(limits.power_to_limit_ratio_min) + " * " + limit + ") and" + e.on() + activity, suspect));
  return out;
}

}  // namespace flopsight::sources
