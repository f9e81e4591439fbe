#include "engine/series.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace flopsight::engine {
namespace {

using rollups::CellField;
using testing::ElementsAre;
using testing::Pair;
using units::Instant;
using units::Seconds;

constexpr std::int64_t kSlot = 1'790'035'200'000;

Names names() {
  Names names;
  names.holder = [](store::JobId job) {
    samples::Holder holder;
    holder.job = "train-" + std::to_string(job);
    holder.name_space = "research";
    holder.user = "alice";
    holder.rule = "exported_pod";
    return holder;
  };
  names.model = [](store::ModelId) { return std::string("NVIDIA H100 80GB HBM3"); };
  names.gpu = [](store::GpuId id) {
    samples::GpuIdentity gpu;
    if (id == 1) gpu.uuid = "GPU-1";
    gpu.host = "n0";
    gpu.index = "3";
    gpu.driver_version = "550";
    return gpu;
  };
  names.job_info_due = [](store::JobId, Instant) { return true; };
  names.gpu_info_due = [](store::GpuId, Instant) { return true; };
  return names;
}

store::JobCell job_cell(std::int64_t gpus) {
  store::JobCell cell{1, 1, {kSlot}, {}, {}};
  cell.cell[CellField::kMeasured] = 60'000'000 * gpus;
  cell.cell[CellField::kCellCount] = gpus;
  cell.cell[CellField::kOfuMin] = 250'000;
  cell.spread.add(0.305, 60'000'000 * gpus);
  return cell;
}

std::vector<std::string> texts(const std::vector<Series>& series) {
  std::vector<std::string> out;
  for (const Series& one : series) {
    std::string text = text_of(one);
    for (const auto& sample : one.samples) {
      text += " " + std::to_string(static_cast<long long>(sample.value)) + "@" + std::to_string(sample.timestamp_milliseconds - kSlot);
    }
    out.push_back(text);
  }
  return out;
}

TEST(EngineSeries, a_jobs_slot_is_a_sample_for_each_field_that_is_not_zero) {
  const store::JobCell cell = job_cell(2);
  const auto series = series_of(job_parcel(Level::kSlot, {&cell, 1}, Seconds(60)), names(), {Seconds(60), "0-ab", true});
  ASSERT_TRUE(series.ok()) << series.error().message;
  EXPECT_THAT(texts(*series),
              ElementsAre("{__name__=\"flopsight_job_info\", attributed_by=\"exported_pod\", job=\"train-1\", namespace=\"research\", "
                          "shard=\"0-ab\", user=\"alice\"} 1@1",
                          "{__name__=\"flopsight_job_min\", field=\"ofu_min_millionths\", job=\"train-1\", model=\"NVIDIA H100 80GB "
                          "HBM3\", namespace=\"research\", shard=\"0-ab\"} 250000@2",
                          "{__name__=\"flopsight_job_sum\", field=\"cell_count\", job=\"train-1\", model=\"NVIDIA H100 80GB HBM3\", "
                          "namespace=\"research\", shard=\"0-ab\"} 2@2",
                          "{__name__=\"flopsight_job_sum\", field=\"measured_microseconds\", job=\"train-1\", model=\"NVIDIA H100 80GB "
                          "HBM3\", namespace=\"research\", shard=\"0-ab\"} 120000000@2",
                          "{__name__=\"flopsight_job_sum\", field=\"ofu_bin_61\", job=\"train-1\", model=\"NVIDIA H100 80GB HBM3\", "
                          "namespace=\"research\", shard=\"0-ab\"} 120000000@2"));
}

TEST(EngineSeries, a_later_state_of_a_slot_has_another_time_inside_of_it) {
  for (const std::int64_t gpus : {1, 2, 50'000, 59'998, 59'999, 1'000'000}) {
    const store::JobCell cell = job_cell(gpus);
    const auto series = series_of(job_parcel(Level::kSlot, {&cell, 1}, Seconds(60)), names(), {Seconds(60), "0", true});
    const std::int64_t at = series->back().samples.front().timestamp_milliseconds - kSlot;
    EXPECT_EQ(at, 1 + (gpus - 1) % 59'998) << gpus;
    EXPECT_GT(at, 0);
    EXPECT_LT(at, 60'000);
  }
}

TEST(EngineSeries, a_gpu_is_named_by_what_never_changes_and_the_rest_is_beside_it) {
  std::vector<store::GpuCell> cells = {{1, 1, {kSlot}, {}}, {2, 0, {kSlot}, {}}};
  for (auto& cell : cells) cell.cell[CellField::kMeasured] = 7;
  const auto with = series_of(gpu_parcel(cells, Seconds(60)), names(), {Seconds(60), "0", true});
  EXPECT_THAT(texts(*with),
              ElementsAre("{__name__=\"flopsight_gpu_info\", driver_version=\"550\", gpu_index=\"3\", hostname=\"n0\", shard=\"0\", uuid=\"GPU-1\"} 1@1",
                          "{__name__=\"flopsight_gpu_held\", job=\"train-1\", namespace=\"research\", shard=\"0\", uuid=\"GPU-1\"} 1@1",
                          "{__name__=\"flopsight_gpu_sum\", field=\"measured_microseconds\", job=\"train-1\", namespace=\"research\", shard=\"0\", uuid=\"GPU-1\"} 7@1",
                          "{__name__=\"flopsight_gpu_info\", driver_version=\"550\", gpu=\"3\", gpu_index=\"3\", host=\"n0\", hostname=\"n0\", shard=\"0\"} 1@1",
                          "{__name__=\"flopsight_gpu_held\", gpu=\"3\", host=\"n0\", shard=\"0\"} 1@1",
                          "{__name__=\"flopsight_gpu_sum\", field=\"measured_microseconds\", gpu=\"3\", host=\"n0\", shard=\"0\"} 7@1"));
  const auto without = series_of(gpu_parcel(cells, Seconds(60)), names(), {Seconds(60), "0", false});
  EXPECT_EQ(without->size(), 4U);
}

TEST(EngineSeries, lives_and_hours) {
  const JobSeen seen{1, {kSlot}, {kSlot - 120'000}, {kSlot + 60'000}};
  EXPECT_THAT(texts(*series_of(seen_parcel(Level::kHour, {&seen, 1}), names(), {Seconds(60), "0", true})),
              ElementsAre("{__name__=\"flopsight_job_hour_first_seconds\", job=\"train-1\", namespace=\"research\", shard=\"0\"} 1790035080@61",
                          "{__name__=\"flopsight_job_hour_last_seconds\", job=\"train-1\", namespace=\"research\", shard=\"0\"} 1790035260@61"));
  EXPECT_THAT(texts(*series_of(until_parcel({{kSlot}, {kSlot + 1}, true}), names(), {Seconds(60), "0", true})),
              ElementsAre("{__name__=\"flopsight_shard_hours_until_seconds\", shard=\"0\", simulated=\"true\"} 1790035200@1"));
}

TEST(EngineSeries, bytes_that_are_no_parcel_are_refused) {
  for (const std::string& bytes : std::vector<std::string>{"", "x", "j", "jgarbage", "s", "u", "S\x01", std::string(100, 'g')}) {
    const auto series = series_of(bytes, names(), {});
    ASSERT_FALSE(series.ok()) << bytes;
    EXPECT_EQ(series.error().code, base::ErrorCode::kCorrupt) << bytes;
  }
}

}  // namespace
}  // namespace flopsight::engine
