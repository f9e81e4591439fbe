#include <algorithm>
#include <array>
#include <cmath>

#include "base/text.h"
#include "tuning/advice_internal.h"
#include "tuning/formulas.h"

namespace flopsight::tuning {
namespace {

constexpr double kClockLossLeast = 0.03;     // of the time
constexpr double kInputIdleLeast = 0.1;      // idle beyond what messages explain
constexpr double kIntervalFarRatio = 1.25;   // off the best interval by less than this costs little: the optimum is flat

enum class Traffic : std::uint8_t { kAny, kBetweenGpus, kInNode, kBetweenNodes };  // that a run has to have for a flag to cost anything

struct Flag {
  std::string_view name;
  std::string_view bad;  // the value that is meant, in capitals or not; empty: any but 0, false and nothing
  std::string_view costs;
  Traffic traffic = Traffic::kAny;
};
constexpr std::array<Flag, 18> kFlags = {{
    {"TORCH_DISTRIBUTED_DEBUG", "DETAIL", "checks every collective on all ranks and logs: a regression of 2.5 times was seen from it (arXiv 2605.20799)"},
    {"TORCH_DISTRIBUTED_DEBUG", "INFO", "logs and times collectives"},
    {"CUDA_LAUNCH_BLOCKING", "", "the host waits for every kernel: nothing is launched ahead"},
    {"NCCL_DEBUG", "TRACE", "writes a line for each call", Traffic::kBetweenGpus},
    {"NCCL_DEBUG", "INFO", "writes at start and for each communicator; harmless in a long run, but seldom meant", Traffic::kBetweenGpus},
    {"NCCL_P2P_DISABLE", "", "GPUs of a node talk through host memory instead of NVLink", Traffic::kInNode},
    {"NCCL_IB_DISABLE", "", "nodes talk by TCP sockets instead of InfiniBand", Traffic::kBetweenNodes},
    {"NCCL_SHM_DISABLE", "", "processes of a node talk over the network", Traffic::kInNode},
    {"NCCL_NET_GDR_LEVEL", "LOC", "messages are staged in host memory", Traffic::kBetweenNodes},
    {"NCCL_PROTO", "LL", "the protocol for small messages carries four bytes of data in eight", Traffic::kBetweenGpus},
    {"PYTORCH_NO_CUDA_MEMORY_CACHING", "", "every tensor is allocated by the driver, which waits for the GPU"},
    {"TORCHDYNAMO_DISABLE", "", "torch.compile does nothing"},
    {"TORCH_COMPILE_DISABLE", "", "torch.compile does nothing"},
    {"NVTE_FLASH_ATTN", "0", "Transformer Engine may not use its flash kernels"},
    {"NVTE_FUSED_ATTN", "0", "Transformer Engine may not use cuDNN's fused attention"},
    {"NVIDIA_TF32_OVERRIDE", "0", "FP32 products do not use tensor cores"},
    {"CUDA_DISABLE_PERF_BOOST", "", "the driver keeps clocks low"},
    {"PYTHONASYNCIODEBUG", "", "the event loop checks itself"},
}};

// PyTorch and NCCL read words in capitals and small letters alike (c10d/debug.cpp; NCCL compares them so as well).
bool is_on(const Flag& flag, std::string_view value) {
  const std::string word = base::to_lower(value);
  if (!flag.bad.empty()) return word == base::to_lower(flag.bad);
  return !word.empty() && word != "0" && word != "false";
}

// Why there is nothing that the flag could slow down; empty: there is.
std::string_view no_traffic(Traffic traffic, std::uint64_t gpus, std::uint64_t node_gpus) {
  if (traffic == Traffic::kAny) return {};
  if (gpus == 1) return "there is one GPU, and no messages";
  if (traffic == Traffic::kBetweenNodes && gpus <= node_gpus) return "all GPUs are in one node, and there are no messages between nodes";
  if (traffic == Traffic::kInNode && node_gpus == 1) return "there is one GPU in a node, and there are no messages inside of nodes";
  return {};
}

// Documents longer than a sequence fill one: with and without packing, what is beyond it is cut off.
Histogram cut_to(const Histogram& lengths, std::uint64_t tokens, double& longer, double& all) {
  Histogram out = lengths;
  for (auto& entry : out) {
    all += entry.second;
    if (entry.first > tokens) longer += entry.second;
    entry.first = std::min(entry.first, tokens);
  }
  return out;
}

}  // namespace

void advise_packing(const Rules& rules) {
  const Histogram& lengths = rules.one.lengths;
  if (lengths.empty() || !rules.one.settings.document_tokens.empty()) return;
  const std::uint64_t tokens = rules.one.settings.sequence_tokens;
  double longer = 0, all = 0;
  const Histogram cut = cut_to(lengths, tokens, longer, all);
  if (longer >= all) {
    rules.out.rejected.push_back({"packing", "several documents in a sequence", "all documents of --lengths are longer than --seq-len " + std::to_string(tokens) +
                                                                                  ": every sequence is full, whether they are cut or split, and there is no padding to save"});
    return;
  }
  const double padded = padded_to_length_ratio(cut, tokens), efficiency = packing_efficiency_ratio(cut, tokens);
  if (efficiency <= 0) return;
  const double gain = padded * efficiency - 1;
  if (gain < kGainLeastRatio) return;
  Advice advice;
  advice.id = "packing";
  advice.change = "several documents in a sequence, with a mask between them";
  advice.confidence = Confidence::kHigh;
  advice.why = "of sequences padded to " + std::to_string(tokens) + " tokens " + percent_text(1 - 1 / padded) + " is padding; first-fit-decreasing fills " + percent_text(efficiency) +
               ". The gain is in real tokens; padding each batch to its longest of eight would already give " +
               percent_text(padded / padded_in_batch_ratio(cut, 8) - 1) +
               (longer > 0 ? ". " + percent_text(longer / all) + " of the documents are longer, and counted as cut to that length" : "");
  advice.price = "the mask must keep documents apart, and FLOPs of attention count the sum of squares of lengths";
  advice.source = "lengths as given; Krell et al. 2021, arXiv 2107.02027";
  advise(rules, std::move(advice), gain);
}

void advise_checkpoints(const Rules& rules) {
  const TrainCase& one = rules.one;
  if (!one.checkpoint_seconds || !one.failure_seconds || !one.checkpoint_interval_seconds) return;
  const double best = daly_interval_seconds(*one.checkpoint_seconds, *one.failure_seconds), now = *one.checkpoint_interval_seconds, restart = one.restart_seconds.value_or(0);
  if (best <= 0 || (now < best * kIntervalFarRatio && now > best / kIntervalFarRatio)) return;
  const double before = productive_ratio(*one.checkpoint_seconds, now, restart, *one.failure_seconds), after = productive_ratio(*one.checkpoint_seconds, best, restart, *one.failure_seconds);
  if (after <= before) return;
  const double gain = after / before - 1;  // infinite where hardly any interval ends without a failure
  if (gain < kGainLeastRatio) return;
  Advice advice;
  advice.id = "checkpoint_interval";
  advice.change = "a checkpoint every " + number_text(best, "%.0f") + " s instead of " + number_text(now, "%.0f") + " s";
  advice.confidence = Confidence::kMedium;
  advice.why = "with " + number_text(*one.checkpoint_seconds, "%.0f") + " s for one and a failure every " + number_text(*one.failure_seconds / 3600, "%.1f") + " h, " + percent_text(before) +
               " of the time is productive, " + percent_text(after) + " at the best interval (Young: " + number_text(young_interval_seconds(*one.checkpoint_seconds, *one.failure_seconds), "%.0f") +
               " s, Daly: " + number_text(best, "%.0f") + " s). Asynchronous checkpoints make it shorter";
  advice.price = "the mean time between failures has to be of this job's size: failures of fleets differ by a factor of six (arXiv 2410.21680)";
  advice.source = "Young 1974; Daly 2006";
  if (!std::isfinite(gain)) {
    rules.out.advice.push_back(std::move(advice));
    return;
  }
  advise(rules, std::move(advice), gain);
}

void advise_debug_flags(const Rules& rules) {
  for (const std::string& entry : rules.one.environment) {
    const std::size_t at = entry.find('=');
    if (at == std::string::npos) continue;
    const std::string_view name(entry.data(), at), value = std::string_view(entry).substr(at + 1);
    for (const Flag& flag : kFlags) {
      if (flag.name != name || !is_on(flag, value)) continue;
      const std::string_view without = no_traffic(flag.traffic, rules.one.settings.gpus, rules.steps.fabric().node_gpus);
      if (!without.empty()) {
        rules.out.rejected.push_back({"debug_flag", std::string(name) + " not set to " + std::string(value), std::string(without)});
        continue;
      }
      Advice advice;
      advice.id = "debug_flag";
      advice.change = std::string(name) + " not set to " + std::string(value);
      advice.confidence = Confidence::kHigh;
      advice.why = std::string(flag.costs) + "; how much here is not predicted";
      advice.source = "list of flags in docs/tune.md";
      rules.out.advice.push_back(std::move(advice));
    }
  }
}

void advise_power(const Rules& rules) {
  if (!rules.one.measured || !rules.one.measured->clock_loss_ratio || !rules.one.measured->ofu_ratio) return;
  const double loss = *rules.one.measured->clock_loss_ratio, ofu = *rules.one.measured->ofu_ratio;
  if (loss < kClockLossLeast || ofu <= 0) return;
  // Of the tensor-active time only what the clock lost can come back; the rest of the step does not depend on it.
  Advice advice;
  advice.id = "power_and_clock";
  advice.change = "look at power caps, cooling and application clocks: tensor kernels run at " + percent_text(ofu / (ofu + loss)) + " of the reference clock";
  advice.confidence = Confidence::kLow;
  advice.why = "the clock costs " + percent_text(loss) + " of the capacity. 10 to 20 % below the reference is usual for saturated products under the board's power limit, and cannot be had back; "
               "hardware slowdown and power brake never are usual: read the event reasons";
  advice.source = "measured clock loss; DCGM's clock event reasons";
  advise(rules, std::move(advice), loss / (1 - loss));
}

void advise_input(const Rules& rules) {
  if (!rules.one.measured || !rules.one.measured->sm_idle_ratio) return;
  const Breakdown& b = rules.one.step.breakdown;
  const double explained = rules.share(b.tensor_parallel_seconds + b.context_parallel_seconds + b.expert_parallel_seconds + b.pipeline_bubble_seconds + b.pipeline_parallel_seconds +
                                       b.data_parallel_seconds + b.host_seconds);
  const double idle = *rules.one.measured->sm_idle_ratio, unexplained = idle - explained;
  if (unexplained < kInputIdleLeast) return;
  Advice advice;
  advice.id = "input_or_host";
  advice.change = "look at the input pipeline, checkpoints and the host: loader workers, prefetch, blocking logging";
  advice.confidence = Confidence::kLow;
  advice.why = "SMs are idle " + percent_text(idle) + " of the time; messages, bubble and launches explain " + percent_text(explained) +
               ". The gain is if all of the rest goes away, an upper bound; hung or slow ranks look the same from here";
  advice.source = "measured against predicted idle time";
  advice.saves = Saves::kIdle;
  advise(rules, std::move(advice), unexplained / (1 - unexplained));
}

}  // namespace flopsight::tuning
