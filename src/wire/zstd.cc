#include "wire/zstd.h"

#include <zstd.h>

#include <array>
#include <string>

#include "base/check.h"
#include "wire/inflate_codec_internal.h"

namespace flopsight::wire {
namespace {

constexpr int kWindowLogMax = 27;  // 128 MiB: what the zstd program allows without being asked
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

// One frame after another, in pieces, with or without their lengths.
class ZstdCodec final : public InflateStream::Codec {
 public:
  ZstdCodec() : context_(ZSTD_createDCtx()) {
    FLOPSIGHT_CHECK(context_ != nullptr);
    FLOPSIGHT_CHECK(ZSTD_isError(ZSTD_DCtx_setParameter(context_, ZSTD_d_windowLogMax, kWindowLogMax)) == 0);
  }
  ~ZstdCodec() override { ZSTD_freeDCtx(context_); }
  ZstdCodec(const ZstdCodec&) = delete;
  ZstdCodec& operator=(const ZstdCodec&) = delete;

  base::Status feed(std::string_view bytes, const InflateStream::Sink& sink) override {
    ZSTD_inBuffer in{bytes.data(), bytes.size(), 0};
    bool full = false;
    while (in.pos < in.size || full) {
      ZSTD_outBuffer out{buffer_.data(), buffer_.size(), 0};
      const std::size_t before = in.pos;
      const std::size_t left = ZSTD_decompressStream(context_, &out, &in);
      consumed_ += in.pos - before;
      if (ZSTD_isError(left) != 0) return corrupt("at byte " + std::to_string(consumed_) + ": " + ZSTD_getErrorName(left));
      if (out.pos > 0) sink({buffer_.data(), out.pos});
      whole_ = left == 0;
      full = out.pos == out.size && left != 0;
    }
    return {};
  }

  base::Status finish() const override {
    if (whole_) return {};
    return corrupt("at byte " + std::to_string(consumed_) + ": the zstd frame ends too early");
  }

 private:
  ZSTD_DCtx* context_;
  std::array<char, 128 * 1024> buffer_;
  std::size_t consumed_ = 0;
  bool whole_ = false;
};

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

std::unique_ptr<InflateStream::Codec> zstd_codec() { return std::make_unique<ZstdCodec>(); }

}  // namespace flopsight::wire
