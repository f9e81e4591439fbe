// Any bytes as a compressed stream in pieces; gzip says the same as it does of the whole.
#include <cstdint>
#include <string>
#include <string_view>

#include "base/check.h"
#include "wire/gzip.h"
#include "wire/inflate_stream.h"

namespace {

// The bytes, when the stream is good; the limit is to keep a bomb from taking the fuzzer's time.
bool inflate(flopsight::wire::InflateStream stream, std::string_view bytes, std::size_t piece, std::string& out) {
  constexpr std::size_t kBytesMax = 1 << 20;
  for (std::size_t at = 0; at < bytes.size() && out.size() < kBytesMax; at += piece) {
    const auto status = stream.feed(bytes.substr(at, piece), [&](std::string_view part) {
      FLOPSIGHT_CHECK(part.size() <= 128 * 1024);
      if (out.size() < kBytesMax) out += part;
    });
    if (!status.ok()) return false;
  }
  return stream.finish().ok();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using flopsight::wire::InflateStream;
  if (size == 0) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  const std::size_t piece = 1 + data[0];
  std::string zstd;
  (void)inflate(InflateStream::zstd(), bytes, piece, zstd);
  std::string by_pieces;
  const bool good = inflate(InflateStream::gzip(), bytes, piece, by_pieces);
  if (!flopsight::wire::looks_like_gzip(bytes)) return 0;  // a zlib stream may not be followed by another
  const auto whole = flopsight::wire::gunzip(bytes, 1 << 19);
  if (whole.ok()) FLOPSIGHT_CHECK(good && by_pieces == *whole);
  return 0;
}
