#pragma once
// Rice codes of unsigned integers, in groups with a parameter each: v is v >> k ones and a zero,
// then the k low bits. A quotient that is too long is kEscape ones and the whole number. Threads:
// values.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace flopsight::wire {

class RiceCode {
 public:
  static constexpr std::size_t kGroup = 64;
  static constexpr unsigned kEscape = 24;
  static constexpr unsigned kParameterBits = 6;
  static constexpr unsigned kAllZero =
      63;  // instead of a parameter: a group of zeros, and no more bits
  static constexpr unsigned kParameterMax = 62;

  // The best parameters; nothing is written yet. `values` must outlive this.
  explicit RiceCode(std::span<const std::uint64_t> values);
  std::uint64_t bytes() const { return (bits_ + 7) / 8; }
  void write(std::string& out) const;

 private:
  std::span<const std::uint64_t> values_;
  std::vector<std::uint8_t> parameters_;
  std::uint64_t bits_ = 0;
};

// As many bytes has the code of `count` numbers at least.
inline std::size_t rice_bytes_min(std::size_t count) {
  return (count + RiceCode::kGroup - 1) / RiceCode::kGroup * RiceCode::kParameterBits / 8;
}

// Reads values.size() numbers from the front of `bytes` and removes theirs; false if they end too
// early.
bool read_rice(std::string_view& bytes, std::span<std::uint64_t> values);

}  // namespace flopsight::wire
