#pragma once
// The quickest layouts that fit into memory, out of all that divide the GPUs, the model and the batch: tensor, pipeline, interleaving, context,
// expert and data parallelism, micro-batch, recomputation and ZeRO stage. Memory is asked first, because it is cheap; what is left is
// predicted by StepModel. Tensor parallelism stays inside a node, context parallelism is for sequences of 8,192 tokens a GPU and more.
// Threads: as StepModel.

#include <cstdint>
#include <vector>

#include "base/result.h"
#include "tuning/memory.h"
#include "tuning/step.h"

namespace flopsight::tuning {

struct Found {
  TrainSettings settings;
  Step step;
  Memory memory;
};

struct SearchOptions {
  std::size_t keep = 5;           // of the quickest
  bool layouts = true;            // or only micro-batch, recomputation and ZeRO stage with the layout as it is
  std::uint64_t micro_batch_max = 64;
};

struct SearchResult {
  std::vector<Found> best;  // quickest first; empty where nothing fits
  std::uint64_t tried_total = 0;    // that divide
  std::uint64_t fitting_total = 0;  // of these
};

// `start` has everything that is not searched. Errors: kUnsupported where the memory of the GPU is not known.
base::Result<SearchResult> search_layouts(StepModel& steps, const TrainSettings& start, const SearchOptions& options = {});

}  // namespace flopsight::tuning
