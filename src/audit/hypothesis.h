#pragma once
// Known ways to miscount MFU, each with the ratio reported / right that it would make for this run: counted from the run's own
// configuration, sequence and layout with the counter's rules (flops/rules.h), never taken from a table. docs/audit.md lists them
// with sources. A hypothesis that changes nothing for the run is not made. Threads: pure.

#include <string>
#include <string_view>
#include <vector>

#include "audit/run.h"

namespace flopsight::audit {

// A half of a pair that changes |ln ratio| by less explains nothing that the other half does not.
inline constexpr double kPairHalfLog = 0.05;

inline constexpr std::string_view kStallsExcluded = "stalls_excluded";

// What the mistake is in, which says by what evidence it can be seen.
enum class Cause : std::uint8_t {
  kFlops,      // FLOPs of a token: seen in FLOP rate / token rate
  kPeak,       // the peak of the denominator: seen in FLOP rate / MFU
  kCount,      // GPUs or micro-batches: seen only beside OFU, or where the two rates are counted differently
  kTime,       // the time that is divided by
  kExecution,  // nothing is miscounted: the GPUs execute more than the model's FLOPs, and the audit was not told
  kMeasured,   // nothing is miscounted: OFU is off
};

struct Hypothesis {
  std::string id;                 // in JSON: "latent_ignored"; of a pair: "latent_ignored+sparse_peak"
  std::vector<std::string> ids;   // one, or those of a pair
  Cause cause = Cause::kFlops;    // of a pair: of the first
  double ratio = 1;               // reported / right
  std::string explanation;
  std::string source;             // a case where it happened, or why it is plausible; empty: none
  // The conventions (flops/conventions.h) that count so, where it is the whole of what one does: then `ids` are its largest parts.
  std::vector<std::string_view> conventions = {};

  // One mistake, or one program that counts so, however much of it is wrong.
  bool is_one() const { return ids.size() == 1 || !conventions.empty(); }
};

// The workload that the audit counts for: of an unknown sequence nothing can be counted.
flops::Workload workload_of(const Run& run);

// Wrong FLOPs of a token. Ratios to train_cost of the run with the default rules. Variants of a mistake share an id.
std::vector<Hypothesis> flops_hypotheses(const Run& run);
// What each convention makes of the run, with the parts that it leaves out and adds.
std::vector<Hypothesis> convention_hypotheses(const Run& run);
std::string convention_names(const Hypothesis& hypothesis, std::size_t most);  // "hf_trainer and 6n_total"; "palm, torchtitan and 3 more"
// The same mistakes of a counter that in addition takes no account of the causal mask, which older versions of many do not, or leaves
// attention cores out.
std::vector<Hypothesis> flops_pairs(const Run& run);
// Wrong numbers of GPUs, micro-batches, time and tokens.
std::vector<Hypothesis> count_hypotheses(const Run& run);
// What is not the framework's mistake. `told_ofu`: OFU comes from elsewhere, with a reference clock that is not known.
std::vector<Hypothesis> measured_hypotheses(const Run& run, bool told_ofu);

// Executed tensor-pipe time over the time that model FLOPs would take at `reference_peak`, padding executed and productive time taken into account: the
// OFU/MFU ratio that a correct report has (docs/audit.md). Without a precision, or a peak of it, all parts are taken at one and the same peak.
struct Expected {
  double ratio = 1;
  bool mixed_precision = false;  // linear layers run at another peak than the rest
};
Expected expected_ofu_over_mfu(const Run& run, flops::Recompute recompute, std::optional<double> reference_peak);

// FLOPs of a token in training by the audit's convention.
double flops_per_token(const Run& run);

}  // namespace flopsight::audit
