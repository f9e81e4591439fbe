#include <gtest/gtest.h>

#include <cmath>

#include "detect/faults.h"
#include "detect/job.h"

namespace flopsight::detect {
namespace {

using rollups::Cell;
using rollups::CellField;
using samples::AbsentReason;

constexpr std::int64_t kMinute = 60'000;
units::Instant at(std::int64_t minute) { return units::Instant{1'767'225'600'000 + minute * kMinute}; }

// A GPU that trains, unlike its neighbours by less than a percent.
MinutePoint working(std::int64_t minute, std::uint32_t gpu = 0) {
  MinutePoint out;
  const double off = 1 + 0.004 * std::sin(static_cast<double>(minute) + 3.0 * gpu);
  out.start = at(minute);
  out.allocated_seconds = out.measured_seconds = 60;
  out.tensor_ratio = 0.4;
  out.ofu_ratio = 0.38 * off;
  out.sm_ratio = 0.8 * off;
  out.clock_hertz = 1.7e9 * off;
  out.power_watts = 600 * off;
  out.link_bytes_per_second = 2e10;
  out.thermal_ratio = out.power_brake_ratio = out.power_cap_ratio = out.setting_ratio = 0;
  return out;
}
MinutePoint unmeasured(std::int64_t minute, AbsentReason reason) {
  MinutePoint out;
  out.start = at(minute);
  out.allocated_seconds = 60;
  out.absent = reason;
  return out;
}

const std::vector<std::string> kGpus = {"g0", "g1", "g2", "g3", "g4", "g5", "g6", "g7", "g8", "g9", "g10", "g11", "g12", "g13", "g14", "g15"};
const std::vector<std::string> kHosts = {"h0", "h1"};
const SubjectNames kNames{[](std::uint32_t gpu) { return kGpus[gpu]; }, kHosts};

// Sixteen GPUs on two hosts; `change` makes one of them, or several, different from minute 60 on.
template <typename Change>
std::vector<GpuMinute> minute_of_job(std::int64_t minute, Change change) {
  std::vector<GpuMinute> out;
  for (std::uint32_t gpu = 0; gpu < 16; ++gpu) {
    GpuMinute it{gpu, gpu / 8, false, working(minute, gpu)};
    if (minute >= 60) change(it);
    out.push_back(it);
  }
  return out;
}
template <typename Change>
std::vector<Finding> peers_after(int minutes, Change change) {
  PeerDetector detector;
  for (std::int64_t minute = 0; minute < 60 + minutes; ++minute) detector.add(minute_of_job(minute, change));
  return detector.findings("job", kNames);
}
template <typename Change>
std::vector<Finding> faults_after(int minutes, Change change) {
  FaultDetector detector;
  for (std::int64_t minute = 0; minute < 60 + minutes; ++minute) detector.add(minute_of_job(minute, change));
  return detector.findings(kNames);
}

TEST(Point, of_a_cell_what_is_known_has_a_mean_and_what_is_not_has_none) {
  Cell cell;
  cell[CellField::kMeasured] = cell[CellField::kTensorKnown] = cell[CellField::kClockKnown] = cell[CellField::kEventKnown] = 54'000'000;
  cell[CellField::kDelivered] = cell[CellField::kTensor] = 27'000'000;
  cell[CellField::kClock] = 54 * 1'500;
  cell[static_cast<CellField>(static_cast<int>(CellField::kEventFirst) + 5)] = 54'000'000;
  cell.absent(AbsentReason::kGap) = 6'000'000;
  const MinutePoint point = point_of(cell, at(0));
  EXPECT_EQ(point.allocated_seconds, 60);
  EXPECT_NEAR(*point.ofu_ratio, 0.5, 1e-12);
  EXPECT_NEAR(*point.clock_hertz, 1.5e9, 1);
  EXPECT_EQ(*point.thermal_ratio, 1);
  EXPECT_FALSE(point.power_watts || point.sm_ratio || point.link_bytes_per_second || point.absent);
}

TEST(Point, a_minute_of_which_a_third_is_missing_has_no_mean_and_one_of_which_most_is_has_a_reason) {
  Cell cell;
  cell[CellField::kMeasured] = 40'000'000;
  cell[CellField::kDelivered] = 20'000'000;
  cell.absent(AbsentReason::kFrozen) = 20'000'000;
  EXPECT_FALSE(point_of(cell, at(0)).ofu_ratio || point_of(cell, at(0)).absent);
  cell.absent(AbsentReason::kFrozen) = 50'000'000;
  EXPECT_EQ(point_of(cell, at(0)).absent, AbsentReason::kFrozen);
  EXPECT_FALSE(point_of(Cell(), at(0)).ofu_ratio);
}

TEST(Point, a_history_keeps_what_causes_are_told_apart_by_and_no_value_for_what_is_not_known) {
  MinutePoint point;
  point.start = units::Instant{123 * 60'000};
  point.measured_seconds = 480;
  point.ofu_ratio = 0.4123456;
  point.sm_ratio = 0.9;
  point.clock_hertz = 1.755e9;
  point.link_bytes_per_second = 3.3e11;
  point.thermal_ratio = 0.0;
  point.setting_ratio = 1.0;
  const MinutePoint kept = KeptMinute(point).point();
  EXPECT_EQ(kept.start, point.start);
  EXPECT_EQ(kept.measured_seconds, 480);
  EXPECT_NEAR(*kept.ofu_ratio, 0.4123456, 0.4123456 / 4096);
  EXPECT_NEAR(*kept.sm_ratio, 0.9, 1e-5);
  EXPECT_NEAR(*kept.clock_hertz, 1.755e9, 5e4);
  EXPECT_NEAR(*kept.link_bytes_per_second, 3.3e11, 3.3e11 / 256);
  EXPECT_EQ(kept.thermal_ratio, 0.0);
  EXPECT_EQ(kept.setting_ratio, 1.0);
  EXPECT_FALSE(kept.tensor_ratio || kept.power_cap_ratio || kept.power_brake_ratio);
  point.link_bytes_per_second = std::nullopt;
  EXPECT_FALSE(KeptMinute(point).point().link_bytes_per_second);
  EXPECT_LE(sizeof(KeptMinute), 20U);  // 120 of them a job
}

TEST(Point, a_history_keeps_ofu_and_measured_time_of_any_job_to_eleven_bits) {
  MinutePoint point;
  for (const double ofu_ratio : {0.0, 1e-6, 0.02, 0.1, 0.4999999, 0.5, 1.0, 1.7, 1'999.0}) {
    for (const double seconds : {0.0, 0.03125, 59.7, 60.0, 2'047.9, 2'048.0, 6'000.0, 60.0 * 2'000'000, 1e11}) {
      point.ofu_ratio = ofu_ratio;
      point.measured_seconds = seconds;
      const KeptMinute kept(point);
      EXPECT_NEAR(kept.ofu_ratio(), ofu_ratio, ofu_ratio / 2048 + 1e-9);
      EXPECT_NEAR(kept.measured_seconds(), seconds, seconds / 2048);
    }
  }
}

TEST(Recent, keeps_the_last_ones_in_as_little_room_as_that_takes) {
  Recent<int> recent(5);
  for (int i = 0; i < 12; ++i) recent.push_back(i);
  EXPECT_EQ(std::vector<int>(recent.begin(), recent.end()), (std::vector<int>{7, 8, 9, 10, 11}));
  recent.drop_while([](int i) { return i < 9; });
  EXPECT_EQ(recent.front(), 9);
  EXPECT_EQ(recent.back(), 11);
  recent.drop_while([](int) { return true; });
  EXPECT_TRUE(recent.empty());
}

TEST(Key, is_the_matter_and_its_subject_and_two_subjects_never_share_one) {
  Finding finding;
  finding.job = "ns/a";
  EXPECT_EQ(finding_key(finding), "regression/job=ns%2Fa");
  Finding other;
  other.job = "ns";
  other.host = "a";
  EXPECT_NE(finding_key(finding), finding_key(other));
  other.first = at(5);
  Finding later = other;
  later.first = at(50);
  EXPECT_EQ(finding_key(other), finding_key(later));
}

TEST(Peers, gpus_that_are_alike_shared_split_or_idle_accuse_nobody) {
  EXPECT_TRUE(peers_after(60, [](GpuMinute&) {}).empty());
  const auto slow = [](GpuMinute& it) {
    if (it.gpu == 3) it.point.clock_hertz = 1e9;
  };
  EXPECT_TRUE(peers_after(60, [&](GpuMinute& it) { slow(it), it.point.shared = true; }).empty());
  EXPECT_TRUE(peers_after(60, [&](GpuMinute& it) { slow(it), it.mig = true; }).empty());
  EXPECT_TRUE(peers_after(60, [&](GpuMinute& it) { slow(it), it.point.tensor_ratio = 0.01; }).empty());
}

TEST(Peers, blank_frozen_paused_and_unseen_gpus_are_no_stragglers) {
  for (const AbsentReason reason : {AbsentReason::kBlank, AbsentReason::kFrozen, AbsentReason::kProfilerPause, AbsentReason::kNotSeen}) {
    EXPECT_TRUE(peers_after(60, [&](GpuMinute& it) {
                  if (it.gpu == 3) it.point = unmeasured(it.point.start.unix_milliseconds / kMinute, reason);
                }).empty());
  }
}

TEST(Peers, a_gpu_at_a_lower_clock_is_named_after_eight_minutes_from_the_first_on) {
  const auto slow = [](GpuMinute& it) {
    if (it.gpu == 3) it.point.clock_hertz = 1.2e9;
  };
  EXPECT_TRUE(peers_after(7, slow).empty());
  const auto found = peers_after(8, slow);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].kind, FindingKind::kSlowClock);
  EXPECT_EQ(found[0].gpu, "g3");
  EXPECT_EQ(found[0].host, "h0");
  EXPECT_EQ(found[0].first, at(60));
  EXPECT_NEAR(found[0].cost->value, 8.0 / 60 * (1 - 1.2 / 1.7), 0.002);
}

TEST(Peers, the_gpu_that_never_waits_is_the_straggler_and_the_job_pays) {
  const auto found = peers_after(30, [](GpuMinute& it) { it.point.sm_ratio = it.gpu == 9 ? 0.95 : *it.point.sm_ratio - 0.1; });
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].kind, FindingKind::kStraggler);
  EXPECT_EQ(found[0].gpu, "g9");
  EXPECT_NEAR(found[0].cost->value, 16 * 0.5 * (1 - 0.7 / 0.95), 0.05);
}

TEST(Peers, four_slow_gpus_of_eight_on_a_host_are_one_finding_of_the_host) {
  const auto found = peers_after(20, [](GpuMinute& it) {
    if (it.gpu >= 8 && it.gpu < 12) it.point.clock_hertz = 1.2e9;
  });
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].host, "h1");
  EXPECT_EQ(found[0].gpu, "");
}

