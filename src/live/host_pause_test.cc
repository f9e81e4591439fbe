#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "live/live_fleet.h"

namespace flopsight::live {
namespace {

using jobs::LabelView;
using rollups::Cell;
using rollups::CellField;
using samples::AbsentReason;
using units::Instant;

constexpr std::int64_t kStart = 1'790'000'040'000 / 60'000 * 60'000;

class HostPause : public testing::Test {
 protected:
  LabelSetId gpu(std::string_view uuid, std::string_view host) {
    const LabelView labels[] = {{"UUID", uuid}, {"Hostname", host}, {"modelName", "NVIDIA H100 80GB HBM3"}, {"pod", "p"}};
    return fleet.bind(labels, "").value();
  }
  // A scrape each 15 s of half an hour; from 600 s to 1200 s without tensor activity where `is_paused`.
  void send(LabelSetId labels, double from, double to, bool is_paused, bool as_blank = false) {
    for (double t = from; t < to; t += 15) {
      add(labels, "DCGM_FI_DEV_SM_CLOCK", t, 1755);
      const bool lacks = is_paused && t >= 600 && t < 1200;
      if (!lacks || as_blank) add(labels, "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE", t, lacks ? 140'737'488'355'328.0 : 0.5);
    }
  }
  void add(LabelSetId labels, std::string_view metric, double at_seconds, double value) {
    const Instant time{kStart + std::llround(at_seconds * 1000)};
    now = std::max(now, time);
    fleet.add(labels, metric_use(metric), metric, time, value, now, 1);
  }
  void close(bool everything = false) {
    fleet.close(now, [&](const ClosedCell& closed) { cells[fleet.identity(closed.gpu).uuid].merge(closed.cell); }, everything);
  }
  double seconds(const std::string& uuid, AbsentReason reason) { return static_cast<double>(cells[uuid].absent(reason)) / 1e6; }
  double measured(const std::string& uuid) { return static_cast<double>(cells[uuid][CellField::kMeasured]) / 1e6; }

  samples::QualityLog quality;
  LiveFleet fleet{LiveOptions{}, jobs::LabelRules::builtin(), quality};
  Instant now{kStart};
  std::map<std::string, Cell> cells;
};

TEST_F(HostPause, gpus_of_a_host_that_lose_their_tensor_activity_together_are_held_by_a_profiler) {
  const LabelSetId a = gpu("GPU-a", "n1"), b = gpu("GPU-b", "n1"), alone = gpu("GPU-c", "n2");
  for (int t = 0; t < 1800; t += 15) {
    for (const LabelSetId one : {a, b, alone}) send(one, t, t + 15, true);
    close();
  }
  close(true);
  for (const char* uuid : {"GPU-a", "GPU-b"}) {
    EXPECT_NEAR(seconds(uuid, AbsentReason::kProfilerPause), 600, 1e-3) << uuid;
    EXPECT_NEAR(measured(uuid), 1200, 1e-3) << uuid;
  }
  EXPECT_EQ(quality.count("profiler_pause") > 0, true);
  // One GPU by itself has lost its counter.
  EXPECT_NEAR(seconds("GPU-c", AbsentReason::kNoTensorCounter), 600, 1e-3);
  EXPECT_EQ(seconds("GPU-c", AbsentReason::kProfilerPause), 0);
}

TEST_F(HostPause, a_backlog_in_which_one_gpu_is_closed_before_the_other_says_the_same) {
  const LabelSetId a = gpu("GPU-a", "n1"), b = gpu("GPU-b", "n1");
  send(a, 0, 1800, true);
  send(b, 0, 1800, true);
  close(true);
  EXPECT_NEAR(seconds("GPU-a", AbsentReason::kProfilerPause), 600, 1e-3);
  EXPECT_NEAR(seconds("GPU-b", AbsentReason::kProfilerPause), 600, 1e-3);
}

TEST_F(HostPause, a_gpu_that_is_closed_a_minute_after_its_neighbour_says_the_same) {
  const LabelSetId a = gpu("GPU-a", "n1"), b = gpu("GPU-b", "n1");
  for (int t = 0; t < 1800; t += 15) {
    send(a, t, t + 15, true);
    if (t >= 45) send(b, t - 45, t - 30, true);
    close();
  }
  send(b, 1755, 1800, true);
  close(true);
  EXPECT_NEAR(seconds("GPU-a", AbsentReason::kProfilerPause), 600, 1e-3);
  EXPECT_NEAR(seconds("GPU-b", AbsentReason::kProfilerPause), 600, 1e-3);
}

TEST_F(HostPause, while_one_gpu_of_the_host_is_profiled_the_others_have_lost_their_counters) {
  const LabelSetId a = gpu("GPU-a", "n1"), b = gpu("GPU-b", "n1"), c = gpu("GPU-c", "n1");
  send(a, 0, 1800, true);
  send(b, 0, 1800, true, true);
  send(c, 0, 1800, false);
  close(true);
  EXPECT_NEAR(seconds("GPU-a", AbsentReason::kNoTensorCounter), 600, 1e-3);
  EXPECT_NEAR(seconds("GPU-b", AbsentReason::kBlank), 600, 1e-3);
  EXPECT_NEAR(measured("GPU-c"), 1800, 1e-3);
}

TEST_F(HostPause, blanks_are_no_values_either) {
  const LabelSetId a = gpu("GPU-a", "n1"), b = gpu("GPU-b", "n1");
  send(a, 0, 1800, true, true);
  send(b, 0, 1800, true);
  close(true);
  EXPECT_NEAR(seconds("GPU-a", AbsentReason::kProfilerPause), 600, 1e-3);
  EXPECT_NEAR(seconds("GPU-b", AbsentReason::kProfilerPause), 600, 1e-3);
}

}  // namespace
}  // namespace flopsight::live
