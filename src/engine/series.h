#pragma once
// The series in which rollups lie in a Prometheus-compatible engine: names, labels, times. What is here is written by every
// Flopsight process of a fleet and read by every other, so it is a format: docs/formats/engine.md.
//
// A sample is the full value of its slot so far, and every field only grows (or, a minimum, only falls) as more GPUs of a job close
// the slot. So the maximum over a slot is its value, whatever was sent how often and in which order, and an engine needs to
// drop no duplicates. Times lie strictly inside the slot, so that no engine's reading of a range's edges matters.
// Threads: pure.

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "samples/gpu.h"
#include "store/block.h"
#include "units/time.h"
#include "wire/remote_write.h"

namespace flopsight::engine {

enum class Level : std::uint8_t { kSlot, kHour };

inline constexpr std::int64_t kHourMilliseconds = 3'600'000;
// "flopsight_job_sum", "flopsight_job_hour_sum".
inline std::string metric(std::string_view entity, Level level, std::string_view what) {
  return "flopsight_" + std::string(entity) + (level == Level::kHour ? "_hour_" : "_") + std::string(what);
}
inline constexpr std::string_view kJobInfo = "flopsight_job_info";
inline constexpr std::string_view kGpuInfo = "flopsight_gpu_info";
// Until when a process has written all its hours; its label `simulated` says whether it has seen something that does not exist.
inline constexpr std::string_view kHoursUntil = "flopsight_shard_hours_until_seconds";
// Field of a spread's bin: this and its number.
inline constexpr std::string_view kBinPrefix = "ofu_bin_";

struct Series {
  std::vector<std::pair<std::string, std::string>> labels;  // with __name__, sorted by name; none empty
  std::vector<wire::RemoteWriteSample> samples;             // ascending
};
// {__name__="…", …} for messages.
std::string text_of(const Series& series);

// ---- Parcels: what waits in the outbox, compact. Numbers are those of the store that it lies in.

struct JobSeen {
  store::JobId job = 0;
  units::Instant slot_start;
  units::Instant first;  // slot that the job was ever seen in
  units::Instant last;   // end of the last one up to and with this slot
};
struct HoursUntil {
  units::Instant time;
  units::Instant sample_time;
  bool is_simulated = false;
};

std::string job_parcel(Level level, std::span<const store::JobCell> cells, units::Seconds slot);
std::string gpu_parcel(std::span<const store::GpuCell> cells, units::Seconds slot);
// Who held what in an hour.
std::string held_parcel(std::span<const store::GpuCell> pairs);
std::string seen_parcel(Level level, std::span<const JobSeen> seen);
std::string until_parcel(const HoursUntil& until);

// What numbers in parcels mean.
struct Names {
  std::function<samples::Holder(store::JobId)> holder;
  std::function<std::string(store::ModelId)> model;
  std::function<samples::GpuIdentity(store::GpuId)> gpu;
  // Whether a job's or a GPU's names were not written yet in the hour of this slot.
  std::function<bool(store::JobId, units::Instant)> job_info_due;
  std::function<bool(store::GpuId, units::Instant)> gpu_info_due;
};
struct WriteOptions {
  units::Seconds slot{60};
  std::string shard;
  bool gpu_cells = true;
};
// kCorrupt for bytes that are no parcel.
base::Result<std::vector<Series>> series_of(std::string_view parcel, const Names& names, const WriteOptions& options);

}  // namespace flopsight::engine