TEST(Peers, a_finding_ends_when_its_sign_has_gone) {
  PeerDetector detector;
  for (std::int64_t minute = 0; minute < 120; ++minute) {
    detector.add(minute_of_job(minute, [&](GpuMinute& it) {
      if (it.gpu == 3 && minute < 80) it.point.clock_hertz = 1.2e9;
    }));
    EXPECT_EQ(detector.findings("job", kNames).empty(), minute < 67 || minute >= 92) << minute;
  }
}

TEST(Faults, what_comes_again_after_it_was_over_counts_from_the_beginning) {
  FaultDetector detector;
  std::int64_t at = 0;
  const auto minutes = [&](int count, double thermal) {
    for (int i = 0; i < count; ++i) {
      GpuMinute gpu;
      gpu.point.start = units::Instant{at++ * 60'000};
      gpu.point.allocated_seconds = gpu.point.measured_seconds = 60;
      gpu.point.ofu_ratio = 0.3;
      gpu.point.thermal_ratio = thermal;
      detector.add({&gpu, 1});
    }
    const std::vector<std::string> names{"a"};
    return detector.findings({[&](std::uint32_t) { return names[0]; }, names}).size();
  };
  EXPECT_EQ(minutes(4, 1), 0U);
  EXPECT_EQ(minutes(4, 0), 0U);
  EXPECT_EQ(minutes(4, 1), 0U);
  EXPECT_EQ(minutes(1, 1), 1U);
  EXPECT_EQ(minutes(10, 0), 0U);
}

TEST(Faults, of_gpus_that_work_there_are_none) { EXPECT_TRUE(faults_after(60, [](GpuMinute&) {}).empty()); }

TEST(Faults, heat_and_the_power_brake_are_told_after_five_minutes) {
  const auto hot = [](GpuMinute& it) {
    if (it.gpu == 3) it.point.thermal_ratio = 0.9, it.point.clock_hertz = 1.275e9;
    if (it.gpu == 12) it.point.power_brake_ratio = 1;
  };
  EXPECT_TRUE(faults_after(4, hot).empty());
  const auto found = faults_after(5, hot);
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found[0].kind, FindingKind::kThermal);
  EXPECT_EQ(found[0].gpu, "g3");
  EXPECT_NEAR(found[0].cost->value, 5.0 / 60 * 0.25, 0.002);
  EXPECT_EQ(found[1].kind, FindingKind::kPowerBrake);
}

