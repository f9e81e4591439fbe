#pragma once
// For tests of the live fleet: one with a clock, and the cells that it closes by GPU and job. Not part of the program.

#include <cmath>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "live/live_fleet.h"

namespace flopsight::live {

using catalog::Metric;
using jobs::LabelView;
using rollups::Cell;
using rollups::CellField;
using units::Instant;
using units::Seconds;
using units::Window;

inline constexpr std::int64_t kStart = 1'790'000'040'000 / 60'000 * 60'000;
inline constexpr std::string_view kTensor = "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE";
inline constexpr std::string_view kClock = "DCGM_FI_DEV_SM_CLOCK";
inline constexpr std::string_view kPower = "DCGM_FI_DEV_POWER_USAGE";

// The tests count with a late window of two slots.
inline LiveOptions late_by_two_minutes() {
  LiveOptions options;
  options.late = Seconds(120);
  return options;
}

using Key = std::pair<std::string, std::string>;  // GPU label, job

class Live : public testing::Test {
 protected:
  LabelSetId gpu(std::string_view uuid, std::string_view pod = "", std::string_view instance = "",
                 std::string_view profile = "") {
    std::vector<LabelView> labels = {{"UUID", uuid}, {"Hostname", "n1"}, {"gpu", "0"},
                                     {"modelName", "NVIDIA H100 80GB HBM3"}};
    if (!pod.empty()) labels.push_back({"pod", pod});
    if (!instance.empty()) {
      labels.push_back({"GPU_I_ID", instance});
      labels.push_back({"GPU_I_PROFILE", profile});
    }
    return fleet.bind(labels, "").value();
  }
  AddResult add(LabelSetId labels, std::string_view metric, double at_seconds, double value) {
    const Instant time{kStart + std::llround(at_seconds * 1000)};
    now = std::max(now, time);
    return fleet.add(labels, metric_use(metric), metric, time, value, now, segment);
  }
  void scrape(LabelSetId labels, double at_seconds, double tensor, double clock_megahertz = 1755) {
    add(labels, kTensor, at_seconds, tensor);
    add(labels, kClock, at_seconds, clock_megahertz);
  }
  void close(bool everything = false) {
    fleet.close(now, [&](const ClosedCell& closed) {
      const std::string job = closed.holder ? fleet.holders().at(*closed.holder).job : "";
      const auto& identity = fleet.identity(closed.gpu);
      cells[{identity.uuid + identity.mig_instance, job}].merge(closed.cell);
      slots[{identity.uuid + identity.mig_instance, job}][closed.slot_start.unix_milliseconds].merge(closed.cell);
    }, everything);
  }
  const Cell& total(const std::string& uuid, const std::string& job = "") { return cells[{uuid, job}]; }
  double seconds(const Cell& cell, CellField field) { return static_cast<double>(cell[field]) / 1e6; }
  double allocated(const Cell& cell) { return static_cast<double>(cell.allocated_microseconds()) / 1e6; }

  samples::QualityLog quality;
  LiveFleet fleet{late_by_two_minutes(), jobs::LabelRules::builtin(), quality};
  Instant now{kStart};
  std::uint32_t segment = 1;
  std::map<Key, Cell> cells;
  std::map<Key, std::map<std::int64_t, Cell>> slots;
};

}  // namespace flopsight::live
