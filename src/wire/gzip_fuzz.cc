// Any bytes as a gzip stream within a limit, and any bytes there and back.
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "wire/gzip.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using flopsight::base::ErrorCode;
  using flopsight::wire::gunzip;
  using flopsight::wire::gzip;
  const std::vector<char> copy(data, data + size);  // of exactly this size
  const std::string_view bytes(copy.data(), copy.size());

  constexpr std::size_t kBytesMax = 1 << 16;
  const auto result = gunzip(bytes, kBytesMax);
  if (result.ok()) {
    FLOPSIGHT_CHECK(result->size() <= kBytesMax);
    FLOPSIGHT_CHECK(gunzip(bytes, result->size()).value() == *result);
    if (!result->empty()) {
      FLOPSIGHT_CHECK(gunzip(bytes, result->size() - 1).error().code == ErrorCode::kLimit);
    }
  } else {
    const ErrorCode code = result.error().code;
    FLOPSIGHT_CHECK(code == ErrorCode::kCorrupt || code == ErrorCode::kLimit);
  }

  const std::string packed = gzip(bytes, size == 0 ? 6 : data[0] % 10);
  FLOPSIGHT_CHECK(gunzip(packed, size).value() == bytes);
  if (size > 0) FLOPSIGHT_CHECK(gunzip(packed, size - 1).error().code == ErrorCode::kLimit);
  return 0;
}
