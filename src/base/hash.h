#pragma once
// 128 bits that stand for a text where keeping the text would cost more than what it names. Two texts of a fleet with the same
// bits are not to be expected: with ten million names the odds are below 1 in 10^24 if the halves are independent, as these are.
// Not for texts that somebody could choose to collide for gain.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string_view>

namespace flopsight::base {

struct Hash128 {
  std::uint64_t low = 0;
  std::uint64_t high = 0;
  auto operator<=>(const Hash128&) const = default;
};

inline Hash128 hash128(std::string_view text) {
  // FNV-1a (Fowler, Noll, Vo) beside the library's own murmur, with the finisher of splitmix64 so that all bits count.
  std::uint64_t high = 0xcbf29ce484222325ULL;
  for (const char c : text) {
    high ^= static_cast<unsigned char>(c);
    high *= 0x100000001b3ULL;
  }
  high ^= high >> 30;
  high *= 0xbf58476d1ce4e5b9ULL;
  high ^= high >> 27;
  return {std::hash<std::string_view>{}(text), high};
}

struct Hash128Hasher {
  std::size_t operator()(const Hash128& hash) const { return hash.low; }
};

}  // namespace flopsight::base
