#pragma once
// Runs, claims and questions of the tests of audits.

#include <algorithm>
#include <filesystem>
#include <string>
#include <vector>

#include "audit/audit.h"
#include "flops/test_models.h"

namespace flopsight::audit::test {

using catalog::DeviceCatalog;
using catalog::Precision;

inline Run run_of(const std::string& config, std::uint64_t sequence_tokens = 8192) {
  Run run;
  run.model = flops::test::model_of(config);
  run.sequence_tokens = sequence_tokens;
  run.prediction_steps = 0;
  run.recompute = flops::Recompute::kNone;
  run.device = DeviceCatalog::builtin().find("H100 SXM");
  run.precision = Precision::kBf16;
  run.layout.gpus = 64;
  return run;
}

inline const std::string kSuper = "nvidia--NVIDIA-Nemotron-3-Super-120B-A12B-FP8";

inline Audit of(const Run& run, const Claim& claim, std::optional<double> ofu = std::nullopt) {
  return audit(run, claim, {ofu, true}, DeviceCatalog::builtin());
}
inline Claim mfu(double ratio) {
  Claim claim;
  claim.mfu_ratio = ratio;
  return claim;
}
inline bool lists(const Audit& audit, const std::string& id) {
  return std::any_of(audit.hypotheses.begin(), audit.hypotheses.end(), [&](const Ranked& r) { return r.hypothesis.id == id; });
}
inline std::string first(const Audit& audit) { return audit.hypotheses.empty() ? "none" : audit.hypotheses.front().hypothesis.id; }
inline std::string all(const Audit& audit) {
  std::string ids = std::string(verdict_name(audit.verdict)) + ":";
  for (const Ranked& r : audit.hypotheses) ids += " " + r.hypothesis.id + "=" + std::to_string(r.hypothesis.ratio);
  return ids;
}

inline std::vector<std::string> configs() {
  std::vector<std::string> names;
  const std::string folder = FLOPSIGHT_SOURCE_DIR "/tests/fixtures/hf_configs";
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    if (name.ends_with("_config.json")) names.push_back(name.substr(0, name.size() - std::string("_config.json").size()));
    if (!names.empty() && names.back().find("ViT") != std::string::npos) names.pop_back();  // a tower without text
  }
  std::sort(names.begin(), names.end());
  return names;
}

inline constexpr std::uint64_t kSequences[] = {4096, 65536};

}  // namespace flopsight::audit::test
