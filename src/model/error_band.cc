#include "model/error_band.h"

#include <algorithm>
#include <cmath>

namespace flopsight::model {
namespace {

constexpr double kNormal = 1.645;  // 95th percentile: two-sided 90 %

double square(double x) { return x * x; }

double sampling_seconds(const BandInputs& in) {
  if (!(in.sampling_variance_seconds2 > 0)) return 0;
  const double freedom = in.sampling_variance_error_ratio_seconds4 > 0
                             ? square(in.sampling_variance_seconds2) / in.sampling_variance_error_ratio_seconds4
                             : 1e9;
  return student_quantile(freedom) * std::sqrt(in.sampling_variance_seconds2);
}

// What unmeasured time can have delivered at most: a GPU that runs above the reference clock can pass 1 there too.
double unmeasured_most_seconds(const BandInputs& in) {
  return std::max(0.0, in.allocated_seconds - in.measured_seconds) * std::max(1.0, in.delivered_seconds / in.measured_seconds);
}

bool is_measured(const BandInputs& in) { return in.measured_seconds > 0 && in.allocated_seconds > 0; }

// Delivered work is never negative: that is a fact, not a clamp of a measurement.
double at_least_nothing(double ratio) { return std::max(0.0, ratio); }

struct PartText {
  std::string_view name;
  std::string_view meaning;
};
constexpr std::array<PartText, kErrorSources> kTexts = {{
    {"clock_sampling", "spread of the clock between readings, propagated; Student's 90 %"},
    {"coverage", "unmeasured time taken as idle and as peak"},
    {"sharing", "a shared GPU's work taken as none and as all of this job's"},
    {"job_ends", "at each end of a job some of a sample, of unknown activity, is counted to the wrong side"},
    {"cycle_ratio", "limit of clock and activity moving together inside a sample, if the counter were a mean over time; as a ratio of cycles it has no bias"},
    {"clock_domain", "the catalogue's certainty of the clock at which the tensor peak is quoted"},
    {"non_tensor", "under 0.2 % of FLOPs are outside the tensor pipe (arXiv 2605.20799)"},
    {"tile", "FLOPs that kernels execute only because of their tiles, as told by flopsight gemm --attach; not in the band where nobody told"},
}};

void add_up(ErrorBudget& budget, double ofu_ratio) {
  double low = ofu_ratio, high = ofu_ratio, low2 = 0, high2 = 0;
  for (const ErrorPart& part : budget.parts) {
    if (part.sum == ErrorSum::kAdded) {
      low += part.low_ratio;
      high += part.high_ratio;
    } else if (part.sum == ErrorSum::kQuadrature) {
      low2 += square(part.low_ratio);
      high2 += square(part.high_ratio);
    }
  }
  budget.band = {at_least_nothing(low - std::sqrt(low2)), high + std::sqrt(high2)};
}

}  // namespace

std::string_view error_source_name(ErrorSource source) { return kTexts[static_cast<std::size_t>(source)].name; }
std::string_view error_source_meaning(ErrorSource source) { return kTexts[static_cast<std::size_t>(source)].meaning; }

std::string_view error_basis_name(ErrorBasis basis) {
  switch (basis) {
    case ErrorBasis::kMeasured: return "measured";
    case ErrorBasis::kBounded: return "bounded";
    case ErrorBasis::kAssumed: return "assumed";
    case ErrorBasis::kUnknown: break;
  }
  return "unknown";
}

std::string_view error_sum_name(ErrorSum sum) {
  switch (sum) {
    case ErrorSum::kAdded: return "added";
    case ErrorSum::kQuadrature: return "quadrature";
    case ErrorSum::kNot: break;
  }
  return "none";
}

double end_activity_variance(double mean_ratio) {
  if (mean_ratio <= 0 || mean_ratio >= 1) return 0;
  return 1 / (1 / square(mean_ratio) + 1 / square(1 - mean_ratio) + 4);
}

double student_quantile(double degrees_of_freedom) {
  // 95th percentiles at 1 to 10 degrees of freedom, and of the normal distribution; straight in 1/n beyond 10 (within 0.003).
  constexpr std::array<double, 10> kTable = {6.314, 2.920, 2.353, 2.132, 2.015, 1.943, 1.895, 1.860, 1.833, 1.812};
  const double n = std::max(1.0, degrees_of_freedom);
  if (n >= 10) return kNormal + (kTable[9] - kNormal) * 10 / n;
  const auto below = static_cast<std::size_t>(n);
  const double weight = n - static_cast<double>(below);
  return kTable[below - 1] * (1 - weight) + kTable[below] * weight;
}

std::optional<Band> error_band(const BandInputs& in) {
  if (!is_measured(in)) return std::nullopt;
  const double sampling = sampling_seconds(in);
  const double low = in.delivered_seconds - sampling - in.one_reading_less_seconds - in.shared_less_seconds;
  const double high =
      in.delivered_seconds + sampling + in.one_reading_more_seconds + in.shared_more_seconds + unmeasured_most_seconds(in);
  return Band{at_least_nothing(low / in.allocated_seconds), high / in.allocated_seconds};
}

std::optional<ErrorBudget> error_budget(const BandInputs& in) {
  if (!is_measured(in)) return std::nullopt;
  const double all = in.allocated_seconds;
  const double ofu_ratio = in.delivered_seconds / in.measured_seconds;
  ErrorBudget budget;
  const auto set = [&](ErrorSource source, ErrorBasis basis, double less_seconds, double more_seconds, ErrorSum sum = ErrorSum::kAdded) {
    budget.parts[static_cast<std::size_t>(source)] = {basis, -less_seconds / all, more_seconds / all, sum};
  };
  const double sampling = sampling_seconds(in);
  const bool one_reading = in.one_reading_less_seconds > 0 || in.one_reading_more_seconds > 0;
  set(ErrorSource::kClockSampling, one_reading ? ErrorBasis::kBounded : ErrorBasis::kMeasured,
      sampling + in.one_reading_less_seconds, sampling + in.one_reading_more_seconds,
      one_reading ? ErrorSum::kAdded : ErrorSum::kQuadrature);
  const double unmeasured_as_rest = (all - in.measured_seconds) * ofu_ratio;
  set(ErrorSource::kCoverage, ErrorBasis::kBounded, unmeasured_as_rest, unmeasured_most_seconds(in) - unmeasured_as_rest);
  set(ErrorSource::kSharing, ErrorBasis::kBounded, in.shared_less_seconds, in.shared_more_seconds);
  if (in.ends_seconds) {
    const double ends = kNormal * *in.ends_seconds * std::sqrt(2 * end_activity_variance(ofu_ratio) / 3);
    set(ErrorSource::kJobEnds, ErrorBasis::kAssumed, ends, ends, ErrorSum::kQuadrature);
  }
  set(ErrorSource::kCycleRatio, ErrorBasis::kBounded, in.cycle_seconds, in.cycle_seconds, ErrorSum::kNot);
  set(ErrorSource::kClockDomain, ErrorBasis::kAssumed, in.domain_less_seconds, in.domain_more_seconds);
  set(ErrorSource::kNonTensor, ErrorBasis::kAssumed, 0, in.delivered_seconds * kNonTensorRatio / (1 - kNonTensorRatio));
  add_up(budget, ofu_ratio);
  return budget;
}

ErrorBudget with_tile(ErrorBudget budget, double ofu_ratio, double overhead_ratio, ErrorBasis basis) {
  const double shift = ofu_ratio / overhead_ratio - ofu_ratio;
  budget.parts[static_cast<std::size_t>(ErrorSource::kTile)] = {basis, shift, shift, ErrorSum::kAdded};
  add_up(budget, ofu_ratio);
  return budget;
}

}  // namespace flopsight::model
