#include "tuning/told_training.h"

#include <algorithm>
#include <cmath>
#include <type_traits>

#include "base/json.h"
#include "base/json_mistake.h"
#include "base/text.h"
#include "flops/hf_config.h"
#include "tuning/fabric.h"

namespace flopsight::tuning {
namespace {

using base::Error;
using base::ErrorCode;
using base::Status;
using base::json::Value;
using base::json::wrong;

constexpr double kTokensMax = 4294967296.0;  // as audit/told_model.h; check_settings() has its own limit
constexpr double kPredictionStepsMax = 64;

struct WholeKey {
  std::string_view key;
  std::optional<std::uint64_t> ToldTraining::*into;
  double least, most;
};
constexpr WholeKey kWholes[] = {
    {"global_batch", &ToldTraining::global_batch, 1, static_cast<double>(kBatchMax)},
    {"micro_batch", &ToldTraining::micro_batch, 1, static_cast<double>(kBatchMax)},
    {"tp", &ToldTraining::tensor, 1, static_cast<double>(kGpusMax)},
    {"pp", &ToldTraining::pipeline, 1, static_cast<double>(kGpusMax)},
    {"vp", &ToldTraining::virtual_stages, 1, static_cast<double>(kGpusMax)},
    {"cp", &ToldTraining::context, 1, static_cast<double>(kGpusMax)},
    {"ep", &ToldTraining::expert, 1, static_cast<double>(kGpusMax)},
    {"etp", &ToldTraining::expert_tensor, 1, static_cast<double>(kGpusMax)},
    {"zero", &ToldTraining::zero_stage, 0, kZeroStageMax},
};

Status whole_in(std::string_view key, const Value& value, double least, double most, std::optional<std::uint64_t>& out) {
  const double* number = value.as_number();
  if (number == nullptr || *number != std::floor(*number) || *number < least || *number > most) {
    return wrong(key, value, "a whole number from " + base::json::number_text(least) + " to " + base::json::number_text(most));
  }
  out = static_cast<std::uint64_t>(*number);
  return {};
}

template <typename Enum>
Status name_in(std::string_view key, const Value& value, std::optional<Enum> (*parse)(std::string_view), std::string_view expected, std::optional<Enum>& out) {
  if (value.as_string() != nullptr) out = parse(*value.as_string());
  return out ? Status() : wrong(key, value, expected);
}

Status overlap_in(const Value& value, ToldTraining& told) {
  constexpr std::string_view kExpected = "a list of data, tensor and expert";
  const base::json::Array* names = value.as_array();
  if (names == nullptr) return wrong("training.overlap", value, kExpected);
  told.overlap.emplace();
  for (const Value& name : *names) {
    const std::string* text = name.as_string();
    if (text == nullptr || (*text != "data" && *text != "tensor" && *text != "expert")) return wrong("training.overlap", name, kExpected);
    told.overlap->push_back(*text);
  }
  return {};
}

Status training_in(const std::string& key, const Value& value, ToldTraining& told) {
  if (value.is_null()) return {};
  const std::string name = "training." + key;
  for (const WholeKey& whole : kWholes) {
    if (key == whole.key) return whole_in(name, value, whole.least, whole.most, told.*whole.into);
  }
  if (key == "optimizer") return name_in(name, value, &parse_optimizer, "adam, adam-bf16, adam8bit, sgd-momentum or sgd", told.optimizer);
  if (key == "kernels") return name_in(name, value, &parse_kernels, "eager or fused", told.kernels);
  if (key == "attention") return name_in(name, value, &parse_attention_kernel, "standard, flash1, flash2 or flash3", told.attention);
  if (key == "dispatch") return name_in(name, value, &parse_dispatch, "all-to-all or deepep", told.dispatch);
  if (key == "overlap") return overlap_in(value, told);
  if (key == "fabric") {
    if (value.as_string() == nullptr || !find_fabric(*value.as_string())) {
      std::string names;
      for (const Fabric& fabric : fabrics()) names += (names.empty() ? "" : ", ") + std::string(fabric.name);
      return wrong(name, value, names);
    }
    told.fabric = *value.as_string();
    return {};
  }
  return Error{ErrorCode::kInvalid, "\"" + base::printable(key, 40) + "\" is no key of training, expected global_batch, micro_batch, tp, pp, vp, cp, ep, etp, zero, optimizer, kernels, attention, dispatch, overlap or fabric"};
}

Status key_in(const std::string& key, const Value& value, ToldTraining& told) {
  if (value.is_null()) return {};
  if (key == "seq_len") return whole_in(key, value, 1, kTokensMax, told.sequence_tokens);
  if (key == "mtp") return whole_in(key, value, 0, kPredictionStepsMax, told.prediction_steps);
  if (key == "precision") return name_in(key, value, &catalog::find_precision, "bf16, fp16, fp8, fp4, tf32 or fp32", told.precision);
  if (key == "recompute") return name_in(key, value, &parse_recompute, "none, selective or full", told.recompute);
  if (key != "training") return {};
  if (value.as_object() == nullptr) return wrong(key, value, "an object");
  for (const auto& [name, one] : *value.as_object()) FLOPSIGHT_RETURN_IF_ERROR(training_in(name, one, told));
  return {};
}

}  // namespace

std::vector<std::string> ToldTraining::missing() const {
  std::vector<std::string> out;
  if (!sequence_tokens) out.emplace_back("seq_len: tokens of a training sequence");
  if (!global_batch) out.emplace_back("training.global_batch: sequences of an optimizer step");
  return out;
}

base::Result<ToldTraining> parse_told_training(std::string_view json_text) {
  FLOPSIGHT_ASSIGN_OR_RETURN(const Value root, base::json::parse(flops::without_infinities(json_text)));
  if (root.as_object() == nullptr) return Error{ErrorCode::kInvalid, "expected an object, found " + std::string(root.kind())};
  ToldTraining told;
  for (const auto& [key, value] : *root.as_object()) FLOPSIGHT_RETURN_IF_ERROR(key_in(key, value, told));
  return told;
}

base::Result<TrainSettings> settings_of(const ToldTraining& told, std::uint64_t gpus, std::vector<std::string>& assumed) {
  TrainSettings s;
  const auto take = [&](const auto& from, auto& into, const char* otherwise) {
    using Into = std::remove_reference_t<decltype(into)>;
    if (from) into = static_cast<Into>(*from);
    else if (*otherwise != '\0') assumed.emplace_back(otherwise);
  };
  s.gpus = gpus;
  s.sequence_tokens = told.sequence_tokens.value_or(0);
  s.global_batch = told.global_batch.value_or(0);
  take(told.micro_batch, s.micro_batch, "micro_batch is not told: one sequence");
  if (!told.tensor && !told.pipeline && !told.context) assumed.emplace_back("tp, pp and cp are not told: data-parallel GPUs only");
  take(told.tensor, s.layout.tensor, "");
  take(told.pipeline, s.layout.pipeline, "");
  take(told.virtual_stages, s.layout.virtual_stages, "");
  take(told.context, s.layout.context, "");
  take(told.expert, s.layout.expert, "");
  s.layout.expert_tensor = told.expert_tensor;
  take(told.prediction_steps, s.prediction_steps, "");
  take(told.precision, s.precision, "precision is not told: BF16");
  take(told.recompute, s.recompute, "recompute is not told: nothing is computed again");
  take(told.optimizer, s.optimizer, "optimizer is not told: Adam with two FP32 moments");
  take(told.zero_stage, s.zero_stage, "zero is not told: the optimizer's state is divided over data-parallel GPUs (stage 1)");
  take(told.kernels, s.kernels, "kernels are not told: fused norms, activations, loss and optimizer");
  take(told.attention, s.attention, "");  // what is assumed of it depends on the GPU
  take(told.dispatch, s.dispatch, s.layout.expert > 1 ? "dispatch is not told: a token goes to each of its experts separately, by all-to-all" : "");
  if (told.overlap) {
    const auto has = [&](const char* name) { return std::find(told.overlap->begin(), told.overlap->end(), name) != told.overlap->end(); };
    s.overlap_data = has("data");
    s.overlap_tensor = has("tensor");
    s.overlap_expert = has("expert");
  } else {
    assumed.emplace_back("overlap is not told: gradients and weights go while products run, other messages do not");
  }
  double each = 1;
  for (const std::uint64_t degree : {s.layout.tensor, s.layout.pipeline, s.layout.context}) each *= static_cast<double>(degree);
  if (each > static_cast<double>(gpus) || gpus % static_cast<std::uint64_t>(each) != 0) {
    return Error{ErrorCode::kInvalid, "tp " + std::to_string(s.layout.tensor) + " x pp " + std::to_string(s.layout.pipeline) + " x cp " + std::to_string(s.layout.context) +
                                          " does not divide the " + std::to_string(gpus) + " GPUs that the job was seen on"};
  }
  s.layout.data = gpus / static_cast<std::uint64_t>(each);
  return s;
}

}  // namespace flopsight::tuning
