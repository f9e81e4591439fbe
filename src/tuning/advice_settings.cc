#include <algorithm>
#include <array>

#include "gemm/tile.h"
#include "tuning/advice_internal.h"
#include "tuning/formulas.h"

namespace flopsight::tuning {
namespace {

using catalog::Precision;
using flops::Recompute;

constexpr std::uint64_t kAlignBytes = 16;        // of rows that wide loads can read
constexpr std::uint64_t kEfficientBytes = 128;   // of rows that are read well
constexpr double kOnceLeastRatio = 0.05;         // of a step, before another global batch is worth its price
constexpr double kDominantRatio = 0.5;           // of the memory that is needed
constexpr double kGibibyte = 1073741824.0;
constexpr double kMisalignedFactor = 1.25;       // five sectors of 32 bytes touched instead of four

std::string text(std::uint64_t n) { return std::to_string(n); }

// What runs forward a second time.
std::string_view recompute_text(Recompute level) {
  constexpr std::array<std::string_view, 3> kTexts = {"keeping all activations", "recomputing the core of attention", "recomputing whole blocks"};
  return kTexts[static_cast<std::size_t>(level)];
}

}  // namespace

void advise_micro_batch(const Rules& rules) {
  const TrainSettings& now = rules.one.settings;
  TrainSettings best = now;
  // Where it does not fit as it is, the quickest that does.
  double best_rate = rules.fits() ? rules.one.step.tokens_per_second * (1 + kGainLeastRatio) : 0;
  for (std::uint64_t size = 1; size <= 64; size *= 2) {
    TrainSettings s = now;
    s.micro_batch = size;
    if (size == now.micro_batch || s.global_batch % (size * s.layout.data) != 0) continue;
    const auto step = rules.steps.predict(s);
    if (!step.ok() || step->tokens_per_second <= best_rate || !rules.fits(s)) continue;
    best = s;
    best_rate = step->tokens_per_second;
  }
  if (best.micro_batch == now.micro_batch) return;
  const bool larger = best.micro_batch > now.micro_batch;
  propose(rules, {"micro_batch", "micro-batches of " + text(best.micro_batch) + (best.micro_batch == 1 ? " sequence" : " sequences") + " instead of " + text(now.micro_batch) + " (--micro-batch " + text(best.micro_batch) + ")", best, Confidence::kMedium,
                  !rules.fits() ? "" : larger ? "larger products fill tiles and waves better, and weights are gathered less often for each token"
                         : "more micro-batches make the pipeline's bubble smaller",
                  "", "tile and wave model (arXiv 2401.14489); bubble (p-1)/(v*m+p-1) (arXiv 2104.04473)", larger ? Saves::kOther : Saves::kIdle});
}

void advise_recompute(const Rules& rules) {
  const TrainSettings& now = rules.one.settings;
  for (const Recompute level : {Recompute::kNone, Recompute::kSelective, Recompute::kFull}) {
    if (level == now.recompute) continue;
    TrainSettings s = now;
    s.recompute = level;
    const auto after = rules.steps.predict(s);
    const double saved_seconds = after.ok() ? rules.one.step.step_seconds() - after->step_seconds() : 0;
    const std::string what = std::string(recompute_text(level)) + " instead of " + std::string(recompute_text(now.recompute)) + " (--recompute " + std::string(recompute_name(level)) + ")";
    if (propose(rules, {"recompute", what, s, Confidence::kHigh,
                        rules.fits() ? std::string(now.recompute == Recompute::kFull ? "running blocks forward again takes " : "computing scores again takes ") + percent_text(rules.share(saved_seconds)) + " of the step, and the memory is there without" : "",
                        "", "Korthikanti et al. 2022, arXiv 2205.05198", Saves::kCompute})) {
      return;
    }
  }
}

void advise_precision(const Rules& rules) {
  const TrainSettings& now = rules.one.settings;
  TrainSettings s = now;
  const bool wide = is_wide(now.precision);
  if (wide) {
    s.precision = rules.steps.rates().sixteen_bit();
    const bool bf16 = s.precision == Precision::kBf16;
    propose(rules, {"precision", std::string("products in ") + (bf16 ? "BF16" : "FP16") + " (--precision " + std::string(catalog::precision_name(s.precision)) + ")", s, Confidence::kHigh,
                    "16-bit products run at a multiple of the rate; master weights and moments stay in FP32",
                    bf16 ? "BF16 has FP32's range: no loss scaling" : "FP16 needs dynamic loss scaling: it ends at 65,504 and 5.96e-8",
                    "peaks of the catalogue; Micikevicius et al. 2018, arXiv 1710.03740", Saves::kCompute});
    return;
  }
  if (now.precision != Precision::kBf16 && now.precision != Precision::kFp16) return;
  if (!rules.steps.rates().peak_flops_per_second(Precision::kFp8).ok()) return;
  s.precision = Precision::kFp8;
  const double linear = rules.share(rules.one.step.products_linear_seconds), bubble = rules.share(rules.one.step.breakdown.pipeline_bubble_seconds);
  propose(rules, {"precision", "FP8 for the linear layers of blocks (--precision fp8)", s, Confidence::kMedium,
                  percent_text(linear) + " of the step are linear layers" +
                      (bubble > kGainLeastRatio ? ", and the pipeline's bubble, " + percent_text(bubble) + ", is a wait for them and shrinks with them" : "") + "; the measured ratio of FP8 to BF16 products is 1.77 on an H100, not 2, and casts take some of it",
                  "accuracy depends on the recipe (scaling by tensor, block or row): compare loss curves first; attention, head and router stay in BF16",
                  "1/((1-x)+x/r); torchtitan, Llama-3.1-8B on 8 H100: 1.28 measured", Saves::kCompute});
}

void advise_fused_kernels(const Rules& rules) {
  if (rules.one.settings.kernels == Kernels::kFused) return;
  TrainSettings s = rules.one.settings;
  s.kernels = Kernels::kFused;
  propose(rules, {"fused_kernels", "fused norms, activations, loss and optimizer, or torch.compile (which is not on by itself)", s, Confidence::kMedium,
                  "memory-bound kernels take " + percent_text(rules.share(rules.one.step.breakdown.memory_seconds)) + " of the step, and move each value several times",
                  "compiling takes minutes at the start, and again for new shapes", "passes over memory, counted; torchtitan, Llama-3.1-8B: 1.157 measured", Saves::kMemory});
}

void advise_attention(const Rules& rules) {
  const TrainSettings& now = rules.one.settings;
  // FlashAttention takes 16-bit inputs; in wider formats there is one fused kernel, which keeps no scores either.
  const bool wide = is_wide(now.precision);
  const AttentionKernel best = rules.steps.rates().is_hopper_or_newer() && !wide ? AttentionKernel::kFlash3 : rules.steps.rates().usual_attention();
  if (now.attention == best || now.attention == AttentionKernel::kFlash3 || (wide && now.attention != AttentionKernel::kStandard)) return;
  TrainSettings s = now;
  s.attention = best;
  const bool standard = now.attention == AttentionKernel::kStandard;
  const double scores = rules.one.memory.activations_bytes - train_memory(rules.steps.model(), s, rules.steps.rates().device()).activations_bytes;
  // Scores that are written and read are in the memory-bound kernels.
  const auto without = rules.steps.predict(s);
  const double written = standard && without.ok() ? std::max(0.0, rules.one.step.elementwise_seconds - without->elementwise_seconds) : 0;
  propose(rules, {"io_aware_attention", std::string(wide ? "memory-efficient attention, fused and in the run's format" : best == AttentionKernel::kFlash3 ? "FlashAttention-3 or cuDNN's fused attention" : best == AttentionKernel::kFlash1 ? "memory-efficient attention, which keeps no scores" : "FlashAttention-2"), s,
                  standard ? Confidence::kHigh : Confidence::kMedium,
                  "attention takes " + percent_text(rules.share(rules.one.step.attention_seconds)) + " of the step" +
                      (standard ? ", and writing and reading its scores " + percent_text(rules.share(written)) : "") + ", which bounds the gain" +
                      (standard ? "; they take " + number_text(scores / kGibibyte, "%.1f") + " GiB" : ""),
                  wide ? "FlashAttention itself takes 16-bit inputs: together with --precision" : "", "arXiv 2205.14135, 2307.08691, 2407.08608", standard ? Saves::kMemory : Saves::kCompute, standard, scores > kDominantRatio * rules.one.memory.total_bytes()});
}

void advise_optimizer(const Rules& rules) {
  const TrainSettings& now = rules.one.settings;
  TrainSettings s = now;
  if (now.zero_stage == 0 && now.layout.data * now.layout.context > 1) {
    s.zero_stage = 1;
    propose(rules, {"shard_optimizer", "the optimizer's state divided over the data-parallel GPUs, of which each updates its part of the weights (--zero 1)", s, Confidence::kHigh, "the optimizer's state and its step are divided",
                    "", "Rajbhandari et al. 2019, arXiv 1910.02054", Saves::kMemory});
  }
  s = now;
  if (now.fp32_gradients) {
    s.fp32_gradients = false;
    propose(rules, {"gradient_precision", "gradients in BF16 instead of FP32", s, Confidence::kMedium, "half the bytes to reduce and to add up",
                    "sums over many micro-batches lose low bits: compare loss curves", "bytes a parameter: 18 to 16", Saves::kOther});
  }
  // Narrower moments pay where the memory they free does: less recomputation, or a run that fits at all.
  if (now.optimizer != Optimizer::kAdam || (rules.fits() && now.recompute == Recompute::kNone)) return;
  for (const Optimizer optimizer : {Optimizer::kAdamBf16, Optimizer::kAdam8Bit}) {
    s = now;
    s.optimizer = optimizer;
    if (rules.fits()) s.recompute = Recompute::kNone;
    const bool alone = rules.fits();
    TrainSettings without = now;
    without.recompute = Recompute::kNone;
    if (alone && rules.fits(without)) return;
    if (propose(rules, {"optimizer_precision", std::string("the optimizer's moments in ") + (optimizer == Optimizer::kAdamBf16 ? "BF16" : "8 bits") + " (--optimizer " + std::string(optimizer_name(optimizer)) + ")" +
                                                   (alone ? ", which leaves room for keeping all activations (--recompute none)" : ""), s, Confidence::kLow,
                        "moments take " + number_text(state_bytes(s).optimizer_bytes, "%.0f") + " instead of " + number_text(state_bytes(now).optimizer_bytes, "%.0f") + " bytes a parameter, master copy included",
                        "convergence is to be checked", "Dettmers et al. 2022, arXiv 2110.02861", Saves::kCompute})) {
      return;
    }
  }
}

void advise_overlap(const Rules& rules) {
  const TrainSettings& now = rules.one.settings;
  const Breakdown& b = rules.one.step.breakdown;
  TrainSettings s = now;
  if (!now.overlap_data && b.data_parallel_seconds > 0) {
    s.overlap_data = true;
    propose(rules, {"overlap_data_parallel", "gradients and weights exchanged while products run", s, Confidence::kHigh,
                    percent_text(rules.share(b.data_parallel_seconds)) + " of the step wait for them; the first and last bucket stay exposed", "", "T = max(compute (1+c), messages)", Saves::kIdle});
  }
  s = now;
  if (!now.overlap_tensor && now.layout.tensor > 1) {
    s.overlap_tensor = true;
    propose(rules, {"overlap_tensor_parallel", "tensor-parallel messages in pieces beside products (async TP, user buffers)", s, Confidence::kMedium,
                    percent_text(rules.share(b.tensor_parallel_seconds)) + " of the step wait for them", "",
                    "torchtitan, async TP: 1.09 to 1.10 measured", Saves::kIdle});
  }
  s = now;
  if (!now.overlap_expert && now.layout.expert > 1) {
    s.overlap_expert = true;
    propose(rules, {"overlap_expert_parallel", "tokens sent to experts beside other products", s, Confidence::kMedium,
                    percent_text(rules.share(b.expert_parallel_seconds)) + " of the step wait for them", "", "DeepSeek-V3, arXiv 2412.19437; DeepEP", Saves::kIdle});
  }
}

void advise_dispatch(const Rules& rules) {
  const TrainSettings& now = rules.one.settings;
  if (now.layout.expert <= 1 || now.dispatch == Dispatch::kOnce) return;
  TrainSettings s = now;
  s.dispatch = Dispatch::kOnce;
  propose(rules, {"expert_dispatch", "--dispatch deepep: a token goes once to each GPU that has one of its experts, and once over the network to each node", s, Confidence::kMedium,
                  percent_text(rules.share(rules.one.step.breakdown.expert_parallel_seconds)) + " of the step wait for tokens that go to and from experts, to each of them separately",
                  "kernels of their own (DeepEP, HybridEP) that take SMs", "DeepSeek-V3, arXiv 2412.19437, section 3.2.2", Saves::kIdle});
}

void advise_sequence_parallel(const Rules& rules) {
  if (rules.one.settings.sequence_parallel || rules.one.settings.layout.tensor <= 1) return;
  TrainSettings s = rules.one.settings;
  s.sequence_parallel = true;
  propose(rules, {"sequence_parallel", "sequence parallelism between tensor-parallel parts", s, Confidence::kHigh,
                  "norms and residuals are computed and kept in full by every GPU of the group; the messages have the same volume", "", "Korthikanti et al. 2022, arXiv 2205.05198", Saves::kMemory});
}

// Rows of products should be multiples of 16 bytes to be read by wide loads, and of 128 to be read well (NVIDIA, Matrix Multiplication
// Background User's Guide); sizes after tensor parallelism. The head's odd vocabulary is the usual case.
void advise_alignment(const Rules& rules) {
  const TrainSettings& now = rules.one.settings;
  const flops::Model& model = rules.steps.model();
  const double bytes = gemm::element_bytes(rules.steps.rates().sixteen_bit());
  const auto to_elements = [&](std::uint64_t row_bytes) { return static_cast<std::uint64_t>(static_cast<double>(row_bytes) / bytes); };
  struct Dimension {
    const char* name;
    std::uint64_t size;
    double share;
  };
  const double head_flops = 2.0 * static_cast<double>(model.shape.head_size) * static_cast<double>(model.shape.hidden_size);
  const double head_share = 3 * head_flops / std::max(1.0, flops::train_cost(model, now.workload()).total());
  const double products = rules.share(rules.one.step.products_seconds);
  const Dimension dimensions[] = {{"vocabulary", model.shape.head_size == model.shape.vocab_size ? model.shape.head_size : 0, head_share * products},
                                  {"feed-forward width", model.shape.intermediate_size, (1 - head_share) * products * 0.5},
                                  {"hidden size", model.shape.hidden_size, products}};
  for (const Dimension& d : dimensions) {
    const std::uint64_t part = d.size / now.layout.tensor;
    if (d.size == 0 || part % to_elements(kAlignBytes) == 0) continue;
    const std::uint64_t multiple = to_elements(kEfficientBytes) * now.layout.tensor;
    const std::uint64_t padded = (d.size + multiple - 1) / multiple * multiple;
    const double more = static_cast<double>(padded) / static_cast<double>(d.size);
    const double gain = amdahl_ratio(d.share, kMisalignedFactor / more) - 1;
    if (gain < kGainLeastRatio) continue;
    Advice advice;
    advice.id = "alignment";
    advice.change = std::string(d.name) + " " + text(d.size) + " padded to " + text(padded);
    advice.confidence = Confidence::kLow;
    advice.why = "rows of " + text(part) + " elements on a GPU are no multiple of 16 bytes: a read of 128 bytes touches five sectors instead of four. By tiles and waves alone nothing is gained";
    advice.price = std::string(d.name) == "vocabulary" ? "the new rows must be masked or never be sampled" : "it is another model: only before training";
    advice.source = "NVIDIA, Matrix Multiplication Background User's Guide; sectors of 32 bytes";
    advice.saves = Saves::kCompute;
    advise(rules, std::move(advice), gain);
  }
}

void advise_accumulation(const Rules& rules) {
  const TrainSettings& now = rules.one.settings;
  const Breakdown& b = rules.one.step.breakdown;
  // Without what the last stage's head makes the others wait for, which comes with every micro-batch.
  const double bubble = bubble_ratio(static_cast<double>(now.layout.pipeline), static_cast<double>(now.layout.virtual_stages), static_cast<double>(now.accumulation()));
  const double once = b.data_parallel_seconds * (now.zero_stage >= 3 ? 0 : 1) + bubble * rules.one.step.step_seconds();
  if (rules.share(once) < kOnceLeastRatio) return;
  TrainSettings s = now;
  s.global_batch = now.global_batch * 2;
  propose(rules, {"gradient_accumulation", "twice as many micro-batches in a step (--global-batch " + text(s.global_batch) + ")", s, Confidence::kMedium,
                  percent_text(rules.share(once)) + " of the step are there once however many micro-batches there are: exchange of gradients and bubble; accumulation lowers "
                  "traffic for each token, it does not raise it",
                  "another global batch: learning rate and schedule have to follow; the loss must be normalized by the tokens of the whole batch",
                  "T = m T_micro + exposed; arXiv 2104.04473", Saves::kIdle});
}

}  // namespace flopsight::tuning
