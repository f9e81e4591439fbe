#pragma once
// The audit as it goes on: what was compared so far, and what came of it.

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "audit/audit.h"

namespace flopsight::audit {

// A comparison: nothing, it agrees, or it does not.
enum class Found : std::uint8_t { kNothing, kAgrees, kDiffers };

// What a claim is if so many steps of multi-token prediction are trained.
struct StepsReading {
  std::uint64_t steps = 0;
  double flops_per_token = 0;
  // |ln| to the audit's count, or to a convention that is as good as it; absent where the claim is not right.
  std::optional<double> right_log;
  std::vector<Ranked> mistakes;  // that explain it otherwise, nearest first

  bool exactly_right() const;
  bool exactly_a_mistake() const;
};

struct Auditor {
  Auditor(Run audited, const Claim& claimed, const Measured& seen, const catalog::DeviceCatalog& known)
      : run(std::move(audited)), claim(claimed), measured(seen), catalog(known) {}

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
  std::optional<double> impossible_tokens_ratio;  // the MFU that the token rate makes, where it is above 1

  std::vector<Ranked> other_steps;  // what explains a claim with other numbers of prediction steps than the chosen one
  // With so many the claim is right; with the chosen number it is a known mistake, and nothing tells which.
  std::optional<std::uint64_t> right_with_steps;

  bool tokens_apart = false;  // reported MFU and OFU agree with each other, and only the token rate fits neither
  bool time_open = false;     // the claim would be right if it were of all the time that OFU is about, and not of the productive part
  bool only_ofu_differs = false;  // from figures of a log that agree with each other and with the count
  std::vector<std::pair<std::string, std::string>> doubted;  // then: "--recompute full", and with what instead OFU fits

  void count();
  void compare_flops();
  void compare_peak();
  void compare_mfu();
  void compare_ofu();
  void doubt_settings();
  void recompute_mfu();
  void judge();
  void say();

 private:
  void choose_prediction_steps();
  StepsReading read_with_steps(std::uint64_t steps, double claimed_flops_per_token, std::optional<double> reference_peak);
  std::vector<StepsReading> readings_of_steps();
  void compare_zero();
  void drop_impossible();
  void explain_flops(double ratio, std::vector<Ranked>& kept) const;
  void explain_mfu(double ratio, double reference_peak, std::vector<Ranked>& kept) const;
  std::vector<double> possible_references() const;
  Found differs(double ratio, std::size_t kept_before);
  void explain_ofu(const Run& settled);
  void doubt_time();
  std::optional<double> mfu_of_tokens() const;
  void say_traps();
  void say_doubt();
  void say_missing();
  void say_further();
  void say_summary();
};

// Adds to `kept` those that explain `observed` within kKeptSigmas of `sigma`: of each id the closest, nearest first, pairs after
// singles.
void rank(std::vector<Ranked>& kept, const std::vector<Hypothesis>& singles, const std::vector<Hypothesis>& pairs, double observed, double sigma,
          std::string_view evidence);

// The same for figures of a log: exactly; where no single one does, as far as frameworks' conventions for small parts differ.
void rank_figures(std::vector<Ranked>& kept, const std::vector<Hypothesis>& singles, const std::vector<Hypothesis>& pairs, double observed,
                  std::string_view evidence);

// One wrong peak and one wrong count.
std::vector<Hypothesis> peak_pairs(const std::vector<Hypothesis>& peaks, const std::vector<Hypothesis>& flops);

}  // namespace flopsight::audit
