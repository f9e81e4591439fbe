#pragma once
// The names of GPUs, in one piece of memory: strings of their own would take three times as much, a million times. What many GPUs have in
// common (model, driver, MIG profile) stands once.
// Threads: one at a time.

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/text_list.h"
#include "samples/gpu.h"

namespace flopsight::live {

class IdentityTable {
 public:
  // The next number, from 0 on.
  void add(const samples::GpuIdentity& identity);
  void replace(std::size_t number, const samples::GpuIdentity& identity);
  samples::GpuIdentity at(std::size_t number) const;

  std::size_t memory_bytes() const { return packed_.memory_bytes(); }

 private:
  using Common = std::array<std::string, 3>;

  std::string packed(const samples::GpuIdentity& identity);

  // Of each: the number of what is common, in four bytes, then names (base/packed_name.h), each but a packed UUID with a zero byte at its end.
  base::TextList packed_;
  std::vector<Common> common_;
  std::map<Common, std::uint32_t> common_numbers_;
};

}  // namespace flopsight::live
