// A store of version 1, written by the program of that time (tests/fixtures/store), opens, is brought up to date, and says the same.
#include <filesystem>
#include <map>

#include <gtest/gtest.h>

#include "base/file.h"
#include "store/sqlite.h"
#include "store/store.h"
#include "wire/gzip.h"

namespace flopsight::store {
namespace {

using units::Instant;
using units::Window;

class UpgradeTest : public testing::Test {
 protected:
  UpgradeTest() : folder_(testing::TempDir() + "flopsight_upgrade_" + testing::UnitTest::GetInstance()->current_test_info()->name()) {
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
    const auto packed = base::read_file(FLOPSIGHT_SOURCE_DIR "/tests/fixtures/store/version-1.sql.gz");
    auto database = Database::open(path(), Database::Mode::kReadWrite);
    const auto made = database->execute(*wire::gunzip(*packed, 1 << 20) + "PRAGMA user_version = 1;");
    EXPECT_TRUE(made.ok()) << made.error().message;
  }
  ~UpgradeTest() override { std::filesystem::remove_all(folder_); }
  std::string path() const { return folder_ + "/flopsight.db"; }

  // Rows of numbers, as text.
  std::vector<std::string> rows(const std::string& sql) {
    auto database = Database::open(path(), Database::Mode::kReadOnly);
    auto statement = database->prepare(sql);
    EXPECT_TRUE(statement.ok()) << statement.error().message;
    std::vector<std::string> out;
    while (statement->step().value()) {
      std::string row;
      for (int i = 0; i < 6; ++i) row += std::string(statement->text(i)) + " ";
      out.push_back(row);
    }
    return out;
  }

