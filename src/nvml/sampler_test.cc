#include "nvml/sampler.h"

#include <algorithm>

#include <gtest/gtest.h>

#include "nvml/test_driver.h"

namespace flopsight::nvml {
namespace {

using catalog::Metric;

// A sampler whose time is that of the fake driver.
class Watch {
 public:
  explicit Watch(const std::string& script) : driver_(script) {
    SamplerOptions options;
    options.library_path = FLOPSIGHT_FAKE_NVML;
    auto sampler = Sampler::open(options);
    EXPECT_TRUE(sampler.ok()) << (sampler.ok() ? "" : sampler.error().message);
    if (sampler.ok()) sampler_ = std::move(sampler).value();
  }
  const Snapshot& at(double seconds) {
    driver_.set_seconds(seconds);
    return sampler_->sample(units::Instant{1'790'000'000'000 + static_cast<std::int64_t>(seconds * 1000)});
  }

 private:
  TestDriver driver_;
  std::unique_ptr<Sampler> sampler_;
};

TEST(Sampler, activity_comes_with_the_second_tick_and_is_the_mean_since_the_one_before) {
  Watch watch(hopper(0) + hopper(1) + "at 2\ngpu 0 gpm 5 = 10\n");
  const Snapshot& first = watch.at(0);
  ASSERT_EQ(first.gpus.size(), 2U);
  EXPECT_EQ(first.gpus[0].activity_absence, Absence::kNotYetSampled);
  EXPECT_DOUBLE_EQ(first.gpus[0].values[Metric::kSmClock].number(), 1755e6);
  const Snapshot& second = watch.at(4);
  EXPECT_DOUBLE_EQ(second.gpus[0].values[Metric::kTensorActive].number(), (0.525 + 0.10) / 2);
  EXPECT_DOUBLE_EQ(second.gpus[0].window.value, 4);
  EXPECT_DOUBLE_EQ(second.gpus[1].values[Metric::kTensorActive].number(), 0.525);
  EXPECT_DOUBLE_EQ(watch.at(5).gpus[0].values[Metric::kTensorActive].number(), 0.10);
}

TEST(Sampler, a_gpu_that_falls_off_the_bus_stays_with_its_reason_and_comes_back) {
  Watch watch(hopper(0) + hopper(1) + "at 10\ngpu 1 state = lost\ngpu 1 xid = 79\nat 20\ngpu 1 state = ok\n");
  watch.at(8);
  watch.at(9);
  const Snapshot& lost = watch.at(11);
  ASSERT_EQ(lost.gpus.size(), 2U);
  EXPECT_EQ(lost.gpus[1].absence, Absence::kDeviceLost);
  EXPECT_EQ(lost.gpus[1].gpu.uuid, "GPU-00000001-1111-2222-3333-444455556666");
  EXPECT_EQ(lost.gpus[1].activity_absence, Absence::kDeviceLost);
  EXPECT_DOUBLE_EQ(lost.gpus[1].values[Metric::kXid].number(), 79);
  // Its neighbour is not disturbed.
  EXPECT_DOUBLE_EQ(lost.gpus[0].values[Metric::kTensorActive].number(), 0.525);
  EXPECT_TRUE(lost.driver);
  const Snapshot& back = watch.at(21);
  EXPECT_EQ(back.gpus[1].absence, std::nullopt);
  // Nothing is known of the time in between.
  EXPECT_EQ(back.gpus[1].activity_absence, Absence::kNotYetSampled);
  EXPECT_DOUBLE_EQ(watch.at(22).gpus[1].values[Metric::kTensorActive].number(), 0.525);
}

TEST(Sampler, a_lost_gpu_is_looked_for_by_a_new_session_now_and_then) {
  Watch watch(hopper(0) + hopper(1) + "at 10\ngpu 0 state = lost\n");
  watch.at(0);
  watch.at(9);
  watch.at(11);
  EXPECT_EQ(watch.at(12).gpus[1].activity_absence, std::nullopt);
  // The new session begins, in which the other GPU has one sample so far; the lost one is still known by its name.
  const Snapshot& anew = watch.at(71);
  EXPECT_EQ(anew.gpus[1].activity_absence, Absence::kNotYetSampled);
  EXPECT_EQ(anew.gpus[0].absence, Absence::kDeviceLost);
  EXPECT_EQ(anew.gpus[0].gpu.uuid, "GPU-00000000-1111-2222-3333-444455556666");
  EXPECT_EQ(anew.driver_restarts, 0U);
  EXPECT_EQ(watch.at(72).gpus[1].activity_absence, std::nullopt);
}

TEST(Sampler, a_gpu_that_was_pulled_is_remembered_for_an_hour) {
  Watch watch(hopper(0) + hopper(1) + "at 10\ngpu 0 state = absent\n");
  watch.at(0);
  const Snapshot& pulled = watch.at(11);
  ASSERT_EQ(pulled.gpus.size(), 2U);
  EXPECT_EQ(pulled.gpus[0].gpu.uuid, "GPU-00000001-1111-2222-3333-444455556666");
  EXPECT_EQ(pulled.gpus[0].gpu.index, "0");
  EXPECT_EQ(pulled.gpus[1].gpu.uuid, "GPU-00000000-1111-2222-3333-444455556666");
  EXPECT_EQ(pulled.gpus[1].absence, Absence::kDeviceGone);
  EXPECT_EQ(watch.at(3599).gpus.size(), 2U);
  EXPECT_EQ(watch.at(3602).gpus.size(), 1U);
}

TEST(Sampler, a_driver_that_is_restarted_is_found_again) {
  Watch watch(hopper(0) + "at 10\ndriver state = not_loaded\nat 30\ndriver state = ready\ndriver restart = 1\ndriver version = 560.1\n");
  watch.at(8);
  watch.at(9);
  const Snapshot& gone = watch.at(11);
  EXPECT_FALSE(gone.driver);
  EXPECT_EQ(gone.driver_restarts, 1U);
  ASSERT_EQ(gone.gpus.size(), 1U);
  EXPECT_EQ(gone.gpus[0].absence, Absence::kDriverGone);
  EXPECT_FALSE(gone.problem.empty());
  EXPECT_FALSE(watch.at(17).driver);
  const Snapshot& back = watch.at(31);
  EXPECT_TRUE(back.driver);
  EXPECT_EQ(back.problem, "");
  EXPECT_EQ(back.gpus[0].absence, std::nullopt);
  EXPECT_EQ(back.driver_version, "560.1");
  EXPECT_EQ(back.gpus[0].gpu.driver_version, "560.1");
  EXPECT_DOUBLE_EQ(watch.at(32).gpus[0].values[Metric::kTensorActive].number(), 0.525);
  EXPECT_EQ(watch.at(33).driver_restarts, 1U);
}

TEST(Sampler, a_restart_between_two_ticks_costs_these_and_no_more) {
  Watch watch(hopper(0) + "at 10\ndriver restart = 1\n");
  watch.at(8);
  EXPECT_FALSE(watch.at(11).driver);
  EXPECT_TRUE(watch.at(16).driver);
  EXPECT_EQ(watch.at(17).gpus[0].activity_absence, std::nullopt);
}

TEST(Sampler, mig_that_is_switched_on_and_divided_anew_changes_the_list) {
  Watch watch(hopper(0) + "gpu 0 mig = off\nat 10\ngpu 0 mig = on\nat 20\n"
              "gpu 0 instance 1 name = NVIDIA H100 80GB HBM3 MIG 3g.40gb\ngpu 0 instance 1 gpm 5 = 70\n"
              "gpu 0 instance 2 name = NVIDIA H100 80GB HBM3 MIG 3g.40gb\ngpu 0 instance 2 gpm 5 = 20\n"
              "gpu 0 processes = 7:1:2\nat 30\ngpu 0 instance 2 name = -\n");
  watch.at(8);
  EXPECT_EQ(watch.at(9).gpus[0].activity_absence, std::nullopt);
  const Snapshot& empty = watch.at(11);
  ASSERT_EQ(empty.gpus.size(), 1U);
  EXPECT_EQ(empty.gpus[0].activity_absence, Absence::kNoData);
  watch.at(21);
  const Snapshot& two = watch.at(22);
  ASSERT_EQ(two.gpus.size(), 2U);
  EXPECT_EQ(two.gpus[0].gpu.mig_instance, "1");
  EXPECT_EQ(two.gpus[0].gpu.mig_profile, "3g.40gb");
  EXPECT_DOUBLE_EQ(two.gpus[0].values[Metric::kTensorActive].number(), 0.70);
  EXPECT_DOUBLE_EQ(two.gpus[1].values[Metric::kTensorActive].number(), 0.20);
  EXPECT_TRUE(two.gpus[0].processes.empty());
  ASSERT_EQ(two.gpus[1].processes.size(), 1U);
  EXPECT_EQ(two.gpus[1].processes[0].pid, 7U);
  // Power is the GPU's, on each of its instances.
  EXPECT_DOUBLE_EQ(two.gpus[1].values[Metric::kPower].number(), 612.5);
  const Snapshot& one = watch.at(31);
  ASSERT_EQ(one.gpus.size(), 1U);
  EXPECT_EQ(one.gpus[0].gpu.mig_instance, "1");
}

TEST(Sampler, gpus_that_are_gone_are_remembered_up_to_a_limit) {
  // Each restart of the driver brings 64 GPUs that nobody has seen; 16 times that is the limit.
  std::string script;
  for (int i = 0; i < 64; ++i) script += "gpu " + std::to_string(i) + " name = NVIDIA T4\n";
  for (int generation = 0; generation <= 16; ++generation) {
    script += "at " + std::to_string(generation * 10) + "\ndriver restart = " + std::to_string(generation) + "\n";
    for (int i = 0; i < 64; ++i) {
      script += "gpu " + std::to_string(i) + " uuid = GPU-" + std::to_string(generation) + "-" + std::to_string(i) + "\n";
    }
  }
  Watch watch(script);
  watch.at(0);
  for (int generation = 1; generation <= 16; ++generation) {
    EXPECT_FALSE(watch.at(generation * 10 + 1).driver);
    const Snapshot& back = watch.at(generation * 10 + 7);
    EXPECT_EQ(back.gpus.size(), std::min(1024, 64 * (generation + 1)));
    EXPECT_EQ(back.gpus[63].gpu.uuid, "GPU-" + std::to_string(generation) + "-63");
    EXPECT_EQ(back.gpus.back().absence, Absence::kDeviceGone);
  }
}

TEST(Sampler, processes_that_the_driver_does_not_name_are_told) {
  Watch watch(hopper(0) + "gpu 0 fails nvmlDeviceGetComputeRunningProcesses_v3 = 4\n");
  EXPECT_NE(watch.at(0).processes_problem.find("does not let this user"), std::string::npos);
}

}  // namespace
}  // namespace flopsight::nvml
