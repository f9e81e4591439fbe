#pragma once
// Names of GPUs in less memory: most are UUIDs as NVIDIA's driver writes them, "GPU-" and 32 hexadecimal digits in five groups, and those are 17
// bytes here instead of 40. Every other text stays as it is, or grows by a byte. Threads: pure.

#include <cstddef>
#include <string>
#include <string_view>

namespace flopsight::base {

inline constexpr char kPackedUuidMark = '\1';  // and 16 bytes
inline constexpr std::size_t kPackedUuidBytes = 17;

std::string packed_name(std::string_view name);
std::string unpacked_name(std::string_view packed);

}  // namespace flopsight::base
