#pragma once
// A GPU's names in one piece of memory: eight strings of their own would take twice as much, a million times.

#include <memory>

#include "samples/gpu.h"

namespace flopsight::live {

class PackedIdentity {
 public:
  PackedIdentity() = default;
  explicit PackedIdentity(const samples::GpuIdentity& identity);
  samples::GpuIdentity unpacked() const;
  std::size_t memory_bytes() const;

 private:
  std::unique_ptr<char[]> packed_;  // each of the eight ends in a zero byte; none contains one
};

}  // namespace flopsight::live
