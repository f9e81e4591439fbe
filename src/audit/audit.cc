#include "audit/audit.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>

#include "audit/auditor_internal.h"
#include "audit/peaks.h"
#include "flops/conventions.h"

namespace flopsight::audit {
namespace {

constexpr double kTokensBand = 0.01;  // figures of a log are medians of rounded values

template <typename T>
void append(std::vector<T>& to, const std::vector<T>& from) { to.insert(to.end(), from.begin(), from.end()); }

bool low_precision(const Run& run) {
  using catalog::Precision;
  return run.precision == Precision::kFp8 || run.precision == Precision::kFp6 || run.precision == Precision::kFp4;
}

std::optional<double> claimed_flops_per_token(const Claim& claim) {
  if (!claim.flops_per_second_per_gpu || !claim.tokens_per_second_per_gpu || *claim.tokens_per_second_per_gpu <= 0) return std::nullopt;
  return *claim.flops_per_second_per_gpu / *claim.tokens_per_second_per_gpu;
}

bool agrees(double ratio, double log_most) { return std::abs(std::log(ratio)) <= log_most; }

}  // namespace

std::string_view verdict_name(Verdict verdict) {
  switch (verdict) {
    case Verdict::kConsistent: return "consistent";
    case Verdict::kOverReported: return "over_reported";
    case Verdict::kUnderReported: return "under_reported";
    case Verdict::kWrongPeak: return "wrong_peak";
    case Verdict::kUndecided: break;
  }
  return "undecided";
}

void Auditor::explain_flops(double ratio, std::vector<Ranked>& kept) const {
  std::vector<Hypothesis> singles = flops_hypotheses(run);
  append(singles, convention_hypotheses(run));
  append(singles, count_hypotheses(run));
  rank_figures(kept, singles, flops_pairs(run), ratio, "flops_per_token");
}

void Auditor::explain_mfu(double ratio, double reference_peak, std::vector<Ranked>& kept) const {
  std::vector<Hypothesis> counts = flops_hypotheses(run);
  append(counts, convention_hypotheses(run));
  std::vector<Hypothesis> singles = counts, pairs = flops_pairs(run);
  if (!claim.peak_flops_per_second) {
    const std::vector<Hypothesis> peaks = peak_hypotheses(run, catalog, reference_peak);
    append(singles, peaks);
    append(pairs, peak_pairs(peaks, counts));
  }
  append(singles, count_hypotheses(run));
  rank_figures(kept, singles, pairs, ratio, "mfu");
}

void Auditor::count() {
  out.own_peak_flops_per_second = audit::own_peak(run);
  out.flops_per_token_claimed = claimed_flops_per_token(claim);
  choose_prediction_steps();
  out.flops_per_token = audit::flops_per_token(run);
  const flops::Workload workload = workload_of(run);
  for (const flops::Convention& convention : flops::conventions()) {
    ConventionRow row{convention.name, flops::convention_cost(convention, run.model, workload).flops_train, std::nullopt, std::nullopt,
                      flops::takes_for_one_document(convention, run.model, workload)};
    if (row.flops_per_token_train && out.flops_per_token > 0) row.ratio = *row.flops_per_token_train / out.flops_per_token;
    if (row.flops_per_token_train && out.flops_per_token_claimed && run.sequence_tokens) {
      row.matches = agrees(*out.flops_per_token_claimed / *row.flops_per_token_train, kKeptSigmas * kLogSigma);
    }
    out.conventions.push_back(row);
  }
  if (!run.sequence_tokens) out.assumptions.push_back("sequences of " + std::to_string(workload.sequence.tokens) + " tokens, for the ratios of hypotheses only: --seq-len says how long they are");
  out.mfu_ratio = claim.mfu_ratio;
  if (!out.mfu_ratio && claim.flops_per_second_per_gpu && out.own_peak_flops_per_second) {
    out.mfu_ratio = *claim.flops_per_second_per_gpu / *out.own_peak_flops_per_second;
    out.mfu_from_rate = true;
  }
}

// A difference between the agreement of figures of a log and that of OFU is a finding only where one known thing explains it: some pair
// always does.
Found Auditor::differs(double ratio, std::size_t kept_before) {
  if (agrees(ratio, kLogAgrees)) return Found::kAgrees;
  const auto from = out.hypotheses.begin() + static_cast<std::ptrdiff_t>(kept_before);
  if (!agrees(ratio, kOfuAgrees) || std::any_of(from, out.hypotheses.end(), [](const Ranked& r) { return r.hypothesis.is_one(); })) return Found::kDiffers;
  out.hypotheses.erase(from, out.hypotheses.end());
  return Found::kAgrees;
}

void Auditor::compare_flops() {
  if (!out.flops_per_token_claimed || !run.sequence_tokens || !(out.flops_per_token > 0)) return;
  out.flops_ratio = *out.flops_per_token_claimed / out.flops_per_token;
  out.evidence_used.emplace_back("flops_per_token");
  const std::size_t before = out.hypotheses.size();
  if (!agrees(*out.flops_ratio, kLogAgrees)) {
    explain_flops(*out.flops_ratio, out.hypotheses);
    const std::size_t singles = static_cast<std::size_t>(std::count_if(out.hypotheses.begin(), out.hypotheses.end(), [](const Ranked& r) { return r.hypothesis.is_one(); }));
    for (Ranked& ranked : other_steps) {
      // Or it is a program that does not count them and makes the same figure with any number of steps.
      const bool named = std::any_of(out.hypotheses.begin(), out.hypotheses.end(), [&](const Ranked& r) {
        return r.hypothesis.id == ranked.hypothesis.id || (!r.hypothesis.conventions.empty() && r.hypothesis.conventions == ranked.hypothesis.conventions);
      });
      if (!named) out.hypotheses.insert(out.hypotheses.begin() + static_cast<std::ptrdiff_t>(singles), ranked);
    }
  }
  flops = differs(*out.flops_ratio, before);
  if (flops == Found::kAgrees && !agrees(*out.flops_ratio, kLogAgrees)) {
    out.notes.emplace_back("the claimed FLOPs of a token differ from the audit's count by more than rounding, and no known mistake explains it");
  }
  settled_ratio *= *out.flops_ratio;
}

void Auditor::compare_peak() {
  if (!claim.peak_flops_per_second) return;
  const double claimed = *claim.peak_flops_per_second;
  out.evidence_used.emplace_back("peak");
  if (out.own_peak_flops_per_second) {
    out.peak_ratio = *out.own_peak_flops_per_second / claimed;
    peak = is_own_peak(claimed, *out.own_peak_flops_per_second) ? Found::kAgrees : Found::kDiffers;
    if (peak == Found::kAgrees) return;
    settled_ratio *= *out.peak_ratio;
  }
  const std::vector<Hypothesis> named = peak_named(run, catalog, claimed);
  for (const Hypothesis& hypothesis : named) {
    if (out.own_peak_flops_per_second) out.hypotheses.push_back({hypothesis, *out.peak_ratio, 0, "peak", std::nullopt});
  }
  if (!out.own_peak_flops_per_second) {
    for (const Hypothesis& hypothesis : named) out.notes.push_back("the peak it divides by: " + hypothesis.explanation);
  } else if (named.empty()) {
    out.notes.emplace_back("the peak that it divides by is that of no GPU and precision known here");
  }
}

// The peaks that a claimed MFU may be of, where the claim does not tell: of low precisions, also the BF16 peak, at which their MFU
// is often quoted.
std::vector<double> Auditor::possible_references() const {
  if (!out.own_peak_flops_per_second) return {};
  std::vector<double> list = {*out.own_peak_flops_per_second};
  const auto bf16 = run.device->peak(catalog::Precision::kBf16);
  if (low_precision(run) && bf16 && !claim.peak_flops_per_second && !out.mfu_from_rate) list.insert(list.begin(), bf16->value);
  return list;
}

void Auditor::compare_mfu() {
  if (flops != Found::kNothing || !claim.mfu_ratio || !claim.tokens_per_second_per_gpu || !run.sequence_tokens || !out.own_peak_flops_per_second) return;
  if (*claim.mfu_ratio <= 0) return;
  out.evidence_used.emplace_back("mfu");
  const double rate = *claim.tokens_per_second_per_gpu * out.flops_per_token;
  const double claimed_of_own_peak = *claim.mfu_ratio / settled_ratio;
  // Of several peaks that it may be a share of: one with which it is right, else one with which something explains it to its digits, else the
  // nearest.
  struct Share {
    double reference, ratio;
    std::vector<Ranked> kept;
    int doubt;
  };
  std::optional<Share> best;
  for (const double reference : possible_references()) {
    Share share{reference, claimed_of_own_peak / (rate / reference), {}, 0};
    if (!agrees(share.ratio, kLogAgrees)) {
      explain_mfu(share.ratio, reference, share.kept);
      const bool named = std::any_of(share.kept.begin(), share.kept.end(), [](const Ranked& r) { return r.hypothesis.is_one() && agrees(r.observed_ratio / r.hypothesis.ratio, kDigitsLog); });
      share.doubt = named ? 1 : 2;
    }
    const bool nearer = best && share.doubt == best->doubt && std::abs(std::log(share.ratio)) < std::abs(std::log(best->ratio));
    if (!best || share.doubt < best->doubt || nearer) best = std::move(share);
  }
  const double ratio = best->ratio;
  out.reference_peak_flops_per_second = best->reference;
  const std::size_t before = out.hypotheses.size();
  append(out.hypotheses, best->kept);
  mfu = differs(ratio, before);
  settled_ratio *= ratio;
}

void Auditor::compare_ofu() {
  out.ofu_ratio = measured.ofu_ratio;
  if (!out.ofu_ratio || !out.mfu_ratio) return;
  if (*out.ofu_ratio <= 0 || *out.mfu_ratio <= 0) return;
  const flops::Recompute recompute = run.recompute.value_or(flops::Recompute::kNone);
  if (!run.recompute) out.assumptions.emplace_back("activations are not recomputed; --recompute says otherwise");
  out.evidence_used.emplace_back("ofu");
  out.reported_over_ofu_ratio = *out.mfu_ratio / *out.ofu_ratio;
  std::vector<std::optional<double>> references;
  for (const double reference : possible_references()) references.emplace_back(reference);
  if (out.reference_peak_flops_per_second) references = {out.reference_peak_flops_per_second};
  if (references.empty()) references.emplace_back(std::nullopt);
  // Where the token rate has shown that stalls are left out of the claim, that is divided out already.
  Run settled = run;
  if (std::any_of(out.hypotheses.begin(), out.hypotheses.end(), [](const Ranked& r) { return r.hypothesis.id == kStallsExcluded; })) settled.productive_ratio.reset();
  std::optional<double> nearest;
  for (const std::optional<double>& reference : references) {
    const Expected expected = expected_ofu_over_mfu(settled, recompute, reference);
    const double adjusted = *out.reported_over_ofu_ratio * expected.ratio;
    // Of several references the first, unless only another one fits.
    const bool better = !nearest || (!agrees(*nearest, kOfuAgrees) && agrees(adjusted / settled_ratio, kOfuAgrees));
    if (!better) continue;
    nearest = adjusted / settled_ratio;
    out.reference_peak_flops_per_second = reference;
    out.expected_ofu_over_mfu_ratio = expected.ratio;
    out.adjusted_ratio = adjusted;
  }
  rest_ratio = *nearest;
  ofu = agrees(rest_ratio, kOfuAgrees) ? Found::kAgrees : Found::kDiffers;
  if (ofu == Found::kDiffers) explain_ofu(settled);
}

void Auditor::explain_ofu(const Run& settled) {
  doubt_time();
  if (time_open) return;
  const bool tokens_differ = flops == Found::kDiffers || mfu == Found::kDiffers;
  tokens_apart = tokens_differ && peak != Found::kDiffers && agrees(*out.adjusted_ratio, kOfuAgrees);
  if (tokens_apart) {
    for (const Ranked& r : out.hypotheses) {
      if (!r.hypothesis.is_one() || !agrees(r.observed_ratio / r.hypothesis.ratio, kDigitsLog)) continue;
      out.notes.push_back("or two mistakes cancel: by the token rate the figure is that of " + r.hypothesis.id + " to its digits, and another one makes up for it in OFU");
      break;
    }
    out.hypotheses.clear();  // none of them is about what agrees
    return;
  }
  std::vector<Hypothesis> singles, pairs, flops_only;
  if (flops == Found::kNothing && mfu == Found::kNothing) {
    flops_only = flops_hypotheses(run);
    const std::vector<Hypothesis> conventions = convention_hypotheses(run);
    // OFU is too coarse for a program to be known by several parts.
    std::copy_if(conventions.begin(), conventions.end(), std::back_inserter(flops_only), [](const Hypothesis& h) { return h.ids.size() == 1; });
    singles = flops_only;
    pairs = flops_pairs(run);
    std::copy_if(conventions.begin(), conventions.end(), std::back_inserter(pairs), [](const Hypothesis& h) { return h.ids.size() > 1; });
  }
  if (peak == Found::kNothing && mfu == Found::kNothing && !out.mfu_from_rate && out.reference_peak_flops_per_second) {
    const std::vector<Hypothesis> peaks = peak_hypotheses(run, catalog, *out.reference_peak_flops_per_second);
    append(singles, peaks);
    append(pairs, peak_pairs(peaks, flops_only));
  }
  append(singles, count_hypotheses(settled));
  std::erase_if(singles, [](const Hypothesis& h) { return h.id == kStallsExcluded; });  // is in what is expected
  append(singles, measured_hypotheses(settled, measured.told));
  rank(out.hypotheses, singles, pairs, rest_ratio, kOfuSigma, "ofu");
}

// A rate may be of all the time all the same, whatever was told.
void Auditor::doubt_time() {
  if (!run.productive_ratio || flops == Found::kDiffers || mfu == Found::kDiffers || peak == Found::kDiffers) return;
  time_open = agrees(rest_ratio / *run.productive_ratio, kOfuAgrees);
}

std::optional<double> Auditor::mfu_of_tokens() const {
  const double reference = out.reference_peak_flops_per_second.value_or(out.own_peak_flops_per_second.value_or(0));
  if (!claim.tokens_per_second_per_gpu || !run.sequence_tokens || !(reference > 0)) return std::nullopt;
  return *claim.tokens_per_second_per_gpu * out.flops_per_token / reference;
}

// A framework that knows no formula for a layer may print 0.
void Auditor::compare_zero() {
  const bool works = measured.ofu_ratio.value_or(0) > 0 || claim.tokens_per_second_per_gpu.value_or(0) > 0;
  if (claim.mfu_ratio != 0.0 || !works) return;
  Hypothesis zero{"unsupported_counted_zero", {"unsupported_counted_zero"}, Cause::kFlops, 0, "the framework has no formula for the model and prints 0", "Megatron-Bridge #1616"};
  out.hypotheses.insert(out.hypotheses.begin(), {std::move(zero), 0, 0, "mfu", std::nullopt});
  out.verdict = Verdict::kUnderReported;
}

void Auditor::recompute_mfu() {
  const std::optional<double> of_tokens = out.own_peak_flops_per_second ? mfu_of_tokens() : std::nullopt;
  if (of_tokens && ofu != Found::kDiffers) {
    out.mfu_recomputed_ratio = of_tokens;
    out.recomputed_from = "tokens";
    out.band_low_ratio = *out.mfu_recomputed_ratio * (1 - kTokensBand);
    out.band_high_ratio = *out.mfu_recomputed_ratio * (1 + kTokensBand);
  } else if (out.expected_ofu_over_mfu_ratio) {
    const double middle = *out.ofu_ratio / *out.expected_ofu_over_mfu_ratio;
    out.mfu_recomputed_ratio = middle;
    out.recomputed_from = "ofu";
    out.band_low_ratio = middle * std::exp(-kOfuSigma) / kTileOverheadMax;
    out.band_high_ratio = middle * std::exp(kOfuSigma);
  }
  for (Ranked& ranked : out.hypotheses) {
    const bool innocent = ranked.hypothesis.cause == Cause::kExecution || ranked.hypothesis.cause == Cause::kMeasured;
    if (out.mfu_ratio && ranked.hypothesis.ratio > 0) ranked.corrected_mfu_ratio = innocent ? *out.mfu_ratio : *out.mfu_ratio / ranked.hypothesis.ratio;
  }
  drop_impossible();
}

// No GPU does more than its peak: a token rate that asks for it is wrong, or is not of that many GPUs of that model, and nothing is judged
// by it. A mistake after whose correction the job would still be above the peak is not the one.
void Auditor::drop_impossible() {
  if (!out.own_peak_flops_per_second) return;
  const bool tokens = claim.tokens_per_second_per_gpu && run.sequence_tokens;
  const double of_tokens = tokens ? *claim.tokens_per_second_per_gpu * out.flops_per_token / *out.own_peak_flops_per_second : 0;
  const bool claim_is_impossible = out.mfu_ratio.value_or(0) > 1 && !low_precision(run);  // which is judged, as the log's own figures agree
  if (of_tokens > 1 && !claim_is_impossible) {
    impossible_tokens_ratio = of_tokens;
    tokens_apart = false;  // which is said in other words
    out.hypotheses.clear();
    return;
  }
  const double own_share = out.reference_peak_flops_per_second.value_or(*out.own_peak_flops_per_second) / *out.own_peak_flops_per_second;
  const std::array found = {flops, peak, mfu, ofu};
  const auto differing = std::count(found.begin(), found.end(), Found::kDiffers);
  for (Ranked& ranked : out.hypotheses) {
    // Of several findings each corrects its own part: the MFU after one of them alone is none.
    if (differing > 1 && ranked.corrected_mfu_ratio.value_or(0) * own_share > 1) ranked.corrected_mfu_ratio.reset();
  }
  std::erase_if(out.hypotheses, [&](const Ranked& ranked) { return ranked.corrected_mfu_ratio.value_or(0) * own_share > 1; });
}

void Auditor::judge() {
  compare_zero();
  if (out.verdict != Verdict::kUndecided) return;
  const bool impossible = out.mfu_ratio.value_or(0) > 1 && !low_precision(run);
  if (impossible_tokens_ratio || tokens_apart || time_open) return;
  const bool compared = flops != Found::kNothing || mfu != Found::kNothing || ofu != Found::kNothing;
  if (peak == Found::kDiffers) {
    out.verdict = Verdict::kWrongPeak;
    return;
  }
  if (!compared) {
    if (impossible) out.verdict = Verdict::kOverReported;
    return;
  }
  double total = 1;
  if (flops == Found::kDiffers || mfu == Found::kDiffers) total *= settled_ratio;
  if (ofu == Found::kDiffers) total *= rest_ratio;
  if (flops != Found::kDiffers && mfu != Found::kDiffers && ofu != Found::kDiffers) {
    out.verdict = impossible ? Verdict::kOverReported : Verdict::kConsistent;
    return;
  }
  const auto kept = [&](auto is) { return std::any_of(out.hypotheses.begin(), out.hypotheses.end(), is); };
  const bool only_ofu = flops != Found::kDiffers && mfu != Found::kDiffers;
  if (right_with_steps && ofu != Found::kDiffers) return;
  // What was told of the run explains OFU, or OFU is above the claim and nothing known is behind it: the log is not accused.
  if (only_ofu_differs && !doubted.empty()) return;
  if (only_ofu_differs && rest_ratio < 1 && out.hypotheses.empty()) return;
  // Executed more than told: innocent, and nobody said whether it recomputes.
  if (only_ofu && !run.recompute && kept([](const Ranked& r) { return r.hypothesis.cause == Cause::kExecution; })) return;
  const bool only_peaks = !out.hypotheses.empty() && !kept([](const Ranked& r) { return r.hypothesis.is_one() && r.hypothesis.cause != Cause::kPeak; }) &&
                          out.hypotheses.front().hypothesis.cause == Cause::kPeak;
  out.verdict = only_peaks ? Verdict::kWrongPeak : total > 1 ? Verdict::kOverReported : Verdict::kUnderReported;
}

Audit audit(const Run& run, const Claim& claim, const Measured& measured, const catalog::DeviceCatalog& catalog) {
  Auditor auditor{run, claim, measured, catalog};
  auditor.count();
  const bool counted = auditor.out.flops_per_token > 0;  // not of a vision tower alone
  if (run.contradictions.empty() && counted) {
    auditor.compare_flops();
    auditor.compare_peak();
    auditor.compare_mfu();
    auditor.compare_ofu();
    auditor.doubt_settings();
    auditor.recompute_mfu();
    auditor.judge();
  }
  auditor.say();
  return std::move(auditor.out);
}

}  // namespace flopsight::audit
