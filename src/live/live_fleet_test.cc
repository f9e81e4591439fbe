#include <bit>
#include <limits>
#include <random>

#include "live/test_live.h"

namespace flopsight::live {
namespace {

TEST_F(Live, a_minute_is_closed_when_its_gpu_is_heard_the_late_window_after_it) {
  const LabelSetId a = gpu("GPU-a", "train-0");
  for (int t = 0; t < 180; t += 15) scrape(a, t, 0.5);
  close();
  EXPECT_TRUE(cells.empty());
  scrape(a, 180, 0.5);
  close();
  ASSERT_EQ((slots[{"GPU-a", "train-0"}].size()), 1U);
  const Cell& cell = total("GPU-a", "train-0");
  EXPECT_EQ(cell[CellField::kMeasured], 60'000'000);
  EXPECT_NEAR(seconds(cell, CellField::kDelivered), 60 * 0.5 * 1755 / 1830, 1e-3);
  EXPECT_EQ(cell[CellField::kSampleCount], 4);
}

TEST_F(Live, a_late_sample_inside_the_window_counts_as_if_it_had_come_in_time) {
  const LabelSetId a = gpu("GPU-a", "train-0");
  for (int t = 0; t < 120; t += 15) {
    if (t != 30) scrape(a, t, 0.4);
  }
  scrape(a, 30, 0.8);
  for (int t = 120; t <= 180; t += 15) scrape(a, t, 0.4);
  close();
  EXPECT_NEAR(seconds(total("GPU-a", "train-0"), CellField::kTensor), 45 * 0.4 + 15 * 0.8, 1e-3);
}

TEST_F(Live, a_sample_of_a_closed_minute_is_too_old_and_changes_nothing) {
  const LabelSetId a = gpu("GPU-a");
  for (int t = 0; t <= 240; t += 15) scrape(a, t, 0.4);
  close();
  const Cell before = total("GPU-a");
  EXPECT_EQ(add(a, kTensor, 59.999, 1.0), AddResult::kTooOld);
  EXPECT_EQ(add(a, kTensor, 120, 0.4), AddResult::kDuplicate);
  close();
  EXPECT_EQ(total("GPU-a"), before);
}

TEST_F(Live, a_backlog_of_hours_sent_in_order_is_rolled_up_whole) {
  const LabelSetId a = gpu("GPU-a"), b = gpu("GPU-b");
  now = Instant{kStart + 7'200'000};
  scrape(b, 7200, 0.5);  // another GPU is up to date
  for (int t = 0; t <= 7200; t += 15) {
    scrape(a, t, 0.4);
    if (t % 300 == 0) close();
  }
  close(true);
  EXPECT_EQ(total("GPU-a")[CellField::kMeasured], 7'215'000'000);
}

TEST_F(Live, where_a_backlog_begins_is_known_before_it_is_closed) {
  EXPECT_FALSE(fleet.oldest_open());
  const LabelSetId a = gpu("GPU-a", "train-0"), b = gpu("GPU-b", "train-0");
  for (int t = 30; t < 4 * 3'600; t += 30) scrape(a, t, 0.5);
  scrape(b, 4 * 3'600, 0.5);
  EXPECT_EQ(fleet.oldest_open(), Instant{kStart + 30'000});
  close();
  EXPECT_EQ(fleet.oldest_open(), Instant{kStart + (4 * 3'600 - 180) * 1'000});
  close(true);
  EXPECT_FALSE(fleet.oldest_open()) << "all of them are closed out";
}

TEST_F(Live, a_backlog_is_closed_in_pieces_that_add_up) {
  const LabelSetId a = gpu("GPU-a", "train-0");
  for (int t = 0; t <= 3600; t += 15) scrape(a, t, 0.4);
  fleet.set_slots_at_once(10);
  int calls = 0;
  do {
    close(true);
    ++calls;
  } while (fleet.take_more());
  EXPECT_EQ(calls, 7);
  EXPECT_EQ(total("GPU-a", "train-0")[CellField::kMeasured], 3'615'000'000);
}

TEST_F(Live, a_time_further_ahead_than_allowed_is_refused) {
  const LabelSetId a = gpu("GPU-a");
  scrape(a, 0, 0.4);
  const auto at = [&](std::int64_t ahead) {
    return fleet.add(a, metric_use(kTensor), kTensor, Instant{now.unix_milliseconds + ahead}, 0.4, now, 1);
  };
  EXPECT_EQ(at(600'000), AddResult::kKept);
  EXPECT_EQ(at(600'001), AddResult::kTooNew);
}

TEST_F(Live, two_replicas_shifted_by_seconds_do_not_double_the_time) {
  const LabelSetId a = gpu("GPU-a", "train-0");
  for (int t = 0; t <= 600; t += 30) {
    scrape(a, t, 0.4);
    scrape(a, t + 7, 0.4);
  }
  close(true);
  EXPECT_NEAR(allocated(total("GPU-a", "train-0")), 607 + 23, 1e-6);
  EXPECT_NEAR(seconds(total("GPU-a", "train-0"), CellField::kTensor) /
                  seconds(total("GPU-a", "train-0"), CellField::kMeasured), 0.4, 1e-6);
}

TEST_F(Live, the_same_sample_twice_is_a_duplicate) {
  const LabelSetId a = gpu("GPU-a"), again = gpu("GPU-a");
  scrape(a, 0, 0.4);
  EXPECT_EQ(add(again, kTensor, 0, 0.4), AddResult::kDuplicate);
  EXPECT_EQ(fleet.count(AddResult::kDuplicate), 1U);
}

TEST_F(Live, a_stale_marker_ends_the_job_at_its_time) {
  const LabelSetId one = gpu("GPU-a", "one"), two = gpu("GPU-a", "two");
  const double stale = std::bit_cast<double>(std::uint64_t{0x7ff0000000000002});
  for (int t = 0; t < 60; t += 15) scrape(one, t, 0.4);
  add(one, kTensor, 60, stale);
  add(one, kClock, 60, stale);
  for (int t = 60; t <= 300; t += 15) scrape(two, t, 0.6);
  close(true);
  EXPECT_EQ(allocated(total("GPU-a", "one")), 60);
  EXPECT_EQ(allocated(total("GPU-a", "two")), 255);
  EXPECT_EQ(total("GPU-a", "two")[CellField::kHoldersMax], 1);
}

TEST_F(Live, a_stale_marker_of_one_replica_ends_nothing_while_the_other_goes_on) {
  const auto replica = [&](std::string_view name) {
    const std::vector<LabelView> labels = {{"UUID", "GPU-a"}, {"Hostname", "n1"}, {"gpu", "0"}, {"modelName", "NVIDIA H100 80GB HBM3"},
                                           {"pod", "train-0"}, {"prometheus_replica", name}};
    return fleet.bind(labels, "").value();
  };
  const LabelSetId one = replica("a"), two = replica("b");
  const double stale = std::bit_cast<double>(std::uint64_t{0x7ff0000000000002});
  const auto end = [&](LabelSetId labels, double t) {
    for (const std::string_view metric : {kTensor, kClock, kPower}) add(labels, metric, t, stale);
  };
  for (int t = 0; t < 60; t += 15) {
    scrape(one, t, 0.4);
    scrape(two, t + 7, 0.4);
  }
  // In batches, whose order is not that of time.
  for (int t = 60; t < 120; t += 15) scrape(two, t + 7, 0.4);
  for (int t = 60; t < 90; t += 15) scrape(one, t, 0.4);
  end(one, 90);
  end(one, 120);
  for (int t = 120; t < 300; t += 15) scrape(two, t + 7, 0.4);
  // The last one that tells of it ends it.
  end(two, 307);
  for (int t = 315; t < 600; t += 15) add(gpu("GPU-a"), kPower, t, 100);
  close(true);
  EXPECT_NEAR(allocated(total("GPU-a", "train-0")), 307, 1e-6);
  EXPECT_NEAR(seconds(total("GPU-a", "train-0"), CellField::kMeasured), 307, 1e-6);
}

TEST_F(Live, time_shared_by_two_pods_is_split_and_counts_once) {
  const LabelSetId one = gpu("GPU-a", "one"), two = gpu("GPU-a", "two");
  for (int t = 0; t <= 300; t += 15) {
    scrape(one, t, 0.4);
    scrape(two, t, 0.4);
  }
  close(true);
  EXPECT_NEAR(allocated(total("GPU-a", "one")), 157.5, 1e-5);
  EXPECT_NEAR(allocated(total("GPU-a", "two")), 157.5, 1e-5);
  EXPECT_EQ(total("GPU-a", "one")[CellField::kHoldersMax], 2);
  // Of the readings of the clock each has its part, and both have those of the GPU.
  for (const CellField field : {CellField::kClockBusyCount, CellField::kClockDifferenceCount}) {
    const std::int64_t first = total("GPU-a", "one")[field], second = total("GPU-a", "two")[field];
    EXPECT_EQ(first + second, field == CellField::kClockBusyCount ? 21 : 20);
    EXPECT_LE(std::abs(first - second), 4);
  }
  EXPECT_EQ(quality.count("shared_gpu"), (slots[{"GPU-a", "one"}].size()));
}

TEST_F(Live, an_hour_away_is_no_unmeasured_time_and_half_an_hour_is) {
  const LabelSetId a = gpu("GPU-a", "train-0");
  for (int t = 0; t <= 600; t += 15) scrape(a, t, 0.4);
  for (int t = 2400; t <= 3000; t += 15) scrape(a, t, 0.4);
  for (int t = 10'000; t <= 10'600; t += 15) scrape(a, t, 0.4);
  close(true);
  const Cell& cell = total("GPU-a", "train-0");
  EXPECT_NEAR(allocated(cell), 3015 + 615, 1e-6);
  EXPECT_NEAR(allocated(cell) - seconds(cell, CellField::kMeasured), 2400 - 615, 1e-6);
}

TEST_F(Live, a_silent_gpu_is_closed_out_after_the_idle_time_and_goes_on_later) {
  const LabelSetId a = gpu("GPU-a", "train-0");
  for (int t = 0; t <= 90; t += 15) scrape(a, t, 0.4);
  now = Instant{kStart + 90'000 + 600'000};
  close();
  EXPECT_TRUE(cells.empty());
  EXPECT_TRUE(fleet.oldest_segment(1).has_value());
  now = Instant{now.unix_milliseconds + 1};
  close();
  EXPECT_EQ(allocated(total("GPU-a", "train-0")), 105);
  EXPECT_FALSE(fleet.oldest_segment(1).has_value());
  for (int t = 900; t <= 990; t += 15) scrape(a, t, 0.4);
  close(true);
  // The gap between belongs to the job that held the GPU on both sides, from the next slot on.
  EXPECT_EQ(allocated(total("GPU-a", "train-0")), 105 + (1005 - 120));
}

TEST_F(Live, a_gpu_known_by_place_and_later_by_uuid_is_one) {
  const LabelView by_place[] = {{"Hostname", "n1"}, {"gpu", "3"}};
  const LabelView by_uuid[] = {{"Hostname", "n1"}, {"gpu", "3"}, {"UUID", "GPU-x"}};
  const LabelSetId a = fleet.bind(by_place, "").value(), b = fleet.bind(by_uuid, "").value();
  add(a, kClock, 0, 1755);
  add(b, kTensor, 0, 0.5);
  EXPECT_EQ(fleet.gpu_count(), 1U);
  EXPECT_EQ(fleet.identity(0).uuid, "GPU-x");
}

TEST_F(Live, gpus_with_masked_uuids_are_told_apart_by_host_and_index) {
  constexpr std::string_view kMasked = "GPU-00000000-0000-0000-0000-000000000000";
  for (const std::string_view index : {"0", "1", "2", "3"}) {
    const LabelView labels[] = {{"UUID", kMasked}, {"Hostname", "n1"}, {"gpu", index}, {"modelName", "NVIDIA H100 80GB HBM3"}, {"pod", "p"}};
    const LabelSetId one = fleet.bind(labels, "").value();
    for (int t = 0; t <= 300; t += 15) scrape(one, t, 0.5);
  }
  close();
  EXPECT_EQ(fleet.gpu_count(), 4U);
  EXPECT_EQ(allocated(total("", "p")), 4 * 180);
}

TEST_F(Live, series_of_a_masked_gpu_that_lack_its_index_are_its_own) {
  for (const std::string_view host : {"n1", "n2"}) {
    const LabelView named[] = {{"uuid", "00000000-0000-0000-0000-000000000000"}, {"Hostname", host}, {"index", "0"}};
    const bool is_named_first = host == "n1";
    if (is_named_first) fleet.bind(named, "");
    fleet.bind({named, 2}, "");
    if (!is_named_first) fleet.bind(named, "");
  }
  EXPECT_EQ(fleet.gpu_count(), 2U);
  EXPECT_EQ(fleet.identity(1).index, "0");
}

TEST_F(Live, every_limit_holds_at_and_one_past_it) {
  LiveOptions options;
  options.gpus_max = 1;
  options.label_sets_max = 3;
  options.rows_per_gpu_max = 2;
  LiveFleet small(options, jobs::LabelRules::builtin(), quality);
  const LabelView a[] = {{"UUID", "GPU-a"}}, b[] = {{"UUID", "GPU-b"}};
  const LabelSetId first = small.bind(a, "").value(), second = small.bind(b, "").value();
  const auto put = [&](LabelSetId set, std::int64_t t) {
    return small.add(set, metric_use(kTensor), kTensor, Instant{kStart + t}, 0.5, Instant{kStart + t}, 1);
  };
  EXPECT_EQ(put(first, 0), AddResult::kKept);
  EXPECT_EQ(put(second, 0), AddResult::kLimit);
  EXPECT_EQ(put(first, 15'000), AddResult::kKept);
  EXPECT_EQ(put(first, 30'000), AddResult::kRowsFull);
  EXPECT_TRUE(small.bind(a, "").has_value());
  EXPECT_FALSE(small.bind(a, "").has_value());
}

TEST_F(Live, what_was_closed_before_a_restart_is_context_and_not_counted_again) {
  const LabelSetId a = gpu("GPU-a", "train-0");
  for (int t = 0; t <= 600; t += 15) scrape(a, t, t < 300 ? 0.4 : 0.6);
  close(true);
  const Cell whole = total("GPU-a", "train-0");
  cells.clear();
  LiveFleet again(late_by_two_minutes(), jobs::LabelRules::builtin(), quality);
  again.restore = [](const samples::GpuIdentity&) { return ClosedUntil{Instant{kStart + 300'000}}; };
  again.set_replaying(true);
  const LabelView labels[] = {{"UUID", "GPU-a"}, {"Hostname", "n1"}, {"gpu", "0"},
                              {"modelName", "NVIDIA H100 80GB HBM3"}, {"pod", "train-0"}};
  const LabelSetId b = again.bind(labels, "").value();
  for (int t = 195; t <= 600; t += 15) {
    again.add(b, metric_use(kTensor), kTensor, Instant{kStart + t * 1000}, t < 300 ? 0.4 : 0.6, now, 1);
    again.add(b, metric_use(kClock), kClock, Instant{kStart + t * 1000}, 1755, now, 1);
  }
  Cell second_half;
  again.close(now, [&](const ClosedCell& closed) { second_half.merge(closed.cell); }, true);
  EXPECT_EQ(second_half[CellField::kMeasured], 315'000'000);
  EXPECT_NEAR(seconds(second_half, CellField::kTensor), 315 * 0.6, 1e-3);
  EXPECT_EQ(whole[CellField::kMeasured], 615'000'000);
}

struct Truth {
  std::map<std::string, Cell> live;
  std::map<std::string, Cell> at_once;
};

// An hour of random scrapes, through the live fleet and, the oracle, integrated at once as a report does.
Truth both_ways(unsigned seed, bool with_gaps, bool stream, samples::QualityLog& quality) {
  std::mt19937_64 random(seed);
  LiveFleet live(late_by_two_minutes(), jobs::LabelRules::builtin(), quality);
  jobs::HolderTable holders;
  samples::GpuTimeline timeline;
  timeline.gpu.uuid = "GPU-a";
  timeline.gpu.model_raw = "NVIDIA H100 80GB HBM3";
  std::vector<LabelSetId> sets;
  for (const char* pod : {"", "one", "two"}) {
    std::vector<LabelView> labels = {{"UUID", "GPU-a"}, {"modelName", "NVIDIA H100 80GB HBM3"}};
    if (*pod != 0) labels.push_back({"pod", pod});
    sets.push_back(live.bind(labels, "").value());
  }
  Truth truth;
  const auto sink = [&](const ClosedCell& closed) {
    truth.live[closed.holder ? live.holders().at(*closed.holder).job : ""].merge(closed.cell);
  };
  std::int64_t t = 0;
  std::size_t who = 1;
  while (t < 3'600'000) {
    samples::GpuScrape scrape;
    scrape.time = Instant{kStart + t};
    if (random() % 20 == 0) who = random() % 3;
    if (who > 0) {
      scrape.holders = {holders.intern({who == 1 ? "one" : "two", "", "", "", "", "exported_pod"})};
    }
    const auto put = [&](Metric metric, std::string_view name, double value, double scale) {
      scrape.reading(metric) = value * scale;
      live.add(sets[who], metric_use(name), name, scrape.time, value, scrape.time, 1);
    };
    put(Metric::kTensorActive, kTensor, static_cast<double>(random() % 1000) / 1024, 1);
    if (random() % 10 != 0) put(Metric::kSmClock, kClock, 1024 + static_cast<double>(random() % 64) * 8, 1e6);
    put(Metric::kPower, kPower, 300 + static_cast<double>(random() % 300), 1);
    timeline.scrapes.push_back(scrape);
    t += with_gaps && random() % 30 == 0 ? 90'000 : with_gaps && random() % 8 == 0 ? 30'000 : 15'000;
    if (stream && random() % 16 == 0) live.close(scrape.time, sink);
  }
  live.close(Instant{kStart + t}, sink, true);
  rollups::FleetOptions options;
  const rollups::Fleet fleet = rollups::roll_fleet({timeline}, options, {}, holders, quality);
  for (const rollups::Portion& portion : fleet.gpus.at(0).portions) {
    truth.at_once[portion.holder ? holders.at(*portion.holder).job : ""].merge(
        rollups::cell_of(portion.totals, {}));
  }
  return truth;
}

void expect_same(const Truth& truth, double tolerance_seconds) {
  ASSERT_EQ(truth.live.size(), truth.at_once.size());
  for (const auto& [job, once] : truth.at_once) {
    SCOPED_TRACE("job " + job);
    const Cell& live = truth.live.at(job);
    for (const CellField field : {CellField::kMeasured, CellField::kDelivered, CellField::kTensor,
                                  CellField::kTensorKnown, CellField::kClockKnown, CellField::kEnergyKnown}) {
      EXPECT_NEAR(static_cast<double>(live[field]) / 1e6, static_cast<double>(once[field]) / 1e6,
                  tolerance_seconds) << rollups::cell_fields()[static_cast<std::size_t>(field)].name;
    }
    EXPECT_NEAR(static_cast<double>(live.allocated_microseconds()) / 1e6,
                static_cast<double>(once.allocated_microseconds()) / 1e6, tolerance_seconds);
    EXPECT_NEAR(static_cast<double>(live[CellField::kEnergy]), static_cast<double>(once[CellField::kEnergy]),
                700 * tolerance_seconds + 60);
    EXPECT_EQ(live[CellField::kOfuMax], once[CellField::kOfuMax]);
    EXPECT_EQ(live[CellField::kOfuLast], once[CellField::kOfuLast]);
  }
}

// Rounding: half of 100 microseconds for each of sixty cells.
constexpr double kRoundingSeconds = 60 * 50e-6;

TEST_F(Live, slot_by_slot_gives_what_one_integral_over_all_samples_gives) {
  for (unsigned seed = 1; seed <= 40; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    expect_same(both_ways(seed, true, false, quality), kRoundingSeconds);
  }
}

TEST_F(Live, closing_as_the_samples_come_gives_the_same_where_none_are_missing) {
  for (unsigned seed = 1; seed <= 40; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    expect_same(both_ways(seed, false, true, quality), kRoundingSeconds);
  }
}

TEST_F(Live, gaps_met_while_closing_differ_by_no_more_than_a_step_in_each_of_a_few_places) {
  // How long a sample holds before a gap follows from the steps around it, of which fewer are known in time.
  for (unsigned seed = 1; seed <= 40; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const Truth truth = both_ways(seed, true, true, quality);
    double live = 0, once = 0;
    for (const auto& [job, cell] : truth.live) live += static_cast<double>(cell[CellField::kMeasured]) / 1e6;
    for (const auto& [job, cell] : truth.at_once) once += static_cast<double>(cell[CellField::kMeasured]) / 1e6;
    EXPECT_NEAR(live, once, 4 * 15.0);
  }
}

}  // namespace
}  // namespace flopsight::live