TEST(Faults, the_clock_and_the_reason_are_those_of_the_minutes_that_showed_it) {
  const auto found = faults_after(13, [](GpuMinute& it) {
    if (it.point.start >= at(70)) return;
    if (it.gpu == 3) it.point.thermal_ratio = 0.9, it.point.clock_hertz = 1.2e9;
    if (it.gpu == 9) it.point = unmeasured((it.point.start.unix_milliseconds - at(0).unix_milliseconds) / kMinute, AbsentReason::kNoTensorCounter);
  });
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found[0].evidence[0].value, 1.2e9F);
  EXPECT_NE(found[0].text.find("its SM clock was 1200 MHz"), std::string::npos) << found[0].text;
  EXPECT_EQ(found[1].kind, FindingKind::kCounterDead);
  EXPECT_NE(found[1].text.find("its tensor counter is gone"), std::string::npos) << found[1].text;
}

TEST(Faults, a_stuck_clock_is_told_from_a_capped_one_and_from_an_idle_one) {
  const auto kind_of = [](auto change) {
    const auto found = faults_after(15, [&](GpuMinute& it) {
      if (it.gpu == 3) it.point.clock_hertz = 0.9e9, change(it.point);
    });
    return found.empty() ? std::string_view("nothing") : info_of(found[0].kind).name;
  };
  EXPECT_EQ(kind_of([](MinutePoint&) {}), "stuck_clock");
  EXPECT_EQ(kind_of([](MinutePoint& point) { point.power_cap_ratio = 0.8; }), "power_capped");
  EXPECT_EQ(kind_of([](MinutePoint& point) { point.thermal_ratio = 0.8; }), "thermal");
  EXPECT_EQ(kind_of([](MinutePoint& point) { point.sm_ratio = 0.01; }), "nothing");
}

