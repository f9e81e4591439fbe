// What a store keeps as time goes by, and what it says of what it does not keep.
#include <gtest/gtest.h>

#include "store/sqlite.h"
#include "store/test_store.h"

namespace flopsight::store {
namespace {

using rollups::Cell;
using test::kDay;
using test::kMinute;
using test::StoreTest;
using units::Instant;
using units::Seconds;
using units::Window;

std::pair<Instant, Instant> ends(Window window) { return {window.start, window.end}; }

TEST_F(StoreTest, a_file_that_lacks_a_table_or_its_checkpoint_is_put_aside_and_said) {
  for (const char* loss : {"DROP VIEW job_list; DROP TABLE spans", "DROP TABLE blocks", "DROP VIEW job_rollups; DROP TABLE job_cells", "DROP TABLE meta",
                           "DROP INDEX blocks_by_start", "DELETE FROM checkpoint"}) {
    std::mt19937_64 random(3);
    ASSERT_TRUE(store_->begin().ok());
    put(0, "a", kDay, random);
    commit(4);
    store_.reset();
    {
      auto database = Database::open(folder_ + "/flopsight.db", Database::Mode::kReadWrite);
      ASSERT_TRUE(database.ok());
      ASSERT_TRUE(database->execute(loss).ok()) << loss;
    }
    reopen();
    const auto notes = store_->take_notes();
    ASSERT_EQ(notes.size(), 1U) << loss;
    EXPECT_NE(notes[0].find("put aside as"), std::string::npos) << notes[0];
    EXPECT_TRUE(store_->jobs()->empty());
    EXPECT_EQ(store_->log_segment(), 1U);
    all_.clear();
    closed_.clear();
  }
}

TEST_F(StoreTest, of_slots_that_became_hours_an_answer_says_the_hours_that_it_is_of) {
  std::mt19937_64 random(17);
  ASSERT_TRUE(store_->begin().ok());
  for (int minute = 0; minute < 360; ++minute) {
    for (int n = 0; n < 2; ++n) put(n, "a", kDay + minute * kMinute, random);
  }
  commit();
  const Window asked{{kDay + 70 * kMinute + 30'000}, {kDay + 190 * kMinute}};
  EXPECT_EQ(ends(store_->answered(asked)), ends({{kDay + 70 * kMinute}, {kDay + 190 * kMinute}}));
  EXPECT_EQ(ends(store_->answered(asked, Seconds(600))), ends({{kDay + 70 * kMinute}, {kDay + 190 * kMinute}}));
  Retention retention;
  retention.fine = Seconds(3600);
  retention.middle = Seconds(7200);
  // Two days later all of it is hours; a day boundary of housekeeping lies between, and nothing is lost in the meantime either.
  for (const std::int64_t later : {25, 49}) {
    while (store_->maintain(Instant{kDay + later * 3'600'000}, retention).value()) {
    }
    const std::int64_t slot = later == 25 ? 600 : 3600;
    EXPECT_EQ(store_->longest_slot(asked)->value, static_cast<double>(slot)) << later;
    const Window whole = store_->answered(asked);
    EXPECT_EQ(ends(whole), later == 25 ? ends({{kDay + 70 * kMinute}, {kDay + 190 * kMinute}}) : ends({{kDay + 60 * kMinute}, {kDay + 240 * kMinute}}));
    // What jobs had, GPUs had, and the fleet over time is the same time, and all of it.
    const Cell expected = oracle(whole)["a"];
    EXPECT_EQ(totals(whole)["a"], expected) << later;
    Cell of_gpus, of_fleet, of_steps;
    const auto found1 = store_->gpu_totals(whole, std::nullopt);
    for (const GpuTotal& total : *found1) of_gpus.merge(total.cell);
    const auto found2 = store_->fleet_series(whole, Seconds(static_cast<double>(slot)), {});
    for (const auto& [start, cell] : *found2) of_fleet.merge(cell);
    const auto found3 = store_->job_series(job("a"), whole, Seconds(static_cast<double>(slot)));
    for (const JobCell& cell : *found3) of_steps.merge(cell.cell);
    EXPECT_EQ(of_gpus, expected) << later;
    EXPECT_EQ(of_fleet, expected) << later;
    EXPECT_EQ(of_steps, expected) << later;
  }
  // Of what is not there yet nothing is taken in.
  const Window to_the_end{{kDay}, {kDay + 360 * kMinute + 5'000}};
  EXPECT_EQ(ends(store_->answered(to_the_end)), ends(to_the_end));
}

TEST_F(StoreTest, past_its_size_the_oldest_hours_go_in_every_form_and_it_says_so) {
  std::mt19937_64 random(13);
  for (int minute = 0; minute < 900; ++minute) {
    ASSERT_TRUE(store_->begin().ok());
    for (int n = 0; n < 4; ++n) put(n, minute < 200 ? "old" : "a", kDay + minute * kMinute, random);
    commit();
  }
  const Instant now{kDay + 16 * 3'600'000};
  Retention retention;
  while (store_->maintain(now, retention).value()) {
  }
  const Window all{{kDay}, {kDay + 900 * kMinute}};
  EXPECT_EQ(ends(store_->answered(all)), ends(all));
  retention.bytes_max = store_->size()->bytes * 7 / 10;
  while (store_->maintain(now, retention).value()) {
  }
  EXPECT_LE(store_->size()->bytes, retention.bytes_max);
  EXPECT_FALSE(store_->take_notes().empty());
  for (const bool again : {false, true}) {
    if (again) reopen();
    const Window kept = store_->answered(all);
    EXPECT_EQ(kept.end, all.end);
    EXPECT_GT(kept.start, all.start);
    EXPECT_LT(kept.start, (Instant{kDay + 600 * kMinute})) << "more went than had to";
    // All that is newer is there, whichever way it is asked for, and of what is older nothing.
    for (const Window& window : {all, kept}) {
      const Cell expected = oracle(kept)["a"];
      EXPECT_EQ(totals(window)["a"], expected);
      Cell of_gpus, of_fleet;
      const auto found4 = store_->gpu_totals(window, std::nullopt);
      for (const GpuTotal& total : *found4) {
        if (total.job == job("a")) of_gpus.merge(total.cell);
      }
      const auto found5 = store_->fleet_series(window, Seconds(3600), {});
      for (const auto& [start, cell] : *found5) of_fleet.merge(cell);
      EXPECT_EQ(of_gpus, expected);
      EXPECT_EQ(of_fleet, expected);
      // A job of which nothing is left is none of the window.
      const auto found6 = store_->members(window, std::nullopt);
      for (const Member& member : *found6) EXPECT_NE(member.job, job("old"));
    }
  }
  // The newest hour never goes; that it alone is too large is said once.
  retention.bytes_max = 1;
  while (store_->maintain(now, retention).value()) {
  }
  const auto notes = store_->take_notes();
  EXPECT_NE(notes.back().find("the newest hour"), std::string::npos) << notes.back();
  EXPECT_FALSE(store_->maintain(now, retention).value());
  EXPECT_TRUE(store_->take_notes().empty());
  const Window newest{{kDay + 840 * kMinute}, {kDay + 900 * kMinute}};
  EXPECT_EQ(totals(newest)["a"], oracle(newest)["a"]);
}

}  // namespace
}  // namespace flopsight::store
