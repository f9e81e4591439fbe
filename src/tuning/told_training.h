#pragma once
// How a job is trained, as others tell it beside its model (audit/told_model.h), under the key "training":
//
//   {"config": {…}, "seq_len": 8192, "precision": "bf16",
//    "training": {"global_batch": 512, "micro_batch": 1, "tp": 8, "pp": 4, "vp": 1, "cp": 1, "ep": 1, "etp": 1, "zero": 1, "optimizer": "adam",
//                 "kernels": "fused", "attention": "flash3", "overlap": ["data", "tensor"], "dispatch": "deepep", "fabric": "dgx-h100"}}
//
// The names are the options of `flopsight tune train`. What is not told has the value that the usual trainers have, and is said to be assumed; the batch and
// the length of a sequence are not assumed. Errors: kInvalid naming the key. Threads: pure.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "tuning/settings.h"

namespace flopsight::tuning {

struct ToldTraining {
  std::optional<std::uint64_t> sequence_tokens, global_batch, micro_batch;
  std::optional<std::uint64_t> tensor, pipeline, virtual_stages, context, expert, expert_tensor;
  std::optional<std::uint64_t> prediction_steps, zero_stage;
  std::optional<catalog::Precision> precision;
  std::optional<flops::Recompute> recompute;
  std::optional<Optimizer> optimizer;
  std::optional<Kernels> kernels;
  std::optional<AttentionKernel> attention;
  std::optional<Dispatch> dispatch;
  std::optional<std::vector<std::string>> overlap;  // of "data", "tensor", "expert"
  std::string fabric;                               // of fabric.h; empty: not told

  // Keys without which nothing can be predicted.
  std::vector<std::string> missing() const;
};

// Of what is told of a job's model: its own keys and those of "training". Other keys are for audit::parse_told_model.
base::Result<ToldTraining> parse_told_training(std::string_view json_text);

// On that many GPUs; nothing may be missing. `assumed`: a line for each setting that was not told. Errors: kInvalid where the degrees do not divide the
// GPUs; the rest is for check_settings().
base::Result<TrainSettings> settings_of(const ToldTraining& told, std::uint64_t gpus, std::vector<std::string>& assumed);

}  // namespace flopsight::tuning