TEST(Faults, a_slowdown_by_the_hardware_alone_is_neither_heat_nor_the_brake_for_certain) {
  Cell cell;
  const auto under = [&](unsigned bit, std::int64_t seconds) { cell[static_cast<CellField>(static_cast<int>(CellField::kEventFirst) + static_cast<int>(bit))] = seconds * 1'000'000; };
  cell[CellField::kEventKnown] = cell[CellField::kMeasured] = 60'000'000;
  under(3, 60);
  EXPECT_EQ(*point_of(cell, at(0)).thermal_ratio, 0);
  EXPECT_EQ(*point_of(cell, at(0)).unnamed_slowdown_ratio, 1);
  under(6, 60);
  EXPECT_EQ(*point_of(cell, at(0)).thermal_ratio, 1);
  EXPECT_EQ(*point_of(cell, at(0)).unnamed_slowdown_ratio, 0);
  const auto found = faults_after(10, [](GpuMinute& it) {
    if (it.gpu == 3 && it.point.start >= at(60)) it.point.unnamed_slowdown_ratio = 1, it.point.clock_hertz = 1.3e9;  // not so low as to be stuck by itself
  });
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].kind, FindingKind::kStuckClock);
  EXPECT_EQ(found[0].text.find("by heat"), std::string::npos);
  EXPECT_NE(found[0].text.find("by the hardware's slowdown (0x8), which is for heat, the power brake or a fast trigger"), std::string::npos) << found[0].text;
}

