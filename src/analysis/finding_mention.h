#pragma once
// A finding in a few words, where an answer about a job or the fleet says that there is one. Threads: plain values.

#include <optional>
#include <string>

namespace flopsight::analysis {

struct FindingMention {
  std::string id;
  std::string kind;
  std::string severity;
  std::string state;
  std::string job;  // its id; empty: of no job
  std::string text;
  std::optional<double> cost_gpu_hours;
  std::optional<double> cost_usd;
};

}  // namespace flopsight::analysis
