#pragma once
// Readings that are numbers and still not values: found by looking at several scrapes or several GPUs at once,
// marked Absent with their reason before anything is integrated.
//
// Frozen. Real counters do not stand still for ten minutes, nor for three times the usual time between their changes
// (a minute at least, where four changes were seen): (a) an energy counter above zero does not move, nor does
//   any other reading; (b) in ten scrapes at least two readings with three or more decimals, tensor activity or
//   power among them, repeat to the last digit; (c) tensor activity repeats to the sixth decimal over
//   twenty scrapes while power moves by more than 5 %. A constant round value is not frozen, and an exporter that
//   reads every two minutes is slow.
// Contradicted (whole GPUs only). gpu_utilization >= 0.5 with the graphics engine exactly 0 (DCGM issue 303: zeros after an
//   Xid), or power above half the board's limit with engine or SM activity exactly 0.
// Profiler pause. All GPUs of a host (two at least) that had tensor activity lose it in the same scrape while
//   their device metrics go on: up to Ampere one profiler stops the counters of the whole machine.
//
// Threads: pure functions on the caller's data.

#include <optional>
#include <span>

#include "catalog/devices.h"
#include "samples/gpu.h"
#include "samples/quality.h"
#include "units/time.h"

namespace flopsight::rollups {

// Of contradicted readings.
inline constexpr double kContradictingUtilizationRatio = 0.5;
inline constexpr double kContradictingPowerRatio = 0.5;

// One GPU by itself. `device` may be null. Adds to `quality` what was marked, with a window only what was in it.
void screen_gpu(samples::GpuTimeline& timeline, const catalog::Device* device, samples::QualityLog& quality,
                const std::optional<units::Window>& window = std::nullopt);

// All GPUs of one host together.
void screen_host(std::span<samples::GpuTimeline* const> gpus, samples::QualityLog& quality,
                 const std::optional<units::Window>& window = std::nullopt);

// "host/index uuid mig", for messages.
std::string gpu_label(const samples::GpuIdentity& gpu);

}  // namespace flopsight::rollups
