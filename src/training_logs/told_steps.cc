#include "training_logs/told_steps.h"

#include <cmath>

#include "base/json.h"
#include "base/json_mistake.h"
#include "base/text.h"
#include "training_logs/merge_steps.h"

namespace flopsight::training_logs {
namespace {

using base::Error;
using base::ErrorCode;
using base::json::Value;
using base::json::wrong;

constexpr std::size_t kSourceBytesMax = 200;

base::Status figure_in(std::string_view key, const Value& value, std::optional<double>& out) {
  if (value.is_null()) return {};
  if (value.as_number() == nullptr) return wrong(key, value, "a number");
  out = *value.as_number();
  return {};
}

base::Status whole_in(std::string_view key, const Value& value, std::optional<std::int64_t>& out) {
  if (value.is_null()) return {};
  const double* number = value.as_number();
  if (number == nullptr || *number != std::floor(*number) || *number < 0 || *number > 9e15)
    return wrong(key, value, "a whole number");
  out = static_cast<std::int64_t>(*number);
  return {};
}

constexpr std::pair<std::string_view, std::optional<double> Step::*> kFigures[] = {
    {"mfu_ratio", &Step::mfu_ratio},
    {"flops_per_second_per_gpu", &Step::flops_per_second_per_gpu},
    {"tokens_per_second_per_gpu", &Step::tokens_per_second_per_gpu},
    {"tokens_per_second", &Step::tokens_per_second},
    {"samples_per_second", &Step::samples_per_second},
    {"step_seconds", &Step::step_seconds},
    {"peak_flops_per_second", &Step::peak_flops_per_second}};

base::Status field_in(const std::string& key, const Value& value, Step& step) {
  for (const auto& [name, member] : kFigures) {
    if (name == key) return figure_in(key, value, step.*member);
  }
  if (key == "step") return whole_in(key, value, step.step);
  if (key == "rank") return whole_in(key, value, step.rank);
  if (key == "attempt") {
    std::optional<std::int64_t> attempt;
    FLOPSIGHT_RETURN_IF_ERROR(whole_in(key, value, attempt));
    if (attempt && *attempt > UINT32_MAX) return wrong(key, value, "a whole number");
    step.attempt = static_cast<std::uint32_t>(attempt.value_or(0));
    return {};
  }
  if (key == "loss") {
    std::optional<double> loss;
    FLOPSIGHT_RETURN_IF_ERROR(figure_in(key, value, loss));
    if (loss) step.loss = Loss{*loss};
    return {};
  }
  if (key == "time") {
    if (value.is_null()) return {};
    if (value.as_string() != nullptr) step.time = units::parse_instant(*value.as_string());
    if (value.as_number() != nullptr)
      step.time = units::parse_instant(base::json::number_text(*value.as_number()));
    return step.time ? base::Status()
                     : wrong(key, value, "RFC 3339 with an offset, or Unix seconds");
  }
  return Error{ErrorCode::kInvalid,
               "\"" + base::printable(key, 40) +
                   "\" is no key of a step, expected time, step, attempt, rank, loss, mfu_ratio, "
                   "flops_per_second_per_gpu, tokens_per_second_per_gpu, tokens_per_second, "
                   "samples_per_second, step_seconds or peak_flops_per_second"};
}

base::Result<Step> step_in(const Value& value) {
  if (value.as_object() == nullptr)
    return Error{ErrorCode::kInvalid, "expected an object, found " + std::string(value.kind())};
  Step step;
  bool has_figure = false;
  for (const auto& [key, item] : *value.as_object()) {
    if (key == "source") continue;
    FLOPSIGHT_RETURN_IF_ERROR(field_in(key, item, step));
  }
  for (const auto& [name, member] : kFigures) has_figure = has_figure || (step.*member).has_value();
  if (!has_figure)
    return Error{ErrorCode::kInvalid,
                 "no figure in it, expected mfu_ratio, step_seconds or another"};
  step.excluded = exclusion_of_figures(step);
  return step;
}

}  // namespace

base::Result<ToldSteps> parse_told_steps(std::string_view json_text) {
  FLOPSIGHT_ASSIGN_OR_RETURN(const Value root, base::json::parse(json_text));
  ToldSteps told;
  if (const Value* source = root.find("source"); source != nullptr && !source->is_null()) {
    if (source->as_string() == nullptr || source->as_string()->empty() ||
        source->as_string()->size() > kSourceBytesMax) {
      return wrong("source", *source,
                   "a name of at most " + std::to_string(kSourceBytesMax) + " bytes");
    }
    told.source = "api " + *source->as_string();
  }
  const Value* list = root.find("steps");
  if (list == nullptr && root.as_array() != nullptr) list = &root;
  if (list != nullptr && list->as_array() == nullptr) return wrong("steps", *list, "a list");
  if (list == nullptr) {
    FLOPSIGHT_ASSIGN_OR_RETURN(Step step, step_in(root));
    told.steps.push_back(std::move(step));
    return told;
  }
  if (list->as_array()->size() > kToldStepsMax) {
    return Error{ErrorCode::kLimit,
                 "more than " + std::to_string(kToldStepsMax) + " steps in one request"};
  }
  for (const Value& entry : *list->as_array()) {
    auto step = step_in(entry);
    if (!step.ok()) return step.error().within("entry " + std::to_string(told.steps.size() + 1));
    told.steps.push_back(std::move(step).value());
  }
  if (told.steps.empty()) return Error{ErrorCode::kInvalid, "steps: an empty list"};
  return told;
}

}  // namespace flopsight::training_logs
