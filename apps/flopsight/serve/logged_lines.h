#pragma once
// Threads: any.

#include <mutex>
#include <string>
#include <string_view>

#include "serve/metric_names.h"
#include "wire/exposition_lines.h"

namespace flopsight::app {

// What of a scrape goes into the log: lines of metrics that something is made of. The rest is most of what some exporters say.
class LoggedLines {
 public:
  // `reported` is borrowed.
  explicit LoggedLines(const training_logs::ExportedMetrics& reported) : names_(reported) {}

  void append_wanted(std::string_view text, std::string& out) {
    const std::scoped_lock guard(mutex_);
    wire::append_lines_of(text, [&](std::string_view metric) { return names_.use_of(metric).wanted(); }, out);
  }

 private:
  std::mutex mutex_;
  MetricNames names_;
};

}  // namespace flopsight::app
