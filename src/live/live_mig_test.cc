// Instances of divided GPUs (MIG), and what they leave over.
#include "live/test_live.h"

namespace flopsight::live {
namespace {

TEST_F(Live, mig_slices_weigh_their_share_and_the_rest_is_unsplit) {
  const LabelSetId one = gpu("GPU-a", "one", "7", "3g.40gb"), two = gpu("GPU-a", "two", "9", "2g.20gb");
  for (int t = 0; t <= 300; t += 15) {
    scrape(one, t, 0.7);
    scrape(two, t, 0.7);
  }
  close();
  EXPECT_NEAR(allocated(total("GPU-a7", "one")), 180 * 3 / 7.0, 1e-4);
  EXPECT_NEAR(allocated(total("GPU-a9", "two")), 180 * 2 / 7.0, 1e-4);
  EXPECT_NEAR(static_cast<double>(total("GPU-a").absent(samples::AbsentReason::kUnsplitInstances)) / 1e6,
              180 * 2 / 7.0, 1e-4);
}

TEST_F(Live, an_instance_that_is_hours_behind_holds_up_few_slots_and_its_samples_make_their_rests_less) {
  constexpr int kMinutes = 300, kHeldUp = 256;
  const LabelSetId one = gpu("GPU-a", "one", "7", "3g.40gb"), two = gpu("GPU-a", "two", "9", "2g.20gb");
  now = Instant{kStart} + Seconds(60 * kMinutes);  // so that none is silent
  for (int t = 0; t < 60 * kMinutes; t += 15) scrape(one, t, 0.7);
  scrape(two, 0, 0.7);
  close();
  const auto written = [&] { return slots[{"GPU-a", ""}].size(); };
  EXPECT_EQ(written(), (slots[{"GPU-a7", "one"}].size() - kHeldUp));
  for (int t = 15; t < 60 * kMinutes; t += 15) scrape(two, t, 0.7);
  close(true);
  EXPECT_EQ(written(), kMinutes);
  for (const auto& [slot, cell] : slots[{"GPU-a", ""}]) EXPECT_NEAR(allocated(cell), 60 * 2 / 7.0, 1e-4) << slot;
  EXPECT_NEAR(allocated(total("GPU-a9", "two")), 60 * kMinutes * 2 / 7.0, 1e-2);
}

TEST(LiveMig, what_comes_late_of_an_instance_is_left_out_and_said_where_rests_are_final) {
  LiveOptions options = late_by_two_minutes();
  options.rests_are_final = true;
  samples::QualityLog quality;
  LiveFleet fleet{options, jobs::LabelRules::builtin(), quality};
  const auto bind = [&](std::string_view instance) {
    const LabelView labels[] = {{"UUID", "GPU-a"}, {"Hostname", "n1"}, {"gpu", "0"}, {"modelName", "NVIDIA H100 80GB HBM3"}, {"GPU_I_ID", instance},
                                {"GPU_I_PROFILE", "3g.40gb"}};
    return fleet.bind(labels, "").value();
  };
  const LabelSetId one = bind("1"), two = bind("2");
  const auto scrape = [&](LabelSetId labels, int t, Instant now) {
    for (const auto& [metric, value] : {std::pair(kTensor, 0.5), std::pair(kClock, 1755.0)}) {
      fleet.add(labels, metric_use(metric), metric, Instant{kStart} + Seconds(t), value, now, 1);
    }
  };
  std::map<std::int64_t, double> seconds;
  const auto sink = [&](const ClosedCell& closed) { seconds[closed.slot_start.unix_milliseconds] += static_cast<double>(closed.cell.allocated_microseconds()) / 1e6; };
  for (int t = 0; t < 1'800; t += 15) {
    scrape(one, t, Instant{kStart} + Seconds(t));
    if (t < 120) scrape(two, t, Instant{kStart} + Seconds(t));
  }
  fleet.close(Instant{kStart} + Seconds(1'800), sink);
  fleet.close(Instant{kStart} + Seconds(1'800), sink);
  EXPECT_EQ(quality.count("late_instance"), 0U);
  for (int t = 120; t < 1'800; t += 15) scrape(two, t, Instant{kStart} + Seconds(1'800));
  fleet.close(Instant{kStart} + Seconds(1'800), sink, true);
  EXPECT_GT(quality.count("late_instance"), 0U);
  EXPECT_EQ(seconds.size(), 30U);
  for (const auto& [slot, allocated] : seconds) EXPECT_NEAR(allocated, 60, 1e-4) << slot;
}

TEST_F(Live, of_a_divided_gpu_whose_instances_do_not_come_back_after_a_restart_the_rest_is_written_and_no_slot_twice) {
  fleet.restore_divided = [](const samples::GpuIdentity&) {
    return std::optional(rollups::DividedGpu{Instant{kStart}, {{Instant{kStart + 60'000}, 25'000'000}}});
  };
  const LabelSetId whole = gpu("GPU-a");
  for (int t = -120; t <= 360; t += 15) add(whole, kClock, t, 1755);
  close();
  const auto& by_slot = slots[{"GPU-a", ""}];
  EXPECT_FALSE(by_slot.contains(kStart - 60'000)) << "it was written";
  EXPECT_NEAR(allocated(by_slot.at(kStart + 60'000)), 35, 1e-4) << "what its instances left over";
  EXPECT_NEAR(allocated(by_slot.at(kStart + 120'000)), 60, 1e-4) << "it is whole";
}

TEST_F(Live, an_instance_takes_the_clock_from_its_gpu_which_is_no_gpu_beside_it) {
  const LabelSetId whole = gpu("GPU-a"), one = gpu("GPU-a", "one", "7", "7g.80gb");
  for (int t = 0; t <= 300; t += 15) {
    add(whole, kClock, t, 1830);
    add(one, kTensor, t, 0.5);
  }
  close();
  EXPECT_NEAR(seconds(total("GPU-a7", "one"), CellField::kDelivered), 90, 1e-3);
  EXPECT_EQ(allocated(total("GPU-a")), 0);
}

TEST_F(Live, an_instance_of_a_gpu_with_a_masked_uuid_has_the_rest_of_its_index_beside_it) {
  const LabelView labels[] = {{"UUID", "GPU-xxxxxxxx-xxxx"}, {"Hostname", "n1"}, {"gpu", "3"}, {"modelName", "NVIDIA H100 80GB HBM3"},
                              {"GPU_I_ID", "1"}, {"GPU_I_PROFILE", "3g.40gb"}};
  const LabelSetId one = fleet.bind(labels, "").value();
  for (int t = 0; t <= 300; t += 15) scrape(one, t, 0.5);
  close();
  EXPECT_NEAR(allocated(total("1")), 180 * 3 / 7.0, 1e-4);
  EXPECT_NEAR(static_cast<double>(total("").absent(samples::AbsentReason::kUnsplitInstances)) / 1e6, 180 * 4 / 7.0, 1e-4);
}

TEST_F(Live, an_instance_that_only_its_own_uuid_names_is_no_whole_gpu) {
  const LabelView labels[] = {{"gpu", "MIG-265a"}, {"Hostname", "n1"}, {"gpu_type", "NVIDIA A100-SXM4-40GB"}};
  const LabelSetId one = fleet.bind(labels, "").value();
  for (int t = 0; t <= 300; t += 15) scrape(one, t, 0.5);
  close();
  EXPECT_EQ(fleet.gpu_count(), 1U);
  EXPECT_EQ(allocated(total("MIG-265aMIG-265a")), 0);
  EXPECT_EQ(quality.count("mig_profile_unknown"), 1U);
}

}  // namespace
}  // namespace flopsight::live
