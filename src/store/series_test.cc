// Courses over time: what the embedded store says quickly is what any reader says out of its other answers.
#include <filesystem>
#include <random>
#include <set>

#include <gtest/gtest.h>

#include "store/sqlite.h"
#include "store/store.h"

namespace flopsight::store {
namespace {

using rollups::Cell;
using rollups::CellField;
using units::Instant;
using units::Seconds;
using units::Window;

constexpr std::int64_t kDay = 1'790'035'200'000 / 86'400'000 * 86'400'000;
constexpr std::int64_t kMinute = 60'000;
constexpr int kMinutes = 200;

// 600 GPUs on hosts of eight over some hours, of two jobs and of nobody, in flushes of an hour.
class SeriesTest : public testing::Test {
 protected:
  SeriesTest() : folder_(testing::TempDir() + "flopsight_series_" + testing::UnitTest::GetInstance()->current_test_info()->name()) {
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
    auto opened = open_sqlite_store(folder_, {});
    EXPECT_TRUE(opened.ok());
    store_ = std::move(opened).value();
    samples::Holder holder;
    holder.job = "a";
    job_a_ = store_->job(holder);
    holder.job = "b";
    const JobId job_b = store_->job(holder);
    const ModelId model = store_->model("NVIDIA H100 80GB HBM3");
    std::mt19937_64 random(7);
    Store::Checkpoint checkpoint;
    EXPECT_TRUE(store_->begin().ok());
    for (const int n : {0, 1, 2, 7, 8, 300, 599}) {
      samples::GpuIdentity identity;
      identity.uuid = "GPU-" + std::to_string(n) + "_%";
      identity.host = "Node" + std::to_string(n / 8);
      const GpuId id = store_->gpu(identity);
      for (int minute = 0; minute < kMinutes; minute += 1 + n % 3) {
        rollups::Totals totals;
        totals.measured_seconds = static_cast<double>(random() % 61);
        totals.absent_seconds[0] = 60 - totals.measured_seconds;
        totals.delivered_seconds = totals.measured_seconds * 0.4;
        const JobId job = n == 599 ? 0 : minute < 100 + n ? job_a_ : job_b;
        EXPECT_TRUE(store_->add({id, job, {kDay + minute * kMinute}, rollups::cell_of(totals, {})}, model).ok());
      }
      checkpoint.closed_until.emplace_back(id, Instant{kDay + kMinutes * kMinute});
    }
    EXPECT_TRUE(store_->commit(checkpoint).ok());
  }
  ~SeriesTest() override {
    store_.reset();
    std::filesystem::remove_all(folder_);
  }
  std::set<std::string> found(const GpuLookup& lookup) {
    std::set<std::string> out;
    const auto records = store_->find_gpus(lookup, kWindow);
    const auto slowly = store_->Reader::find_gpus(lookup, kWindow);
    EXPECT_TRUE(records.ok() && slowly.ok());
    EXPECT_EQ(records->size(), slowly->size());
    for (const GpuRecord& record : *records) out.insert(record.identity.uuid);
    return out;
  }

  const Window kWindow{{kDay + 7 * kMinute}, {kDay + 173 * kMinute}};
  std::string folder_;
  std::unique_ptr<Store> store_;
  JobId job_a_ = 0;
};

TEST_F(SeriesTest, gpus_over_time_are_their_totals_of_each_step) {
  for (const double step : {60.0, 600.0, 3600.0}) {
    for (const GpuChoice& choice : {GpuChoice{job_a_, std::nullopt}, GpuChoice{std::nullopt, std::vector<GpuId>{2, 6}}, GpuChoice{}}) {
      const auto quick = store_->gpu_series(choice, kWindow, Seconds(step));
      const auto slow = store_->Reader::gpu_series(choice, kWindow, Seconds(step));
      ASSERT_TRUE(quick.ok() && slow.ok());
      ASSERT_EQ(quick->size(), slow->size()) << step;
      for (std::size_t i = 0; i < quick->size(); ++i) {
        EXPECT_EQ((*quick)[i].gpu, (*slow)[i].gpu);
        EXPECT_EQ((*quick)[i].slot_start, (*slow)[i].slot_start);
        EXPECT_EQ((*quick)[i].cell, (*slow)[i].cell);
      }
    }
  }
}

TEST_F(SeriesTest, the_fleet_over_time_is_the_sum_of_the_jobs_that_are_wanted) {
  for (const double step : {60.0, 300.0, 600.0, 3600.0}) {
    for (const bool nobody : {true, false}) {
      const auto wanted = [&](JobId job) { return job != 0 || nobody; };
      const auto quick = store_->fleet_series(kWindow, Seconds(step), wanted);
      const auto slow = store_->Reader::fleet_series(kWindow, Seconds(step), wanted);
      ASSERT_TRUE(quick.ok() && slow.ok());
      EXPECT_EQ(*quick, *slow) << step;
    }
  }
}

TEST_F(SeriesTest, gpus_are_found_by_whole_names_and_by_parts_in_any_case) {
  EXPECT_EQ(found({"Node0", "", ""}), (std::set<std::string>{"GPU-0_%", "GPU-1_%", "GPU-2_%", "GPU-7_%"}));
  EXPECT_EQ(found({"node0", "", ""}), std::set<std::string>());
  EXPECT_EQ(found({"", "GPU-300_%", ""}), std::set<std::string>{"GPU-300_%"});
  EXPECT_EQ(found({"", "", "node7"}), std::set<std::string>{"GPU-599_%"});
  EXPECT_EQ(found({"", "", "0_%"}), (std::set<std::string>{"GPU-0_%", "GPU-300_%"})) << "what a pattern would mean is text";
  EXPECT_EQ(found({"", "", "\\"}), std::set<std::string>());
  EXPECT_EQ(found({"", "", "gpu", 3}).size(), 3U);
}

}  // namespace
}  // namespace flopsight::store
