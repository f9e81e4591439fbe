#pragma once
// Scrapes thousands of exporters, each once an interval, and hands what they say to a sink.
//
// When a target's turn is, is decided by its URL and the clock on the wall, so that targets are spread over the interval and
// keep their phase over a restart. One that keeps failing is asked less often, down to every tenth interval. A target that is
// still being read when its turn comes again, or for which there is no free connection, misses that turn.
// An answer without a sample (an exporter that reloads) is a missing scrape: counted, no failure. Samples without
// timestamps are as of the moment the request began.
// A GPU without UUID and host label is told apart by its target's URL, as `report --scrape` does.
//
// Threads: one of its own scrapes and calls the sink, one finds targets; every function here may be called by any.

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "base/result.h"
#include "net/http_client.h"
#include "serve/target_discovery.h"
#include "units/time.h"
#include "wire/exposition.h"

namespace flopsight::app {

struct ScraperOptions {
  DiscoveryOptions discovery;
  std::chrono::milliseconds interval{15'000};
  std::chrono::milliseconds timeout{10'000};  // at most the interval; __scrape_timeout__ of a target is stronger
  std::size_t body_bytes_max = std::size_t{64} << 20;  // after decompression
  int parallel_max = 1024;                             // less where the process may not open so many files
  net::HttpOptions http;  // credentials and TLS; limits and retries are the scraper's
};

// One answer. Everything is a view that lives for the call.
struct Scrape {
  std::string_view target;  // the URL without credentials
  std::span<const wire::Label> labels;
  std::string_view text;
  std::string_view content_type;
  units::Instant time;
  std::uint64_t samples = 0;
};
using ScrapeSink = std::function<base::Status(const Scrape&)>;

struct TargetHealth {
  std::string url;  // without credentials
  std::vector<std::pair<std::string, std::string>> labels;
  bool scraped = false;  // ever tried
  bool up = false;       // answered at the last try
  units::Instant last;
  units::Seconds duration{0};
  std::uint64_t samples = 0;  // of the last answer
  std::uint64_t malformed_lines = 0;  // of it, that could not be read
  std::string error;          // one line; empty: none
  std::uint32_t failures = 0;  // in a row
};

struct ScraperCounters {
  std::uint64_t scrapes = 0;        // ended, well or not
  std::uint64_t failures = 0;       // no answer, or one that is no metrics
  std::uint64_t empty = 0;          // 200 without a sample
  std::uint64_t missed = 0;         // turns for which there was no time or no connection
  std::uint64_t sink_failures = 0;  // read, and not taken
  std::uint64_t samples = 0;
  std::uint64_t bytes = 0;          // after decompression
  std::uint64_t malformed_lines = 0;
  std::uint64_t cut = 0;            // OpenMetrics that did not end as it should; what there was of them was taken
};

class Scraper {
 public:
  // Begins at once. Errors: kInvalid for targets, TLS files or credentials that cannot be meant.
  static base::Result<std::unique_ptr<Scraper>> start(ScraperOptions options, ScrapeSink sink,
                                                      std::function<units::Instant()> clock);
  ~Scraper();  // stops
  Scraper(const Scraper&) = delete;
  Scraper& operator=(const Scraper&) = delete;

  // Returns when the sink will not be called any more; what is being read is dropped.
  void stop();

  std::vector<TargetHealth> health() const;  // by URL
  ScraperCounters counters() const;
  std::vector<std::string> problems() const;  // of finding targets, one line each

 private:
  class Loop;
  Scraper(ScraperOptions options, TargetDiscovery discovery);
  void discover();

  ScraperOptions options_;
  TargetDiscovery discovery_;
  std::unique_ptr<Loop> loop_;
  mutable std::mutex mutex_;
  std::condition_variable stopped_;
  bool stopping_ = false;
  std::vector<std::string> problems_;
  std::thread scraping_;
  std::thread discovering_;
};

}  // namespace flopsight::app
