#include <algorithm>

#include "tuning/advice_internal.h"
#include "tuning/formulas.h"
#include "tuning/search.h"

namespace flopsight::tuning {
namespace {

constexpr double kLayoutGainLeast = 0.03;       // a relayout is work
constexpr double kSlowNetwork = 10e9;           // bytes a second of a GPU
constexpr double kExposedLeast = 0.1;           // of a step
constexpr double kInt8FromBf16 = 2;
constexpr double kTopKDensity = 0.001;

std::optional<std::string> environment(const Rules& rules, std::string_view name) {
  for (const std::string& entry : rules.one.environment) {
    if (entry.size() > name.size() && entry.starts_with(name) && entry[name.size()] == '=') return entry.substr(name.size() + 1);
  }
  return std::nullopt;
}

// The all-reduce of a step's gradients.
struct Gradients {
  Group group;
  double bytes = 0;
};
Gradients gradients_of(const Rules& rules) {
  const TrainSettings& s = rules.one.settings;
  const StageParameters stage = stage_parameters(rules.steps.model(), s.layout);
  return {group_of(rules.steps.fabric(), s.layout.data * s.layout.context, s.layout.tensor),
          state_bytes(s).gradients_bytes * (stage.blocks.dense_total + std::max(stage.embedding.dense_total, stage.head.dense_total))};
}

// Only the micro-batch or the recomputation is another: what rules of their own say.
bool differs_in_one(const TrainSettings& a, TrainSettings b) {
  if (a.layout != b.layout || a.zero_stage != b.zero_stage) return false;
  return a.micro_batch == b.micro_batch || a.recompute == b.recompute;
}

std::string shares_text(const char* name, double was_ratio, double is_ratio) {
  return was_ratio == 0 && is_ratio == 0 ? "" : std::string(name) + " " + percent_text(was_ratio) + " to " + percent_text(is_ratio) + " of the step";
}

}  // namespace

std::string settings_text(const TrainSettings& s) {
  return layout_text(s.layout) + ", micro-batch " + std::to_string(s.micro_batch) + ", recompute " + std::string(recompute_name(s.recompute)) + ", zero " + std::to_string(s.zero_stage);
}

void advise_layout(const Rules& rules) {
  if (rules.one.settings.gpus <= 1) return;
  const auto found = search_layouts(rules.steps, rules.one.settings);
  if (!found.ok() || found->best.empty()) return;
  const Found& best = found->best.front();
  const double gain = best.step.tokens_per_second / rules.one.step.tokens_per_second - 1;
  if (differs_in_one(best.settings, rules.one.settings) || (gain < kLayoutGainLeast && rules.fits())) return;
  const Breakdown &was = rules.one.step.breakdown, &is = best.step.breakdown;
  const auto messages = [](const Breakdown& b) {
    return b.tensor_parallel_seconds + b.data_parallel_seconds + b.context_parallel_seconds + b.expert_parallel_seconds + b.pipeline_parallel_seconds;
  };
  const std::string sent = shares_text("messages", messages(was) / was.total_seconds(), messages(is) / is.total_seconds());
  const std::string bubble = shares_text("bubble", was.pipeline_bubble_seconds / was.total_seconds(), is.pipeline_bubble_seconds / is.total_seconds());
  propose(rules, {"layout", "another layout: " + settings_text(best.settings), best.settings, Confidence::kMedium,
                  "best of " + std::to_string(found->fitting_total) + " layouts that fit, of " + std::to_string(found->tried_total) + " that divide" + (sent.empty() && bubble.empty() ? "" : ": ") + sent +
                      (sent.empty() || bubble.empty() ? "" : ", ") + bubble,
                  "checkpoints may have to be resharded; measure the first three of the search", "search over the step model", Saves::kOther});
}

void advise_placement(const Rules& rules) {
  const TrainSettings& s = rules.one.settings;
  const Fabric& fabric = rules.steps.fabric();
  if (s.layout.tensor <= fabric.node_gpus) return;
  TrainSettings better = s;
  better.layout.tensor = fabric.node_gpus;
  better.layout.data = s.layout.data * (s.layout.tensor / fabric.node_gpus);
  if (better.layout.tensor * better.layout.pipeline * better.layout.context * better.layout.data != s.gpus || s.global_batch % (s.micro_batch * better.layout.data) != 0) return;
  propose(rules, {"placement", "tensor parallelism inside a node (--tp " + std::to_string(better.layout.tensor) + ")", better, Confidence::kHigh,
                  "groups of " + std::to_string(s.layout.tensor) + " cross the network at " + number_text(fabric.network_rate.value / 1e9, "%.0f") + " GB/s instead of " +
                      number_text(fabric.node_rate.value / 1e9, "%.0f") + " GB/s in each direction",
                  "", "alpha-beta model of docs/tune.md", Saves::kIdle});
}

void advise_algorithm(const Rules& rules) {
  const auto forced = environment(rules, "NCCL_ALGO");
  if (!forced || rules.one.settings.layout.data * rules.one.settings.layout.context <= 1) return;
  if (rules.one.settings.zero_stage >= 1) {
    // A tree has a root: NCCL sums into all and spreads to all with it, and has none where each GPU keeps a part.
    rules.out.rejected.push_back({"collective_algorithm", "NCCL_ALGO=" + *forced + " not set", "gradients are reduce-scattered and weights gathered (ZeRO " + std::to_string(rules.one.settings.zero_stage) +
                                                                                               "), for which there is no tree to choose; the rule compares all-reduces"});
    return;
  }
  const Gradients gradients = gradients_of(rules);
  const bool tree = forced->find("ree") != std::string::npos;
  const double now = all_reduce_time(rules.steps.fabric(), gradients.group, units::Bytes(gradients.bytes), tree ? Algorithm::kTree : Algorithm::kRing).value;
  const Chosen best = all_reduce_time(rules.steps.fabric(), gradients.group, units::Bytes(gradients.bytes));
  if (best.time.value >= 0.98 * now) return;
  const double exposed = rules.share(rules.one.step.breakdown.data_parallel_seconds);
  const double gain = amdahl_ratio(exposed, now / best.time.value) - 1;
  if (gain < kGainLeastRatio) return;
  Advice advice;
  advice.id = "collective_algorithm";
  advice.change = "NCCL_ALGO=" + *forced + " not set: NCCL chooses by message and size";
  advice.confidence = Confidence::kLow;
  advice.why = "for gradients of " + number_text(gradients.bytes / 1e6, "%.0f") + " MB over " + std::to_string(gradients.group.count) + " GPUs the " + std::string(algorithm_name(best.algorithm)) +
               " takes " + number_text(best.time.value * 1e3, "%.2f") + " ms, the forced one " + number_text(now * 1e3, "%.2f") + " ms";
  advice.source = "alpha-beta model; NCCL's planning constants, not measurements of this cluster";
  advice.saves = Saves::kIdle;
  advise(rules, std::move(advice), gain);
}

void advise_compression(const Rules& rules) {
  const TrainSettings& s = rules.one.settings;
  const double exposed = rules.share(rules.one.step.breakdown.data_parallel_seconds);
  if (s.layout.data <= 1 || exposed < kExposedLeast) return;
  const std::string change = "gradients compressed for the exchange";
  const Gradients gradients = gradients_of(rules);
  if (s.zero_stage >= 2) {
    rules.out.rejected.push_back({"gradient_compression", change, "gradients are reduce-scattered (ZeRO " + std::to_string(s.zero_stage) + "): neither top-k nor error feedback goes with that"});
    return;
  }
  if (gradients.group.nodes() <= 1 || rules.steps.fabric().network_rate.value > kSlowNetwork) {
    rules.out.rejected.push_back({"gradient_compression", change, "links of more than 10 GB/s for each GPU: what it saves is less than what it costs; overlap the exchange first"});
    return;
  }
  const double gpus = static_cast<double>(s.layout.data);
  const double gradient_bytes = state_bytes(s).gradients_bytes;
  const double top_k = 1 / top_k_traffic_ratio(kTopKDensity, gpus, gradient_bytes), int8 = kInt8FromBf16 * gradient_bytes / 2;
  const bool sparse = top_k > int8;
  Advice advice;
  advice.id = "gradient_compression";
  advice.change = sparse ? "top-k gradients of 0.1 % density with error feedback" : "INT8 gradients";
  advice.confidence = Confidence::kLow;
  advice.why = "the exchange takes " + percent_text(exposed) + " of the step over " + number_text(rules.steps.fabric().network_rate.value / 1e9, "%.1f") + " GB/s for each GPU; traffic falls to 1/" +
               number_text(sparse ? top_k : int8, "%.1f") + (sparse ? ". Top-k has to be gathered from all GPUs: worth it only below a density of about 1/n" : ". INT8 is half of BF16, never a hundredth");
  advice.price = "accuracy: compare loss curves; warm-up without it";
  advice.source = "Lin et al. 2018, arXiv 1712.01887";
  advice.saves = Saves::kIdle;
  advise(rules, std::move(advice), amdahl_ratio(exposed, sparse ? top_k : int8) - 1);
}

}  // namespace flopsight::tuning
