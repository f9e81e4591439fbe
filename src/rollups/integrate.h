#pragma once
// From the scrapes of one GPU to GPU time by holder: allocated, measured, delivered. This is where OFU is made,
// sample by sample, and integrated over time.
//
// A sample holds from its time to the next one, as PromQL reads a series, if that is no further than
// gap_intervals steps; else for one step, and the rest is a gap: unmeasured, never idle. At the start of the window
// the first sample holds backwards by at most one step; at its end the last one forwards by at most one.
// The step is inferred from the series itself (cadence.h). Time is weighted, not sample count.
//
// A gap in the samples belongs to the job that held the GPU on both sides of it, else to nobody. Scrapes without job labels between
// two of the same holder are bridged up to bridge_intervals missing labels.
//
// Cycle counters (DCGM 4.6) are used where two neighbouring scrapes have them, no counter fell, their SM
// multiplicity is clear and they agree with tensor activity within a quarter where both exist; they need no
// clock sample and see through gaps. Otherwise tensor activity times clock.
//
// Without timestamps (has_times == false) each scrape is an instant; n of them share one unit of time.
// Precondition: scrapes ascending in time. Threads: pure.

#include <optional>
#include <span>
#include <vector>

#include "catalog/devices.h"
#include "jobs/holder_table.h"
#include "jobs/label_rules.h"
#include "model/ofu.h"
#include "rollups/totals.h"
#include "samples/gpu.h"
#include "samples/quality.h"
#include "units/time.h"

namespace flopsight::rollups {

struct IntegrateOptions {
  std::optional<units::Window> window;  // none: from the first scrape to the last plus one step
  double gap_intervals = 2.5;
  double bridge_intervals = 2;
  units::Seconds step_default{60};  // for a GPU with a single scrape in the window
  // When an instant was, if the caller knows (a live scrape). Otherwise a jobs file attributes an instant where one
  // job alone ever holds the GPU, or by the jobs that have no end.
  std::optional<units::Instant> instant;
};

// The time one holder had of one GPU.
struct Portion {
  std::optional<samples::HolderId> holder;  // nothing: nobody
  Totals totals;
  double shared_delivered_seconds = 0;  // the part of delivered that was split equally with others
  double bridged_seconds = 0;           // the part that is inferred over a label gap
  // Ends of what the holder had, each known to one sample only: two for each time that it was given the GPU.
  double ends_total = 0;
};

struct GpuTime {
  samples::GpuIdentity gpu;
  const catalog::Device* device = nullptr;  // borrowed from the catalogue
  std::optional<model::ReferenceClock> reference;
  std::vector<Portion> portions;
  ClockSpread spread;
  std::uint32_t holders_at_once_max = 0;
  bool from_cycle_counters = false;  // some of it
  double step_seconds = 0;  // between samples, as a rule, times the weight of the GPU; 0: not known
  // Mean OFU by both routes over the samples that have both, for the cross-check.
  std::uint64_t both_routes_count = 0;
  double counter_route_ratio_sum = 0;
  double gauge_route_ratio_sum = 0;

  // Not one GPU but all that a job had of a model (stored.h): `gpu` has the model only, `members` number the GPUs.
  bool is_many = false;
  std::vector<std::uint32_t> members;

  Totals sum() const;
};

// The clock over the busy scrapes; with a window, over those in it and their differences from the one before.
ClockSpread clock_spread(std::span<const samples::GpuScrape> scrapes, const std::optional<units::Window>& window);

// `weight`: the share of a whole GPU (MIG); `jobs` and `holders`: for attribution where labels do not.
GpuTime integrate(const samples::GpuTimeline& timeline, const catalog::Device* device,
                  std::optional<model::ReferenceClock> reference, double weight,
                  const IntegrateOptions& options, const jobs::JobTable& jobs,
                  jobs::HolderTable& holders, samples::QualityLog& quality);

}  // namespace flopsight::rollups
