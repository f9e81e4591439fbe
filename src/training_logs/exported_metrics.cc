#include "training_logs/exported_metrics.h"

#include <cmath>

#include "base/text.h"
#include "base/yaml.h"
#include "training_logs/figure_internal.h"

namespace flopsight::training_logs {
namespace {

namespace yaml = base::yaml;

base::Error mistake(int line, const std::string& what, base::ErrorCode code = base::ErrorCode::kInvalid) {
  return {code, "line " + std::to_string(line) + ": " + what};
}

}  // namespace

ExportedMetrics ExportedMetrics::builtin() {
  // Megatron-Core's developer guide, "Observability", read 2026-11: gauges at every log interval. The time of a step is a histogram there,
  // from which no step can be read.
  ExportedMetrics out;
  out.metrics_ = {
      {"megatron_training_throughput_tflops", "flops_per_gpu", "TFLOP/s/GPU"},
      {"megatron_training_tokens_per_sec", "tokens", "tokens/s"},
      {"megatron_training_loss", "loss", "number"},
      // Ours, for trainers that want to be read without a file of names.
      {"flopsight_training_mfu_ratio", "mfu", "ratio"},
  };
  return out;
}

base::Result<ExportedMetrics> ExportedMetrics::parse(std::string_view text) {
  FLOPSIGHT_ASSIGN_OR_RETURN(const yaml::Value root, yaml::parse(text));
  const yaml::Value* list = root.find("training-metrics");
  if (list == nullptr || list->kind != yaml::Kind::kList || root.fields.size() != 1) {
    return mistake(1, "expected a list under the key training-metrics, and no other key");
  }
  if (list->items.size() > metrics_max) {
    return mistake(list->line, "more than " + std::to_string(metrics_max) + " metrics", base::ErrorCode::kLimit);
  }
  ExportedMetrics out;
  for (const yaml::Value& entry : list->items) {
    Metric metric;
    if (entry.kind != yaml::Kind::kMap) return mistake(entry.line, "expected a mapping with name, means and unit");
    for (const yaml::Field& field : entry.fields) {
      std::string* into = field.key == "name" ? &metric.name : field.key == "means" ? &metric.means : field.key == "unit" ? &metric.unit : nullptr;
      if (into == nullptr || field.value.kind != yaml::Kind::kScalar) {
        return mistake(field.value.line, "'" + base::printable(field.key, 40) + "': expected name, means or unit, each with a text");
      }
      *into = field.value.text;
    }
    const std::optional<Meaning> meaning = meaning_named(metric.means);
    if (metric.name.find_first_of("\"\\\n") != std::string::npos) {
      return mistake(entry.line, "name: found \"" + base::printable(metric.name, 40) + "\", expected the name of a metric");
    }
    if (metric.name.empty() || !meaning) {
      return mistake(entry.line, "means: found \"" + base::printable(metric.means, 40) + "\", expected " + std::string(kMeaningNames));
    }
    if (dimension_of(*meaning) == Dimension::kNumber) metric.unit = "number";
    const std::optional<Unit> unit = parse_unit(metric.unit);
    if (!unit || unit->dimension != dimension_of(*meaning)) {
      return mistake(entry.line, "unit: found \"" + base::printable(metric.unit, 40) + "\", expected " + std::string(example_unit(*meaning)));
    }
    out.metrics_.push_back(std::move(metric));
  }
  for (Metric& metric : builtin().metrics_) out.metrics_.push_back(std::move(metric));
  return out;
}

const ExportedMetrics::Metric* ExportedMetrics::find(std::string_view name) const {
  std::string plain(name);
  for (char& c : plain) {
    if (c == '.') c = '_';  // OpenTelemetry's own spelling, which newer servers keep
  }
  for (const Metric& metric : metrics_) {
    if (metric.name == name || metric.name == plain) return &metric;
  }
  return nullptr;
}

bool ExportedMetrics::known(std::string_view name) const { return find(name) != nullptr; }

std::vector<ExportedMetrics::Scaled> ExportedMetrics::named(std::string_view means) const {
  std::vector<Scaled> out;
  for (const Metric& metric : metrics_) {
    const std::optional<Unit> unit = parse_unit(metric.unit);
    if (metric.means == means && unit) out.push_back({metric.name, unit->base_unit_scale});
  }
  return out;
}

std::optional<Step> ExportedMetrics::read(std::string_view name, double value, units::Instant time) const {
  const Metric* metric = find(name);
  if (metric == nullptr || !std::isfinite(value)) return std::nullopt;
  const std::optional<Meaning> meaning = meaning_named(metric->means);
  const std::optional<Unit> unit = parse_unit(metric->unit);
  if (!meaning || !unit) return std::nullopt;
  const bool rate = dimension_of(*meaning) != Dimension::kNumber;
  if (rate && value <= 0) return std::nullopt;
  Step step;
  step.time = time;
  if (!put(step, *meaning, value, *unit)) return std::nullopt;
  return step;
}

}  // namespace flopsight::training_logs
