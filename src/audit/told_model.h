#pragma once
// What others tell the service of the model that a job trains, so that what it reports can be audited:
//
//   {"config": {…the model's config.json…}, "seq_len": 8192, "precision": "bf16", "recompute": "full", "mtp": 1, "lora_rank": 16,
//    "document_tokens": 1024, "training": {…}}
//
// "training" is how it is trained, for advice, and is read by tuning/told_training.h.
//
// All but `config` may be absent, and is then not known. Limit: kToldModelBytesMax. Errors: kInvalid naming the key, those of
// flops/hf_config.h, kLimit. Threads: pure.

#include <cstddef>
#include <string_view>

#include "audit/run.h"
#include "base/result.h"

namespace flopsight::audit {

inline constexpr std::size_t kToldModelBytesMax = std::size_t{256} << 10;

// Without the GPU.
base::Result<Run> parse_told_model(std::string_view json_text);

}  // namespace flopsight::audit
