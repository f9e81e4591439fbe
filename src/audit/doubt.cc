// Where the figures of a log agree with each other and with the count, and OFU alone does not: is it the log that cannot be, or something
// that the audit was told of the run?
#include <algorithm>
#include <cmath>
#include <string>

#include "audit/auditor_internal.h"

namespace flopsight::audit {
namespace {

std::string_view recompute_name(flops::Recompute recompute) {
  switch (recompute) {
    case flops::Recompute::kSelective: return "selective";
    case flops::Recompute::kFull: return "full";
    default: return "none";
  }
}

}  // namespace

void Auditor::doubt_settings() {
  const bool log_agrees = (flops == Found::kAgrees || mfu == Found::kAgrees) && flops != Found::kDiffers && mfu != Found::kDiffers && peak != Found::kDiffers;
  if (!log_agrees || ofu != Found::kDiffers) return;
  only_ofu_differs = true;
  const auto fits = [&](const Run& other) {
    const Expected expected = expected_ofu_over_mfu(other, other.recompute.value_or(flops::Recompute::kNone), out.reference_peak_flops_per_second);
    const double rest = *out.reported_over_ofu_ratio * expected.ratio / settled_ratio;
    return std::abs(std::log(rest)) <= kOfuAgrees;
  };
  const auto doubt = [&](const Run& other, const std::string& told, const std::string& instead) {
    if (fits(other)) doubted.push_back({told, instead});
  };
  if (run.recompute) {
    for (const flops::Recompute recompute : {flops::Recompute::kNone, flops::Recompute::kSelective, flops::Recompute::kFull}) {
      Run other = run;
      other.recompute = recompute;
      const bool known = std::any_of(doubted.begin(), doubted.end(), [](const auto& d) { return d.first.starts_with("--recompute"); });
      if (recompute != *run.recompute && !known) doubt(other, "--recompute " + std::string(recompute_name(*run.recompute)), std::string(recompute_name(recompute)));
    }
  }
  // That linear layers ran in BF16 all the same happens; that they ran in FP8 unasked does not.
  if (run.precision && run.precision != catalog::Precision::kBf16 && out.reference_peak_flops_per_second && run.device != nullptr && run.device->peak(catalog::Precision::kBf16)) {
    Run other = run;
    other.precision = catalog::Precision::kBf16;
    doubt(other, "--precision " + std::string(catalog::precision_name(*run.precision)), "bf16");
  }
  if (run.capacity_ratio) {
    Run other = run;
    other.capacity_ratio.reset();
    doubt(other, "--capacity-factor", "none");
  }
}

void Auditor::say_doubt() {
  if (!only_ofu_differs) return;
  std::string line = "the figures of the log agree with each other and with the count; only OFU does not";
  std::string settings;
  for (const auto& [told, instead] : doubted) settings += (settings.empty() ? "" : "; ") + told + " does not fit it, " + instead + " would";
  if (!doubted.empty()) {
    line += ": " + settings;
    out.missing.push_back("whether what was told of the run is so: by OFU " + settings);
  } else if (rest_ratio > 1) {
    line += ": it is less than the FLOPs that are claimed take, whatever else the GPUs do, so tokens, time or GPUs of the rate, or OFU, are wrong";
  } else {
    line += ": the GPUs executed more than the claim needs, which makes no claim wrong";
  }
  out.notes.push_back(line);
}

}  // namespace flopsight::audit
