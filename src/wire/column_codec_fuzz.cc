// Any bytes as a block of columns within limits, and any bytes as columns there and back. The first
// byte chooses how bytes become columns.
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "wire/column_codec.h"

namespace {

using flopsight::base::ErrorCode;
using flopsight::wire::ColumnLimits;
using flopsight::wire::ColumnWriter;
using flopsight::wire::read_columns;
using Columns = std::vector<std::vector<std::int64_t>>;

void write_and_read(const Columns& columns) {
  ColumnWriter writer;
  for (const auto& column : columns) writer.add(column);
  const std::string block = writer.finish(1);
  FLOPSIGHT_CHECK(read_columns(block).value() == columns);
}

// Columns of `length` values of `width` bytes each, signed, times `scale`.
Columns columns_of(std::string_view bytes, std::size_t width, std::size_t length,
                   std::uint64_t scale) {
  Columns out;
  for (std::size_t at = 0; at + width <= bytes.size(); at += width) {
    std::uint64_t value = 0;
    std::memcpy(&value, bytes.data() + at, width);
    const auto shift = static_cast<unsigned>(64 - 8 * width);
    const auto extended = static_cast<std::int64_t>(value << shift) >> shift;
    if (out.empty() || out.back().size() == length) out.emplace_back();
    out.back().push_back(static_cast<std::int64_t>(static_cast<std::uint64_t>(extended) * scale));
  }
  return out;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::vector<char> copy(data + 1, data + size);  // of exactly this size
  const std::string_view bytes(copy.data(), copy.size());

  const ColumnLimits limits{.columns_max = 100, .values_max = 10'000, .bytes_max = 100'000};
  for (const std::string& block : {std::string(bytes), "\x01" + std::string(bytes)}) {
    const auto read = read_columns(block, limits);
    if (read.ok()) {
      std::size_t values = 0;
      for (const auto& column : *read) values += column.size();
      FLOPSIGHT_CHECK(read->size() <= limits.columns_max && values <= limits.values_max);
      write_and_read(*read);
    } else {
      const ErrorCode code = read.error().code;
      FLOPSIGHT_CHECK(code == ErrorCode::kCorrupt || code == ErrorCode::kLimit);
    }
  }

  const std::uint8_t choice = data[0];
  constexpr std::size_t kWidths[] = {1, 2, 4, 8};
  write_and_read(columns_of(bytes, kWidths[choice & 3], (choice & 4) != 0 ? 7 : 1'000,
                            (choice & 8) != 0 ? 15'000 : 1));
  return 0;
}