  std::string folder_;
};

constexpr Window kAll{{0}, {4'000'000'000'000}};

TEST_F(UpgradeTest, totals_by_job_and_views_are_those_of_version_1) {
  std::map<std::pair<JobId, ModelId>, std::vector<std::int64_t>> before;
  {
    std::string sums;
    for (const rollups::CellFieldInfo& field : rollups::cell_fields().first(rollups::kFirstCellFieldCount)) {
      const std::string name(field.name);
      sums += field.merge == rollups::Merge::kSum ? ", sum(" + name + ")" : field.merge == rollups::Merge::kMin ? ", min(" + name + ")" : ", max(" + name + ")";
    }
    auto database = Database::open(path(), Database::Mode::kReadOnly);
    auto select = database->prepare("SELECT job_id, model_id" + sums + " FROM job_cells WHERE slot_seconds = 3600 GROUP BY 1, 2");
    while (select->step().value()) {
      auto& values = before[{static_cast<JobId>(select->integer(0)), static_cast<ModelId>(select->integer(1))}];
      for (std::size_t i = 0; i < rollups::kFirstCellFieldCount; ++i) {
        const int column = 2 + static_cast<int>(i);
        values.push_back(select->is_null(column) ? rollups::Cell()[static_cast<rollups::CellField>(i)] : select->integer(column));
      }
    }
  }
  ASSERT_GT(before.size(), 30U);
  const std::string view = "SELECT slot_seconds, start, job, model, round(gpu_hours_allocated + gpu_hours_unmeasured, 9), "
                           "ofu_ratio FROM job_rollups ORDER BY 1, 2, 3, 4";
  const std::string list = "SELECT id, job, gpu_count, first, user, team FROM job_list ORDER BY 1";
  const auto view_before = rows(view), list_before = rows(list);
  auto store = open_sqlite_store(folder_, {});
  ASSERT_TRUE(store.ok()) << store.error().message;
  const auto totals = (*store)->job_totals(kAll, std::nullopt);
  ASSERT_EQ(totals->size(), before.size());
  for (const JobTotal& total : *totals) {
    const auto& values = before[{total.job, total.model}];
    // The latest OFU is that of the latest time, which a maximum in SQL is not.
    for (std::size_t i = 0; i + 1 < rollups::kFirstCellFieldCount; ++i) {
      EXPECT_EQ(total.cell.values()[i], values[i]) << total.job << " " << rollups::cell_fields()[i].name;
    }
    EXPECT_EQ(total.spread.microseconds(), total.cell[rollups::CellField::kMeasured]);
  }
  const auto everybody = [](JobId) { return true; };
  const auto fleet = (*store)->fleet_series(kAll, units::Seconds(3600), {}), by_jobs = (*store)->fleet_series(kAll, units::Seconds(3600), everybody);
  ASSERT_TRUE(fleet.ok() && by_jobs.ok());
  EXPECT_FALSE(fleet->empty());
  EXPECT_EQ(*fleet, *by_jobs);
  EXPECT_EQ(rows(view), view_before);
  EXPECT_EQ(rows(list), list_before);
  EXPECT_EQ(rows("PRAGMA user_version"), std::vector<std::string>{"5      "});
  EXPECT_TRUE((*store)->take_notes().empty());
}

TEST_F(UpgradeTest, who_held_what_is_that_of_version_1_and_open_spans_go_on) {
  std::map<std::tuple<std::int64_t, std::int64_t, std::int64_t>, std::int64_t> before;  // GPU, job, start: is it open
  {
    auto database = Database::open(path(), Database::Mode::kReadOnly);
    auto select = database->prepare("SELECT gpu_id, job_id, start_unix_milliseconds, is_open FROM spans");
    while (select->step().value()) before[{select->integer(0), select->integer(1), select->integer(2)}] = select->integer(3);
  }
  auto store = open_sqlite_store(folder_, {});
  ASSERT_TRUE(store.ok()) << store.error().message;
  std::map<std::tuple<std::int64_t, std::int64_t, std::int64_t>, std::int64_t> ends;
  const auto held = (*store)->held(std::nullopt, kAll);
  for (const Held& span : *held) {
    for (const GpuId gpu : span.gpus) ends[{gpu, span.job, span.window.start.unix_milliseconds}] = span.window.end.unix_milliseconds;
  }
  ASSERT_EQ(ends.size(), before.size());
  // One that is open gets longer with its GPU's next slot.
  const auto closed = (*store)->closed_until();
  bool has_open = false;
  for (const auto& [key, is_open] : before) {
    ASSERT_EQ(ends.count(key), 1U);
    const auto [gpu, job, start] = key;
    if (is_open == 0 || has_open) continue;
    has_open = true;
    const Instant next = closed[static_cast<std::size_t>(gpu - 1)].second;
    EXPECT_EQ(ends[key], next.unix_milliseconds);
    ASSERT_TRUE((*store)->begin().ok());
    GpuCell cell{static_cast<GpuId>(gpu), static_cast<JobId>(job), next, {}};
    cell.cell.absent(samples::AbsentReason::kGap) = 60'000'000;
    ASSERT_TRUE((*store)->add(cell, 1).ok());
    ASSERT_TRUE((*store)->commit({1, {{cell.gpu, next + units::Seconds(60)}}}).ok());
    std::int64_t longest = 0;
    const auto after = (*store)->held(cell.job, kAll);
    for (const Held& span : *after) {
      if (span.window.start.unix_milliseconds != start) continue;
      for (const GpuId one : span.gpus) longest = one == cell.gpu ? std::max(longest, span.window.end.unix_milliseconds) : longest;
    }
    EXPECT_EQ(longest, next.unix_milliseconds + 60'000);
  }
  EXPECT_TRUE(has_open);
}

TEST_F(UpgradeTest, one_that_is_only_read_is_told_who_brings_it_up_to_date) {
  SqliteStoreOptions options;
  options.read_only = true;
  const auto store = open_sqlite_store(folder_, options);
  ASSERT_FALSE(store.ok());
  EXPECT_EQ(store.error().code, base::ErrorCode::kUnsupported);
  EXPECT_NE(store.error().message.find("version 1, which `flopsight serve` brings up to date"), std::string::npos) << store.error().message;
}

TEST_F(UpgradeTest, one_that_cannot_be_brought_up_to_date_stays_as_it_was) {
  {
    auto database = Database::open(path(), Database::Mode::kReadWrite);
    ASSERT_TRUE(database->execute("ALTER TABLE job_cells RENAME COLUMN spread TO spread_of_another").ok());
  }
  EXPECT_FALSE(open_sqlite_store(folder_, {}).ok());
  EXPECT_EQ(rows("PRAGMA user_version"), std::vector<std::string>{"1      "});
  EXPECT_EQ(rows("SELECT count(*) FROM job_cells"), std::vector<std::string>{"191      "});
}

}  // namespace
}  // namespace flopsight::store
