#pragma once
// For tests of integrate(): scrapes in a line, and what they need around them. Not part of the
// program.

#include "rollups/integrate.h"

namespace flopsight::rollups::test {

using catalog::Metric;
using samples::Absent;
using samples::AbsentReason;
using samples::GpuScrape;
using samples::GpuTimeline;
using units::Instant;
using units::megahertz;
using units::Seconds;

inline const model::ReferenceClock kH100{megahertz(1830),
                                         model::ReferenceSource::kCatalogTensorPeak};

inline Instant at(double seconds) { return Instant{static_cast<std::int64_t>(seconds * 1000)}; }

inline GpuScrape scrape(double seconds, double tensor, double mhz = 1830) {
  GpuScrape s;
  s.time = at(seconds);
  s.reading(Metric::kTensorActive) = tensor;
  s.reading(Metric::kSmClock) = mhz * 1e6;
  return s;
}

struct World {
  jobs::JobTable jobs;
  jobs::HolderTable holders;
  samples::QualityLog quality;
  IntegrateOptions options;
  double weight = 1;

  samples::HolderId job(const std::string& name) {
    samples::Holder holder;
    holder.job = name;
    return holders.intern(holder);
  }
  GpuTime run(const GpuTimeline& timeline, std::optional<model::ReferenceClock> ref = kH100) {
    const catalog::Device* h100 = catalog::DeviceCatalog::builtin().find("NVIDIA H100 80GB HBM3");
    return integrate(timeline, h100, ref, weight, options, jobs, holders, quality);
  }
  double hours_of(const GpuTime& gpu, const std::string& name) {
    for (const Portion& portion : gpu.portions) {
      if (portion.holder && holders.at(*portion.holder).job == name) {
        return portion.totals.allocated_seconds;
      }
    }
    return 0;
  }
};

}  // namespace flopsight::rollups::test
