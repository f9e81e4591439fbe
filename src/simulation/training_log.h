#pragma once
// What the trainers of a simulated fleet print: a log of Megatron-LM's form for every job that reports an MFU, as training_logs reads it. Steps
// are those of the closed form (workload.h), so a log, the exported metric and the truth say the same.
//
// After a hang a job goes on from its last checkpoint: steps since then are printed a second time. At most 500 lines a stretch of a job; longer ones
// print every nth step, as --log-interval does. Times are UTC without an offset, as Megatron-LM prints local time.
//
// Threads: one thread.

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "simulation/timetable.h"
#include "simulation/workload.h"

namespace flopsight::simulation {

// The steps that a stretch had when its last checkpoint was complete; what comes after is lost when the stretch ends in a hang.
std::uint64_t steps_at_last_checkpoint(const Workload& workload);

// Calls for every job with a step in the window: a file name, and its text.
base::Status for_each_training_log(const Timetable& timetable,
                                   const std::function<base::Status(const std::string& name, std::string_view text)>& sink);

}  // namespace flopsight::simulation
