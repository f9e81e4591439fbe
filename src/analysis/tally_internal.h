#pragma once
// Sums GPU time into one group, with what the error band and the costs need.

#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <vector>

#include "analysis/report.h"
#include "model/error_band.h"

namespace flopsight::analysis {

struct ClockEstimate {
  double variance_hertz2 = 0;
  double freedom = 1;  // degrees of freedom that it rests on
};

// The variance of the SM clock from sample to sample, for each GPU of a fleet.
class ClockVariance {
 public:
  void see(const rollups::GpuTime& gpu);
  // Nothing when neither the GPU nor its model has two busy readings.
  std::optional<ClockEstimate> of(const rollups::GpuTime& gpu) const;

 private:
  std::map<std::string, rollups::ClockSpread> by_model_;
};

// The reason for most of the time without OFU; empty when there is none.
std::string main_absent_reason(const rollups::Totals& totals);

// Who a GPU is; an instance of a MIG GPU is the GPU that it is part of.
std::string counted_gpu_key(const samples::GpuIdentity& gpu);

// Distinct numbers of GPUs, which are small. Most groups have few; a fleet's names each GPU as often as it changed hands.
class GpuNumbers {
 public:
  void add(const std::vector<std::uint32_t>& numbers);
  std::size_t count() const;

 private:
  void see(const std::vector<std::uint32_t>& numbers);

  static constexpr std::size_t kListedMax = 1024;
  std::vector<std::uint32_t> listed_;
  std::vector<std::uint64_t> seen_;  // bits, instead of the list, once that is long
  std::size_t seen_count_ = 0;
};

class Tally {
 public:
  // One GPU's portions that fall into this group; call once per GPU and group. `holder` says whose a portion is, for prices by team.
  void add(const rollups::GpuTime& gpu, const std::vector<const rollups::Portion*>& portions,
           const ClockVariance& variance, const Prices& prices, const ReportBuilder::HolderOf& holder);

  Summary summary(bool has_times) const;
  Waterfall waterfall() const { return waterfall_of(totals_); }
  std::string absent_reason() const;
  const rollups::Totals& totals() const { return totals_; }
  // Some of the band spans every clock up to the maximum, for want of a second reading.
  bool band_from_limits() const { return band_from_limits_; }

 private:
  void add_cost(const rollups::Totals& totals, const std::optional<units::UsdPerGpuHour>& price);
  void add_band(const rollups::GpuTime& gpu, const rollups::Totals& mine, const ClockVariance& variance);
  void add_ends(const rollups::GpuTime& gpu, const std::vector<const rollups::Portion*>& portions);

  rollups::Totals totals_;
  std::set<std::string> gpus_;
  GpuNumbers members_;  // of entries that stand for many GPUs
  model::BandInputs errors_;  // but for what totals_ has
  bool band_unknown_ = false;  // not even a maximum clock is known
  bool band_from_limits_ = false;
  bool price_unknown_ = false;
  double cost_usd_ = 0;
  double cost_lost_usd_ = 0;
  double cost_unmeasured_usd_ = 0;
};

}  // namespace flopsight::analysis
