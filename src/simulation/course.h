#pragma once
// What happens to the jobs that a scenario is about. Such a job holds the first GPUs of the fleet (in fleet608: all of it) for one
// course after another, each as long as Options::course: it starts at 2 % of the course and ends at 97 %, and something happens
// from 40 % to 75 % (a hang: 50 % to 70 %). mixed_precision has twelve jobs in a course instead, one after another.
//
// A job to which something happens is divided into stretches at the moments at which it changes; each is a workload of its own, so
// that integrals stay closed forms (workload.h).
//
// Threads: pure.

#include <cstdint>
#include <string_view>
#include <vector>

#include "simulation/timetable.h"

namespace flopsight::simulation {

// How many GPUs, from the first of the fleet on, the job has that the scenario is about; 0: it is about none.
// moe_miscount: 288, as in the published case, and mixed_precision 6,144; where the fleet has fewer, and in the others, half of the
// fleet in whole hosts, at least one host.
std::uint32_t subject_gpus(const Options& options);

// The stretch at `t` of a slot that a scenario is about.
Segment course_segment(const Options& options, std::uint32_t slot, std::int64_t t);

// Which GPUs of the job are not like the others while a condition lasts, and how. The slow one of straggler is drawn; thermal has the GPUs
// of one host, or half of those of a job on a single host.
struct Odd {
  std::uint32_t gpu_first = 0;
  std::uint32_t gpu_count = 0;  // 0: all are alike
  double speed_ratio = 1;       // of that of the others
  std::uint32_t event_reasons = 0;
  double celsius = 0;  // at which it is held, 0: as its power makes it
};
Odd odd_gpus(const Timetable& timetable, const Segment& segment);

// How much longer a step takes: 2.5 times with the debugging switch (the published case), 1.8 times where data comes too slowly.
double step_stretch(Condition condition);

// What truth.json calls it: "debug_flag", "slow_gpu", …; empty: nothing.
std::string_view condition_name(Condition condition);
std::string_view format_name(Format format);

}  // namespace flopsight::simulation
