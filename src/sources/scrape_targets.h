#pragma once
// What to scrape: Prometheus file_sd documents and plain entries of a configuration, to URLs. Pure: reading files and looking
// names up is the caller's.
//
// A file_sd document is JSON or YAML, a list of groups {"targets": ["host:port", …], "labels": {…}}. Labels that start with
// "__" are settings of the scrape and are not attached to samples: __scheme__ (http), __metrics_path__ (/metrics),
// __param_NAME (a query parameter), __address__ (instead of the target), __scrape_interval__ and __scrape_timeout__ (15s);
// other ones (__meta_…) are skipped.
// A plain entry is host:port (IPv6 in brackets), or an http or https URL; one without a path gets /metrics.
// Errors: kInvalid, "PLACE:LINE: …" in one line; kLimit for more targets than allowed. A target that is named twice, by URL, is
// one target: the first stands.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "units/units.h"

namespace flopsight::sources {

struct ScrapeTarget {
  std::string url;  // may hold a password: net::url_without_credentials before it is printed
  std::vector<std::pair<std::string, std::string>> labels;  // sorted by name; what a sample says itself is stronger
  std::optional<units::Seconds> interval;
  std::optional<units::Seconds> timeout;  // at most the interval, where both are there
};

base::Result<ScrapeTarget> parse_scrape_target(std::string_view entry);

base::Result<std::vector<ScrapeTarget>> parse_file_sd(std::string_view text, const std::string& place,
                                                      std::size_t targets_max);

// The same on every machine and in every version, so that processes can share targets by it.
std::uint64_t target_hash(std::string_view url);

}  // namespace flopsight::sources
