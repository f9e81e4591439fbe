#include <algorithm>
#include <bit>
#include <cstring>

#include "wire/rice_internal.h"

namespace flopsight::wire {
namespace {

constexpr unsigned kWholeBits = 64;

std::uint64_t low_bits(std::uint64_t value, unsigned bits) {
  return bits >= 64 ? value : value & ((std::uint64_t{1} << bits) - 1);
}

std::uint64_t group_bits(std::span<const std::uint64_t> group, unsigned parameter) {
  std::uint64_t bits = 0;
  for (const std::uint64_t value : group) {
    const std::uint64_t quotient = value >> parameter;
    bits +=
        quotient < RiceCode::kEscape ? quotient + 1 + parameter : RiceCode::kEscape + kWholeBits;
  }
  return bits;
}

struct Choice {
  unsigned parameter;
  std::uint64_t bits;
};

// From the widest value down, as long as it pays: each step saves a bit a value, until quotients
// grow.
Choice best_parameter(std::span<const std::uint64_t> group) {
  std::uint64_t any = 0;
  for (const std::uint64_t value : group) any |= value;
  if (any == 0) return {RiceCode::kAllZero, 0};
  const auto width = static_cast<unsigned>(std::bit_width(any));
  Choice best{std::min(width, RiceCode::kParameterMax), 0};
  best.bits = group_bits(group, best.parameter);
  while (best.parameter > 0) {
    const std::uint64_t bits = group_bits(group, best.parameter - 1);
    if (bits > best.bits) break;
    best = {best.parameter - 1, bits};
  }
  return best;
}

class BitWriter {
 public:
  explicit BitWriter(std::string& out) : out_(out) {}
  void put(std::uint64_t value, unsigned bits) {
    if (bits > 32) {
      put(low_bits(value, 32), 32);
      value >>= 32U;
      bits -= 32;
    }
    pending_ |= low_bits(value, bits) << used_;
    used_ += bits;
    for (; used_ >= 8; used_ -= 8, pending_ >>= 8U) out_ += static_cast<char>(pending_ & 0xFF);
  }
  void finish() {
    if (used_ > 0) out_ += static_cast<char>(pending_ & 0xFF);
  }

 private:
  std::string& out_;
  std::uint64_t pending_ = 0;
  unsigned used_ = 0;
};

// Past the end come zeros; whether it was passed is asked now and then, not at each bit.
class BitReader {
 public:
  explicit BitReader(std::string_view bytes) : bytes_(bytes) {}

  // At least 57 bits from here on.
  std::uint64_t peek() const {
    const std::size_t at = bit_ / 8;
    std::uint64_t window = 0;
    if (at + sizeof window <= bytes_.size()) {
      std::memcpy(&window, bytes_.data() + at, sizeof window);
    } else if (at < bytes_.size()) {
      std::memcpy(&window, bytes_.data() + at, bytes_.size() - at);
    }
    return window >> (bit_ % 8);
  }
  void skip(unsigned bits) { bit_ += bits; }
  std::uint64_t take(unsigned bits) {
    if (bits > 32) {
      const std::uint64_t low = take(32);
      return low | take(bits - 32) << 32U;
    }
    const std::uint64_t value = low_bits(peek(), bits);
    skip(bits);
    return value;
  }
  bool past_end() const { return bit_ > bytes_.size() * 8; }
  std::size_t bytes_used() const { return (bit_ + 7) / 8; }

 private:
  std::string_view bytes_;
  std::size_t bit_ = 0;
};

constexpr unsigned kPeekBits = 57;

std::uint64_t read_one(BitReader& reader, unsigned parameter) {
  const std::uint64_t window = reader.peek();
  const auto quotient = static_cast<unsigned>(std::countr_one(window));
  if (quotient >= RiceCode::kEscape) {
    reader.skip(RiceCode::kEscape);
    return reader.take(kWholeBits);
  }
  const std::uint64_t high = static_cast<std::uint64_t>(quotient) << parameter;
  if (quotient + 1 + parameter <= kPeekBits) {
    reader.skip(quotient + 1 + parameter);
    return high | low_bits(window >> (quotient + 1), parameter);
  }
  reader.skip(quotient + 1);
  return high | reader.take(parameter);
}

}  // namespace

RiceCode::RiceCode(std::span<const std::uint64_t> values) : values_(values) {
  for (std::size_t at = 0; at < values.size(); at += kGroup) {
    const Choice choice = best_parameter(values.subspan(at, std::min(kGroup, values.size() - at)));
    parameters_.push_back(static_cast<std::uint8_t>(choice.parameter));
    bits_ += kParameterBits + choice.bits;
  }
}

void RiceCode::write(std::string& out) const {
  BitWriter writer(out);
  for (std::size_t i = 0; i < values_.size(); ++i) {
    const unsigned parameter = parameters_[i / kGroup];
    if (i % kGroup == 0) writer.put(parameter, kParameterBits);
    if (parameter == kAllZero) continue;
    const std::uint64_t quotient = values_[i] >> parameter;
    if (quotient < kEscape) {
      writer.put((std::uint64_t{1} << quotient) - 1, static_cast<unsigned>(quotient) + 1);
      writer.put(values_[i], parameter);
    } else {
      writer.put((std::uint64_t{1} << kEscape) - 1, kEscape);
      writer.put(values_[i], kWholeBits);
    }
  }
  writer.finish();
}

bool read_rice(std::string_view& bytes, std::span<std::uint64_t> values) {
  BitReader reader(bytes);
  for (std::size_t at = 0; at < values.size(); at += RiceCode::kGroup) {
    const auto group = values.subspan(at, std::min(RiceCode::kGroup, values.size() - at));
    const auto parameter = static_cast<unsigned>(reader.take(RiceCode::kParameterBits));
    if (parameter == RiceCode::kAllZero) {
      std::fill(group.begin(), group.end(), 0);
    } else {
      for (std::uint64_t& value : group) value = read_one(reader, parameter);
    }
    if (reader.past_end()) return false;
  }
  bytes.remove_prefix(reader.bytes_used());
  return true;
}

}  // namespace flopsight::wire
