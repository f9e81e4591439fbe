#pragma once
// What others tell the service by POST, as text to values: how fast a job says it trains.
//
//   {"steps": [{"time": "2026-11-29T10:00:00Z", "step": 100, "mfu_ratio": 0.41,
//   "tokens_per_second_per_gpu": 11200}, …]}
// a list of such objects, or one of them. Keys are the fields of training_logs::Step. What cannot
// be (an MFU that is negative or above 1) is kept, marked as excluded, and counted. Limits: 100,000
// steps. Errors: kInvalid naming entry and key; kLimit. Threads: pure.

#include <string_view>
#include <vector>

#include "base/result.h"
#include "training_logs/report.h"

namespace flopsight::training_logs {

inline constexpr std::size_t kToldStepsMax = 100'000;

struct ToldSteps {
  std::vector<Step> steps;
  std::string source = "api";  // key "source": "api NAME"
};
base::Result<ToldSteps> parse_told_steps(std::string_view json_text);

}  // namespace flopsight::training_logs
