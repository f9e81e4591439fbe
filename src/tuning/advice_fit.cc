// Where no single change makes a run fit: several at once, or what would be needed.

#include <algorithm>
#include <array>

#include "tuning/advice_internal.h"
#include "tuning/search.h"

namespace flopsight::tuning {
namespace {

using flops::Recompute;

constexpr double kGibibyte = 1073741824.0;

struct Recipe {
  Optimizer optimizer;
  bool has_master = true;
  std::string_view price;
};
// From what costs nothing to what costs most.
constexpr std::array<Recipe, 4> kRecipes = {{
    {Optimizer::kAdam, true, ""},
    {Optimizer::kAdamBf16, true, "convergence is to be checked: moments in BF16"},
    {Optimizer::kAdam8Bit, true, "convergence is to be checked: moments in 8 bits"},
    {Optimizer::kAdam8Bit, false, "convergence is to be checked: moments in 8 bits, and small updates of 16-bit weights are lost"},
}};

// All that makes activations and states small, with the layout as it is.
TrainSettings smallest(const Rules& rules, const Recipe& recipe) {
  const TrainSettings& now = rules.one.settings;
  TrainSettings s = now;
  s.recompute = Recompute::kFull;
  s.micro_batch = 1;
  if (s.layout.virtual_stages > 1 && s.accumulation() % s.layout.pipeline != 0) s.layout.virtual_stages = 1;
  if (s.attention == AttentionKernel::kStandard) s.attention = rules.steps.rates().usual_attention();
  if (s.layout.data * s.layout.context > 1) s.zero_stage = 3;
  s.optimizer = recipe.optimizer;
  s.fp32_master = recipe.has_master && now.fp32_master;
  return s;
}

std::string change_text(const TrainSettings& now, const TrainSettings& s) {
  std::string out = settings_text(s);
  if (s.optimizer != now.optimizer) out += ", --optimizer " + std::string(optimizer_name(s.optimizer));
  if (s.fp32_master != now.fp32_master) out += ", --no-master-weights";
  if (s.attention != now.attention) out += ", --attention " + std::string(attention_kernel_name(s.attention));
  return out;
}

bool propose_recipe(const Rules& rules, const Recipe& recipe) {
  const TrainSettings now = rules.one.settings;
  TrainSettings s = smallest(rules, recipe);
  if (state_bytes(s).total_bytes() > state_bytes(now).total_bytes()) return false;  // the run has less already
  if (!rules.fits(s)) {
    const auto found = search_layouts(rules.steps, s);
    if (!found.ok() || found->best.empty()) return false;
    s = found->best.front().settings;
  }
  return propose(rules, {"fit", change_text(now, s), s, Confidence::kMedium, "no single change is enough", std::string(recipe.price), "the formulas of memory in docs/tune.md", Saves::kOther});
}

// The fewest GPUs, by doubling, that hold the run with all that makes it small; 0 where none do.
std::uint64_t gpus_needed(const Rules& rules, TrainSettings s) {
  s.zero_stage = 3;
  while (s.gpus <= kGpusMax / 2) {
    s.gpus *= 2;
    s.layout.data *= 2;
    if (train_memory(rules.steps.model(), s, rules.steps.rates().device()).fits().value_or(true)) return s.gpus;
  }
  return 0;
}

}  // namespace

void advise_fit(const Rules& rules) {
  if (rules.fits() || std::any_of(rules.out.advice.begin(), rules.out.advice.end(), [](const Advice& a) { return a.makes_it_fit; })) return;
  for (const Recipe& recipe : kRecipes) {
    if (propose_recipe(rules, recipe)) return;
  }
  const TrainSettings least = smallest(rules, kRecipes.back());
  const Memory memory = train_memory(rules.steps.model(), least, rules.steps.rates().device());
  const std::uint64_t gpus = gpus_needed(rules, smallest(rules, kRecipes.front()));
  rules.out.rejected.push_back({"fit", "this model on " + std::to_string(rules.one.settings.gpus) + " GPUs as they are",
                                "with --micro-batch 1, --recompute full, 8-bit moments and no FP32 copy a GPU still needs " + number_text(memory.total_bytes() / kGibibyte, "%.1f") + " GiB of " +
                                    number_text(memory.capacity_bytes.value_or(0) / kGibibyte, "%.1f") + ", and no layout that was tried fits" +
                                    (gpus > 0 ? "; " + std::to_string(gpus) + " such GPUs would hold it with FP32 moments, --zero 3 and --recompute full" : "") +
                                    ". Adapters (LoRA) train without states of the frozen weights, which is not predicted"});
}

}  // namespace flopsight::tuning
