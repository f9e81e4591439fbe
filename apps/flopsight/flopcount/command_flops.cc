#include "flopcount/command_flops.h"

#include <algorithm>
#include <ostream>

#include "flopcount/flops_answer.h"
#include "flopcount/model_file.h"
#include "flops/adapters.h"
#include "error_line.h"

namespace flopsight::app {
namespace {

constexpr std::uint64_t kSequenceTokensUsual = 4096;

void choose_sequence(const FlopsArguments& arguments, FlopsAnswer& answer) {
  const std::uint64_t most = answer.model.shape.positions_max;
  if (arguments.sequence_tokens) {
    answer.workload.sequence.tokens = *arguments.sequence_tokens;
    if (most > 0 && *arguments.sequence_tokens > most) {
      answer.assumptions.push_back("sequences of " + std::to_string(*arguments.sequence_tokens) + " tokens were asked for; the configuration has " + std::to_string(most) + " positions");
    }
    return;
  }
  const bool short_model = most > 0 && most < kSequenceTokensUsual;
  answer.workload.sequence.tokens = short_model ? most : kSequenceTokensUsual;
  if (!answer.has_text) return;
  answer.assumptions.push_back("no --seq-len: sequences of " + std::to_string(answer.workload.sequence.tokens) + " tokens" +
                               (short_model ? ", as many as the model has positions" : ""));
}

base::Status choose_prediction(const FlopsArguments& arguments, FlopsAnswer& answer) {
  const std::uint64_t stored = answer.model.prediction_steps;
  if (arguments.prediction_steps > 0 && stored == 0) {
    return base::Error{base::ErrorCode::kInvalid, "--mtp " + std::to_string(arguments.prediction_steps) + ": the configuration has no multi-token prediction layers"};
  }
  answer.workload.prediction_steps = arguments.prediction_steps;
  if (stored > 0 && arguments.prediction_steps == 0) {
    answer.assumptions.push_back("multi-token prediction (" + std::to_string(stored) + " in the configuration) is not trained; --mtp N counts it");
  }
  return {};
}

void say_assumptions(FlopsAnswer& answer) {
  auto& list = answer.assumptions;
  const flops::Model& model = answer.model;
  list.insert(list.begin(), model.assumptions.begin(), model.assumptions.end());
  if (answer.has_text) {
    list.emplace_back("the cache holds two bytes for each element (BF16)");
    list.emplace_back("sequences are not packed: every token sees all before it");
  }
  if (model.vision) list.push_back((answer.has_text ? "tokens of text; the vision tower is given beside them, for an image of " : "an image of ") + model.vision->image);
}

}  // namespace

double layer_forward_flops(const FlopsAnswer& answer, const flops::Layer& layer) {
  flops::Sequence sequence = answer.workload.sequence;
  double times = static_cast<double>(layer.executed) / static_cast<double>(layer.tokens_per_run);
  if (layer.section == flops::Section::kVision) {
    sequence = {};
    sequence.tokens = answer.model.vision->patches;
    times *= static_cast<double>(sequence.tokens);
  }
  return flops::layer_forward(layer, sequence, {}).total() * times;
}

base::Result<FlopsAnswer> flops_answer(const FlopsArguments& arguments) {
  FlopsAnswer answer;
  FLOPSIGHT_ASSIGN_OR_RETURN(answer.model, read_model_file(arguments.config_path, {arguments.ignored_keys}));
  answer.parameters = flops::count_parameters(answer.model);  // of the model itself, without adapters
  answer.cache = flops::count_cache(answer.model);
  if (arguments.adapter_rank > 0) {
    FLOPSIGHT_ASSIGN_OR_RETURN(answer.model, flops::with_adapters(answer.model, {arguments.adapter_rank, arguments.adapter_targets}));
    answer.adapter_parameters = flops::adapter_parameters(answer.model);
  }
  answer.has_text = std::any_of(answer.model.layers.begin(), answer.model.layers.end(),
                                [](const flops::Layer& layer) { return layer.section == flops::Section::kText; });
  choose_sequence(arguments, answer);
  FLOPSIGHT_RETURN_IF_ERROR(choose_prediction(arguments, answer));
  answer.forward = flops::forward_cost(answer.model, answer.workload);
  answer.train = flops::train_cost(answer.model, answer.workload);
  answer.recompute = arguments.recompute;
  answer.executed = flops::executed_cost(answer.model, answer.workload, {arguments.recompute, false});
  if (answer.model.vision) answer.vision_forward_per_image = flops::vision_forward_per_image(answer.model);
  for (const flops::Convention& convention : flops::conventions()) {
    if (arguments.convention == "all" || arguments.convention == convention.name) {
      answer.conventions.push_back({&convention, flops::convention_cost(convention, answer.model, answer.workload)});
    }
  }
  say_assumptions(answer);
  return answer;
}

int run_flops(const FlopsArguments& arguments, const Env& env) {
  const base::Result<FlopsAnswer> answer = flops_answer(arguments);
  if (!answer.ok()) return fail(env, "flops", answer.error());
  env.out << (arguments.json ? flops_json(*answer) : flops_table(*answer));
  return kExitDone;
}

}  // namespace flopsight::app
