#include "analysis/waterfall.h"

#include <algorithm>
#include <cmath>

#include "rollups/causes.h"

namespace flopsight::analysis {
namespace {

// Sums of doubles that are the same but for their order differ in the last digits.
constexpr double kRounding = 1e-12;

// What is left of a whole; without digits that are only rounding.
double rest(double whole, double parts) {
  const double left = whole - parts;
  return std::abs(left) < kRounding * std::max(1.0, std::abs(whole)) ? 0 : left;
}

}  // namespace

Waterfall waterfall_of(const rollups::Totals& t) {
  Waterfall w;
  if (!(t.allocated_seconds > 0)) return w;
  const auto share = [&](double seconds) { return seconds / t.allocated_seconds; };
  w.unmeasured_ratio = share(t.allocated_seconds - t.measured_seconds);
  if (!(t.measured_seconds > 0)) return w;
  const rollups::LossCauses& by = t.causes;
  w.ofu_ratio = share(t.delivered_seconds);
  w.clock_loss_ratio = share(t.tensor_measured_seconds - t.delivered_seconds);
  w.clock = {share(by.clock_power_seconds), share(by.clock_thermal_seconds), share(by.clock_setting_seconds), 0,
             by.clock_gain_seconds == 0 ? 0 : -share(by.clock_gain_seconds)};
  w.clock->unexplained_ratio = rest(*w.clock_loss_ratio, w.clock->power_cap_ratio + w.clock->thermal_ratio +
                                                             w.clock->setting_ratio + w.clock->gain_ratio);
  // Without causes (push-down) a gain is seen in the sum only.
  if (w.clock->unexplained_ratio < 0) {
    w.clock->gain_ratio += w.clock->unexplained_ratio;
    w.clock->unexplained_ratio = 0;
  }
  const double unsplit_seconds =
      (t.measured_seconds - t.sm_known_seconds) - (t.tensor_measured_seconds - t.tensor_within_sm_known_seconds);
  if (t.sm_known_seconds > 0) {
    w.tensor_idle_sm_busy_ratio = share(t.sm_active_seconds - t.tensor_within_sm_known_seconds);
    w.sm_idle_ratio = share(t.sm_known_seconds - t.sm_active_seconds);
    w.sm_busy = {share(by.memory_bound_seconds), share(by.other_kernels_seconds), 0};
    w.sm_busy->unsplit_ratio =
        rest(*w.tensor_idle_sm_busy_ratio, w.sm_busy->memory_bound_ratio + w.sm_busy->other_kernels_ratio);
    w.sm_idle = {share(by.stalled_seconds), share(by.communication_seconds), share(by.host_seconds), share(by.small_kernels_seconds), 0};
    w.sm_idle->unsplit_ratio = rest(*w.sm_idle_ratio, w.sm_idle->stalled_ratio + w.sm_idle->communication_ratio +
                                                          w.sm_idle->host_ratio + w.sm_idle->small_kernels_ratio);
  }
  if (t.measured_seconds > t.sm_known_seconds * (1 + 1e-12)) w.tensor_idle_unsplit_ratio = share(unsplit_seconds);
  return w;
}

void set_below_ofu(Waterfall& w, std::optional<double> tile_overhead_ratio, std::optional<double> recompute_overhead_ratio) {
  w.below_ofu.reset();
  if (!w.ofu_ratio || (!tile_overhead_ratio && !recompute_overhead_ratio)) return;
  Waterfall::BelowOfu below;
  below.model_ratio = *w.ofu_ratio;
  // Tiles are paid for all products, those that are computed again as well.
  const auto take = [&](std::optional<double> overhead_ratio, std::optional<double>& part) {
    if (!overhead_ratio) return;
    const double useful_ratio = below.model_ratio / *overhead_ratio;
    part = below.model_ratio - useful_ratio;
    below.model_ratio = useful_ratio;
  };
  take(tile_overhead_ratio, below.tile_ratio);
  take(recompute_overhead_ratio, below.recompute_ratio);
  w.below_ofu = below;
}

std::string_view cause_rules(const Waterfall& w) {
  const bool busy = w.sm_busy && (w.sm_busy->memory_bound_ratio > 0 || w.sm_busy->other_kernels_ratio > 0);
  const bool idle = w.sm_idle && (w.sm_idle->stalled_ratio > 0 || w.sm_idle->communication_ratio > 0 || w.sm_idle->host_ratio > 0 ||
                                  w.sm_idle->small_kernels_ratio > 0);
  const bool clock = w.clock && (w.clock->power_cap_ratio > 0 || w.clock->thermal_ratio > 0 || w.clock->setting_ratio > 0);
  if (busy || idle || clock) return rollups::kCauseRules;
  return "lost time is not split by cause: that needs samples of SM and memory activity, engine activity, links, power or event reasons, "
         "and not only sums";
}

}  // namespace flopsight::analysis
