#include <algorithm>
#include <cmath>
#include <map>

#include "base/median.h"
#include "catalog/metrics.h"
#include "sources/collector.h"
#include "sources/promql_parts.h"
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

base::Result<double> series_count(PrometheusClient& client, const std::string& selected, units::Instant at, units::Seconds look) {
  FLOPSIGHT_ASSIGN_OR_RETURN(const wire::ApiAnswer answer,
                             client.query("count(last_over_time(" + selected + "[" + std::to_string(std::llround(look.value)) + "s]))",
                                          at - units::Seconds(0.001)));
  return answer.series.empty() || answer.series[0].points.empty() ? 0 : answer.series[0].points.back().value;
}

// The label under which most of these series name their GPU, at the first of a few moments at which one does; empty when none does.
base::Result<std::string> gpu_label(PrometheusClient& client, const std::string& names,
                                    const std::string& match, const jobs::LabelRules& rules,
                                    units::Window window) {
  const units::Seconds look(std::clamp(window.length().value, 1.0, 1800.0));
  for (const double back_ratio : {0.0, 0.33, 0.67, 0.98}) {
    const units::Instant at = window.end - window.length() * back_ratio;
    FLOPSIGHT_ASSIGN_OR_RETURN(const double all, series_count(client, selector(names, match), at, look));
    if (all == 0) continue;
    std::string best;
    double most = 0;
    for (const std::string& label : rules.names_of("uuid")) {
      // A UUID that is no mask: labels of this name may hold an index as well.
      const std::string named = (match.empty() ? "" : match + ",") + label + "=~\"" + std::string(kNamingUuids) + "|.{8}-.*[^GPUMI0xX*#?._-].*\"";
      FLOPSIGHT_ASSIGN_OR_RETURN(const double count, series_count(client, selector(names, named), at, look));
      if (count <= most) continue;
      most = count;
      best = label;
      if (most > all / 2) break;
    }
    if (!best.empty()) return best;
  }
  return std::string();
}

// The median step of one series.
std::optional<double> median_step_seconds(const std::vector<std::int64_t>& times) {
  std::vector<double> steps;
  for (std::size_t i = 1; i < times.size(); ++i) {
    if (times[i] > times[i - 1]) steps.push_back(static_cast<double>(times[i] - times[i - 1]) / 1000);
  }
  return base::median(std::move(steps));
}

// The median steps of a few GPUs' series in the half hour before `at`, from their own timestamps: counts over a
// range would take a series that began or ended in it for a slow one.
base::Result<std::vector<double>> steps_before(PrometheusClient& client, const Plan& plan,
                                               const std::string& names, const std::string& match,
                                               units::Instant at, units::Seconds look) {
  const std::string query = "topk(20, max by (" + plan.gpu_label + ") (last_over_time(" +
                            selector(names, match) + "[" + std::to_string(std::llround(look.value)) +
                            "s])))";
  FLOPSIGHT_ASSIGN_OR_RETURN(const wire::ApiAnswer some, client.query(query, at - units::Seconds(0.001)));
  std::string gpus;
  for (const wire::ApiSeries& series : some.series) {
    for (const auto& [label, value] : series.labels) {
      if (label == plan.gpu_label) gpus += (gpus.empty() ? "" : "|") + regex_literal(value);
    }
  }
  if (gpus.empty()) return std::vector<double>();
  std::map<std::vector<std::pair<std::string, std::string>>, std::vector<std::int64_t>> times;
  const std::string matchers =
      match + (match.empty() ? "" : ",") + plan.gpu_label + "=~\"" + gpus + "\"";
  FLOPSIGHT_RETURN_IF_ERROR(client.raw(
      selector(names, matchers), units::Window{at - look, at}, [&](const wire::ApiAnswer& answer) {
        for (const wire::ApiSeries& series : answer.series) {
          for (const wire::ApiPoint& point : series.points) {
            times[series.labels].push_back(point.unix_milliseconds);
          }
        }
        return base::Status();
      }));
  std::vector<double> medians;
  for (const auto& entry : times) {
    if (const auto step = median_step_seconds(entry.second)) medians.push_back(*step);
  }
  return medians;
}

// The scrape interval: the 75th percentile of the series seen, at the end of the window first and, where nothing is
// left there, somewhere before.
base::Result<units::Seconds> scrape_interval(PrometheusClient& client, const Plan& plan,
                                             const std::string& names, const std::string& match,
                                             units::Window window) {
  const units::Seconds look(std::clamp(window.length().value, 1.0, 1800.0));
  for (const double back_ratio : {0.0, 0.25, 0.5, 0.75}) {
    FLOPSIGHT_ASSIGN_OR_RETURN(
        std::vector<double> medians,
        steps_before(client, plan, names, match, window.end - window.length() * back_ratio, look));
    if (medians.empty()) continue;
    const auto pick = medians.begin() + static_cast<std::ptrdiff_t>((medians.size() - 1) * 3 / 4);
    std::nth_element(medians.begin(), pick, medians.end());
    return units::Seconds(*pick);
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
    plan.has_pod_owners = plan.has_pod_owners || name == "kube_pod_owner" || name == "kube_pod_labels";
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
  const Family counters = family_of(Metric::kMmaCyclesActive, plan.gpu_metrics);
  const Family& any = clock.names.empty() ? tensor : clock;
  if (!any.names.empty()) {
    FLOPSIGHT_ASSIGN_OR_RETURN(plan.gpu_label, gpu_label(client, any.names, match, rules, window));
    if (!plan.gpu_label.empty()) {
      FLOPSIGHT_ASSIGN_OR_RETURN(plan.interval, scrape_interval(client, plan, any.names, match, window));
    }
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
