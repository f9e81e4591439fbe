#pragma once
// Small formulas of tuning that need no model of a step. Each says what it is, in which units, and where it is from. Threads: pure.

#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

namespace flopsight::tuning {

// FLOPs for each byte of memory traffic at which a GPU turns from bandwidth- to compute-bound (Williams et al. 2009, roofline).
double ridge_flops_per_byte(double peak_flops_per_second, double bandwidth_bytes_per_second);
// Of C (m x n) = A (m x k) B (k x n), each moved once, of elements of so many bytes.
double intensity_flops_per_byte(double m, double n, double k, double element_bytes);

// Share of a step that a pipeline of p stages, v interleaved parts and m micro-batches stands still (Narayanan et al. 2021, arXiv 2104.04473):
// (p-1) / (v*m + p-1).
double bubble_ratio(double stages, double virtual_stages, double micro_batches);

// Padding: tokens that are computed for each that is real. Lengths with their weights, in tokens.
double padded_to_longest_ratio(const std::vector<std::pair<std::uint64_t, double>>& lengths);
double padded_to_length_ratio(const std::vector<std::pair<std::uint64_t, double>>& lengths, std::uint64_t tokens);
// Batches of `batch` documents, each padded to its longest: E[max] / E[length], with E[max] = sum l (F(l)^B - F(l-)^B).
double padded_in_batch_ratio(const std::vector<std::pair<std::uint64_t, double>>& lengths, double batch);
// What first-fit-decreasing fills of sequences of `tokens`, of a sample of the lengths; 0 to 1. Longer documents are cut.
double packing_efficiency_ratio(const std::vector<std::pair<std::uint64_t, double>>& lengths, std::uint64_t tokens);
// Static batching against continuous: E[max of B] / E[mean] for the same distribution; for exponential lengths H_B.
double harmonic_total(std::uint64_t n);

// Checkpoints: cost c and mean time between failures M to the best time T of work between two, first order (Young 1974) and of Daly's exact expression
// (2006), by which that work takes M e^(restart/M) (e^((T+c)/M) - 1) where failures come independently of each other, also while checkpoints are
// written; share of time that is productive by the same expression. It falls to 0 where T is many times M.
double young_interval_seconds(double checkpoint_seconds, double failure_seconds);
double daly_interval_seconds(double checkpoint_seconds, double failure_seconds);
double productive_ratio(double checkpoint_seconds, double interval_seconds, double restart_seconds, double failure_seconds);

// Of a part that takes `share` of the time and becomes `factor` times as fast, the whole (Amdahl 1967).
double amdahl_ratio(double share_ratio, double factor_ratio);

// Bytes of a gradient element: reduced by an all-reduce in `bytes`, against the `density` largest with index and value of 4 bytes each, gathered from n
// GPUs (Lin et al. 2018, arXiv 1712.01887). The dense one moves 2*bytes, the sparse one n*density*8: worth it below density bytes*2/(8n).
double top_k_traffic_ratio(double density_ratio, double gpus, double dense_bytes);

// Speculative decoding (Leviathan et al. 2023, arXiv 2211.17192): (1-a^(g+1))/(1-a) tokens a round, at g*c + v of a step.
double speculative_tokens_total(double acceptance_ratio, double drafted);
double speculative_speedup_ratio(double acceptance_ratio, double drafted, double draft_cost_ratio, double verify_cost_ratio);

// Distinct experts of E that B tokens of k experts each touch, evenly routed: E (1 - (1 - k/E)^B).
double experts_touched_total(double experts, double top_k, double tokens);
// Of `groups` groups that E experts are divided over evenly, those in which one token has at least one of its k experts: g (1 - C(E - E/g, k) / C(E, k)).
double groups_touched_total(double experts, double top_k, double groups);

// Part of reserved memory that is not used: reserved to the maximum, and in blocks of `block` tokens (half of the last one; Kwon et al. 2023,
// arXiv 2309.06180).
double reserved_waste_ratio(double mean_tokens, double max_tokens);
double paged_waste_ratio(double mean_tokens, double block_tokens);

// US dollars for a million tokens.
double usd_per_million_tokens(double usd_per_gpu_hour, double gpus, double tokens_per_second);
// Lost in a year against an achievable target; never against the datasheet.
double usd_wasted_per_year(double gpus, double usd_per_gpu_hour, double achieved_ratio, double target_ratio);

// Range of 16-bit floats (IEEE 754 binary16), for loss scaling.
inline constexpr double kFp16Max = 65504;
inline constexpr double kFp16MinNormal = 6.103515625e-5;      // 2^-14
inline constexpr double kFp16MinSubnormal = 5.960464477539063e-8;  // 2^-24

}  // namespace flopsight::tuning
