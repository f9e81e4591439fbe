#include "store/gpu_runs.h"

#include <algorithm>
#include <functional>
#include <numeric>

#include "base/check.h"

namespace flopsight::store {
namespace {

void put_number(std::string& out, std::uint64_t value) {
  for (; value >= 0x80; value >>= 7U) out += static_cast<char>((value & 0x7F) | 0x80);
  out += static_cast<char>(value);
}

// Nothing at the end or past 35 bits.
bool take_number(std::string_view& bytes, std::uint64_t& value) {
  value = 0;
  for (unsigned shift = 0; shift < 35; shift += 7) {
    if (bytes.empty()) return false;
    const auto byte = static_cast<unsigned char>(bytes.front());
    bytes.remove_prefix(1);
    value |= static_cast<std::uint64_t>(byte & 0x7FU) << shift;
    if (byte < 0x80) return true;
  }
  return false;
}

}  // namespace

void make_distinct(std::vector<GpuId>& gpus) {
  // Mostly of one span, which is in order.
  if (std::adjacent_find(gpus.begin(), gpus.end(), std::greater_equal<>()) == gpus.end()) return;
  std::sort(gpus.begin(), gpus.end());
  gpus.erase(std::unique(gpus.begin(), gpus.end()), gpus.end());
}

std::string encode_gpu_runs(std::span<const GpuId> gpus) {
  std::string out;
  std::uint64_t next = 0;
  for (std::size_t i = 0; i < gpus.size();) {
    std::size_t end = i + 1;
    while (end < gpus.size() && gpus[end] == gpus[end - 1] + 1) ++end;
    FLOPSIGHT_CHECK(gpus[i] >= next);
    put_number(out, gpus[i] - next);
    put_number(out, end - i);
    next = std::uint64_t{gpus[end - 1]} + 1;
    i = end;
  }
  return out;
}

base::Result<std::vector<GpuId>> decode_gpu_runs(std::string_view bytes) {
  std::vector<GpuId> gpus;
  std::uint64_t next = 0;
  while (!bytes.empty()) {
    std::uint64_t gap = 0, length = 0;
    if (!take_number(bytes, gap) || !take_number(bytes, length)) return base::Error{base::ErrorCode::kCorrupt, "runs of GPUs: they are cut"};
    if (length == 0 || length > kRunGpusMax - gpus.size() || next + gap + length > 0xFFFFFFFF) {
      return base::Error{base::ErrorCode::kCorrupt, "runs of GPUs: a run out of range"};
    }
    const std::size_t before = gpus.size();
    gpus.resize(before + static_cast<std::size_t>(length));
    std::iota(gpus.begin() + static_cast<std::ptrdiff_t>(before), gpus.end(), static_cast<GpuId>(next + gap));
    next += gap + length;
  }
  return gpus;
}

}  // namespace flopsight::store
