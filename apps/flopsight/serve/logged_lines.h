#pragma once
// Threads: any.

#include <algorithm>
#include <mutex>
#include <string>
#include <string_view>

#include "serve/metric_names.h"

namespace flopsight::app {

// What of a scrape goes into the log: lines of metrics that something is made of. The rest is most of what some exporters say.
class LoggedLines {
 public:
  // `reported` is borrowed.
  explicit LoggedLines(const training_logs::ExportedMetrics& reported) : names_(reported) {}

  void append_wanted(std::string_view text, std::string& out) {
    const std::scoped_lock guard(mutex_);
    while (!text.empty()) {
      const std::size_t end = std::min(text.find('\n'), text.size());
      const std::string_view line = text.substr(0, end);
      text.remove_prefix(std::min(end + 1, text.size()));
      if (is_wanted(line)) (out += line) += '\n';
    }
  }

 private:
  bool is_wanted(std::string_view line) {
    const std::size_t begin = line.find_first_not_of(" \t\r");
    if (begin == std::string_view::npos) return false;
    if (line[begin] == '#') return line.substr(begin).starts_with("# EOF");
    const std::string_view name = line.substr(begin, line.find_first_of("{ \t", begin) - begin);
    // A name between braces is for the parser to read.
    return name.empty() || names_.use_of(name).wanted();
  }

  std::mutex mutex_;
  MetricNames names_;
};

}  // namespace flopsight::app
