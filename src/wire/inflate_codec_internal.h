#pragma once
// The seam between InflateStream and the two libraries, each of which has one owner.

#include <memory>
#include <string_view>

#include "wire/inflate_stream.h"

namespace flopsight::wire {

struct InflateStream::Codec {
  virtual ~Codec() = default;
  virtual base::Status feed(std::string_view bytes, const Sink& sink) = 0;
  virtual base::Status finish() const = 0;
};

std::unique_ptr<InflateStream::Codec> gzip_codec();
std::unique_ptr<InflateStream::Codec> zstd_codec();

}  // namespace flopsight::wire
