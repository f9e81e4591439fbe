#pragma once
// All timelines of a fleet to GPU time: models looked up, reference clocks chosen, readings screened, MIG slices
// weighted, and GPUs added that only a jobs file knows.
//
// One GPU hour is one GPU hour: the instances of a MIG GPU count by their share of its compute slices and only
// while they exist; slices that no instance holds are the GPU's unmeasured rest, held by nobody.
// Threads: pure but for the borrowed holder table and quality log.

#include <optional>
#include <vector>

#include "catalog/devices.h"
#include "rollups/integrate.h"

namespace flopsight::rollups {

struct FleetOptions {
  const catalog::DeviceCatalog* catalog = &catalog::DeviceCatalog::builtin();
  model::ReferencePolicy policy = model::ReferencePolicy::kAuto;
  std::optional<units::Hertz> override_clock;
  IntegrateOptions integrate;
};

struct Fleet {
  std::vector<GpuTime> gpus;
  // GPU time that belongs to no listed GPU: slices of MIG GPUs outside all instances. `gpu` names the GPU.
  std::vector<GpuTime> rests;
  bool has_times = true;  // false: instants; all seconds are shares of one unit per GPU
  std::optional<units::Window> window;  // the one given, or from the first scrape to the last

  void append(Fleet other);
};

// Looks the model up and sets `gpu.device` and `gpu.reference`; notes an unknown model or MIG profile. The result is
// the share of a whole GPU, 0 when it cannot be told.
double resolve_device(GpuTime& gpu, const FleetOptions& options,
                      std::optional<units::Hertz> scraped_max_clock, samples::QualityLog& quality);

// Where no timeline has times the result is a set of instants, whatever the window.
Fleet roll_fleet(std::vector<samples::GpuTimeline> timelines, const FleetOptions& options,
                 const jobs::JobTable& jobs, jobs::HolderTable& holders,
                 samples::QualityLog& quality);

// GPUs named by the jobs file that `fleet` lacks, as unmeasured time of their jobs. Call once, when the fleet
// is complete.
void add_unseen_gpus(Fleet& fleet, const FleetOptions& options, const jobs::JobTable& jobs,
                     jobs::HolderTable& holders, samples::QualityLog& quality);

}  // namespace flopsight::rollups
