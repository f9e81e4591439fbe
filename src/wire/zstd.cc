#include "wire/zstd.h"

#include <zstd.h>

#include <string>

#include "base/check.h"

namespace flopsight::wire {
namespace {

constexpr int kLevelMax = 19;  // more takes memory that the reader has to have, too

base::Error corrupt(const std::string& what) { return {base::ErrorCode::kCorrupt, what}; }

base::Result<std::size_t> announced_size(std::string_view compressed, std::size_t bytes_max) {
  const unsigned long long announced =
      ZSTD_getFrameContentSize(compressed.data(), compressed.size());
  if (announced == ZSTD_CONTENTSIZE_ERROR) return corrupt("not a zstd frame");
  if (announced == ZSTD_CONTENTSIZE_UNKNOWN) return corrupt("a zstd frame without its length");
  if (announced > bytes_max) {
    return base::Error{base::ErrorCode::kLimit,
                       "the zstd frame announces " + std::to_string(announced) +
                           " bytes, more than " + std::to_string(bytes_max)};
  }
  const std::size_t frame = ZSTD_findFrameCompressedSize(compressed.data(), compressed.size());
  if (ZSTD_isError(frame) != 0) return corrupt("a zstd frame that is cut short or damaged");
  if (frame != compressed.size()) {
    return corrupt("at byte " + std::to_string(frame) + ": bytes after the end of the zstd frame");
  }
  return static_cast<std::size_t>(announced);
}

}  // namespace

std::string zstd_compress(std::string_view bytes, int level) {
  FLOPSIGHT_CHECK(level >= 1 && level <= kLevelMax);
  std::string out(ZSTD_compressBound(bytes.size()), '\0');
  const std::size_t size = ZSTD_compress(out.data(), out.size(), bytes.data(), bytes.size(), level);
  FLOPSIGHT_CHECK(ZSTD_isError(size) == 0);
  out.resize(size);
  return out;
}

base::Status zstd_decompress(std::string_view compressed, std::size_t bytes_max,
                             std::string& into) {
  const base::Result<std::size_t> announced = announced_size(compressed, bytes_max);
  if (!announced.ok()) {
    into.clear();
    return announced.error();
  }
  into.resize(*announced);  // not cleared before, or all of it would be zeroed first
  const std::size_t size =
      ZSTD_decompress(into.data(), into.size(), compressed.data(), compressed.size());
  if (ZSTD_isError(size) != 0 || size != into.size()) {
    into.clear();
    return corrupt("a zstd frame that is cut short or damaged");
  }
  return {};
}

}  // namespace flopsight::wire
