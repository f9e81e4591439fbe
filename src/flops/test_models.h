#pragma once
// For tests: models of tests/fixtures/hf_configs by file name. Not part of the program.

#include <string>

#include "base/file.h"
#include "base/json.h"
#include "flops/count.h"
#include "flops/hf_config.h"

namespace flopsight::flops::test {

inline std::string config_text(const std::string& name) {
  return base::read_file(FLOPSIGHT_SOURCE_DIR "/tests/fixtures/hf_configs/" + name + "_config.json").value();
}

// The configuration with these members, each "key": value.
inline std::string config_with(const std::string& name, const std::string& members) {
  base::json::Object object = *base::json::parse(config_text(name))->as_object();
  const base::json::Value more = *base::json::parse("{" + members + "}");
  for (const auto& [key, value] : *more.as_object()) {
    std::erase_if(object, [&k = key](const auto& member) { return member.first == k; });
    object.emplace_back(key, value);
  }
  return base::json::dump(object, 0);
}

inline Model model_of(const std::string& name) { return read_hf_config(config_text(name)).value(); }

inline Workload tokens(std::uint64_t sequence_tokens, std::uint64_t prediction_steps = 0) {
  Workload workload;
  workload.sequence.tokens = sequence_tokens;
  workload.prediction_steps = prediction_steps;
  return workload;
}

}  // namespace flopsight::flops::test
