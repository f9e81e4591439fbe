#pragma once
// Where a job's capacity went: a pure function of what its time adds up to.
//
//   1 = OFU + clock loss + tensor pipe idle while SMs were busy + SMs idle (or both unsplit) + unmeasured
//
// of the allocated time, exactly; every term but the clock loss is at least 0, and the clock's is a gain where it is negative. Each loss is then
// divided by cause (rollups/causes.h), and the parts of a loss add up to it: what no rule covers, or lacks the metric that a rule
// needs, is a part of its own and is never given to a cause. From a server that was asked for sums only (push-down) there are no causes.
//
// Below OFU, where it is known: what kernels executed only because of their tiles, and activations that were computed again, are executed FLOPs and
// part of OFU; the rest is the MFU that the hardware's work supports. What a job reports stands beside it.
//
// Threads: pure.

#include <optional>
#include <string_view>

#include "rollups/totals.h"

namespace flopsight::analysis {

// Shares of the allocated time; those present add up to 1. Tensor idle time is split by SM activity where that is
// scraped; the rest is unsplit. All absent when nothing was measured, but unmeasured.
struct Waterfall {
  // Parts of clock_loss_ratio: a gain is at most 0, the others at least 0.
  struct Clock {
    double power_cap_ratio = 0;
    double thermal_ratio = 0;
    double setting_ratio = 0;
    double unexplained_ratio = 0;  // no event reason scraped, or none that is a cause
    double gain_ratio = 0;
  };
  // Of tensor_idle_sm_busy_ratio.
  struct SmBusy {
    double memory_bound_ratio = 0;
    double other_kernels_ratio = 0;
    double unsplit_ratio = 0;
  };
  // Of sm_idle_ratio.
  struct SmIdle {
    double stalled_ratio = 0;  // or not running
    double communication_ratio = 0;
    double host_ratio = 0;  // or input
    double small_kernels_ratio = 0;
    double unsplit_ratio = 0;
  };

  std::optional<double> ofu_ratio;
  std::optional<double> clock_loss_ratio;
  std::optional<double> tensor_idle_sm_busy_ratio;
  std::optional<double> sm_idle_ratio;
  std::optional<double> tensor_idle_unsplit_ratio;
  double unmeasured_ratio = 0;
  // Of ofu_ratio: parts that add up to it. A step that is not known is absent, and what it took is within model_ratio.
  struct BelowOfu {
    std::optional<double> tile_ratio;       // executed only because of tiles
    std::optional<double> recompute_ratio;  // activations that were computed again
    double model_ratio = 0;                 // what is left for the model's own products
  };
  // Present with their wholes.
  std::optional<Clock> clock;
  std::optional<SmBusy> sm_busy;
  std::optional<SmIdle> sm_idle;
  std::optional<BelowOfu> below_ofu;  // where one of its steps is known
};

Waterfall waterfall_of(const rollups::Totals& totals);
// Executed over useful FLOPs of a job's products, and FLOPs with recomputation over those without; 1 or more, absent where not known.
void set_below_ofu(Waterfall& waterfall, std::optional<double> tile_overhead_ratio, std::optional<double> recompute_overhead_ratio);
// By which rules losses were given to causes, or that none was; for the assumptions of an answer.
std::string_view cause_rules(const Waterfall& waterfall);

}  // namespace flopsight::analysis