TEST(Faults, each_way_to_be_unmeasured_is_its_own_finding_and_costs_nothing) {
  const auto kind_of = [](AbsentReason reason) {
    const auto found = faults_after(40, [&](GpuMinute& it) {
      if (it.gpu == 3) it.point = unmeasured((it.point.start.unix_milliseconds - at(0).unix_milliseconds) / kMinute, reason);
    });
    EXPECT_LE(found.size(), 1U);
    if (found.empty()) return std::string_view("nothing");
    EXPECT_FALSE(found[0].cost);
    EXPECT_EQ(found[0].first, at(60));
    return info_of(found[0].kind).name;
  };
  EXPECT_EQ(kind_of(AbsentReason::kBlank), "counter_dead");
  EXPECT_EQ(kind_of(AbsentReason::kContradicted), "counter_dead");
  EXPECT_EQ(kind_of(AbsentReason::kNoTensorCounter), "counter_dead");
  EXPECT_EQ(kind_of(AbsentReason::kFrozen), "counter_frozen");
  EXPECT_EQ(kind_of(AbsentReason::kProfilerPause), "profiler_pause");
  EXPECT_EQ(kind_of(AbsentReason::kGap), "unseen");
  EXPECT_EQ(kind_of(AbsentReason::kUncalibrated), "nothing");
}

TEST(Faults, a_gpu_that_never_had_a_counter_is_unmeasurable_and_not_dead) {
  FaultDetector detector;
  for (std::int64_t minute = 0; minute < 30; ++minute) {
    const GpuMinute gpu{0, 0, false, unmeasured(minute, AbsentReason::kNoTensorCounter)};
    detector.add({&gpu, 1});
  }
  const auto found = detector.findings(kNames);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].kind, FindingKind::kUnmeasurable);
}

MinutePoint idle(std::int64_t minute, double sm_ratio, double watts, std::optional<double> links) {
  MinutePoint out = working(minute);
  out.tensor_ratio = out.ofu_ratio = 0;
  out.sm_ratio = sm_ratio;
  out.power_watts = watts;
  out.link_bytes_per_second = links;
  return out;
}
template <typename Make>
std::optional<Stall> stall_after(int minutes, Make make) {
  StallDetector detector;
  for (std::int64_t minute = 0; minute < 60; ++minute) detector.add(working(minute));
  for (std::int64_t minute = 60; minute < 60 + minutes; ++minute) detector.add(make(minute));
  return detector.open();
}

TEST(Stall, waiting_kernels_little_power_and_silent_links_are_a_hang_after_five_minutes) {
  const auto hung = [](std::int64_t minute) { return idle(minute, 0.12, 150, std::nullopt); };
  EXPECT_FALSE(stall_after(4, hung));
  const auto stall = stall_after(5, hung);
  ASSERT_TRUE(stall);
  EXPECT_TRUE(stall->hang);
  EXPECT_EQ(stall->first, at(60));
  EXPECT_NEAR(stall->cost.value, 5.0 / 60, 1e-9);
}

