#pragma once
// Formats that are no lines of text: MLPerf's JSON records, Megatron's golden values, Megatron-Bridge's verification cards.

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "training_logs/formats_internal.h"

namespace flopsight::training_logs {

// A line with ":::MLLOG {…}". True when it is one; `extract` has what it says of a step.
bool read_mllog(std::string_view text, Settings& settings, Extract& extract);

struct Document {
  std::string format;
  std::vector<Step> steps;
  Settings settings;
  bool several_runs = false;
};
// {"iteration-time": {"start_step": 5, "step_interval": 5, "values": {"5": 12.2}}}, or "values": [12.2, …].
std::optional<Document> read_golden_values(std::string_view text);
std::optional<Document> read_verification_card(std::string_view text);

}  // namespace flopsight::training_logs
