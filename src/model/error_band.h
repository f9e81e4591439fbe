#pragma once
// The error of an OFU over many samples: how far the true value of the allocated time can be from the one shown, part by part.
// Each part is measured on the data, bounded by a worst case, or assumed from a published figure, and says which.
//
// Two bands are made of the parts, both at kConfidence (90 %) where a part is random:
//   error_band    what can be wrong with the OFU of what was scraped: clock sampling, coverage, sharing. The contract's
//                 ofu_ratio_low and ofu_ratio_high.
//   error_budget  that, and what can be wrong with taking it for the useful share of the peak: ends of jobs, the clock domain, FLOPs
//                 outside the tensor pipe and, where it was told, tile padding.
// Worst cases add up; random parts add in quadrature. So a band covers the truth in 90 % of cases where random parts are all there is,
// and in more of them wherever a worst case is part of it. error_honesty_test.cc measures both.
//
// 1. Clock sampling. Tensor activity is averaged over the sample by the hardware, the clock is one reading
//    in it. With w_i the time of sample i and a_i its activity, the error of  D = sum w_i a_i f_i / f_ref
//    has the variance  sum (w_i a_i sigma / f_ref)^2 , where sigma is the spread of the clock from one
//    sample to the next, estimated by successive differences over the busy samples of the GPU:
//        sigma^2 = sum (f_i - f_(i-1))^2 / (2 (n-1))
//    which does not count slow drift (thermal, power) that the samples follow anyway. A GPU with fewer than
//    two busy readings takes the spread across the busy GPUs of its model at that instant. The half width is
//    Student's quantile for so many differences as the estimate rests on, 1.645 for many of them. Independence of the readings is
//    assumed. Where the clock wanders more slowly than it is read, the band is too wide (twice, for a memory of ten samples). Where a
//    job's steps are a whole part of the scrape interval, readings meet them at the same phase again and again, and it is too narrow.
//    Where not even the model has two busy readings, nothing is known but that the clock was between 0 and its maximum: the band
//    spans that.
//    Sources: arXiv 2605.20799 names this error source and reports under 0.22 points at 30 s; von Neumann
//    (1941), "Distribution of the ratio of the mean square successive difference to the variance", for the estimator, whose 2/3 of
//    n - 1 degrees of freedom are its efficiency; Welch (1947) for the degrees of freedom of a sum; the propagation is ordinary.
// 2. Coverage. Allocated time that was not measured could have been anything from idle to peak: it adds nothing
//    to the lower end and its whole time to the upper one (worst-case bounds as in Manski, 1989). With full
//    coverage this part is zero.
// 3. Sharing. Where a GPU was split equally among jobs, each job's part could have been anything from nothing to
//    all that the GPU delivered. MIG: a "1g" slice is taken for 1/7 of the GPU (NVIDIA MIG user guide);
//    no further error is added, and the report says so.
// 4. Ends of jobs. A sample tells of the time before it and holds for the time after it. So at each end of what a job had of a GPU
//    part u of one sample's time T, anywhere from none to all of it, is counted with another activity x than it had, and the error
//    is u T (x - OFU). Of x no more is known than its bounds and, for want of better, the job's mean; the distribution of greatest entropy
//    with these (Jaynes 1957), a cut exponential, has the variance end_activity_variance(). With u uniform the variance of the two ends is
//        2 T^2 var(x) / 3
//    All GPUs of a job begin and end together, so their ends add up and not in quadrature.
// 5. Cycle ratio. The counter is a ratio of cycles, not of time (NVIDIA open-gpu-kernel-modules issue 1122): where clock and activity swing
//    together inside a sample it is not the share of time. Its product with the mean clock is exact all the same,
//        (int a f dt / int f dt) * (int f dt / T) = int a f dt / T,
//    and a reading at any instant that has nothing to do with the job's steps has that mean: OFU has no bias from it, and the swing is in
//    part 1. How far OFU would be off if the counter were a mean over time instead is bounded by Cauchy and Schwarz, with the largest
//    spread that an activity of mean a can have (Bhatia and Davis, 2000):  |cov(a, f)| <= sigma * sqrt(a (1 - a)).
//    Shown, and not added to a band.
// 6. Clock domain. f_ref may be the wrong clock: domain_error() in reference_error.h.
// 7. Non-tensor work. FLOPs on CUDA cores are not seen: under 0.2 % of all in training (arXiv 2605.20799).
// 8. Tile. Padding that kernels execute and nobody needs: OFU / overhead where it was told (gemm/tile.h), unknown otherwise.
//
// Cycle counters (DCGM 4.6) have neither 1 nor 5. All inputs are GPU-seconds; low and high are ratios of the allocated time, high may
// pass 1 where OFU does. Threads: pure.

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