TEST(Stall, without_one_of_the_three_signs_it_is_a_stall_after_twenty_minutes) {
  for (const MinutePoint& sign : {idle(0, 0.0, 150, std::nullopt), idle(0, 0.12, 500, std::nullopt), idle(0, 0.12, 150, 1e10)}) {
    const auto make = [&](std::int64_t minute) {
      MinutePoint out = sign;
      out.start = at(minute);
      return out;
    };
    EXPECT_FALSE(stall_after(19, make));
    const auto stall = stall_after(20, make);
    ASSERT_TRUE(stall);
    EXPECT_FALSE(stall->hang);
  }
}

TEST(Stall, unmeasured_minutes_and_jobs_that_never_worked_are_none) {
  EXPECT_FALSE(stall_after(60, [](std::int64_t minute) { return unmeasured(minute, AbsentReason::kBlank); }));
  StallDetector detector;
  for (std::int64_t minute = 0; minute < 200; ++minute) detector.add(idle(minute, 0.12, 150, std::nullopt));
  EXPECT_FALSE(detector.open());
}

TEST(Family, a_run_is_below_when_it_is_outside_of_the_others_and_not_among_few_or_scattered_ones) {
  const std::vector<double> others = {0.40, 0.41, 0.39, 0.40, 0.42};
  EXPECT_NEAR(family_shortfall(0.3, others)->size_ratio, 0.75, 1e-9);
  EXPECT_FALSE(family_shortfall(0.36, others));
  EXPECT_FALSE(family_shortfall(0.3, std::span(others).first(4)));
  EXPECT_FALSE(family_shortfall(0.3, std::vector<double>{0.2, 0.3, 0.4, 0.5, 0.6}));
}

TEST(Suspects, shares_of_clock_and_kernels_add_up_and_what_coincides_is_first) {
  std::vector<MinutePoint> history;
  for (std::int64_t minute = 0; minute < 60; ++minute) {
    MinutePoint point = working(0);
    point.start = at(minute);
    if (minute >= 30) {
      point.clock_hertz = *point.clock_hertz * 0.8;
      point.tensor_ratio = *point.tensor_ratio * 0.7;
      point.ofu_ratio = *point.ofu_ratio * 0.8 * 0.7;
      point.thermal_ratio = 0.9;
      point.link_bytes_per_second = *point.link_bytes_per_second * 0.7;
    }
    history.push_back(point);
  }
  const std::vector<LabelChange> changes = {{at(25), "image", "v1", "v2"}, {at(5), "image", "v0", "v1"}};
  std::vector<Suspect> suspects;
  for (const Coincidence& one : coincidences(at(30), {}, changes)) suspects.push_back(one.suspect);
  for (const Suspect& part : parts_of_drop(history, at(30))) suspects.push_back(part);
  ASSERT_EQ(suspects.size(), 3U);
  EXPECT_EQ(suspects[0].kind, SuspectKind::kLabelChange);
  EXPECT_FALSE(suspects[0].explained_ratio);
  EXPECT_EQ(suspects[1].kind, SuspectKind::kKernels);
  EXPECT_EQ(suspects[2].kind, SuspectKind::kClock);
  EXPECT_NE(suspects[2].text.find("heat"), std::string::npos);
  EXPECT_NEAR(*suspects[1].explained_ratio + *suspects[2].explained_ratio, 1, 1e-6);
}

// A job at full level, and at a quarter of it for so many minutes; its regression.
Finding regression_after(int minutes, std::span<const LabelChange> changes = {}) {
  JobDetector detector("job");
  for (std::int64_t minute = 0; minute < 120 + minutes; ++minute) {
    MinutePoint point = working(minute);
    if (minute >= 120) point.ofu_ratio = *point.ofu_ratio / 4;
    detector.add(point, {});
  }
  const auto found = detector.findings(kNames, {}, changes);
  EXPECT_EQ(found.size(), 1U);
  return found.at(0);
}

