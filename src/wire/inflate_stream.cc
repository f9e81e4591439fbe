#include "wire/inflate_stream.h"

#include <utility>

#include "wire/inflate_codec_internal.h"

namespace flopsight::wire {

InflateStream::InflateStream(std::unique_ptr<Codec> codec) : codec_(std::move(codec)) {}
InflateStream::InflateStream(InflateStream&&) noexcept = default;
InflateStream& InflateStream::operator=(InflateStream&&) noexcept = default;
InflateStream::~InflateStream() = default;

InflateStream InflateStream::gzip() { return InflateStream(gzip_codec()); }
InflateStream InflateStream::zstd() { return InflateStream(zstd_codec()); }

base::Status InflateStream::feed(std::string_view bytes, const Sink& sink) { return codec_->feed(bytes, sink); }
base::Status InflateStream::finish() const { return codec_->finish(); }

bool looks_like_zstd(std::string_view bytes) { return bytes.starts_with("\x28\xb5\x2f\xfd"); }

}  // namespace flopsight::wire
