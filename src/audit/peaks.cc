#include "audit/peaks.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/text.h"

namespace flopsight::audit {
namespace {

using catalog::Device;
using catalog::Precision;

constexpr double kOwnTolerance = 0.03;
constexpr double kNameTolerance = 0.015;
constexpr double kDigitsTolerance = 0.003;
constexpr std::size_t kNamesMax = 6;
constexpr std::string_view kFallback = "A100-SXM4-80GB";
constexpr std::array<Precision, 7> kTensorPrecisions = {Precision::kBf16, Precision::kFp16, Precision::kFp8, Precision::kFp4,
                                                        Precision::kTf32, Precision::kFp32, Precision::kFp6};

// Best matrix-product rates that were measured (maximum achievable matmul FLOPS; S. Bekman, github.com/stas00/ml-engineering), which
// tools divide by that measure instead of looking up.
struct Measured {
  std::string_view model;
  Precision precision;
  double flops_per_second;
};
constexpr Measured kMeasured[] = {
    {"A100-SXM4-80GB", Precision::kBf16, 271e12},  {"A100-SXM4-40GB", Precision::kBf16, 271e12},
    {"H100-SXM5-80GB", Precision::kBf16, 794.5e12}, {"H100-SXM5-80GB", Precision::kFp8, 1402.6e12},
    {"B200-SXM", Precision::kBf16, 1745e12},
};

std::optional<double> dense(const Device& device, Precision precision) {
  const auto peak = device.peak(precision);
  return peak && peak->value > 0 ? std::optional(peak->value) : std::nullopt;
}

bool near(double a, double b, double tolerance) { return std::abs(std::log(a / b)) <= tolerance; }

std::string upper_name(Precision precision) {
  std::string name(catalog::precision_name(precision));
  std::transform(name.begin(), name.end(), name.begin(), [](char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 32) : c; });
  return name;
}

std::string tera(double flops_per_second) {
  return base::printable(std::to_string(static_cast<std::int64_t>(std::llround(flops_per_second / 1e12)))) + " TFLOP/s";
}

Hypothesis peak_of(std::string_view id, double ratio, std::string explanation, std::string_view source) {
  return {std::string(id), {std::string(id)}, Cause::kPeak, ratio, std::move(explanation), std::string(source)};
}

// "H100-SXM5-80GB": H100.
std::string_view family(std::string_view model) { return model.substr(0, model.find_first_of("- ")); }

bool confused(std::string_view other, std::string_view own) {
  if (other == kFallback) return true;
  const std::string_view a = family(other), b = family(own);
  return a.find(b) != std::string_view::npos || b.find(a) != std::string_view::npos;
}

struct Candidate {
  double peak = 0;
  Hypothesis hypothesis;  // its ratio is filled in by the caller
};

// Peaks of the run's own device, then those of others, as far as `wanted` says.
std::vector<Candidate> candidates(const Run& run, const catalog::DeviceCatalog& catalog, bool every_gpu) {
  std::vector<Candidate> list;
  const Device* own = run.device;
  const auto push = [&](std::string_view id, double peak, std::string what, std::string_view source) {
    list.push_back({peak, peak_of(id, 1, std::move(what), source)});
  };
  if (own != nullptr) {
    if (const auto peak = run.precision ? dense(*own, *run.precision) : std::nullopt) {
      push("sparse_peak", 2 * *peak, "divided by the peak with structured sparsity, twice the dense one", "torchtitan #1393, Lightning #21743");
    }
    for (const Precision precision : kTensorPrecisions) {
      const auto peak = dense(*own, precision);
      if (!peak || precision == run.precision) continue;
      push("peak_of_other_precision", *peak, "divided by the " + own->model + "'s " + upper_name(precision) + " peak", "torchtitan #2451");
    }
    for (const Measured& measured : kMeasured) {
      if (measured.model != own->model || (run.precision && measured.precision != *run.precision)) continue;
      push("measured_gemm_peak", measured.flops_per_second, "divided by a measured rate of a matrix product instead of the peak", "ms-swift perf_log.py");
    }
  }
  const Precision precision = run.precision.value_or(Precision::kBf16);
  std::vector<const Device*> others;
  for (const Device& device : catalog.devices()) {
    if (&device != own && (own == nullptr || device.model != own->model)) others.push_back(&device);
  }
  std::stable_sort(others.begin(), others.end(), [](const Device* a, const Device* b) { return (a->model == kFallback) > (b->model == kFallback); });
  for (const Device* device : others) {
    if (!every_gpu && (own == nullptr || !confused(device->model, own->model))) continue;
    // A table of peaks that knows no FP8 has the BF16 one.
    const auto peak = dense(*device, precision) ? dense(*device, precision) : dense(*device, Precision::kBf16);
    if (!peak) continue;
    const std::string fallback = device->model == kFallback ? " (several tools fall back to it for GPUs that they do not know)" : "";
    push("peak_of_other_gpu", *peak, "divided by the peak of " + device->model + fallback, "nanoGPT #464, torchtitan #4779, verl #1877");
    if (every_gpu) push("peak_of_other_gpu", 2 * *peak, "divided by the peak of " + device->model + " with structured sparsity", "torchtitan #1393");
  }
  return list;
}

}  // namespace

