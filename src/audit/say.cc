// What the audit says in sentences: the summary, what is missing, what would decide, and what looks well and may not be.
#include <algorithm>
#include <cmath>
#include <cstdio>

#include "audit/auditor_internal.h"

namespace flopsight::audit {
namespace {

constexpr double kVisibleLog = 0.14;   // of a mistake that OFU shows
constexpr double kDriftLog = 0.4;       // a factor of 1.5
constexpr double kCancelsLog = 0.05;
constexpr std::size_t kAlsoNamed = 4;
constexpr std::size_t kConventionsNamed = 3;

std::string text(double value, const char* format) {
  char buffer[64];
  std::snprintf(buffer, sizeof buffer, format, value);
  return buffer;
}
std::string percent(double ratio) { return text(ratio * 100, "%.2f %%"); }
std::string factor(double ratio) { return text(ratio, "%.2f"); }
std::string giga(double flops) { return text(flops / 1e9, "%.2f GFLOP"); }
std::string giga_rounded(double flops) { return text(flops / 1e9, "%.1f GFLOP"); }

bool of_cause(const Ranked& ranked, Cause cause) { return ranked.hypothesis.ids.size() == 1 && ranked.hypothesis.cause == cause; }

bool has_cause(const Audit& audit, Cause cause) {
  return std::any_of(audit.hypotheses.begin(), audit.hypotheses.end(), [&](const Ranked& r) { return of_cause(r, cause); });
}

// Two mistakes that each would show and together do not.
std::string cancelling(const Run& run) {
  const std::vector<Hypothesis> all = flops_hypotheses(run);
  for (const Hypothesis& a : all) {
    for (const Hypothesis& b : all) {
      const double over = std::log(a.ratio), under = std::log(b.ratio);
      if (a.id == b.id || over < kVisibleLog || under > -kVisibleLog || std::abs(over + under) > kCancelsLog) continue;
      return a.id + " (" + factor(a.ratio) + ") and " + b.id + " (" + factor(b.ratio) + ")";
    }
  }
  return {};
}

}  // namespace

void Auditor::say_traps() {
  const flops::Recompute told = run.recompute.value_or(flops::Recompute::kNone);
  const bool level = out.reported_over_ofu_ratio && std::abs(std::log(*out.reported_over_ofu_ratio)) < kOfuAgrees;
  if (told == flops::Recompute::kFull && level && ofu == Found::kDiffers && !only_ofu_differs) {
    out.notes.emplace_back("reported MFU equals OFU, which looks right and is not: with full recomputation OFU must be " +
                           factor(*out.expected_ofu_over_mfu_ratio) + " x MFU");
  }
  if (!run.recompute && ofu == Found::kAgrees && flops == Found::kNothing) {
    out.notes.emplace_back("if the run recomputes its activations, the same figures mean that recomputed FLOPs were reported as MFU (recompute_counted)");
  }
  if (ofu == Found::kAgrees && flops == Found::kNothing && mfu == Found::kNothing) {
    const std::string pair = cancelling(run);
    out.notes.push_back("agreement with OFU shows no mistake below 15 %" +
                        (pair.empty() ? std::string() : ", nor two that cancel, for this model such as " + pair) + "; the framework's FLOPs of a token would");
  }
  const double both = settled_ratio * rest_ratio;
  if (!tokens_apart && flops == Found::kDiffers && (peak == Found::kDiffers || ofu == Found::kDiffers) && std::abs(std::log(both)) < kOfuAgrees) {
    out.notes.emplace_back("two mistakes nearly cancel: each is wrong, and the MFU comes out at " + factor(both) + " x the right one");
  }
  if (peak == Found::kNothing && ofu == Found::kAgrees && out.own_peak_flops_per_second && out.reference_peak_flops_per_second && *out.reference_peak_flops_per_second != *out.own_peak_flops_per_second) {
    out.notes.push_back("the reported MFU makes sense as a share of the BF16 peak; of the " + std::string(catalog::precision_name(*run.precision)) + " peak it is " +
                        percent(*out.mfu_ratio * *out.reference_peak_flops_per_second / *out.own_peak_flops_per_second) + " (peak_of_other_precision)");
  }
  if (claim.drift_ratio && std::abs(std::log(*claim.drift_ratio)) > kDriftLog) {
    out.notes.emplace_back("the reported figure of the last steps is " + factor(*claim.drift_ratio) +
                           " x that of the first: a sum that is not reset grows with the step (accumulator_not_reset), a job that slows down falls");
  }
  if (out.mfu_ratio.value_or(0) > 1 && out.verdict != Verdict::kOverReported) out.notes.emplace_back("an MFU above 100 % of a dense peak cannot be");
}

void Auditor::say_missing() {
  auto& list = out.missing;
  list.insert(list.end(), run.contradictions.begin(), run.contradictions.end());
  if (!(out.flops_per_token > 0)) list.emplace_back("a language model: this configuration has none, and FLOPs of a token are not known");
  if (!claim.mfu_ratio && !claim.flops_per_second_per_gpu) list.emplace_back("a claim: MFU, or FLOP rate per GPU (--log, --mfu, --tflops-per-gpu)");
  if (run.device == nullptr) list.push_back("a GPU of the catalogue: without it there is no peak" + (run.unknown_device.empty() ? "" : "; " + run.unknown_device));
  if (run.device != nullptr && !run.precision) list.emplace_back("the precision (--precision): without it there is no peak");
  if (run.device != nullptr && run.precision && !out.own_peak_flops_per_second) {
    list.push_back("a dense peak of " + run.device->model + " for " + std::string(catalog::precision_name(*run.precision)));
  }
  if (impossible_tokens_ratio) list.emplace_back("a token rate, number of GPUs, GPU model and precision that fit together");
  if (tokens_apart) {
    list.push_back("a token rate that fits MFU and OFU, which agree with each other: they take " + text(*claim.tokens_per_second_per_gpu * settled_ratio, "%.0f") +
                   " tokens per second and GPU, told are " + text(*claim.tokens_per_second_per_gpu, "%.0f") +
                   "; is it the rate of the job or of other GPUs, or of another model, sequence length or time?");
  }
  if (time_open) list.emplace_back("whether the claim is of productive time only (--productive-ratio): of all the time that OFU is about it would be right");
  if (!run.sequence_tokens) list.emplace_back("the sequence length (--seq-len): without it FLOPs of a token are not compared");
  if (!claim.tokens_per_second_per_gpu) list.emplace_back("tokens per second and GPU, or step time with global batch and GPUs: with them MFU is recomputed");
  if (!measured.ofu_ratio) list.emplace_back("OFU (--ofu, or --store with --job): it would show what the log cannot");
  if (measured.ofu_ratio && *measured.ofu_ratio <= 0) list.emplace_back("an OFU above 0: a job that trains has one, so its counters failed");
  if (right_with_steps) list.emplace_back("how many steps of multi-token prediction are trained (--mtp)");
  if (out.verdict == Verdict::kUndecided && ofu == Found::kDiffers && !run.recompute && !tokens_apart && !time_open) list.emplace_back("whether the run recomputes its activations (--recompute): full recomputation explains the figures");
}

void Auditor::say_further() {
  auto& list = out.further_evidence;
  if (out.verdict == Verdict::kConsistent && out.hypotheses.empty()) return;
  if (flops == Found::kNothing && out.flops_per_token > 0 && (has_cause(out, Cause::kFlops) || out.hypotheses.empty())) {
    std::string line = "the FLOPs of a token that the framework charges (FLOP rate / token rate): " + giga_rounded(out.flops_per_token) + " if it counts right";
    for (const Ranked& ranked : out.hypotheses) {
      if (of_cause(ranked, Cause::kFlops) && ranked.hypothesis.ratio > 0) line += ", " + giga_rounded(out.flops_per_token * ranked.hypothesis.ratio) + " if " + ranked.hypothesis.id;
    }
    list.push_back(line);
  }
  if (peak == Found::kNothing && has_cause(out, Cause::kPeak)) {
    list.push_back("the peak that it divides by (FLOP rate / MFU): " + (out.own_peak_flops_per_second ? text(*out.own_peak_flops_per_second / 1e12, "%.1f TFLOP/s") : std::string("not known here")) + " is right; wrong peaks show on every job of that GPU");
  }
  if (has_cause(out, Cause::kCount)) {
    list.emplace_back("global batch x sequence / step time / GPUs against the tokens per second that it prints; a count error scales with the layout and not with the model or the sequence");
  }
  if (has_cause(out, Cause::kExecution)) list.emplace_back("the recomputation that the job was started with");
  if (flops == Found::kNothing && ofu == Found::kDiffers && has_cause(out, Cause::kFlops)) {
    list.emplace_back("the same model at another sequence length: mistakes in attention change with it, the others do not");
  }
}

void Auditor::say_summary() {
  std::string& line = out.summary;
  if (!run.contradictions.empty()) {
    line = "the log and the configuration are of different models: nothing is compared";
    return;
  }
  if (ofu != Found::kNothing) {
    line = "reported MFU " + percent(*out.mfu_ratio) + " is " + factor(*out.reported_over_ofu_ratio) + " x OFU " + percent(*out.ofu_ratio) +
           ", where a right one is " + factor(1 / *out.expected_ofu_over_mfu_ratio) + " x";
  }
  const auto also = [&](const std::string& sentence) { line += (line.empty() ? "" : "; ") + sentence; };
  if (out.verdict == Verdict::kOverReported && out.mfu_ratio.value_or(0) > 1) also("an MFU of " + percent(*out.mfu_ratio) + " is above 100 % of the dense peak, which cannot be");
  if (flops != Found::kNothing) {
    also("the framework charges " + giga(*out.flops_per_token_claimed) + " a token, " + factor(*out.flops_ratio) + " x the " + giga(out.flops_per_token) + " counted here");
  }
  if (impossible_tokens_ratio) {
    also("the token rate makes an MFU of " + percent(*impossible_tokens_ratio) + ", which no GPU can do: the token rate, the number of GPUs, the GPU model or the precision is wrong");
    return;
  }
  if (mfu != Found::kNothing && mfu_of_tokens()) also("the token rate makes an MFU of " + percent(*mfu_of_tokens()) + ", reported is " + percent(*claim.mfu_ratio));
  if (tokens_apart) {
    also("MFU and OFU agree, and the token rate fits neither: it, or the GPUs, model or sequence that it is of, are not as told");
    return;
  }
  if (peak == Found::kDiffers) {
    also("it divides by " + text(*claim.peak_flops_per_second / 1e12, "%.1f") + " TFLOP/s, the dense peak is " + text(*out.own_peak_flops_per_second / 1e12, "%.1f"));
  }
  if (out.verdict == Verdict::kUndecided && line.empty()) line = claim.mfu_ratio || claim.flops_per_second_per_gpu ? "nothing to compare the claim with" : "no MFU and no FLOP rate is claimed";
  const bool differs = flops == Found::kDiffers || peak == Found::kDiffers || mfu == Found::kDiffers || ofu == Found::kDiffers;
  if (time_open) {
    also("it would be right of all the time that OFU is about, and not of the productive part alone");
  } else if (only_ofu_differs && !doubted.empty()) {
    also("the log agrees with itself and with the count; by OFU " + doubted.front().first + " is not so, " + doubted.front().second + " would fit");
  } else if (only_ofu_differs && rest_ratio > 1) {
    also("OFU is less than the claimed FLOPs take, whatever else the GPUs do: tokens, time or GPUs of the rate are wrong");
  } else if (only_ofu_differs) {
    also("the GPUs executed more than the claim needs");
  }
  if (differs && out.hypotheses.empty() && !only_ofu_differs) also("no known mistake explains it");
  if (out.hypotheses.empty()) return;
  std::string names;
  for (std::size_t i = 0; i < out.hypotheses.size() && i <= kAlsoNamed; ++i) {
    const Hypothesis& hypothesis = out.hypotheses[i].hypothesis;
    const std::string who = hypothesis.conventions.empty() ? "" : ", as " + convention_names(hypothesis, kConventionsNamed) + (hypothesis.conventions.size() > 1 ? " count" : " counts");
    names += (i == 0 ? "" : i == 1 ? "; also within tolerance: " : ", ") + hypothesis.id + " (" + factor(hypothesis.ratio) + who + ")";
  }
  also("nearest explanation: " + names);
  if (right_with_steps) also("with " + std::to_string(*right_with_steps) + (*right_with_steps == 1 ? " step" : " steps") + " of multi-token prediction it is right");
}

void Auditor::say() {
  if (ofu != Found::kNothing) {
    out.assumptions.push_back("OFU of one job is right to some 7 % (sigma); tiles add up to " + factor(kTileOverheadMax) + " x, which widens the band and is not corrected for");
    if (run.padding_ratio.value_or(0) > 0) out.assumptions.push_back("the claim is of real tokens, and " + percent(*run.padding_ratio) + " of those that the GPUs run over are padding");
    if (run.productive_ratio.value_or(1) < 1) {
      out.assumptions.push_back("the claim is of productive time, which is " + percent(*run.productive_ratio) + " of the time that OFU is about: over all of it MFU is " +
                                percent(*out.mfu_ratio * *run.productive_ratio));
    }
    if (!run.precision) out.assumptions.emplace_back("all parts run in one precision, of whose peak MFU is a share");
  }
  say_traps();
  say_missing();
  say_doubt();
  say_further();
  say_summary();
}

}  // namespace flopsight::audit
