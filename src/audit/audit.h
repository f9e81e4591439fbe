#pragma once
// Who miscounted MFU. A claim is compared, as far as its figures allow, in this order (docs/audit.md):
//
//   1. FLOPs of a token: FLOP rate / token rate against the audit's own count. No telemetry, right to some tenths of a percent.
//   2. The peak: FLOP rate / MFU, or what the log prints, against the GPU's dense peak.
//   3. MFU: reported against token rate x FLOPs / peak.
//   4. OFU: reported MFU / OFU, times the OFU/MFU that a correct report of this run has. Right to some 7 %: what is below 15 %
//      is no finding, and several causes usually fit.
//
// What 1 to 3 have settled is divided out before 4 looks for the rest. What is missing is told and never replaced by a guess.
// Threads: pure.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "audit/hypothesis.h"
#include "audit/run.h"

namespace flopsight::audit {

enum class Verdict : std::uint8_t { kConsistent, kOverReported, kUnderReported, kWrongPeak, kUndecided };
std::string_view verdict_name(Verdict verdict);  // "consistent", "over_reported", …

// |ln| of two figures of one log, which are rounded and medians: sigma, and up to where they agree.
inline constexpr double kLogSigma = 0.004;
inline constexpr double kLogAgrees = 0.03;
inline constexpr double kDigitsLog = 5e-4;  // of figures with four digits
// Where nothing explains the difference that closely: what frameworks leave out or add (router, convolutions, constants) with it.
inline constexpr double kConventionSigma = 0.02;
// |ln| of MFU against OFU of one job. The paper's mean error in production is 6.2 % (arXiv 2605.20799).
inline constexpr double kOfuSigma = 0.07;
inline constexpr double kOfuAgrees = 0.14;
// Hypotheses within so many sigma are kept.
inline constexpr double kKeptSigmas = 1.5;
// What tile quantisation and masked tiles add to OFU that MFU does not have, at most: a band, not a correction (arXiv 2605.20799).
inline constexpr double kTileOverheadMax = 1.06;

struct Measured {
  std::optional<double> ofu_ratio;
  bool told = false;  // from elsewhere: with a reference clock that is not known here
};

struct Ranked {
  Hypothesis hypothesis;
  double observed_ratio = 1;  // reported / right, that it is to explain
  double distance_ratio = 0;  // in sigmas: |ln observed - ln predicted| / sigma
  std::string_view evidence;  // "flops_per_token", "peak", "mfu", "ofu"
  std::optional<double> corrected_mfu_ratio;
};

struct ConventionRow {
  std::string_view name;
  std::optional<double> flops_per_token_train;
  std::optional<double> ratio;  // to the audit's count
  std::optional<bool> matches;  // the claimed FLOPs of a token, within some tenths of a percent
  bool one_document = false;    // its program knows nothing of the packed documents: the figure is that of one as long as the sequence
};

struct Audit {
  Verdict verdict = Verdict::kUndecided;
  std::string summary;  // one sentence
  double flops_per_token = 0;                    // the audit's own, in training
  std::optional<double> flops_per_token_claimed;
  std::optional<double> flops_ratio;             // claimed / own
  std::optional<double> own_peak_flops_per_second;                // dense, of the run's precision
  std::optional<double> reference_peak_flops_per_second;          // that the claimed MFU is taken to be of
  std::optional<double> peak_ratio;              // reference over claimed peak: > 1 makes MFU too high
  std::optional<double> mfu_ratio;               // claimed; FLOP rate over own peak where only that was claimed
  bool mfu_from_rate = false;
  std::optional<double> mfu_recomputed_ratio;          // from token rate, or from OFU
  std::optional<double> band_low_ratio;
  std::optional<double> band_high_ratio;
  std::string_view recomputed_from;              // "tokens", "flops_ratio", "ofu"
  std::optional<double> ofu_ratio;
  std::optional<double> expected_ofu_over_mfu_ratio;
  std::optional<double> reported_over_ofu_ratio;
  std::optional<double> adjusted_ratio;          // reported_over_ofu_ratio x expected
  std::vector<Ranked> hypotheses;
  std::vector<ConventionRow> conventions;
  std::vector<std::string> evidence_used;
  std::vector<std::string> missing;
  std::vector<std::string> further_evidence;
  std::vector<std::string> notes;                // traps: what looks well and may not be
  std::vector<std::string> assumptions;
};

Audit audit(const Run& run, const Claim& claim, const Measured& measured, const catalog::DeviceCatalog& catalog);

}  // namespace flopsight::audit