namespace flopsight::model {

inline constexpr double kConfidenceRatio = 0.90;
// Of FLOPs outside the tensor pipe, at most (arXiv 2605.20799, section on error sources).
inline constexpr double kNonTensorRatio = 0.002;

struct BandInputs {
  double allocated_seconds = 0;
  double measured_seconds = 0;
  double delivered_seconds = 0;           // integral of OFU over the measured time
  double sampling_variance_seconds2 = 0;  // part 1, in GPU-seconds squared
  // Sum of variance squared over its degrees of freedom, by GPU; 0: the variance is known.
  double sampling_variance_error_ratio_seconds4 = 0;
  // Hard limits where no variance can be had: how much less, and how much more, could have been delivered.
  double one_reading_less_seconds = 0;  // part 1, from a single clock reading
  double one_reading_more_seconds = 0;
  double shared_less_seconds = 0;  // part 3
  double shared_more_seconds = 0;
  std::optional<double> ends_seconds = 0;  // part 4: time T for each two ends; nothing: it is not known how long one is
  double cycle_seconds = 0;  // part 5
  double domain_less_seconds = 0;  // part 6
  double domain_more_seconds = 0;
};

struct Band {
  double low_ratio = 0;
  double high_ratio = 0;
};

// Parts 1 to 3. Nothing without measured time.
std::optional<Band> error_band(const BandInputs& inputs);

enum class ErrorSource : std::uint8_t { kClockSampling, kCoverage, kSharing, kJobEnds, kCycleRatio, kClockDomain, kNonTensor, kTile };
inline constexpr std::size_t kErrorSources = 8;
std::string_view error_source_name(ErrorSource source);     // "clock_sampling", …
std::string_view error_source_meaning(ErrorSource source);  // where the figure is from, in a line

enum class ErrorBasis : std::uint8_t { kMeasured, kBounded, kAssumed, kUnknown };
std::string_view error_basis_name(ErrorBasis basis);  // "measured", …

// How a part goes into the band.
enum class ErrorSum : std::uint8_t { kNot, kAdded, kQuadrature };
std::string_view error_sum_name(ErrorSum sum);  // "none", "added", "quadrature"

struct ErrorPart {
  ErrorBasis basis = ErrorBasis::kUnknown;
  // How far the truth may be from the OFU shown, by this alone; 0 with kUnknown, where nothing is known.
  double low_ratio = 0;   // mostly <= 0
  double high_ratio = 0;  // mostly >= 0
  ErrorSum sum = ErrorSum::kNot;
};

struct ErrorBudget {
  Band band;
  std::array<ErrorPart, kErrorSources> parts;

  const ErrorPart& part(ErrorSource source) const { return parts[static_cast<std::size_t>(source)]; }
};

// All parts but the tile. Nothing without measured time.
std::optional<ErrorBudget> error_budget(const BandInputs& inputs);
// With the overhead of tiles (executed / useful FLOPs, 1 or more), of an OFU.
ErrorBudget with_tile(ErrorBudget budget, double ofu_ratio, double overhead_ratio, ErrorBasis basis);

// Of an activity between 0 and 1 of which the mean is known: within 7 % of the variance of the cut exponential distribution,
//   1 / (1/mean^2 + 1/(1-mean)^2 + 4) , and exact at 0, 1/2 and 1.
double end_activity_variance(double mean_ratio);
// Two-sided quantile of Student's distribution at kConfidenceRatio; degrees of freedom of 1 or more.
double student_quantile(double degrees_of_freedom);

}  // namespace flopsight::model
