#pragma once
// From series of any source to the store, in ascending time, with an account of every sample.
//
// The live fleet closes time per GPU and takes nothing before it, which makes an import idempotent: what an earlier one, or
// serve, has closed is told here from the store's own records and not sent again.
// Threads: one.

#include <cstdint>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "serve/ingest.h"
#include "jobs/label_rules.h"
#include "wire/prometheus_api.h"

namespace flopsight::app {

struct ImportTotals {
  std::uint64_t taken = 0;
  std::uint64_t copies = 0;        // of a quantity of a GPU at one time, more than one
  std::uint64_t already = 0;       // of time that is closed
  std::uint64_t too_early = 0;     // before the first that the store has of their GPU: cannot be added any more
  std::uint64_t unusable = 0;      // over a limit, malformed, or in the future
  std::uint64_t no_gpu = 0;        // labels without a GPU
};

// A stretch of one series.
struct FeedSeries {
  const std::vector<std::pair<std::string, std::string>>* labels = nullptr;  // with __name__
  std::span<const wire::ApiPoint> points;                                    // ascending
};

class ImportFeed {
 public:
  ImportFeed(Ingest& ingest, const jobs::LabelRules& rules, units::Seconds slot, units::Instant now);

  // What the store has, first and last, of all its GPUs; nothing when it is empty.
  std::optional<units::Window> known() const { return known_window_; }

  // Everything of one stretch of time and some GPUs; stretches of a GPU ascend. Points outside the window are left out.
  // Errors: of a disk that is full or broken.
  base::Status feed(std::vector<FeedSeries> series, units::Window window);
  // Between stretches: cells of what is complete, once there is enough of it.
  base::Status close_some();
  // The rest of it.
  base::Status finish();

  ImportTotals totals() const;
  std::size_t gpu_count() const { return gpus_.size(); }

 private:
  struct Known {
    std::int64_t first = 0;
    std::int64_t closed = 0;
  };
  bool wants(std::string_view metric);
  std::span<const wire::ApiPoint> not_closed_yet(const FeedSeries& series);
  base::Status send(std::span<const wire::RemoteWriteSeriesOut> message);

  Ingest& ingest_;
  const jobs::LabelRules& rules_;
  std::int64_t slot_milliseconds_;
  units::Instant now_;
  std::unordered_map<std::string, Known> known_;
  std::optional<units::Window> known_window_;
  bool was_simulated_ = false;  // before this import
  std::unordered_map<std::string, bool> wanted_;
  std::set<std::string> gpus_;
  std::uint64_t unclosed_ = 0;  // samples since the last flush
  ImportTotals own_;            // what was not sent
};

}  // namespace flopsight::app
