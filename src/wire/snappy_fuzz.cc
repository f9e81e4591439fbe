// Any bytes as a snappy block within a limit, and any bytes there and back.
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "wire/snappy.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using flopsight::base::ErrorCode;
  using flopsight::wire::snappy_compress;
  using flopsight::wire::snappy_decompress;
  const std::vector<char> copy(data, data + size);  // of exactly this size
  const std::string_view bytes(copy.data(), copy.size());

  constexpr std::size_t kBytesMax = 1 << 20;
  std::string into;
  const auto status = snappy_decompress(bytes, kBytesMax, into);
  if (status.ok()) {
    FLOPSIGHT_CHECK(into.size() <= kBytesMax);
    std::string again;
    FLOPSIGHT_CHECK(snappy_decompress(bytes, into.size(), again).ok() && again == into);
    if (!into.empty()) {
      FLOPSIGHT_CHECK(snappy_decompress(bytes, into.size() - 1, again).error().code ==
                      ErrorCode::kLimit);
    }
  } else {
    FLOPSIGHT_CHECK(into.empty());
    const ErrorCode code = status.error().code;
    FLOPSIGHT_CHECK(code == ErrorCode::kInvalid || code == ErrorCode::kLimit);
  }

  FLOPSIGHT_CHECK(snappy_decompress(snappy_compress(bytes), size, into).ok() && into == bytes);
  return 0;
}
