#include "audit/hypothesis.h"

#include <algorithm>
#include <cmath>

#include "audit/mistakes.h"

namespace flopsight::audit {
namespace {

using flops::CountingRules;
using flops::Model;
using flops::Workload;

// Below this a mistake changes the count by less than figures are printed with.
constexpr double kSmallestLog = 0.002;

// What a counter that makes another mistake may do with attention besides.
struct Second {
  std::string_view id;
  void (*set)(CountingRules& rules);
  std::string_view explanation;
};
constexpr Second kSeconds[] = {
    {"causal_counted_full", [](CountingRules& r) { r.causal = flops::CausalRule::kFull; }, "the causal mask not taken into account"},
    {"causal_counted_full",
     [](CountingRules& r) {
       r.causal = flops::CausalRule::kFull;
       r.window = flops::WindowRule::kIgnored;
     },
     "neither causal mask nor window taken into account"},
    {"attention_ignored", [](CountingRules& r) { r.causal = flops::CausalRule::kNone; }, "attention cores left out"},
};

double train_total(const Run& run, const Workload& workload, const CountingRules& rules) {
  return flops::train_cost(run.model, workload, rules).total();
}

void add(std::vector<Hypothesis>& list, std::string_view id, Cause cause, double ratio, std::string explanation, std::string_view source) {
  if (!std::isfinite(ratio) || ratio <= 0 || std::abs(std::log(ratio)) < kSmallestLog) return;
  list.push_back({std::string(id), {std::string(id)}, cause, ratio, std::move(explanation), std::string(source)});
}

// Head sizes that counters have taken for those of latent attention: that of values, and of queries.
void add_latent_attention(std::vector<Hypothesis>& list, const Run& run, const Workload& workload, double right) {
  for (const flops::Layer& layer : run.model.layers) {
    if (!layer.attention || layer.attention->latent_dim == 0) continue;
    for (const std::uint64_t head_dim : {layer.attention->v_dim, layer.attention->qk_dim}) {
      CountingRules rules;
      rules.latent_attention_as_head_dim = head_dim;
      add(list, "mla_as_mha", Cause::kFlops, train_total(run, workload, rules) / right,
          "latent attention charged as ordinary attention with heads of " + std::to_string(head_dim), "torchtitan #1923, verl #4959");
    }
    return;
  }
}

void add_prediction(std::vector<Hypothesis>& list, const Run& run, const Workload& workload, double right) {
  Workload other = workload;
  if (run.prediction_steps.value_or(0) > 0) {
    other.prediction_steps = 0;
    add(list, "mtp_ignored", Cause::kFlops, train_total(run, other, {}) / right, "multi-token prediction left out", "Megatron-LM #1475");
  }
}

// Packed documents taken for one sequence.
void add_packing(std::vector<Hypothesis>& list, const Run& run, const Workload& workload, double right) {
  if (workload.sequence.documents.empty()) return;
  Workload whole = workload;
  whole.sequence.documents.clear();
  add(list, "packing_ignored", Cause::kFlops, train_total(run, whole, {}) / right,
      "packed documents charged as one sequence", "Megatron-Bridge #3498");
  CountingRules full;
  full.causal = flops::CausalRule::kFull;
  add(list, "packing_ignored", Cause::kFlops, train_total(run, whole, full) / right,
      "packed documents charged as one sequence without a causal mask", "Megatron-Bridge #3498");
}

void add_recompute(std::vector<Hypothesis>& list, const Run& run, const Workload& workload, double right) {
  const auto executed = [&](flops::Recompute recompute, bool rebuilds) {
    return flops::executed_cost(run.model, workload, {recompute, rebuilds}).total() / right;
  };
  add(list, "recompute_counted", Cause::kFlops, executed(flops::Recompute::kFull, false),
      "recomputed activations counted: HFU reported as MFU", "Megatron-DeepSpeed #371; arXiv 2205.05198");
  add(list, "recompute_counted", Cause::kFlops, 4.0 / 3, "every layer charged four times a forward pass instead of three", "Megatron-DeepSpeed #371");
  if (run.recompute == flops::Recompute::kSelective) {
    add(list, "recompute_counted", Cause::kFlops, executed(flops::Recompute::kSelective, false),
        "recomputed attention counted: HFU reported as MFU", "arXiv 2205.05198");
  }
  add(list, "attention_backward_counted", Cause::kFlops, executed(flops::Recompute::kNone, true),
      "the attention kernel's backward pass charged as 2.5 forward passes", "FlashAttention benchmarks");
}

std::uint64_t first_known(const std::optional<std::uint64_t>& n) { return n.value_or(1); }

}  // namespace

Workload workload_of(const Run& run) {
  Workload workload;
  workload.sequence.tokens = run.sequence_tokens.value_or(workload.sequence.tokens);
  workload.prediction_steps = run.prediction_steps.value_or(0);
  if (run.document_tokens && *run.document_tokens < workload.sequence.tokens) workload.sequence.documents = {*run.document_tokens};
  return workload;
}

double flops_per_token(const Run& run) { return train_total(run, workload_of(run), {}); }

std::vector<Hypothesis> flops_hypotheses(const Run& run) {
  std::vector<Hypothesis> list;
  const Workload workload = workload_of(run);
  const double right = train_total(run, workload, {});
  if (!(right > 0)) return list;
  for (const Mistake& mistake : mistakes()) {
    CountingRules rules;
    mistake.set(rules);
    add(list, mistake.id, Cause::kFlops, train_total(run, workload, rules) / right, std::string(mistake.explanation), mistake.source);
  }
  add_latent_attention(list, run, workload, right);
  add_prediction(list, run, workload, right);
  add_packing(list, run, workload, right);
  add_recompute(list, run, workload, right);
  return list;
}

std::vector<Hypothesis> flops_pairs(const Run& run) {
  std::vector<Hypothesis> list;
  const Workload workload = workload_of(run);
  const double right = train_total(run, workload, {});
  if (!(right > 0)) return list;
  std::vector<double> done;
  for (const Second& second : kSeconds) {
    CountingRules half;
    second.set(half);
    const double alone = train_total(run, workload, half) / right;
    // What is no half, as it changes nothing, or is the half before, as there are no windows.
    if (std::find(done.begin(), done.end(), alone) != done.end()) continue;
    done.push_back(alone);
    for (const Mistake& mistake : mistakes()) {
      CountingRules rules = half, single;
      mistake.set(rules);
      mistake.set(single);
      if (rules == half || rules.causal != half.causal || single.window != flops::WindowRule::kExact) continue;
      const double ratio = train_total(run, workload, rules) / right;
      const double other = train_total(run, workload, single) / right;
      // A pair of which one half does nothing is the other half.
      if (std::abs(std::log(ratio / alone)) < kPairHalfLog || std::abs(std::log(ratio / other)) < kPairHalfLog) continue;
      const std::string first(mistake.id), last(second.id);
      const std::size_t before = list.size();
      add(list, first + "+" + last, Cause::kFlops, ratio, std::string(mistake.explanation) + "; and " + std::string(second.explanation), mistake.source);
      if (list.size() > before) list.back().ids = {first, last};
    }
  }
  return list;
}

std::vector<Hypothesis> count_hypotheses(const Run& run) {
  std::vector<Hypothesis> list;
  const Layout& layout = run.layout;
  const auto times = [&](std::string_view id, double ratio, const std::string& what) { add(list, id, Cause::kCount, ratio, what, ""); };
  const std::string gpus = "the number of GPUs wrong by ";
  times("gpu_count", 2, gpus + "a factor of 2: the rate is too high");
  times("gpu_count", 0.5, gpus + "a factor of 2: the rate is too low");
  const auto degree = [&](const std::optional<std::uint64_t>& n, const char* name) {
    if (first_known(n) < 2) return;
    const auto factor = static_cast<double>(*n);
    times("gpu_count", factor, gpus + name + " (" + std::to_string(*n) + "): its ranks count the same tokens");
    times("gpu_count", 1 / factor, gpus + name + " (" + std::to_string(*n) + "): divided once too often");
  };
  degree(layout.tensor_parallel, "tensor parallelism");
  degree(layout.pipeline_parallel, "pipeline parallelism");
  degree(layout.context_parallel, "context parallelism");
  degree(layout.expert_parallel, "expert parallelism");
  degree(layout.gpus, "all of them");
  if (layout.gpus && *layout.gpus % 8 == 0 && *layout.gpus > 8) {
    times("gpu_count", 8, gpus + "8: the rate of a node taken for that of a GPU");
    times("gpu_count", static_cast<double>(*layout.gpus) / 8, gpus + "the number of nodes, of 8 GPUs each");
  }
  times("gradient_accumulation", 2, "micro-batches counted twice (pipeline or accumulation)");
  times("gradient_accumulation", 0.5, "half of the micro-batches counted");
  if (first_known(layout.gradient_accumulation) > 1) {
    const auto factor = static_cast<double>(*layout.gradient_accumulation);
    const std::string n = std::to_string(*layout.gradient_accumulation);
    times("gradient_accumulation", factor, "gradient accumulation of " + n + " counted twice");
    times("gradient_accumulation", 1 / factor, "gradient accumulation of " + n + " not counted: one micro-batch's tokens over the time of a step");
  }
  if (run.padding_ratio && *run.padding_ratio < 1) {
    add(list, "padding_counted", Cause::kCount, 1 / (1 - *run.padding_ratio), "padding counted as tokens", "Megatron-LM 5e4fc931ba");
  }
  if (run.productive_ratio && *run.productive_ratio > 0) {
    add(list, kStallsExcluded, Cause::kTime, 1 / *run.productive_ratio, "time of evaluation, checkpoints and stalls left out of the rate", "");
  }
  return list;
}

std::vector<Hypothesis> measured_hypotheses(const Run& run, bool told_ofu) {
  std::vector<Hypothesis> list;
  const flops::Recompute told = run.recompute.value_or(flops::Recompute::kNone);
  if (told != flops::Recompute::kFull) {
    const double more = expected_ofu_over_mfu(run, flops::Recompute::kFull, std::nullopt).ratio;
    const double now = expected_ofu_over_mfu(run, told, std::nullopt).ratio;
    add(list, "recompute_missing", Cause::kExecution, now / more,
        "activations are recomputed, which MFU rightly does not count and the audit was not told", "arXiv 2605.20799, world foundation model");
  }
  const catalog::Device* device = run.device;
  if (told_ofu && device != nullptr && device->nvml_max_sm_clock && device->tensor_peak_clock && device->tensor_peak_clock->value > 0) {
    add(list, "ofu_clock_domain", Cause::kMeasured, device->nvml_max_sm_clock->value / device->tensor_peak_clock->value,
        "OFU divided by the largest SM clock instead of the clock of the tensor peak", "arXiv 2605.20799");
  }
  return list;
}

Expected expected_ofu_over_mfu(const Run& run, flops::Recompute recompute, std::optional<double> reference_peak) {
  const Workload workload = workload_of(run);
  const flops::Cost executed = flops::executed_cost(run.model, workload, {recompute, true});
  const double model = train_total(run, workload, {});
  std::optional<double> linear, other;
  if (run.device != nullptr && run.precision) {
    const auto peak = [&](catalog::Precision precision) -> std::optional<double> {
      const auto found = run.device->peak(precision);
      return found ? std::optional(found->value) : std::nullopt;
    };
    linear = peak(*run.precision);
    const bool low = *run.precision == catalog::Precision::kFp8 || *run.precision == catalog::Precision::kFp6 || *run.precision == catalog::Precision::kFp4;
    other = low ? peak(catalog::Precision::kBf16) : linear;
  }
  Expected expected;
  expected.mixed_precision = linear && other && *linear != *other;
  double sum = 0;
  for (std::size_t i = 0; i < flops::kPartCount; ++i) {
    const auto part = static_cast<flops::Part>(i);
    if (!flops::on_tensor_cores(part)) continue;
    double slower = 1;
    if (linear && other) {
      const double reference = reference_peak.value_or(*linear);
      slower = reference / (flops::is_block_linear(part) ? *linear : *other);
    }
    const bool padded = part == flops::Part::kRoutedExperts;  // experts run over their capacity, filled or not
    sum += executed.of(part) * slower * (padded ? run.capacity_ratio.value_or(1) : 1);
  }
  // A claim is of real tokens and of the time that it is about; the tensor cores run over padding too, and OFU is of all its time.
  if (model > 0) expected.ratio = sum / model * run.productive_ratio.value_or(1) / (1 - run.padding_ratio.value_or(0));
  return expected;
}

}  // namespace flopsight::audit
