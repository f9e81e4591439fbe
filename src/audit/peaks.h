#pragma once
// The peak of the denominator: what else than the run's own dense peak it may have been. Sparse figures, other precisions, other
// GPUs of the catalogue, and measured rates of a matrix product, which some tools divide by. Threads: pure.

#include <optional>
#include <vector>

#include "audit/hypothesis.h"

namespace flopsight::audit {

// Of the run's device at its precision; nothing where one of them, or that peak, is not known.
std::optional<double> own_peak(const Run& run);

// The peak that `flops_per_second` is (within 1.5 %: figures are printed with few digits), best guess first, at most six. Ratios are
// own peak / that peak, 1 where the run's own peak is not known. Empty: it is none that is known here.
std::vector<Hypothesis> peak_named(const Run& run, const catalog::DeviceCatalog& catalog, double flops_per_second);

// Whether it is the run's own peak: frameworks round and differ by up to 2 % for one product (2450 and 2500 for GB200).
bool is_own_peak(double flops_per_second, double own);

// Peaks that a framework might have taken for the run, with ratio reported / right. Other GPUs are those that are known to be confused:
// the A100 that several fall back to, and names that contain each other (H200 and H20, GB200 and B200).
std::vector<Hypothesis> peak_hypotheses(const Run& run, const catalog::DeviceCatalog& catalog, double reference_peak);

}  // namespace flopsight::audit
