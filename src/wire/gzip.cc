#include "wire/gzip.h"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <limits>
#include <string>

#include "base/check.h"
#include "wire/inflate_codec_internal.h"

namespace flopsight::wire {
namespace {

// zlib counts its buffers in 32 bits; longer ones are handed over in pieces.
constexpr std::size_t kPieceBytesMax = std::size_t{1} << 30;
constexpr int kGzipOrZlib = 15 + 32;  // window bits, and "look at the header"
constexpr int kGzipOnly = 15 + 16;

struct Inflater {
  z_stream stream{};
  Inflater() { FLOPSIGHT_CHECK(inflateInit2(&stream, kGzipOrZlib) == Z_OK); }
  ~Inflater() { inflateEnd(&stream); }
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;
};

Bytef* zlib_bytes(std::string_view bytes) {
  // zlib only reads through next_in; its type lacks the const without ZLIB_CONST.
  return reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
}

base::Error corrupt_at(std::size_t offset, const std::string& what) {
  return {base::ErrorCode::kCorrupt, "at byte " + std::to_string(offset) + ": " + what};
}

// One member after another, in pieces.
class GzipCodec final : public InflateStream::Codec {
 public:
  base::Status feed(std::string_view bytes, const InflateStream::Sink& sink) override {
    z_stream& stream = inflater_.stream;
    std::size_t at = 0;
    while (at < bytes.size()) {
      const std::string_view piece = bytes.substr(at, kPieceBytesMax);
      stream.next_in = zlib_bytes(piece);
      stream.avail_in = static_cast<uInt>(piece.size());
      // Also after the input is used up, as long as there is output left inside.
      do {
        const std::size_t left = stream.avail_in;
        if (between_ && left > 0) {
          FLOPSIGHT_CHECK(inflateReset(&stream) == Z_OK);
          between_ = false;
        }
        stream.next_out = reinterpret_cast<Bytef*>(buffer_.data());
        stream.avail_out = static_cast<uInt>(buffer_.size());
        const int status = inflate(&stream, Z_NO_FLUSH);
        consumed_ += left - stream.avail_in;
        const std::size_t produced = buffer_.size() - stream.avail_out;
        if (produced > 0) sink({buffer_.data(), produced});
        if (status == Z_STREAM_END) {
          between_ = true;
          whole_ = true;
        } else if (status == Z_OK || status == Z_BUF_ERROR) {
          whole_ = false;
          if (status == Z_BUF_ERROR && produced == 0 && stream.avail_in == left) break;
        } else {
          return corrupt_at(consumed_, stream.msg != nullptr ? stream.msg : "not a gzip stream");
        }
      } while (stream.avail_in > 0 || (stream.avail_out == 0 && !between_));
      at += piece.size();
    }
    return {};
  }

  base::Status finish() const override {
    if (whole_) return {};
    return corrupt_at(consumed_, "the gzip stream ends too early");
  }

 private:
  Inflater inflater_;
  std::array<char, 128 * 1024> buffer_;
  std::size_t consumed_ = 0;
  bool between_ = false;  // a member has ended, and the next has not begun
  bool whole_ = false;
};

}  // namespace

bool looks_like_gzip(std::string_view bytes) { return bytes.starts_with("\x1f\x8b"); }

base::Result<std::string> gunzip(std::string_view bytes, std::size_t bytes_max) {
  Inflater inflater;
  z_stream& stream = inflater.stream;
  std::string out;
  std::array<char, 32 * 1024> buffer;
  std::size_t offset = 0;
  while (true) {
    const std::string_view piece = bytes.substr(offset, kPieceBytesMax);
    stream.next_in = zlib_bytes(piece);
    stream.avail_in = static_cast<uInt>(piece.size());
    stream.next_out = reinterpret_cast<Bytef*>(buffer.data());
    stream.avail_out = static_cast<uInt>(buffer.size());
    const int status = inflate(&stream, Z_NO_FLUSH);
    offset += piece.size() - stream.avail_in;
    const std::size_t produced = buffer.size() - stream.avail_out;
    if (produced > bytes_max - out.size()) {
      return base::Error{base::ErrorCode::kLimit,
                         "inflates to more than " + std::to_string(bytes_max) + " bytes"};
    }
    out.append(buffer.data(), produced);

    if (status == Z_STREAM_END) {
      if (offset == bytes.size()) return out;
      if (!looks_like_gzip(bytes) || !looks_like_gzip(bytes.substr(offset))) {
        return corrupt_at(offset, "bytes after the end of the gzip stream");
      }
      FLOPSIGHT_CHECK(inflateReset(&stream) == Z_OK);
    } else if (status == Z_NEED_DICT) {
      return corrupt_at(offset, "the stream needs a dictionary");
    } else if (status == Z_DATA_ERROR) {
      return corrupt_at(offset, stream.msg != nullptr ? stream.msg : "not a gzip stream");
    } else {
      FLOPSIGHT_CHECK(status == Z_OK || status == Z_BUF_ERROR);
      if (offset == bytes.size() && stream.avail_out != 0) {
        return corrupt_at(offset, "the gzip stream ends too early");
      }
    }
  }
}

std::string gzip(std::string_view bytes, int level) {
  FLOPSIGHT_CHECK(level >= 0 && level <= 9);
  z_stream stream{};
  FLOPSIGHT_CHECK(deflateInit2(&stream, level, Z_DEFLATED, kGzipOnly, 8, Z_DEFAULT_STRATEGY) ==
                  Z_OK);
  std::string out;
  std::array<char, 32 * 1024> buffer;
  std::size_t offset = 0;
  int status = Z_OK;
  while (status != Z_STREAM_END) {
    const std::string_view piece = bytes.substr(offset, kPieceBytesMax);
    const bool last = offset + piece.size() == bytes.size();
    stream.next_in = zlib_bytes(piece);
    stream.avail_in = static_cast<uInt>(piece.size());
    stream.next_out = reinterpret_cast<Bytef*>(buffer.data());
    stream.avail_out = static_cast<uInt>(buffer.size());
    status = deflate(&stream, last ? Z_FINISH : Z_NO_FLUSH);
    FLOPSIGHT_CHECK(status == Z_OK || status == Z_BUF_ERROR || status == Z_STREAM_END);
    offset += piece.size() - stream.avail_in;
    out.append(buffer.data(), buffer.size() - stream.avail_out);
  }
  FLOPSIGHT_CHECK(deflateEnd(&stream) == Z_OK);
  return out;
}

std::unique_ptr<InflateStream::Codec> gzip_codec() { return std::make_unique<GzipCodec>(); }

}  // namespace flopsight::wire
