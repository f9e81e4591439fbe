#pragma once
// Steps to runs. One text may hold more than one run: two frameworks, a job that was started anew with another model, two logs written to
// one file. Medians over all of them would be of no run, so they are kept apart. Threads: pure.

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "training_logs/report.h"

namespace flopsight::training_logs {

// The steps of one format, or of several that print about the same steps.
struct Series {
  std::string name;
  bool beside = false;      // of a library that prints beside the framework that trains
  std::vector<Step> steps;  // in the order of the text, with their attempts
  // Attempts with which another run begins, because the log prints other settings: attempt and number of the run, from 1 on.
  std::vector<std::pair<std::uint32_t, std::size_t>> run_starts;
};

struct Separated {
  std::size_t main = 0;     // the series that the steps are of, where there is one run
  std::vector<LoggedRun> runs;    // empty where there is one
  std::vector<Step> steps;  // of the one run; of several the medians of each, under its label
  Summary summary;          // empty for several
};

// Whether a median differs by more than is usual between attempts of one run.
bool has_another_speed(const std::vector<Step>& before, const std::vector<Step>& after);

// The medians over the steps that are not excluded. `peak_flops_per_second`: as the log prints it.
Summary summary_of(const std::vector<Step>& steps, const std::optional<double>& peak_flops_per_second);

// Where the steps that are used print several batches, their range is the setting.
void tell_batches(const std::vector<Step>& steps, Settings& settings);

// `settings`: what was printed of each run, the first at 0. A restart that begins at the first step again is another run where its speed is
// further than a fifth from that of the attempts before; one that goes on from a checkpoint is the same run, however fast it is.
Separated separate(std::vector<Series> series, const std::vector<Settings>& settings, const std::optional<double>& peak_flops_per_second);

}  // namespace flopsight::training_logs
