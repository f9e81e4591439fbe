#pragma once
// Scrapes as exposition text: one host's now, or a whole history with timestamps.
// Threads: a Scraper or a writer is one thread's.

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "simulation/rows.h"

namespace flopsight::simulation {

// One exporter's answers.
class Scraper {
 public:
  explicit Scraper(const Timetable& timetable) : timetable_(timetable), meter_(timetable) {}
  // What the exporter of `host` serves at `t`; empty when it does not answer.
  std::string scrape(std::uint32_t host, std::int64_t t);

 private:
  const Timetable& timetable_;
  Meter meter_;
};

// Takes a piece of text; an error ends the writing.
using TextSink = std::function<base::Status(std::string_view piece)>;

// Every scrape of the window, metric by metric as the format wants it, with timestamps in milliseconds, in pieces of about a
// mebibyte. `progress` hears of the share done.
base::Status write_history(const Timetable& timetable, const TextSink& sink,
                           const std::function<void(double done_ratio)>& progress);

// `t` of each scrape of a host in the window: the first is at or after its start.
std::int64_t first_scrape(const Timetable& timetable, std::uint32_t host);

}  // namespace flopsight::simulation
