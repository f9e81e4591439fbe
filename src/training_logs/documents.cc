#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>

#include "base/json.h"
#include "base/text.h"
#include "base/yaml.h"
#include "training_logs/documents_internal.h"

namespace flopsight::training_logs {
namespace {

namespace json = base::json;
namespace yaml = base::yaml;

constexpr std::string_view kMllog = ":::MLLOG ";

struct Key {
  std::string_view printed;
  std::string_view ours;
};
constexpr Key kMllogSettings[] = {
    {"global_batch_size", "global_batch_size"},
    {"max_sequence_length", "sequence_length"},
    {"gradient_accumulation_steps", "gradient_accumulation"},
    {"submission_benchmark", "benchmark"},
    {"submission_platform", "platform"},
    {"submission_org", "organization"},
};

// MLPerf's "tracked_stats", free in their names; those that submissions use for speed.
constexpr Field kStats[] = {
    {"train_step_time", Meaning::kStepTime, "s"},
    {"reduced_train_loss", Meaning::kLoss, "number"},
    {"train_loss", Meaning::kLoss, "number"},
};

std::optional<std::int64_t> whole(const json::Value* value) {
  const double* number = value == nullptr ? nullptr : value->as_number();
  if (number == nullptr || !(*number >= 0) || *number > 9e15) return std::nullopt;
  return static_cast<std::int64_t>(*number);
}

// What a throughput counts is the submission's own affair: samples in some, tokens in others. It is samples where the record
// itself shows it: throughput times the time of a step is the global batch.
void read_throughput(const double* per_second, const Settings& settings, Extract& extract) {
  extract.average = true;
  const auto batch = std::find_if(settings.begin(), settings.end(), [](const auto& s) { return s.first == "global_batch_size"; });
  const std::optional<double> samples = batch == settings.end() ? std::nullopt : base::parse_number(batch->second);
  const std::optional<double>& seconds = extract.step.step_seconds;
  if (per_second != nullptr && samples && seconds && std::abs(*per_second * *seconds - *samples) <= 0.01 * *samples) {
    extract.step.samples_per_second = *per_second;
    ++extract.figures;
    return;
  }
  ++extract.unknown_unit;
  extract.about = "throughput";
}

std::string scalar_text(const json::Value& value) {
  if (const std::string* text = value.as_string()) return *text;
  if (const double* number = value.as_number()) return json::number_text(*number);
  return {};
}

constexpr Field kGolden[] = {
    {"iteration-time", Meaning::kStepTime, "s"},
    {"iteration_timing_avg", Meaning::kStepTime, "s"},
    {"lm loss", Meaning::kLoss, "number"},
};

void golden_value(std::map<std::int64_t, Step>& steps, const Field& field, std::int64_t number, const json::Value& value) {
  const double* figure = value.as_number();
  if (figure == nullptr) return;  // "nan" where a step was not measured
  Step& step = steps[number];
  step.step = number;
  (void)put(step, field.meaning, *figure, *parse_unit(field.unit));
}

// The metrics of a card, each with the factor to our unit.
struct CardMetric {
  std::string_view key;
  Meaning meaning;
  std::string_view unit;
};
constexpr CardMetric kCard[] = {
    {"last_10_steps_step_time_ms_avg", Meaning::kStepTime, "ms"},
    {"last_10_steps_model_tflops_per_gpu_avg", Meaning::kFlopsPerGpu, "TFLOP/s/GPU"},
    {"last_10_steps_tokens_per_second_per_gpu_avg", Meaning::kTokensPerGpu, "tokens/s/GPU"},
    {"final_loss", Meaning::kLoss, "number"},
};

void card_leaf(const yaml::Value& leaf, const std::string& label, std::vector<Step>& steps) {
  const yaml::Value* metrics = leaf.find("metrics");
  if (metrics == nullptr) return;
  Step step;
  bool any = false;
  for (const CardMetric& metric : kCard) {
    const yaml::Value* value = metrics->find(metric.key);
    const std::optional<double> number = value == nullptr ? std::nullopt : base::parse_number(value->text);
    if (!number) continue;
    any |= put(step, metric.meaning, *number, *parse_unit(metric.unit)) && metric.meaning != Meaning::kLoss;
    step.source.line = static_cast<std::uint64_t>(metrics->line);
  }
  if (!any) return;  // not verified yet: its metrics are null
  const yaml::Value* precision = leaf.find("precision");
  step.label = label + (precision != nullptr && !precision->text.empty() ? " " + precision->text : "");
  steps.push_back(std::move(step));
}

}  // namespace

bool read_mllog(std::string_view text, Settings& settings, Extract& extract) {
  const std::size_t at = find_word(text, kMllog);
  if (at == std::string_view::npos) return false;
  const base::Result<json::Value> record = json::parse(text.substr(at + kMllog.size()));
  const json::Value* key = record.ok() ? record->find("key") : nullptr;
  const std::string* name = key == nullptr ? nullptr : key->as_string();
  if (name == nullptr) {
    ++extract.unparsable;
    extract.about = ":::MLLOG";
    return true;
  }
  if (const auto time = whole(record->find("time_ms"))) extract.step.time = units::Instant{*time};
  const json::Value* value = record->find("value");
  if (value == nullptr) return true;
  for (const Key& known : kMllogSettings) {
    if (known.printed == *name) set(settings, known.ours, scalar_text(*value));
  }
  if (*name != "tracked_stats") return true;
  for (const Field& stat : kStats) {
    const json::Value* figure = value->find(stat.key);
    const double* number = figure == nullptr ? nullptr : figure->as_number();
    if (number == nullptr || !put(extract.step, stat.meaning, *number, *parse_unit(stat.unit))) continue;
    if (stat.meaning != Meaning::kLoss) ++extract.figures;
  }
  const json::Value* throughput = value->find("throughput");
  if (throughput != nullptr) {
    read_throughput(throughput->as_number(), settings, extract);
    return true;  // over a block of steps, whose number is no step's
  }
  if (const json::Value* metadata = record->find("metadata")) extract.step.step = whole(metadata->find("step"));
  return true;
}

std::optional<Document> read_golden_values(std::string_view text) {
  const base::Result<json::Value> parsed = json::parse(text);
  if (!parsed.ok() || parsed->as_object() == nullptr) return std::nullopt;
  std::map<std::int64_t, Step> steps;
  bool any = false;
  for (const Field& field : kGolden) {
    const json::Value* metric = parsed->find(field.key);
    const json::Value* values = metric == nullptr ? nullptr : metric->find("values");
    if (values == nullptr) continue;
    any = true;
    if (const json::Object* object = values->as_object()) {
      for (const auto& [number, value] : *object) {
        std::int64_t step = 0;
        const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), step);
        if (error == std::errc() && end == number.data() + number.size()) golden_value(steps, field, step, value);
      }
    } else if (const json::Array* array = values->as_array()) {
      const std::int64_t interval = whole(metric->find("step_interval")).value_or(1);
      std::int64_t step = whole(metric->find("start_step")).value_or(0);
      for (const json::Value& value : *array) {
        golden_value(steps, field, step, value);
        step += std::min<std::int64_t>(interval, 1'000'000);
        if (step > 9'000'000'000'000'000) break;
      }
    }
  }
  if (!any) return std::nullopt;
  Document document{"megatron-golden-values", {}, {}, false};
  for (auto& [number, step] : steps) document.steps.push_back(std::move(step));
  return document;
}

std::optional<Document> read_verification_card(std::string_view text) {
  const base::Result<yaml::Value> parsed = yaml::parse(text);
  if (!parsed.ok()) return std::nullopt;
  const yaml::Value* items = parsed->find("items");
  if (items == nullptr) return std::nullopt;
  Document document{"megatron-bridge-card", {}, {}, true};
  for (const yaml::Field& item : items->fields) {
    card_leaf(item.value, item.key, document.steps);
    for (const yaml::Field& hardware : item.value.fields) {
      card_leaf(hardware.value, item.key + " " + hardware.key, document.steps);
    }
  }
  if (const yaml::Value* title = parsed->find("title")) set(document.settings, "title", title->text);
  if (const yaml::Value* model = parsed->find("model")) {
    if (const yaml::Value* id = model->find("hf_id")) set(document.settings, "model", id->text);
  }
  return document;
}

}  // namespace flopsight::training_logs
