#pragma once
// What is made of metrics, by their names. Metrics come in the same order again and again, so what came next the last time is looked at first.
//
// Names that nothing is made of are remembered as well, up to kNamesMax; beyond, each is looked up in the catalogue again.
// Threads: one at a time.

#include <string>
#include <string_view>
#include <vector>

#include <tsl/robin_map.h>

#include "jobs/owners.h"
#include "live/live_fleet.h"
#include "training_logs/exported_metrics.h"

namespace flopsight::app {

class MetricNames {
 public:
  static constexpr std::size_t kNamesMax = 20'000;

  struct Use {
    live::MetricUse metric;
    bool is_owner = false;     // of kube-state-metrics: says whose a pod is
    bool is_reported = false;  // a trainer's own: says how fast it trains

    bool is_beside() const { return is_owner || is_reported; }
    bool wanted() const { return is_beside() || metric.wanted(); }
  };

  // `reported` is borrowed.
  explicit MetricNames(const training_logs::ExportedMetrics& reported) : reported_(reported) {}

  Use use_of(std::string_view metric) {
    if (last_ < known_.size()) {
      const std::size_t next = known_[last_].next;
      if (known_[next].name == metric) {
        last_ = next;
        return known_[next].use;
      }
    }
    return look_up(metric);
  }

 private:
  struct TextHash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const { return std::hash<std::string_view>{}(text); }
  };
  struct TextEqual {
    using is_transparent = void;
    bool operator()(std::string_view a, std::string_view b) const { return a == b; }
  };
  struct Known {
    std::string name;
    Use use;
    std::size_t next = 0;  // in known_, what came after it the last time
  };

  Use look_up(std::string_view metric) {
    const auto at = numbers_.find(metric);
    if (at != numbers_.end()) {
      known_[last_].next = at->second;
      last_ = at->second;
      return known_[last_].use;
    }
    const Use use{live::metric_use(metric), jobs::OwnerTable::wants(metric), reported_.known(metric)};
    if (known_.size() < kNamesMax) {
      numbers_.emplace(std::string(metric), known_.size());
      known_.push_back({std::string(metric), use, known_.size()});
    }
    return use;
  }

  const training_logs::ExportedMetrics& reported_;
  tsl::robin_map<std::string, std::size_t, TextHash, TextEqual> numbers_;
  std::vector<Known> known_;
  std::size_t last_ = 0;
};

}  // namespace flopsight::app
