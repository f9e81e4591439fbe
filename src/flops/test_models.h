#pragma once
// For tests: models of tests/fixtures/hf_configs by file name. Not part of the program.

#include <string>

#include "base/file.h"
#include "flops/count.h"
#include "flops/hf_config.h"

namespace flopsight::flops::test {

inline std::string config_text(const std::string& name) {
  return base::read_file(FLOPSIGHT_SOURCE_DIR "/tests/fixtures/hf_configs/" + name + "_config.json").value();
}

inline Model model_of(const std::string& name) { return read_hf_config(config_text(name)).value(); }

inline Workload tokens(std::uint64_t sequence_tokens, std::uint64_t prediction_steps = 0) {
  Workload workload;
  workload.sequence.tokens = sequence_tokens;
  workload.prediction_steps = prediction_steps;
  return workload;
}

}  // namespace flopsight::flops::test