std::optional<double> own_peak(const Run& run) {
  if (run.device == nullptr || !run.precision) return std::nullopt;
  return dense(*run.device, *run.precision);
}

bool is_own_peak(double flops_per_second, double own) { return near(flops_per_second, own, kOwnTolerance); }

std::vector<Hypothesis> peak_named(const Run& run, const catalog::DeviceCatalog& catalog, double flops_per_second) {
  std::vector<Hypothesis> found;
  const std::optional<double> own = own_peak(run);
  std::vector<std::pair<std::string, double>> peaks;  // those of GPUs with one and the same peak are told once
  std::vector<Candidate> list = candidates(run, catalog, true);
  // A peak is a constant of a program: where one fits to its digits, those that only come near do not.
  const bool to_its_digits = std::any_of(list.begin(), list.end(), [&](const Candidate& c) { return near(c.peak, flops_per_second, kDigitsTolerance); });
  for (Candidate& candidate : list) {
    if (found.size() == kNamesMax || !near(candidate.peak, flops_per_second, to_its_digits ? kDigitsTolerance : kNameTolerance)) continue;
    const std::pair<std::string, double> told{candidate.hypothesis.id, candidate.peak};
    if (std::any_of(peaks.begin(), peaks.end(), [&](const auto& known) { return known.first == told.first && near(known.second, told.second, 1e-3); })) continue;
    peaks.push_back(told);
    candidate.hypothesis.ratio = own ? *own / candidate.peak : 1;
    candidate.hypothesis.explanation += ": " + tera(candidate.peak);
    found.push_back(std::move(candidate.hypothesis));
  }
  return found;
}

std::vector<Hypothesis> peak_hypotheses(const Run& run, const catalog::DeviceCatalog& catalog, double reference_peak) {
  std::vector<Hypothesis> list;
  for (Candidate& candidate : candidates(run, catalog, false)) {
    candidate.hypothesis.ratio = reference_peak / candidate.peak;
    if (near(candidate.peak, reference_peak, kNameTolerance)) continue;
    const bool known = std::any_of(list.begin(), list.end(), [&](const Hypothesis& h) {
      return h.id == candidate.hypothesis.id && near(h.ratio, candidate.hypothesis.ratio, 1e-3);
    });
    if (known) continue;
    candidate.hypothesis.explanation += ": " + tera(candidate.peak) + " instead of " + tera(reference_peak);
    list.push_back(std::move(candidate.hypothesis));
  }
  return list;
}

}  // namespace flopsight::audit
