#include "store/fixed_columns.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "base/check.h"

namespace flopsight::store {
namespace {

static_assert(std::endian::native == std::endian::little, "values are read as they lie");

constexpr char kVersion = 2;
constexpr std::size_t kHeadBytes = 9;  // version, checksum of what follows
// So that eight bytes can be read wherever a value begins.
constexpr std::size_t kPadBytes = 8;

std::uint64_t word_at(const char* at) {
  std::uint64_t word = 0;
  std::memcpy(&word, at, sizeof word);
  return word;
}

// Every step is one-to-one in what came before, so that a change of any one word changes the result. Four lanes, as a day of a large fleet is
// tens of megabytes and a CRC would be most of the time that adding them up takes.
std::uint64_t checksum(std::string_view bytes) {
  constexpr std::uint64_t kFactor = 0x9E3779B97F4A7C15U;
  std::uint64_t lanes[4] = {bytes.size(), 1, 2, 3};
  std::size_t at = 0;
  for (; at + 32 <= bytes.size(); at += 32) {
    for (std::size_t i = 0; i < 4; ++i) lanes[i] = std::rotl((lanes[i] ^ word_at(bytes.data() + at + 8 * i)) * kFactor, 29);
  }
  for (; at < bytes.size(); ++at) lanes[0] = std::rotl((lanes[0] ^ static_cast<unsigned char>(bytes[at])) * kFactor, 29);
  std::uint64_t sum = 0;
  for (const std::uint64_t lane : lanes) sum = std::rotl((sum ^ lane) * kFactor, 31);
  return sum ^ sum >> 32U;
}

void put_number(std::string& out, std::uint64_t value) {
  for (; value >= 0x80; value >>= 7U) out += static_cast<char>((value & 0x7F) | 0x80);
  out += static_cast<char>(value);
}

std::uint64_t zigzag(std::int64_t value) {
  return static_cast<std::uint64_t>(value) << 1U ^ (0 - (static_cast<std::uint64_t>(value) >> 63U));
}
std::uint64_t unzigzag(std::uint64_t value) { return value >> 1U ^ (0 - (value & 1U)); }

void put_column(std::string& out, const std::vector<std::int64_t>& column) {
  put_number(out, column.size());
  if (column.empty()) return;
  const auto [least, most] = std::minmax_element(column.begin(), column.end());
  const std::uint64_t base = static_cast<std::uint64_t>(*least);
  const auto width = static_cast<std::size_t>(std::bit_width(static_cast<std::uint64_t>(*most) - base) + 7) / 8;
  put_number(out, width);
  put_number(out, zigzag(*least));
  for (const std::int64_t value : column) {
    const std::uint64_t above = static_cast<std::uint64_t>(value) - base;
    out.append(reinterpret_cast<const char*>(&above), width);
  }
}

base::Error corrupt(const char* what) { return {base::ErrorCode::kCorrupt, std::string("block: ") + what}; }

class Reader {
 public:
  explicit Reader(std::string_view bytes) : bytes_(bytes) {}

  base::Status column(std::size_t values_max, FixedColumn& into) {
    std::uint64_t count = 0, width = 0, base = 0;
    FLOPSIGHT_RETURN_IF_ERROR(number(count));
    if (count > values_max) return base::Error{base::ErrorCode::kLimit, "block: more than " + std::to_string(values_max) + " values"};
    into.values.resize(static_cast<std::size_t>(count));
    into.is_zero = true;
    if (count == 0) return {};
    FLOPSIGHT_RETURN_IF_ERROR(number(width));
    FLOPSIGHT_RETURN_IF_ERROR(number(base));
    base = unzigzag(base);
    if (width > 8) return corrupt("a value of more than eight bytes");
    // The padding stays behind every column.
    if (bytes_.size() < kPadBytes || count * width > bytes_.size() - kPadBytes) return corrupt("it is cut");
    into.is_zero = width == 0 && base == 0;
    const std::uint64_t mask = width == 0 ? 0 : ~std::uint64_t{0} >> (64 - 8 * width);
    const char* at = bytes_.data();
    for (std::int64_t& value : into.values) {
      value = static_cast<std::int64_t>(base + (word_at(at) & mask));
      at += width;
    }
    bytes_.remove_prefix(static_cast<std::size_t>(count * width));
    return {};
  }
  bool is_done() const { return bytes_.size() == kPadBytes; }

 private:
  base::Status number(std::uint64_t& value) {
    value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
      if (bytes_.empty()) return corrupt("it is cut");
      const auto byte = static_cast<unsigned char>(bytes_.front());
      bytes_.remove_prefix(1);
      value |= static_cast<std::uint64_t>(byte & 0x7FU) << shift;
      if (byte < 0x80) return {};
    }
    return corrupt("a number of more than 64 bits");
  }

  std::string_view bytes_;
};

}  // namespace

std::string write_fixed_columns(std::span<const std::vector<std::int64_t>> columns) {
  std::string written;
  for (const std::vector<std::int64_t>& column : columns) put_column(written, column);
  written.append(kPadBytes, '\0');
  return fixed_columns_of(written);
}

std::string fixed_columns_of(std::string_view written) {
  const std::uint64_t sum = checksum(written);
  std::string out(1, kVersion);
  out.append(reinterpret_cast<const char*>(&sum), sizeof sum);
  return out.append(written);
}

base::Status read_fixed_columns(std::string_view bytes, std::size_t values_max, std::span<FixedColumn> columns) {
  if (bytes.empty() || bytes[0] != kVersion) {
    return base::Error{base::ErrorCode::kCorrupt,
                       "block: version " + std::to_string(bytes.empty() ? -1 : bytes[0]) + ", expected 2"};
  }
  if (bytes.size() < kHeadBytes + kPadBytes) return corrupt("it is cut");
  const std::string_view payload = bytes.substr(kHeadBytes);
  if (word_at(bytes.data() + 1) != checksum(payload)) return corrupt("its checksum differs");
  Reader reader(payload);
  for (FixedColumn& column : columns) FLOPSIGHT_RETURN_IF_ERROR(reader.column(values_max, column));
  if (!reader.is_done()) return corrupt("bytes after its columns");
  return {};
}

}  // namespace flopsight::store