TEST(Job, what_may_be_an_evaluation_is_information_unless_a_label_changed_with_it) {
  const Finding young = regression_after(5);
  EXPECT_EQ(young.kind, FindingKind::kRegression);
  EXPECT_EQ(young.severity, Severity::kInfo);
  EXPECT_NE(young.text.find("it may be an evaluation, if it ends within 20 minutes"), std::string::npos) << young.text;
  const Finding lasting = regression_after(21);
  EXPECT_EQ(lasting.severity, Severity::kCritical);
  EXPECT_EQ(lasting.text.find("evaluation"), std::string::npos) << lasting.text;
  const std::vector<LabelChange> changes = {{at(119), "image", "v1", "v2"}};
  EXPECT_EQ(regression_after(5, changes).severity, Severity::kCritical);
}

// Works as working() does, and half as much from a minute on.
MinutePoint halved_from(std::int64_t minute, std::int64_t from) {
  MinutePoint point = working(minute);
  if (minute < from) return point;
  for (Quantity* one : {&point.ofu_ratio, &point.sm_ratio, &point.tensor_ratio}) *one = **one / 2;
  return point;
}

TEST(Job, suspects_and_what_was_before_stay_while_the_regression_is_open) {
  JobDetector detector("job");
  const std::vector<LabelChange> changes = {{at(119), "image", "v1", "v2"}};
  Finding slow;
  slow.kind = FindingKind::kThermal;
  slow.gpu = "GPU-1";
  slow.first = at(121);
  slow.text = "GPU-1 is slow";
  std::vector<std::vector<Suspect>> seen;
  for (std::int64_t minute = 0; minute < 120 + 600; ++minute) {
    detector.add(halved_from(minute, 120), {});
    // The GPU is mended ten minutes later.
    const auto found = detector.findings(kNames, {}, changes, minute < 131 ? std::span(&slow, 1) : std::span<const Finding>());
    for (const Finding& finding : found) {
      if (finding.kind == FindingKind::kRegression) seen.push_back(finding.suspects);
    }
  }
  ASSERT_GT(seen.size(), 500U);
  const auto texts = [](const std::vector<Suspect>& suspects) {
    std::vector<std::string> out;
    for (const Suspect& one : suspects) out.push_back(one.text);
    return out;
  };
  ASSERT_EQ(seen.back().size(), 3U);
  EXPECT_EQ(seen.back()[0].kind, SuspectKind::kLabelChange);
  EXPECT_EQ(seen.back()[1].text, "GPU-1 is slow");
  EXPECT_EQ(seen.back()[2].kind, SuspectKind::kHostOrInput);
  EXPECT_EQ(texts(seen.back()), texts(seen[60])) << "an hour after it was found, and ten";

  // After a restart the detector is given the past without anybody asking for findings meanwhile.
  JobDetector again("job");
  for (std::int64_t minute = 0; minute < 120 + 600; ++minute) {
    again.add(halved_from(minute, 120), {});
  }
  const auto found = again.findings(kNames, {}, changes);
  ASSERT_EQ(found.size(), 1U);
  ASSERT_EQ(found[0].suspects.size(), 2U);
  EXPECT_EQ(found[0].suspects[1].text, seen.back()[2].text);
}

TEST(Job, a_family_finding_needs_an_hour_of_work) {
  JobDetector detector("job");
  const std::vector<double> others = {0.60, 0.61, 0.59, 0.60, 0.62};
  for (std::int64_t minute = 0; minute < 60; ++minute) {
    EXPECT_TRUE(detector.findings(kNames, others).empty());
    detector.add(working(minute), {});
  }
  const auto found = detector.findings(kNames, others);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].kind, FindingKind::kBelowFamily);
}

}  // namespace
}  // namespace flopsight::detect
