#pragma once
// The audit as it goes on: what was compared so far, and what came of it.

#include <optional>
#include <string>
#include <vector>

#include "audit/audit.h"

namespace flopsight::audit {

// A comparison: nothing, it agrees, or it does not.
enum class Found : std::uint8_t { kNothing, kAgrees, kDiffers };

struct Auditor {
  Run run;
  const Claim& claim;
  const Measured& measured;
  const catalog::DeviceCatalog& catalog;
  Audit out;
  Found flops = Found::kNothing;
  Found peak = Found::kNothing;
  Found mfu = Found::kNothing;  // against tokens, where no FLOP rate was claimed
  Found ofu = Found::kNothing;
  double settled_ratio = 1;     // reported / right, as far as flops, peak and mfu have settled it
  double rest_ratio = 1;        // what OFU leaves to explain

  void count();
  void compare_flops();
  void compare_peak();
  void compare_mfu();
  void compare_ofu();
  void recompute_mfu();
  void judge();
  void say();

 private:
  void choose_prediction_steps();
  void compare_zero();
  std::vector<double> possible_references() const;
  Found differs(double ratio, std::size_t kept_before) const;
  void say_traps();
  void say_missing();
  void say_further();
  void say_summary();
};

// Adds to `kept` those that explain `observed` within kKeptSigmas of `sigma`: of each id the closest, nearest first, pairs after
// singles.
void rank(std::vector<Ranked>& kept, const std::vector<Hypothesis>& singles, const std::vector<Hypothesis>& pairs, double observed, double sigma,
          std::string_view evidence);

// One wrong peak and one wrong count.
std::vector<Hypothesis> peak_pairs(const std::vector<Hypothesis>& peaks, const std::vector<Hypothesis>& flops);

}  // namespace flopsight::audit
