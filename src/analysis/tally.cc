#include <algorithm>
#include <cmath>
#include <map>

#include "analysis/tally_internal.h"
#include "model/reference_error.h"
#include "rollups/screen.h"

namespace flopsight::analysis {
namespace {

std::optional<double> ratio(double part, double whole) {
  if (!(whole > 0)) return std::nullopt;
  return part / whole;
}

const std::string& model_key(const rollups::GpuTime& gpu) {
  return gpu.device != nullptr ? gpu.device->model : gpu.gpu.model_raw;
}

// Of a variance by successive differences, against one about the mean (von Neumann 1941).
constexpr double kDifferenceFreedomRatio = 2.0 / 3.0;

}  // namespace

void GpuNumbers::see(const std::vector<std::uint32_t>& numbers) {
  if (numbers.empty()) return;
  const std::size_t words = *std::max_element(numbers.begin(), numbers.end()) / 64 + std::size_t{1};
  if (words > seen_.size()) seen_.resize(words);
  for (const std::uint32_t number : numbers) {
    std::uint64_t& word = seen_[number / 64];
    seen_count_ += 1 - ((word >> (number % 64)) & 1U);
    word |= std::uint64_t{1} << (number % 64);
  }
}

void GpuNumbers::add(const std::vector<std::uint32_t>& numbers) {
  if (seen_.empty() && listed_.size() + numbers.size() <= kListedMax) {
    listed_.insert(listed_.end(), numbers.begin(), numbers.end());
    return;
  }
  see(listed_);
  listed_.clear();
  see(numbers);
}

std::size_t GpuNumbers::count() const {
  if (!seen_.empty()) return seen_count_;
  std::vector<std::uint32_t> sorted = listed_;
  std::sort(sorted.begin(), sorted.end());
  return static_cast<std::size_t>(std::unique(sorted.begin(), sorted.end()) - sorted.begin());
}

std::string counted_gpu_key(const samples::GpuIdentity& gpu) {
  std::string key = samples::whole_gpu_key(gpu);
  // Of an instance that does not say which GPU it is part of, and of a GPU that has no name: what names it.
  return key.empty() ? rollups::gpu_label(gpu) : key;
}

void ClockVariance::see(const rollups::GpuTime& gpu) { by_model_[model_key(gpu)].merge(gpu.spread); }

std::optional<ClockEstimate> ClockVariance::of(const rollups::GpuTime& gpu) const {
  if (gpu.spread.difference_count > 0) {
    const auto n = static_cast<double>(gpu.spread.difference_count);
    return ClockEstimate{gpu.spread.difference_sum_hertz2 / (2 * n), std::max(1.0, n * kDifferenceFreedomRatio)};
  }
  const auto at = by_model_.find(model_key(gpu));
  if (at == by_model_.end() || at->second.count < 2) return std::nullopt;
  const double n = static_cast<double>(at->second.count);
  const double mean = at->second.sum_hertz / n;
  // Rounding can leave a tiny negative where all clocks are equal.
  return ClockEstimate{std::max(0.0, (at->second.sum_hertz2 - n * mean * mean) / (n - 1)), n - 1};
}

void Tally::add(const rollups::GpuTime& gpu, const std::vector<const rollups::Portion*>& portions,
                const ClockVariance& variance, const Prices& prices, const ReportBuilder::HolderOf& holder) {
  rollups::Totals many;  // of more than one portion
  double shared_mine_seconds = 0, shared_all_seconds = 0;
  for (const rollups::Portion* portion : portions) {
    if (portions.size() > 1) many.merge(portion->totals);
    shared_mine_seconds += portion->shared_delivered_seconds;
  }
  for (const rollups::Portion& portion : gpu.portions) {
    shared_all_seconds += portion.shared_delivered_seconds;
  }
  const rollups::Totals& mine = portions.size() == 1 ? portions.front()->totals : many;
  totals_.merge(mine);
  if (gpu.is_many) {
    members_.add(gpu.members);
    // Of what other holders of the same GPUs had, only their number is known here.
    shared_all_seconds *= std::max(1U, gpu.holders_at_once_max);
  } else {
    gpus_.insert(counted_gpu_key(gpu.gpu));
  }
  // When all sharers are in this group there is nothing to split. What others had of the time that was shared with them is, as parts are equal, at most the own
  // part for each of them: who shared with others, or at another time, takes nothing from it, and nobody nothing from anybody.
  const double others_seconds = std::min(shared_all_seconds - shared_mine_seconds, shared_mine_seconds * (std::max(1.0, static_cast<double>(gpu.holders_at_once_max)) - 1));
  if (others_seconds > 1e-9 * shared_all_seconds) {
    errors_.shared_less_seconds += shared_mine_seconds;
    errors_.shared_more_seconds += others_seconds;
  }
  add_ends(gpu, portions);
  add_band(gpu, mine, variance);
  const std::string_view model = gpu.device != nullptr ? std::string_view(gpu.device->model) : std::string_view();
  if (!prices.by_team()) {
    add_cost(mine, prices.of(model, gpu.gpu.model_raw));
    return;
  }
  for (const rollups::Portion* portion : portions) {
    add_cost(portion->totals,
             prices.of(model, gpu.gpu.model_raw, portion->holder ? std::string_view(holder(*portion->holder).team) : std::string_view()));
  }
}

void Tally::add_cost(const rollups::Totals& totals, const std::optional<units::UsdPerGpuHour>& price) {
  if (!price) {
    price_unknown_ = true;
    return;
  }
  const double usd_per_second = price->value / 3600;
  cost_usd_ += totals.allocated_seconds * usd_per_second;
  cost_lost_usd_ += (totals.measured_seconds - totals.delivered_seconds) * usd_per_second;
  cost_unmeasured_usd_ += (totals.allocated_seconds - totals.measured_seconds) * usd_per_second;
}

void Tally::add_band(const rollups::GpuTime& gpu, const rollups::Totals& mine,
                     const ClockVariance& variance) {
  if (gpu.reference) {
    const model::DomainError domain = model::domain_error(*gpu.reference, gpu.device);
    errors_.domain_less_seconds += mine.delivered_seconds * domain.less_ratio;
    errors_.domain_more_seconds += mine.delivered_seconds * domain.more_ratio;
  }
  if (!(mine.clock_sensitivity_seconds2_per_hertz2 > 0)) return;
  if (const auto clock = variance.of(gpu)) {
    const double seconds2 = mine.clock_sensitivity_seconds2_per_hertz2 * clock->variance_hertz2;
    errors_.sampling_variance_seconds2 += seconds2;
    errors_.sampling_variance_error_ratio_seconds4 += seconds2 * seconds2 / clock->freedom;
    const double active = std::min(1.0, mine.tensor_measured_seconds / mine.measured_seconds);
    errors_.cycle_seconds += mine.measured_seconds * std::sqrt(clock->variance_hertz2 * active * (1 - active)) / gpu.reference->clock.value;
    return;
  }
  std::optional<double> clock_max_hertz;
  if (gpu.device != nullptr && gpu.device->nvml_max_sm_clock) {
    clock_max_hertz = gpu.device->nvml_max_sm_clock->value;
  } else if (gpu.reference && gpu.reference->source == model::ReferenceSource::kScrapedNvmlMax) {
    clock_max_hertz = gpu.reference->clock.value;
  }
  if (!clock_max_hertz) {
    band_unknown_ = true;
    return;
  }
  band_from_limits_ = true;
  const double at_max_seconds = mine.tensor_measured_seconds * *clock_max_hertz / gpu.reference->clock.value;
  errors_.one_reading_less_seconds += mine.delivered_seconds;
  // A reading above the catalogue's maximum leaves nothing to add.
  errors_.one_reading_more_seconds += std::max(0.0, at_max_seconds - mine.delivered_seconds);
}

void Tally::add_ends(const rollups::GpuTime& gpu, const std::vector<const rollups::Portion*>& portions) {
  double ends = 0;
  for (const rollups::Portion* portion : portions) ends += portion->ends_total;
  // With all that a GPU had in one group, it does not matter where one holder's time ends and the next one's begins.
  if (portions.size() == gpu.portions.size()) ends = std::min(ends, 2.0);
  if (gpu.is_many) ends = 2.0 * static_cast<double>(gpu.members.size());
  const bool measured = std::any_of(portions.begin(), portions.end(), [](const rollups::Portion* p) { return p->totals.measured_seconds > 0; });
  if (!measured || (ends == 0 && !gpu.is_many)) return;  // an instant has no ends
  if (ends == 0 || !(gpu.step_seconds > 0)) errors_.ends_seconds.reset();
  if (errors_.ends_seconds) *errors_.ends_seconds += gpu.step_seconds * ends / 2;
}

Summary Tally::summary(bool has_times) const {
  const rollups::Totals& t = totals_;
  Summary s;
  s.gpu_count = gpus_.size() + members_.count();
  if (has_times) {
    s.gpu_hours_allocated = t.allocated_seconds / 3600;
    s.gpu_hours_delivered = t.delivered_seconds / 3600;
    s.gpu_hours_lost = (t.measured_seconds - t.delivered_seconds) / 3600;
    s.gpu_hours_unmeasured = (t.allocated_seconds - t.measured_seconds) / 3600;
    if (!price_unknown_) {
      s.cost_usd = cost_usd_;
      s.cost_lost_usd = cost_lost_usd_;
      s.cost_unmeasured_usd = cost_unmeasured_usd_;
    }
  }
  s.ofu_ratio = ratio(t.delivered_seconds, t.measured_seconds);
  if (!band_unknown_) {
    model::BandInputs in = errors_;
    in.allocated_seconds = t.allocated_seconds;
    in.measured_seconds = t.measured_seconds;
    in.delivered_seconds = t.delivered_seconds;
    if (const auto band = model::error_band(in)) {
      s.ofu_ratio_low = band->low_ratio;
      s.ofu_ratio_high = band->high_ratio;
    }
    s.error = model::error_budget(in);
  }
  s.tensor_active_ratio = ratio(t.tensor_seconds, t.tensor_known_seconds);
  s.sm_clock_hertz_mean = ratio(t.clock_hertz_seconds, t.clock_known_seconds);
  s.clock_loss_ratio = ratio(t.tensor_measured_seconds - t.delivered_seconds, t.measured_seconds);
  s.coverage_ratio = ratio(t.measured_seconds, t.allocated_seconds);
  return s;
}

std::string main_absent_reason(const rollups::Totals& totals) {
  const auto most = std::max_element(totals.absent_seconds.begin(), totals.absent_seconds.end());
  if (!(*most > 0)) return {};
  return std::string(samples::absent_reason_name(
      static_cast<samples::AbsentReason>(most - totals.absent_seconds.begin())));
}

std::string Tally::absent_reason() const { return main_absent_reason(totals_); }

}  // namespace flopsight::analysis
