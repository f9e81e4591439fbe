#pragma once
// Chance without memory: every draw is a hash of what it is for, so that any scrape can be made by itself, in any order,
// and again. The mixing function is SplitMix64's (Steele, Lea, Flood 2014).
// Threads: pure.

#include <array>
#include <cmath>
#include <cstdint>

namespace flopsight::simulation {

constexpr std::uint64_t mix(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15ULL;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}

constexpr std::uint64_t hash_of(std::uint64_t a, std::uint64_t b) { return mix(a ^ mix(b)); }
constexpr std::uint64_t hash_of(std::uint64_t a, std::uint64_t b, std::uint64_t c) {
  return hash_of(hash_of(a, b), c);
}

// [0, 1).
constexpr double unit_of(std::uint64_t hash) { return static_cast<double>(hash >> 11) * 0x1p-53; }

// A sequence of draws from one hash; the nth draw is always the same.
class Draws {
 public:
  explicit constexpr Draws(std::uint64_t seed) : state_(seed) {}
  constexpr std::uint64_t next() { return state_ = mix(state_); }
  constexpr double unit() { return unit_of(next()); }
  constexpr double between(double low, double high) { return low + (high - low) * unit(); }
  double log_between(double low, double high) { return low * std::pow(high / low, unit()); }
  constexpr std::uint64_t below(std::uint64_t n) { return next() % n; }

 private:
  std::uint64_t state_;
};

// Four independent functions of u, linear between random values at whole numbers, each in [-1, 1). As integrals of a noise they
// make it exact: the noise between two points adds up to the difference of two values, however long the way.
inline std::array<double, 4> wander(std::uint64_t key, double u) {
  const double below = std::floor(u);
  const double weight = u - below;
  const auto at = static_cast<std::uint64_t>(static_cast<std::int64_t>(below));
  const std::uint64_t here = hash_of(key, at), next = hash_of(key, at + 1);
  std::array<double, 4> out{};
  for (unsigned i = 0; i < 4; ++i) {
    const auto value = [&](std::uint64_t h) {
      return static_cast<double>(static_cast<std::int16_t>(h >> (16 * i))) * 0x1p-15;
    };
    out[i] = value(here) * (1 - weight) + value(next) * weight;
  }
  return out;
}

}  // namespace flopsight::simulation
