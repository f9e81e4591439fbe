#pragma once
// Sightings of a matter for tests. Not part of the program.

#include "findings/book.h"

namespace flopsight::findings::test {

inline constexpr std::int64_t kStart = 1'767'225'600'000;
inline units::Instant at(int minute) { return units::Instant{kStart + minute * std::int64_t{60'000}}; }
// The clock on the wall, which has nothing to do with the minutes of data.
inline units::Instant wall(int minute) { return units::Instant{kStart + 1'000'000'000 + minute * std::int64_t{60'000}}; }

inline Sighting sighting(std::string_view kind, std::string_view job, int first, int last, double gpu_hours = 1) {
  Sighting out;
  out.record.kind = kind;
  out.record.key = std::string(kind) + "/job=" + std::string(job);
  out.record.severity = find_kind(kind)->severity;
  out.record.job = out.record.holder.job = job;
  out.record.holder.user = "ada";
  out.record.first = at(first);
  out.record.last = at(last);
  out.record.text = "OFU fell";
  out.record.cost = units::GpuHours(gpu_hours);
  out.usd_per_gpu_hour = units::UsdPerGpuHour(2);
  return out;
}

}  // namespace flopsight::findings::test
