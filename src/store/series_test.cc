// Courses over time: what the embedded store says quickly is what any reader says out of its other answers.
#include <filesystem>
#include <map>
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
      std::function<bool(JobId)> wanted;
      if (!nobody) wanted = [](JobId job) { return job != 0; };
      const auto quick = store_->fleet_series(kWindow, Seconds(step), wanted);
      const auto slow = store_->Reader::fleet_series(kWindow, Seconds(step), wanted);
      ASSERT_TRUE(quick.ok() && slow.ok());
      EXPECT_EQ(*quick, *slow) << step;
    }
  }
}

// What is added, and what the fleet then is at any moment.
class FleetSeriesTest : public SeriesTest {
 protected:
  using Series = std::vector<std::pair<Instant, Cell>>;

  GpuId gpu(int n) {
    samples::GpuIdentity identity;
    identity.uuid = "GPU-more-" + std::to_string(n);
    return store_->gpu(identity);
  }
  JobId job(const std::string& name) {
    samples::Holder holder;
    holder.job = name;
    return name.empty() ? 0 : store_->job(holder);
  }
  ModelId model() { return store_->model("NVIDIA A100-SXM4-80GB"); }
  void put(int n, const std::string& job_name, std::int64_t slot_start) {
    rollups::Totals totals;
    totals.measured_seconds = static_cast<double>(random_() % 61);
    totals.absent_seconds[random_() % samples::kAbsentReasonCount] = 60 - totals.measured_seconds;
    totals.delivered_seconds = totals.measured_seconds * 0.3;
    totals.extremes.see_ofu(static_cast<double>(random_() % 100) / 100, Instant{slot_start + static_cast<std::int64_t>(random_() % kMinute)});
    const GpuId id = gpu(n);
    ASSERT_TRUE(store_->add({id, job(job_name), {slot_start}, rollups::cell_of(totals, {})}, model()).ok());
    closed_[id] = std::max(closed_[id], slot_start + kMinute);
  }
  void commit() {
    Store::Checkpoint checkpoint;
    for (const auto& [id, time] : closed_) checkpoint.closed_until.emplace_back(id, Instant{time});
    ASSERT_TRUE(store_->commit(checkpoint).ok());
  }
  void keep_house(std::int64_t now) {
    while (store_->maintain(Instant{now}, Retention{}).value()) {
    }
  }
  void reopen() {
    store_.reset();
    store_ = std::move(open_sqlite_store(folder_, {})).value();
  }
  void expect_same(const char* when, std::initializer_list<double> steps) {
    const auto everybody = [](JobId) { return true; };
    for (const double step : steps) {
      for (int round = 0; round < 12; ++round) {
        const std::int64_t start = kDay + static_cast<std::int64_t>(random_() % 1'000) * kMinute;
        const Window window{{start}, {start + static_cast<std::int64_t>(random_() % 1'000) * kMinute}};
        const auto kept = store_->fleet_series(window, Seconds(step), {});
        const auto by_jobs = store_->fleet_series(window, Seconds(step), everybody);
        ASSERT_TRUE(kept.ok() && by_jobs.ok());
        EXPECT_EQ(*kept, *by_jobs) << when << ", step " << step << ", " << (start - kDay) / kMinute << " + " << window.length().value / 60;
      }
    }
  }

  std::mt19937_64 random_{17};
  std::map<GpuId, std::int64_t> closed_;
};

TEST_F(FleetSeriesTest, what_is_kept_of_the_fleet_is_the_sum_over_all_jobs_through_late_samples_gifts_restarts_and_coarsening) {
  for (int minute = 0; minute < 900; minute += 3) {
    ASSERT_TRUE(store_->begin().ok());
    for (int n = 0; n < 4; ++n) put(n, n == 3 ? "" : "job-" + std::to_string(n) + "-" + std::to_string(minute / 60), kDay + minute * kMinute);
    commit();
  }
  expect_same("as closed", {60, 300, 600, 3600, 6 * 3600});
  keep_house(kDay + 1'000 * kMinute);
  expect_same("merged", {60, 300, 600, 3600, 6 * 3600});
  // Late ones, of hours that were merged; and nobody's time that was somebody's.
  ASSERT_TRUE(store_->begin().ok());
  for (int minute = 61; minute < 500; minute += 7) put(9, "late", kDay + minute * kMinute);
  commit();
  const auto cells = store_->unheld({gpu(3)}, {{kDay + 100 * kMinute}, {kDay + 400 * kMinute}});
  ASSERT_TRUE(cells.ok());
  ASSERT_FALSE(cells->empty());
  ASSERT_TRUE(store_->begin().ok());
  ASSERT_TRUE(store_->give(*cells, job("told late"), model()).ok());
  commit();
  expect_same("late", {60, 300, 600, 3600, 6 * 3600});
  reopen();
  expect_same("opened again", {60, 600, 3600});
  constexpr std::int64_t kDays = 86'400'000;
  keep_house(kDay + 9 * kDays);
  expect_same("ten minutes", {60, 600, 3600, 6 * 3600});
  ASSERT_TRUE(store_->begin().ok());
  for (int minute = 200; minute < 300; minute += 7) put(9, "very late", kDay + minute * kMinute);
  commit();
  keep_house(kDay + 9 * kDays);
  expect_same("late for ten minutes", {60, 600, 3600, 6 * 3600});
  keep_house(kDay + 70 * kDays);
  expect_same("hours", {600, 3600, 6 * 3600});
  EXPECT_FALSE(store_->fleet_series({{kDay}, {kDay + kDays}}, Seconds(3600), {})->empty());
  keep_house(kDay + 800 * kDays);
  EXPECT_TRUE(store_->fleet_series({{kDay}, {kDay + kDays}}, Seconds(3600), {})->empty());
}

TEST_F(FleetSeriesTest, a_store_from_before_there_were_sums_of_the_fleet_adds_up_its_jobs_until_then) {
  store_.reset();
  {
    auto database = Database::open(folder_ + "/flopsight.db", Database::Mode::kReadWrite);
    ASSERT_TRUE(database->execute("DELETE FROM blocks WHERE kind IN (4, 5); DELETE FROM meta WHERE key LIKE 'fleet%'; ALTER TABLE checkpoint DROP COLUMN divided; PRAGMA user_version = 2").ok());
  }
  SqliteStoreOptions options;
  options.read_only = true;
  store_ = std::move(open_sqlite_store(folder_, options)).value();
  expect_same("only read", {60, 600, 3600});
  reopen();
  expect_same("brought up to date", {60, 600, 3600});
  for (int minute = 150; minute < 1'000; minute += 5) {
    ASSERT_TRUE(store_->begin().ok());
    for (int n = 0; n < 3; ++n) put(n, n == 0 ? "" : "job-" + std::to_string(n), kDay + minute * kMinute);
    commit();
  }
  expect_same("gone on", {60, 300, 600, 3600, 6 * 3600});
  keep_house(kDay + 1'100 * kMinute);
  reopen();
  expect_same("opened again", {60, 300, 600, 3600, 6 * 3600});
  // From six hours on (200 minutes were there), the sums of the fleet answer: without them there is nothing.
  store_.reset();
  ASSERT_TRUE(Database::open(folder_ + "/flopsight.db", Database::Mode::kReadWrite)->execute("DELETE FROM blocks WHERE kind IN (4, 5)").ok());
  reopen();
  const auto left = store_->fleet_series({{kDay}, {kDay + 1'000 * kMinute}}, Seconds(600), {});
  ASSERT_FALSE(left->empty());
  EXPECT_EQ(left->back().first, Instant{kDay + 350 * kMinute});
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
