#include "tuning/search.h"

#include <algorithm>

#include "flops/experts.h"

namespace flopsight::tuning {
namespace {

constexpr std::uint64_t kContextTokensLeast = 8192;
constexpr std::uint64_t kPipelineMax = 64;
constexpr std::uint64_t kVirtualMax = 16;
constexpr std::uint64_t kContextMax = 64;

std::vector<std::uint64_t> divisors(std::uint64_t n, std::uint64_t max) {
  std::vector<std::uint64_t> out;
  for (std::uint64_t d = 1; d <= std::min(n, max); ++d) {
    if (n % d == 0) out.push_back(d);
  }
  return out;
}

std::vector<std::uint64_t> powers(std::uint64_t max) {
  std::vector<std::uint64_t> out;
  for (std::uint64_t d = 1; d <= max; d *= 2) out.push_back(d);
  return out;
}

// Numbers of pipeline stages: what divides the blocks, and powers of two, whose stages may differ by a block.
std::vector<std::uint64_t> stages_of(std::uint64_t blocks, std::uint64_t max) {
  std::vector<std::uint64_t> out = divisors(blocks, max);
  for (const std::uint64_t power : powers(std::min(blocks, max))) {
    if (std::find(out.begin(), out.end(), power) == out.end()) out.push_back(power);
  }
  return out;
}

// Experts cut like the rest, or whole and on tensor-parallel GPUs as well.
std::vector<Layout> expert_layouts(const Layout& layout, std::uint64_t experts) {
  if (experts == 0) return {layout};
  std::vector<Layout> out;
  for (const std::uint64_t cut : {layout.tensor, std::uint64_t{1}}) {
    Layout one = layout;
    if (cut != layout.tensor) one.expert_tensor = cut;
    for (const std::uint64_t expert : powers(std::min(experts, layout.tensor * layout.context * layout.data / cut))) {
      one.expert = expert;
      out.push_back(one);
    }
    if (layout.tensor == 1) break;
  }
  return out;
}

struct Search {
  StepModel& steps;
  const SearchOptions& options;
  double capacity_bytes;
  SearchResult result;

  void keep(Found found) {
    const auto quicker = [](const Found& a, const Found& b) { return a.step.step_seconds() < b.step.step_seconds(); };
    result.best.insert(std::upper_bound(result.best.begin(), result.best.end(), found, quicker), std::move(found));
    if (result.best.size() > options.keep) result.best.pop_back();
  }

  void try_one(const TrainSettings& s) {
    if (!check_settings(steps.model(), s).ok()) return;
    ++result.tried_total;
    Memory memory = train_memory(steps.model(), s, steps.rates().device());
    if (memory.total_bytes() > capacity_bytes) return;
    const auto step = steps.predict(s);
    if (!step.ok()) return;
    ++result.fitting_total;
    keep({s, *step, memory});
  }

  // Of recomputation only the least that fits can be the quickest.
  void try_memory(TrainSettings s) {
    const std::uint64_t sequences = s.global_batch / s.layout.data;
    for (const std::uint64_t micro_batch : powers(std::min(options.micro_batch_max, sequences))) {
      if (sequences % micro_batch != 0) continue;
      s.micro_batch = micro_batch;
      std::vector<int> stages = {1};
      if (s.layout.pipeline == 1 && s.layout.data * s.layout.context > 1) stages.push_back(3);
      for (const int stage : stages) {
        s.zero_stage = stage;
        for (const flops::Recompute recompute : {flops::Recompute::kNone, flops::Recompute::kFull}) {
          s.recompute = recompute;
          const std::uint64_t before = result.fitting_total;
          try_one(s);
          if (result.fitting_total > before) break;
        }
      }
    }
  }

  void try_layouts(const TrainSettings& start) {
    const flops::Model& model = steps.model();
    const std::uint64_t experts = flops::routed_experts(model);
    for (const std::uint64_t tensor : powers(std::min(steps.fabric().node_gpus, start.gpus))) {
      for (const std::uint64_t pipeline : stages_of(model.shape.blocks, std::min(kPipelineMax, start.gpus / tensor))) {
        for (const std::uint64_t context : powers(std::min(kContextMax, std::max<std::uint64_t>(1, start.sequence_tokens / kContextTokensLeast)))) {
          const std::uint64_t each = tensor * pipeline * context;
          if (start.gpus % each != 0 || start.global_batch % (start.gpus / each) != 0) continue;
          TrainSettings s = start;
          s.layout = Layout{tensor, pipeline, 1, context, 1, start.gpus / each};
          const auto interleavings = pipeline == 1 ? std::vector<std::uint64_t>{1} : divisors((model.shape.blocks + pipeline - 1) / pipeline, kVirtualMax);
          for (const Layout& of_experts : expert_layouts(s.layout, experts)) {
            s.layout = of_experts;
            for (const std::uint64_t stages : interleavings) {
              s.layout.virtual_stages = stages;
              try_memory(s);
            }
          }
        }
      }
    }
  }
};

}  // namespace

base::Result<SearchResult> search_layouts(StepModel& steps, const TrainSettings& start, const SearchOptions& options) {
  const auto capacity = device_memory_bytes(steps.rates().device());
  if (!capacity) return base::Error{base::ErrorCode::kUnsupported, steps.rates().device().model + ": the catalogue does not say how much memory it has"};
  Search search{steps, options, *capacity, {}};
  if (options.layouts) {
    search.try_layouts(start);
  } else {
    search.try_memory(start);
  }
  return std::move(search.result);
}

}  // namespace flopsight::tuning
