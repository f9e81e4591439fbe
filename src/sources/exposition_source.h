#pragma once
// One scrape, from its bytes to the collector: a saved file or the body of an exporter's answer, plain or
// gzip, text 0.0.4 or OpenMetrics.

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"
#include "sources/collector.h"

namespace flopsight::sources {

struct ScrapeText {
  std::string place;         // the path or URL, for messages and as the scope of identity
  std::string content_type;  // empty for files
  std::string bytes;
  std::int64_t ordinal = 0;  // tells scrapes without timestamps apart
};

// Adds every sample. Malformed lines and an empty scrape go to `quality`, with file, line and column.
// Errors: kCorrupt or kLimit where gzip cannot be read, kInvalid where the text holds not one line of the format
// (an HTML page, a binary).
base::Status collect_scrape(const ScrapeText& scrape, Collector& collector,
                            samples::QualityLog& quality);

// At most this many bytes of one scrape after decompression.
inline constexpr std::size_t kScrapeBytesMax = std::size_t{2} << 30;

}  // namespace flopsight::sources
