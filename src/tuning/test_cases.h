#pragma once
// For tests: models of tests/fixtures/hf_configs on GPUs of the catalogue. Not part of the program.

#include <algorithm>
#include <string>

#include "base/file.h"
#include "flops/hf_config.h"
#include "tuning/advice.h"
#include "tuning/memory.h"
#include "tuning/step.h"

namespace flopsight::tuning::test {

inline flops::Model model_of(const std::string& name) {
  return flops::read_hf_config(base::read_file(FLOPSIGHT_SOURCE_DIR "/tests/fixtures/hf_configs/" + name + "_config.json").value()).value();
}

inline const catalog::Device& device(std::string_view name) {
  const catalog::Device* found = catalog::DeviceCatalog::builtin().find(name);
  FLOPSIGHT_CHECK(found != nullptr);
  return *found;
}

// One run with all that a StepModel borrows. The defaults: Llama-3-8B on 8 H100, which fits without recomputation.
struct TestRun {
  explicit TestRun(const std::string& model_name = "made--Llama-3-8B", std::string_view gpu = "H100-SXM5-80GB", std::string_view fabric_name = "dgx-h100")
      : model(model_of(model_name)), rates(Rates::of(device(gpu)).value()), fabric(*find_fabric(fabric_name)), steps(model, rates, fabric) {
    settings.gpus = 8;
    settings.layout.data = 8;
    settings.sequence_tokens = 4096;
    settings.global_batch = 64;
  }

  Step step() { return steps.predict(settings).value(); }
  Memory memory() const { return train_memory(model, settings, rates.device()); }
  TrainCase training() {
    TrainCase one;
    one.settings = settings;
    one.step = step();
    one.memory = memory();
    return one;
  }
  Findings advice() { return advise_training(steps, training()); }

  flops::Model model;
  Rates rates;
  Fabric fabric;
  StepModel steps;
  TrainSettings settings;
};

inline const Advice* find(const Findings& findings, std::string_view id) {
  const auto found = std::find_if(findings.advice.begin(), findings.advice.end(), [&](const Advice& a) { return a.id == id; });
  return found == findings.advice.end() ? nullptr : &*found;
}
inline const Rejected* rejected(const Findings& findings, std::string_view id) {
  const auto found = std::find_if(findings.rejected.begin(), findings.rejected.end(), [&](const Rejected& r) { return r.id == id; });
  return found == findings.rejected.end() ? nullptr : &*found;
}

}  // namespace flopsight::tuning::test
