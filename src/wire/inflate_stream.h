#pragma once
// gzip and zstd streams in pieces, for files that are larger than memory should be. Whatever was inflated before a mistake has
// been handed on.
//
// A sink sees at most 128 KiB at a time. Memory: 32 KiB of window for gzip; for zstd the window that the frame asks for, up to 128 MiB.
// Threads: one.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>

#include "base/result.h"

namespace flopsight::wire {

bool looks_like_zstd(std::string_view bytes);

class InflateStream {
 public:
  using Sink = std::function<void(std::string_view)>;

  static InflateStream gzip();
  static InflateStream zstd();
  InflateStream(InflateStream&&) noexcept;
  InflateStream& operator=(InflateStream&&) noexcept;
  ~InflateStream();

  // Errors: kCorrupt, "at byte N: …", counted over all pieces. After one, nothing more may be fed.
  base::Status feed(std::string_view bytes, const Sink& sink);
  // Errors: kCorrupt when the stream is not at the end of a member or frame.
  base::Status finish() const;

  struct Codec;

 private:
  explicit InflateStream(std::unique_ptr<Codec> codec);
  std::unique_ptr<Codec> codec_;
};

}  // namespace flopsight::wire
