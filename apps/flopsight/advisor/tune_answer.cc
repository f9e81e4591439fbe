#include "advisor/tune_answer.h"

#include <algorithm>

#include "base/text.h"
#include "flopcount/model_file.h"
#include "parse_file.h"
#include "serve/job_advice.h"
#include "tuning/compare.h"
#include "tuning/lengths.h"
#include "views/text_table.h"

namespace flopsight::app {
namespace {

using base::Error;
using base::ErrorCode;
using base::Status;

Status choose_fabric(const TuneCommon& a, TuneGround& out) {
  const auto reference = tuning::reference_fabric(*out.device);
  if (!a.fabric.empty()) {
    out.fabric = *tuning::find_fabric(a.fabric);
  } else if (a.gpus == 1) {
    out.fabric = *tuning::find_fabric("single-gpu");
  } else if (reference) {
    out.fabric = *reference;
    const bool all_given = a.node_gpus && a.node_bytes_per_second && a.network_bytes_per_second;
    if (!all_given) out.assumptions.push_back("no --fabric: links of " + std::string(reference->name) + " (" + std::string(reference->what) + ")" + (a.node_gpus || a.node_bytes_per_second || a.network_bytes_per_second ? ", but for what is given" : ""));
  } else if (a.node_gpus && a.node_bytes_per_second) {
    out.fabric = *tuning::find_fabric("pcie-gen4");
    out.fabric.network_rate = units::BytesPerSecond(0);
  } else {
    return Error{ErrorCode::kInvalid, "--fabric: " + out.device->model + " has no reference system whose links could be assumed; name one, or say --node-gpus and --node-gb-per-second"};
  }
  if (a.node_gpus) out.fabric.node_gpus = *a.node_gpus;
  if (a.node_bytes_per_second) out.fabric.node_rate = units::BytesPerSecond(*a.node_bytes_per_second);
  if (a.network_bytes_per_second) out.fabric.network_rate = units::BytesPerSecond(*a.network_bytes_per_second);
  if (a.gpus > 1 && out.fabric.node_gpus > 1 && out.fabric.node_rate.value <= 0) {
    return Error{ErrorCode::kInvalid, "--node-gpus " + std::to_string(out.fabric.node_gpus) + ": the GPUs of " + std::string(out.fabric.name) + " are not connected; say --node-gb-per-second"};
  }
  if (a.gpus > out.fabric.node_gpus && out.fabric.network_rate.value <= 0) {
    return Error{ErrorCode::kInvalid, "--gpus " + std::to_string(a.gpus) + ": more than the " + std::to_string(out.fabric.node_gpus) + " of a node, and no network is known; say --network-gb-per-second"};
  }
  return {};
}

// Shares of the capacity of another GPU are none of this one's, nor are those of more or fewer GPUs, which may be a choice.
Status check_measured(const tuning::TrainSettings& s, TuneGround& ground, std::optional<MeasuredJob>& measured) {
  const std::string job = base::printable(measured->job, 80);
  for (const std::string& model : measured->models) {
    if (model == ground.device->model) continue;
    return Error{ErrorCode::kInvalid, "--gpu " + ground.device->model + ": the store saw job " + job + " on " + base::printable(model, 60) + "; name that GPU, or leave out --store and --job"};
  }
  if (measured->gpu_count == s.gpus) return {};
  ground.assumptions.push_back("the store saw " + std::to_string(measured->gpu_count) + (measured->gpu_count == 1 ? " GPU" : " GPUs") + " of job " + job + ", --gpus says " + std::to_string(s.gpus) +
                               ": the prediction is of another run, and what was measured is left out of it");
  measured.reset();
  return {};
}

void say_measured(const tuning::TrainCase& one, bool is_step_implied, std::vector<std::string>& out) {
  if (is_step_implied) out.emplace_back("the job reports no tokens per second: its step time is implied by OFU, as if it executed the FLOPs that are predicted");
  if (!one.measured->sm_idle_ratio) out.emplace_back("SM activity is not scraped: idle time is taken as predicted");
}

}  // namespace

void say_positions(const flops::Model& model, std::uint64_t tokens, const char* option, std::vector<std::string>& out) {
  const std::uint64_t positions = model.shape.positions_max;
  if (positions > 0 && tokens > positions) {
    out.push_back(std::string(option) + " " + std::to_string(tokens) + " is beyond the " + std::to_string(positions) + " positions that the configuration has: the figures are those of such a model, were it made for them");
  }
}

std::string fabric_text(const TuneCommon& a, const tuning::Fabric& fabric) {
  if (!a.node_gpus && !a.node_bytes_per_second && !a.network_bytes_per_second) return std::string(fabric.name) + ": " + std::string(fabric.what);
  const auto rate = [](const units::BytesPerSecond& one) { return views::text_table::number(one.value / 1e9, "%.6g GB/s"); };
  return "links as given: " + std::to_string(fabric.node_gpus) + (fabric.node_gpus == 1 ? " GPU" : " GPUs") + " to a node, " + rate(fabric.node_rate) + " inside, " + (fabric.network_rate.value > 0 ? rate(fabric.network_rate) + " of network for each" : std::string("no network")) + ", latencies as of " +
         std::string(fabric.name);
}

Status read_ground(const TuneCommon& a, TuneGround& out) {
  out.catalog = catalog::DeviceCatalog::builtin();
  if (!a.catalog_path.empty()) {
    FLOPSIGHT_ASSIGN_OR_RETURN(out.catalog, parse_file(a.catalog_path, &catalog::DeviceCatalog::with_user_rows));
  }
  const catalog::Device* found = out.catalog.find_whole(a.gpu);
  if (found == nullptr) return Error{ErrorCode::kInvalid, "--gpu " + out.catalog.not_found(a.gpu) + "; --gpu-catalog adds one"};
  out.device = found->as_named(a.gpu);
  if (const auto rates = tuning::Rates::of(*out.device); !rates.ok()) return rates.error();
  if (std::string memory = tuning::assumed_memory_text(*out.device); !memory.empty()) out.assumptions.push_back(std::move(memory));
  FLOPSIGHT_RETURN_IF_ERROR(choose_fabric(a, out));
  FLOPSIGHT_ASSIGN_OR_RETURN(out.model, read_model_file(a.config_path, {a.ignored_keys}));
  if (out.model.shape.blocks == 0 || out.model.shape.vocab_size == 0) return Error{ErrorCode::kUnsupported, base::printable(a.config_path) + ": no language model, which is what this command is for"};
  out.assumptions.insert(out.assumptions.end(), out.model.assumptions.begin(), out.model.assumptions.end());
  if (out.model.vision) out.assumptions.emplace_back("tokens of text only: the vision tower takes memory, no time");
  return {};
}

Status choose_attention(const TuneGround& ground, const tuning::Rates& rates, const AttentionChoice& choice, tuning::AttentionKernel& kernel, std::vector<std::string>& assumptions) {
  const auto& layers = ground.model.layers;
  const bool attends = std::any_of(layers.begin(), layers.end(), [](const flops::Layer& layer) { return layer.attention.has_value(); });
  if (!choice.is_given) {
    kernel = rates.usual_attention();
    if (attends) assumptions.push_back("no --attention: " + rates.usual_attention_text(choice.is_wide));
    return {};
  }
  const std::string option = "--attention " + std::string(tuning::attention_kernel_name(kernel)) + ": ";
  if (!attends) return Error{ErrorCode::kInvalid, option + "the model has no attention, which it would be the kernel of"};
  if (const std::string why = rates.attention_unsupported(kernel); !why.empty()) return Error{ErrorCode::kInvalid, option + why};
  return {};
}

base::Result<TuneTrainAnswer> tune_train(const TuneTrainArguments& arguments, const Env& env) {
  TuneGround ground;
  FLOPSIGHT_RETURN_IF_ERROR(read_ground(arguments, ground));
  FLOPSIGHT_ASSIGN_OR_RETURN(const tuning::Rates rates, tuning::Rates::of(*ground.device));
  tuning::TrainCase one;
  one.settings = arguments.settings;
  FLOPSIGHT_RETURN_IF_ERROR(choose_attention(ground, rates, {arguments.attention_given, tuning::is_wide(one.settings.precision)}, one.settings.attention, ground.assumptions));
  tuning::StepModel steps(ground.model, rates, ground.fabric);
  FLOPSIGHT_ASSIGN_OR_RETURN(one.step, steps.predict(one.settings));
  one.memory = tuning::train_memory(ground.model, one.settings, *ground.device);
  if (!arguments.lengths_path.empty()) {
    FLOPSIGHT_ASSIGN_OR_RETURN(one.lengths, parse_file(arguments.lengths_path, &tuning::read_lengths));
  }
  one.checkpoint_seconds = arguments.checkpoint_seconds;
  one.checkpoint_interval_seconds = arguments.checkpoint_interval_seconds;
  one.failure_seconds = arguments.failure_seconds;
  one.restart_seconds = arguments.restart_seconds;
  one.environment = arguments.environment;
  one.usd_per_gpu_hour = arguments.usd_per_gpu_hour;
  std::optional<MeasuredJob> measured;
  std::optional<tuning::Comparison> comparison;
  if (!arguments.store_path.empty()) {
    FLOPSIGHT_ASSIGN_OR_RETURN(measured, read_measured(arguments.store_path, arguments.job, env));
    FLOPSIGHT_RETURN_IF_ERROR(check_measured(one.settings, ground, measured));
  }
  if (measured) {
    if (measured->measured.tokens_per_second) *measured->measured.tokens_per_second *= static_cast<double>(one.settings.gpus);
    comparison = tuning::compare(one.step, measured->measured);
    one.measured = measured->measured;
    one.calibration = comparison->calibration;
    say_measured(one, comparison->is_step_implied, ground.assumptions);
  }

  TuneTrainAnswer out;
  out.arguments = arguments;
  out.gpu = ground.device->model;
  out.fabric = fabric_text(arguments, ground.fabric);
  out.settings = one.settings;
  out.step = one.step;
  out.memory = one.memory;
  out.findings = tuning::advise_training(steps, one);
  out.measured = std::move(measured);
  out.comparison = std::move(comparison);
  if (arguments.search) {
    FLOPSIGHT_ASSIGN_OR_RETURN(tuning::SearchResult found, tuning::search_layouts(steps, one.settings));
    out.layouts = std::move(found.best);
    out.layouts_tried = found.tried_total;
    out.layouts_fitting = found.fitting_total;
  }
  out.assumptions = ground.assumptions;
  out.assumptions.insert(out.assumptions.end(), arguments.assumed.begin(), arguments.assumed.end());
  say_positions(ground.model, one.settings.sequence_tokens, "--seq-len", out.assumptions);
  if (one.settings.layout.expert > 1) out.assumptions.emplace_back("each expert gets as many tokens as any other; uneven ones make the fullest GPU slower than predicted");
  say_rates(rates, one.settings, out.assumptions);
  if (!arguments.usd_per_gpu_hour) out.assumptions.emplace_back("no --usd-per-gpu-hour: no gain in dollars");
  return out;
}

std::vector<BreakdownPart> breakdown_parts(const tuning::Breakdown& b) {
  return {{"compute", "products and attention", b.compute_seconds},
          {"memory", "memory-bound kernels", b.memory_seconds},
          {"tensor_parallel", "tensor-parallel messages", b.tensor_parallel_seconds},
          {"context_parallel", "context-parallel messages", b.context_parallel_seconds},
          {"expert_parallel", "expert-parallel messages", b.expert_parallel_seconds},
          {"pipeline_bubble", "pipeline bubble", b.pipeline_bubble_seconds},
          {"pipeline_parallel", "messages between stages", b.pipeline_parallel_seconds},
          {"data_parallel", "gradients and weights", b.data_parallel_seconds},
          {"host", "launches", b.host_seconds}};
}

}  // namespace flopsight::app
