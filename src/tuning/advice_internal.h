#pragma once
// What rules of training share: the case, and how a change of settings becomes advice.

#include <string>

#include "tuning/advice.h"

namespace flopsight::tuning {

inline constexpr double kGainLeastRatio = 0.005;  // below it a change is not worth a line

struct Rules {
  StepModel& steps;
  const TrainCase& one;
  Findings& out;

  // What was measured ran, whatever is predicted of its memory.
  bool fits() const { return one.measured.has_value() || one.memory.fits().value_or(true); }
  // With other settings; not more than what runs, where that is more than there is.
  bool fits(const TrainSettings& settings) const;
  double share(double seconds) const { return seconds / one.step.step_seconds(); }
};

struct Change {
  std::string id;
  std::string what;
  TrainSettings settings;
  Confidence confidence = Confidence::kMedium;
  std::string why;
  std::string price;
  std::string source;
  Saves saves = Saves::kOther;
  bool even_if_too_large = false;  // advised where the run does not fit without it and does not with it: a part of the way
  bool goes_first = false;
};

// Predicts the change; whether it became advice. It does not where it cannot be predicted, does not fit into memory, or gains less than
// kGainLeastRatio, unless it makes a run fit that did not, or is a part of the way to it (even_if_too_large). What does not fit has no speed to gain over.
bool propose(const Rules& rules, const Change& change);
// The same for a gain that is known; of a run that does not fit there is none.
void advise(const Rules& rules, Advice advice, double gain_ratio);
std::string settings_text(const TrainSettings& settings);  // "tp 4, pp 1, dp 8, micro-batch 1, recompute none, zero 1"
std::string percent_text(double ratio);  // "12.3 %"
std::string number_text(double value, const char* format);

// Rules that change settings (advice_settings.cc, advice_layout.cc).
void advise_micro_batch(const Rules& rules);
void advise_recompute(const Rules& rules);
void advise_precision(const Rules& rules);
void advise_fused_kernels(const Rules& rules);
void advise_attention(const Rules& rules);
void advise_optimizer(const Rules& rules);
void advise_overlap(const Rules& rules);
void advise_dispatch(const Rules& rules);
void advise_sequence_parallel(const Rules& rules);
void advise_alignment(const Rules& rules);
void advise_accumulation(const Rules& rules);
void advise_layout(const Rules& rules);
void advise_placement(const Rules& rules);
void advise_algorithm(const Rules& rules);
void advise_compression(const Rules& rules);
// Rules about the run around the step (advice_run.cc).
void advise_packing(const Rules& rules);
void advise_checkpoints(const Rules& rules);
void advise_debug_flags(const Rules& rules);
void advise_power(const Rules& rules);
void advise_input(const Rules& rules);
// After all others, where none of them makes a run fit that does not (advice_fit.cc).
void advise_fit(const Rules& rules);

}  // namespace flopsight::tuning
