#pragma once
// What is known of a training run that is audited: the model and how it is trained, the GPUs, what the framework claims, what was
// measured. Nothing is assumed here; what is not known is absent.
//
// Units: FLOP/s, tokens/s, seconds; ratios 0-1, except that a claimed MFU may be above 1 (a wrong one often is).
// Threads: plain values.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "catalog/devices.h"
#include "flops/count.h"

namespace flopsight::audit {

// How the GPUs share the work; of each only what is known.
struct Layout {
  std::optional<std::uint64_t> gpus;
  std::optional<std::uint64_t> tensor_parallel;
  std::optional<std::uint64_t> pipeline_parallel;
  std::optional<std::uint64_t> context_parallel;
  std::optional<std::uint64_t> expert_parallel;
  std::optional<std::uint64_t> gradient_accumulation;  // micro-batches of a step on one GPU
};

struct Run {
  flops::Model model;                // with adapters, where they are trained
  bool has_adapters = false;
  // Prediction steps that are trained: absent where nobody said.
  std::optional<std::uint64_t> prediction_steps;
  std::optional<std::uint64_t> sequence_tokens;
  std::optional<std::uint64_t> document_tokens;  // mean length of packed documents that do not see each other
  std::optional<flops::Recompute> recompute;
  const catalog::Device* device = nullptr;  // nullptr: not in the catalogue; owned by the catalogue
  std::string unknown_device;               // then what the catalogue says of its name, where one was given (DeviceCatalog::not_found)
  std::optional<catalog::Precision> precision;  // of the linear layers inside blocks
  Layout layout;
  std::optional<double> padding_ratio;     // of the tokens, 0-1
  std::optional<double> productive_ratio;  // time that the claim is about over time that OFU is about, 0-1
  std::optional<double> capacity_ratio;    // of experts whose batches are padded to it, 1 or more
  // Why the claim is not of this model: then nothing is compared. "the log prints 61 layers, the configuration has 32".
  std::vector<std::string> contradictions;
};

// What the framework printed.
struct Claim {
  std::optional<double> mfu_ratio;
  std::optional<double> flops_per_second_per_gpu;
  std::optional<double> tokens_per_second_per_gpu;
  std::optional<double> drift_ratio;            // rate of the last steps over that of the first ones
  std::optional<double> peak_flops_per_second;  // that it divides by: printed, or rate over MFU
};

}  // namespace flopsight::audit
