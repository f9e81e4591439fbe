#include "tuning/formulas.h"

#include <algorithm>
#include <cmath>

namespace flopsight::tuning {
namespace {

using Lengths = std::vector<std::pair<std::uint64_t, double>>;

constexpr std::size_t kSampleDocuments = 4096;

double weight_total(const Lengths& lengths) {
  double total = 0;
  for (const auto& entry : lengths) total += entry.second;
  return total;
}

double mean_tokens(const Lengths& lengths) {
  double total = 0;
  for (const auto& entry : lengths) total += static_cast<double>(entry.first) * entry.second;
  return total / weight_total(lengths);
}

}  // namespace

double ridge_flops_per_byte(double peak, double bandwidth) { return peak / bandwidth; }

double intensity_flops_per_byte(double m, double n, double k, double element_bytes) { return 2 * m * n * k / (element_bytes * (m * k + k * n + m * n)); }

double bubble_ratio(double stages, double virtual_stages, double micro_batches) { return (stages - 1) / (virtual_stages * micro_batches + stages - 1); }

double padded_to_length_ratio(const Lengths& lengths, std::uint64_t tokens) { return static_cast<double>(tokens) / mean_tokens(lengths); }

double padded_to_longest_ratio(const Lengths& lengths) {
  std::uint64_t longest = 0;
  for (const auto& entry : lengths) longest = std::max(longest, entry.first);
  return padded_to_length_ratio(lengths, longest);
}

double padded_in_batch_ratio(const Lengths& lengths, double batch) {
  Lengths sorted = lengths;
  std::sort(sorted.begin(), sorted.end());
  const double all = weight_total(sorted);
  double below = 0, expected = 0;
  for (const auto& entry : sorted) {
    const double through = below + entry.second / all;
    expected += static_cast<double>(entry.first) * (std::pow(std::min(through, 1.0), batch) - std::pow(below, batch));
    below = std::min(through, 1.0);
  }
  return expected / mean_tokens(lengths);
}

double packing_efficiency_ratio(const Lengths& lengths, std::uint64_t tokens) {
  Lengths sorted = lengths;
  std::sort(sorted.rbegin(), sorted.rend());
  const double all = weight_total(sorted);
  std::vector<std::uint64_t> room;
  double used = 0, seen = 0;
  std::size_t taken = 0;
  for (const auto& entry : sorted) {
    // As many as make the running total right, so that a long tail of rare lengths is sampled too.
    seen += entry.second;
    const auto upto = static_cast<std::size_t>(std::lround(seen / all * kSampleDocuments));
    const std::size_t count = upto - taken;
    taken = upto;
    const std::uint64_t length = std::min(entry.first, tokens);
    for (std::size_t i = 0; i < count; ++i) {
      const auto fits = std::find_if(room.begin(), room.end(), [&](std::uint64_t left) { return left >= length; });
      if (fits == room.end()) {
        room.push_back(tokens - length);
      } else {
        *fits -= length;
      }
      used += static_cast<double>(length);
    }
  }
  return room.empty() ? 0 : used / (static_cast<double>(room.size()) * static_cast<double>(tokens));
}

double harmonic_total(std::uint64_t n) {
  double sum = 0;
  for (std::uint64_t i = 1; i <= n; ++i) sum += 1 / static_cast<double>(i);
  return sum;
}

double young_interval_seconds(double checkpoint, double failure) { return std::sqrt(2 * checkpoint * failure); }

double daly_interval_seconds(double checkpoint, double failure) {
  // The ratio's derivative is 0 where 1 - T/M = e^(-(T+c)/M); what is left of that falls from T = 0 to T = M, on which it has other signs.
  double low = 0, high = 1;
  while (true) {
    const double middle = (low + high) / 2;
    if (middle <= low || middle >= high) return middle * failure;
    (-middle - std::expm1(-middle - checkpoint / failure) > 0 ? low : high) = middle;
  }
}

double productive_ratio(double checkpoint, double interval, double restart, double failure) {
  return interval / failure * std::exp(-restart / failure) / std::expm1((interval + checkpoint) / failure);
}

double amdahl_ratio(double share, double factor) { return 1 / ((1 - share) + share / factor); }

double top_k_traffic_ratio(double density, double gpus, double dense_bytes) { return gpus * density * 8 / (2 * dense_bytes); }

double speculative_tokens_total(double acceptance, double drafted) {
  if (acceptance >= 1) return drafted + 1;
  return (1 - std::pow(acceptance, drafted + 1)) / (1 - acceptance);
}

double speculative_speedup_ratio(double acceptance, double drafted, double draft_cost, double verify_cost) {
  return speculative_tokens_total(acceptance, drafted) / (drafted * draft_cost + verify_cost);
}

double experts_touched_total(double experts, double top_k, double tokens) { return experts * (1 - std::pow(1 - top_k / experts, tokens)); }

double groups_touched_total(double experts, double top_k, double groups) {
  double none = 1;
  for (double i = 0; i < top_k; ++i) none *= std::max(0.0, experts - experts / groups - i) / (experts - i);
  return groups * (1 - none);
}

double reserved_waste_ratio(double mean, double max) { return 1 - mean / max; }

double paged_waste_ratio(double mean, double block) { return (block - 1) / 2 / (mean + (block - 1) / 2); }

double usd_per_million_tokens(double usd_per_gpu_hour, double gpus, double tokens_per_second) { return usd_per_gpu_hour * gpus / (tokens_per_second * 3600) * 1e6; }

double usd_wasted_per_year(double gpus, double usd_per_gpu_hour, double achieved, double target) { return gpus * 8760 * usd_per_gpu_hour * (1 - achieved / target); }

}  // namespace flopsight::tuning
