#pragma once
// Numbers of GPUs as runs of neighbours: a job's GPUs are mostly whole hosts, so that hundreds of them are a few bytes.
// Format: for each run how many numbers are left out before it and how long it is, LEB128, ascending.
//
// Bad input: kCorrupt; never more than kRunGpusMax numbers.
// Threads: pure functions.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "store/block.h"

namespace flopsight::store {

inline constexpr std::size_t kRunGpusMax = 16'000'000;

// Ascending, without repetitions. (Ids are 32-bit numbers, of GPUs or of anything else.)
void make_distinct(std::vector<GpuId>& gpus);

// `gpus` ascending, without repetitions.
std::string encode_gpu_runs(std::span<const GpuId> gpus);
base::Result<std::vector<GpuId>> decode_gpu_runs(std::string_view bytes);

}  // namespace flopsight::store
