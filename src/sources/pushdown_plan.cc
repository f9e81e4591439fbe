#include <algorithm>
#include <cmath>
#include <map>

#include "catalog/metrics.h"
#include "sources/collector.h"
#include "sources/pushdown.h"

namespace flopsight::sources {
namespace {

using catalog::Metric;

// Names of one metric on this server that share one scale, as a regular expression.
struct Family {
  std::string names;
  double scale = 1;
  bool mixed_scales = false;
  bool uncalibrated = false;
  bool conditional = false;  // depends on another label
};

Family family_of(Metric metric, const std::vector<std::string>& present) {
  Family family;
  for (const catalog::MetricAlias& alias : catalog::metric_aliases()) {
    if (alias.metric != metric ||
        std::find(present.begin(), present.end(), alias.raw_name) == present.end()) {
      continue;
    }
    if (family.names.empty()) {
      family.scale = alias.scale;
    } else if (family.scale != alias.scale) {
      family.mixed_scales = true;
    }
    family.uncalibrated = family.uncalibrated || !alias.calibrated;
    family.conditional = family.conditional || !alias.label_name.empty();
    family.names += (family.names.empty() ? "" : "|") + std::string(alias.raw_name);
  }
  return family;
}

std::string selector(const std::string& names, const std::string& match) {
  return "{__name__=~\"" + names + "\"" + (match.empty() ? "" : "," + match) + "}";
}

// The label under which these series name their GPU; empty when they do not.
base::Result<std::string> gpu_label(PrometheusClient& client, const std::string& names,
                                    const std::string& match, const jobs::LabelRules& rules,
                                    units::Window window) {
  const std::string query = "topk(3, last_over_time(" + selector(names, match) + "[" +
                            std::to_string(std::llround(window.length().value)) + "s]))";
  FLOPSIGHT_ASSIGN_OR_RETURN(const wire::ApiAnswer answer, client.query(query, window.end - units::Seconds(0.001)));
  for (const wire::ApiSeries& series : answer.series) {
    for (const std::string& name : rules.names_of("uuid")) {
      for (const auto& [label, value] : series.labels) {
        if (label == name && (value.starts_with("GPU-") || value.starts_with("MIG-") ||
                              (value.size() == 36 && value[8] == '-'))) {
          return label;
        }
      }
    }
  }
  return std::string();
}

// The scrape interval near the end of the window: the 75th percentile over series of window / count.
base::Result<units::Seconds> scrape_interval(PrometheusClient& client, const std::string& names,
                                             const std::string& match, units::Window window) {
  const double look_seconds = std::min(window.length().value, 1800.0);
  const std::string query = "quantile(0.75, " + std::to_string(std::llround(look_seconds)) +
                            " / count_over_time(" + selector(names, match) + "[" +
                            std::to_string(std::llround(look_seconds)) + "s]))";
  // At the end first; where nothing is left there, somewhere before.
  for (const double back_ratio : {0.0, 0.25, 0.5, 0.75}) {
    const units::Instant at =
        window.end - units::Seconds(0.001 + back_ratio * window.length().value);
    FLOPSIGHT_ASSIGN_OR_RETURN(const wire::ApiAnswer answer, client.query(query, at));
    if (answer.series.empty() || answer.series[0].points.empty()) continue;
    const double seconds = answer.series[0].points.back().value;
    if (std::isfinite(seconds) && seconds > 0) {
      // Whole seconds: counts jitter by one.
      return units::Seconds(std::max(1.0, std::round(seconds)));
    }
  }
  return units::Seconds(60);
}

}  // namespace

std::string regex_literal(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '\\' || c == '"') {
      out += "\\\\";
      out += c == '"' ? "\"" : "\\\\";
      continue;
    }
    if (std::string_view(".+*?()[]{}|^$").find(c) != std::string_view::npos) out += "\\\\";
    out += c;
  }
  return out;
}

std::string raw_selector(const Plan& plan, const std::string& match, const std::vector<std::string>& gpus) {
  std::string names, values;
  for (const std::string& name : plan.gpu_metrics) names += (names.empty() ? "" : "|") + name;
  for (const std::string& gpu : gpus) values += (values.empty() ? "" : "|") + regex_literal(gpu);
  std::string matchers = match;
  if (!gpus.empty()) {
    matchers += (matchers.empty() ? "" : ",") + plan.gpu_label + "=~\"" + values + "\"";
  }
  return selector(names, matchers);
}

base::Result<Plan> make_plan(PrometheusClient& client, const std::string& match,
                             const jobs::LabelRules& rules, units::Window window) {
  Plan plan;
  FLOPSIGHT_ASSIGN_OR_RETURN(const std::vector<std::string> names, client.label_values("__name__", window));
  for (const std::string& name : names) {
    plan.simulated = plan.simulated || name == kSimulatedMetric;
    bool known = false;
    for (const catalog::MetricAlias& alias : catalog::metric_aliases()) known = known || alias.raw_name == name;
    if (known) plan.gpu_metrics.push_back(name);
  }
  if (plan.gpu_metrics.empty()) {
    return base::Error{base::ErrorCode::kNotFound,
                       "no metric of a GPU exporter between " + units::to_rfc3339(window.start) + " and " +
                           units::to_rfc3339(window.end) +
                           ", expected e.g. DCGM_FI_DEV_SM_CLOCK (see flopsight docs metrics)"};
  }
  const Family tensor = family_of(Metric::kTensorActive, plan.gpu_metrics);
  const Family clock = family_of(Metric::kSmClock, plan.gpu_metrics);
  const Family clock_max = family_of(Metric::kSmClockMax, plan.gpu_metrics);
  plan.tensor_names = tensor.names;
  plan.tensor_scale = tensor.scale;
  plan.clock_names = clock.names;
  plan.clock_scale = clock.scale;
  if (!clock_max.mixed_scales) plan.clock_max_names = clock_max.names;
  plan.clock_max_scale = clock_max.scale;
  for (const Metric metric : {Metric::kTemperature, Metric::kPower, Metric::kGpuUtil}) {
    if (plan.presence_names.empty()) plan.presence_names = family_of(metric, plan.gpu_metrics).names;
  }
  FLOPSIGHT_ASSIGN_OR_RETURN(
      plan.interval, scrape_interval(client, clock.names.empty() ? plan.gpu_metrics.front() : clock.names,
                                     match, window));
  const Family counters = family_of(Metric::kMmaCyclesActive, plan.gpu_metrics);
  const Family& any = clock.names.empty() ? tensor : clock;
  if (!any.names.empty()) {
    FLOPSIGHT_ASSIGN_OR_RETURN(plan.gpu_label, gpu_label(client, any.names, match, rules, window));
  }
  if (tensor.names.empty() || clock.names.empty()) {
    plan.reason = tensor.names.empty() ? "no tensor activity on the server" : "no SM clock on the server";
  } else if (!counters.names.empty()) {
    plan.reason = "cycle counters are scraped, whose differences need raw samples";
  } else if (tensor.mixed_scales || clock.mixed_scales || tensor.conditional || clock.conditional) {
    plan.reason = "exporters with different units are mixed";
  } else if (tensor.uncalibrated || clock.uncalibrated) {
    plan.reason = "uncalibrated tensor activity";
  } else {
    FLOPSIGHT_ASSIGN_OR_RETURN(const std::string label, gpu_label(client, tensor.names, match, rules, window));
    if (label.empty() || label != plan.gpu_label) {
      plan.reason = "tensor activity and clock do not name the GPU by the same label";
    } else {
      plan.can_push_down = true;
    }
  }
  return plan;
}

}  // namespace flopsight::sources
