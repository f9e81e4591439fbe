#pragma once
// What a store knows of a job, for a comparison with a prediction: shares of its measured time, and what the job reports of its own speed.

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "env.h"
#include "tuning/advice.h"
#include "units/time.h"

namespace CLI {
class App;
}

namespace flopsight::app {

struct JobWindow {
  std::string job;
  std::optional<units::Instant> start;
  std::optional<units::Instant> end;
  std::optional<units::Seconds> since;
  std::string prefix = "--";  // of the options' names
};
struct JobWindowTexts {
  std::string start, end, since;
};
// What is wrong with the times, or nothing; `prefix` is of the options' names ("--", "--before-").
std::optional<std::string> set_job_window(const std::string& prefix, const JobWindowTexts& texts, JobWindow& window);

struct MeasuredJob {
  std::string job;
  units::Window window;
  tuning::Measured measured;           // tokens a second are of one GPU
  std::optional<double> coverage_ratio;
  std::uint64_t gpu_count = 0;
  std::vector<std::string> models;     // catalogue names
};
// Errors: of the folder; a job that is not in it in the window; kNotFound where nothing was measured of it.
base::Result<MeasuredJob> read_measured(const std::string& store_path, const JobWindow& window, const Env& env);

}  // namespace flopsight::app
