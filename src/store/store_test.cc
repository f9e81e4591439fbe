#include "store/store.h"

#include <filesystem>
#include <fstream>
#include <map>
#include <random>

#include <gtest/gtest.h>

#include "store/sqlite.h"
#include "store/test_store.h"

namespace flopsight::store {
namespace {

using rollups::Cell;
using rollups::CellField;
using test::cell_of;
using test::kDay;
using test::kMinute;
using test::StoreTest;
using units::Instant;
using units::Seconds;
using units::Window;

TEST_F(StoreTest, numbers_of_jobs_are_good_until_a_name_changes_or_the_store_is_opened_anew) {
  const JobId a = job("a");
  const auto version = store_->names_version();
  ASSERT_TRUE(version.has_value());
  job("b");
  EXPECT_EQ(store_->names_version(), version);
  samples::Holder known;
  known.job = "a";
  known.name_space = "team";
  known.user = "ada";
  EXPECT_EQ(store_->job(known), a);
  EXPECT_NE(store_->names_version(), version);
  const auto later = store_->names_version();
  reopen();
  EXPECT_NE(store_->names_version(), later);
  EXPECT_NE(store_->names_version(), version);
}

TEST_F(StoreTest, one_name_of_several_users_or_teams_is_a_job_of_each) {
  const auto job_of = [&](const std::string& user, const std::string& team) {
    samples::Holder holder;
    holder.job = "train";
    holder.name_space = "ns";
    holder.user = user;
    holder.team = team;
    return store_->job(holder);
  };
  ASSERT_TRUE(store_->begin().ok());
  const JobId ada = job_of("ada", ""), zed = job_of("zed", "tz");
  EXPECT_NE(ada, zed);
  EXPECT_EQ(job_of("ada", "ta"), ada) << "what was not known is filled in";
  EXPECT_EQ(job_of("", ""), ada) << "who does not say whose it is contradicts nobody";
  const JobId moved = job_of("ada", "tb");
  EXPECT_NE(moved, ada);
  samples::Holder other;
  other.job = "train";
  other.name_space = "elsewhere";
  store_->job(other);
  commit();
  reopen();
  EXPECT_EQ(job_of("zed", "tz"), zed);
  EXPECT_EQ(job_of("ada", "ta"), ada);
  EXPECT_EQ(job_of("ada", "tb"), moved);
  EXPECT_EQ(*store_->find_job("train@ns"), (std::vector<JobId>{ada, zed, moved}));
  EXPECT_EQ(store_->find_job("train").error().code, base::ErrorCode::kInvalid) << "two namespaces have it";
  SqliteStoreOptions one;
  one.one_job_a_name = true;
  reopen(one);
  EXPECT_EQ(job_of("somebody", "else"), ada);
}

TEST_F(StoreTest, totals_of_any_window_equal_a_sum_of_cells_through_flushes_restarts_and_housekeeping) {
  std::mt19937_64 random(7);
  job("a"), job("b"), job("c");
  for (std::int64_t hour = 0; hour < 5; ++hour) {
    for (std::int64_t minute = 0; minute < 60; ++minute) {
      ASSERT_TRUE(store_->begin().ok());
      for (int n = 0; n < 12; ++n) {
        const char* const names[] = {"a", "b", "c", ""};
        put(n, names[(static_cast<std::size_t>(n) + static_cast<std::size_t>(hour)) % 4], kDay + (hour * 60 + minute) * kMinute, random);
      }
      commit();
    }
    reopen();
  }
  const auto check = [&] {
    for (int round = 0; round < 60; ++round) {
      const std::int64_t start = static_cast<std::int64_t>(random() % 300), length = static_cast<std::int64_t>(random() % 300);
      const Window window{{kDay + start * kMinute}, {kDay + (start + length) * kMinute}};
      EXPECT_EQ(totals(window), oracle(window)) << start << " + " << length;
    }
  };
  check();
  int steps = 0;
  for (;; ++steps) {
    const auto more = store_->maintain(Instant{kDay + 6 * 3'600'000}, Retention{});
    ASSERT_TRUE(more.ok()) << more.error().message;
    if (!*more) break;
    ASSERT_LT(steps, 100);
  }
  EXPECT_EQ(steps, 5 + 2 * 6 * 5);  // hours of GPUs, ten minutes of jobs and of the fleet
  check();
  // A week later minutes are gone and tens of minutes are exact.
  Retention retention;
  while (store_->maintain(Instant{kDay + 9 * 86'400'000}, retention).value()) {
  }
  for (std::int64_t start = 0; start < 300; start += 70) {
    const Window window{{kDay + start / 10 * 10 * kMinute}, {kDay + 290 * kMinute}};
    EXPECT_EQ(totals(window), oracle(window));
  }
  const auto gpus = store_->gpu_totals({{kDay}, {kDay + 300 * kMinute}}, std::nullopt);
  ASSERT_TRUE(gpus.ok());
  Cell sum, expected;
  for (const GpuTotal& total : *gpus) sum.merge(total.cell);
  for (const Put& p : all_) expected.merge(p.cell);
  EXPECT_EQ(sum, expected);
}

// Sums only: extremes of nobody's stay what they were.
std::map<std::string, std::vector<std::int64_t>> sums_of(const std::map<std::string, Cell>& totals) {
  std::map<std::string, std::vector<std::int64_t>> out;
  for (const auto& [name, cell] : totals) {
    std::vector<std::int64_t> sums;
    bool is_any = false;
    for (std::size_t i = 0; i < rollups::kCellFieldCount; ++i) {
      if (rollups::cell_fields()[i].merge != rollups::Merge::kSum) continue;
      sums.push_back(cell[static_cast<CellField>(i)]);
      is_any = is_any || sums.back() != 0;
    }
    if (is_any) out[name] = std::move(sums);
  }
  return out;
}

TEST_F(StoreTest, what_is_given_to_a_job_afterwards_is_as_if_it_had_been_its_from_the_start) {
  std::mt19937_64 random(11);
  job("a"), job("b");
  const auto is_late = [](int n, std::int64_t minute) { return n < 3 && minute >= 50 && minute < 170; };
  for (std::int64_t minute = 0; minute < 240; ++minute) {
    ASSERT_TRUE(store_->begin().ok());
    // Of the third, somebody had a part.
    for (int n = 0; n < 5; ++n) put(n, n == 4 || (n == 2 && minute % 3 == 0) ? "a" : "", kDay + minute * kMinute, random);
    commit(static_cast<std::uint32_t>(minute + 1));
  }
  const auto give = [&] {
    const auto cells = store_->unheld({gpu(0), gpu(1), gpu(2), gpu(4)}, {{kDay + 50 * kMinute - 1}, {kDay + 170 * kMinute + 30'000}});
    ASSERT_TRUE(cells.ok());
    ASSERT_TRUE(store_->begin().ok());
    ASSERT_TRUE(store_->give(*cells, job("b"), model()).ok());
    ASSERT_TRUE(store_->commit({store_->log_segment(), {}}).ok());
    EXPECT_EQ(cells->size(), given_ == 0 ? 2 * 120 + 80 : 0U) << "whole slots of nobody, once";
    given_ += cells->size();
  };
  give();
  for (Put& p : all_) {
    if (p.job.empty() && is_late(p.gpu, (p.slot_start - kDay) / kMinute)) p.job = "b";
  }
  const auto check = [&](std::int64_t grain) {
    for (int round = 0; round < 40; ++round) {
      const std::int64_t start = static_cast<std::int64_t>(random() % 240) / grain * grain, length = static_cast<std::int64_t>(random() % 240);
      const Window window{{kDay + start * kMinute}, {kDay + (start + length) / grain * grain * kMinute}};
      EXPECT_EQ(sums_of(totals(window)), sums_of(oracle(window))) << start << " + " << length;
    }
    const Window late{{kDay + 50 * kMinute}, {kDay + 170 * kMinute}};
    const auto members = store_->members(late, job("b"));
    EXPECT_EQ(members->at(0).gpus, (std::vector<GpuId>{gpu(0), gpu(1), gpu(2)}));
    EXPECT_EQ(members->at(0).ever.start, late.start);
    const auto gpus = store_->gpu_totals(late, std::nullopt);
    for (const GpuTotal& total : *gpus) EXPECT_NE(total.job == 0 && total.gpu != gpu(3), true) << total.gpu;
    EXPECT_EQ(store_->gpu_totals(late, job("b"))->size(), 3U);
  };
  check(1);
  EXPECT_EQ(store_->log_segment(), 240U);
  give();
  reopen();
  check(1);
  // It goes on as any other.
  ASSERT_TRUE(store_->begin().ok());
  put(0, "b", kDay + 240 * kMinute, random);
  commit(241);
  check(1);
  while (store_->maintain(Instant{kDay + 6 * 3'600'000}, Retention{}).value()) {
  }
  check(1);
  while (store_->maintain(Instant{kDay + 9 * 86'400'000}, Retention{}).value()) {
  }
  check(10);
}

TEST_F(StoreTest, a_late_slot_of_an_hour_that_was_merged_adds_up) {
  std::mt19937_64 random(8);
  for (int minute = 0; minute < 3; ++minute) {
    ASSERT_TRUE(store_->begin().ok());
    put(1, "a", kDay + minute * kMinute, random);
    commit();
  }
  while (store_->maintain(Instant{kDay + 4 * 3'600'000}, Retention{}).value()) {
  }
  ASSERT_TRUE(store_->begin().ok());
  put(2, "a", kDay + kMinute, random);
  commit();
  const Window window{{kDay}, {kDay + 3'600'000}};
  EXPECT_EQ(totals(window), oracle(window));
  const Window inside{{kDay + kMinute}, {kDay + 2 * kMinute}};
  EXPECT_EQ(totals(inside), oracle(inside));
}

TEST_F(StoreTest, a_flush_that_is_not_committed_leaves_nothing) {
  std::mt19937_64 random(9);
  ASSERT_TRUE(store_->begin().ok());
  put(1, "a", kDay, random);
  commit(3);
  ASSERT_TRUE(store_->begin().ok());
  put(1, "b", kDay + kMinute, random);
  reopen();
  EXPECT_EQ(store_->log_segment(), 3U);
  EXPECT_EQ(totals({{kDay}, {kDay + 3'600'000}}).size(), 1U);
  EXPECT_EQ(store_->jobs()->size(), 1U);
}

TEST_F(StoreTest, where_each_gpu_is_closed_survives_a_restart) {
  std::mt19937_64 random(10);
  ASSERT_TRUE(store_->begin().ok());
  put(1, "a", kDay, random);
  put(2, "a", kDay + 5 * kMinute, random);
  commit();
  reopen();
  samples::GpuIdentity identity;
  identity.uuid = "gpu-2";
  const auto closed = store_->closed_until();
  ASSERT_EQ(closed.size(), 2U);
  EXPECT_TRUE(closed[1].first == gpu_key(identity));
  EXPECT_EQ(closed[1].second.unix_milliseconds, kDay + 6 * kMinute);
}

TEST_F(StoreTest, how_far_divided_gpus_are_written_survives_restarts_and_a_damaged_list_costs_only_itself) {
  const auto instance = [&](const std::string& uuid, const std::string& number) {
    samples::GpuIdentity identity;
    identity.uuid = uuid;
    identity.mig_instance = number;
    return store_->gpu(identity);
  };
  const auto whole = [](const std::string& uuid) {
    samples::GpuIdentity identity;
    identity.uuid = uuid;
    return gpu_key(identity);
  };
  using Divided = std::map<base::Hash128, rollups::DividedGpu>;
  const auto divided = [&] {
    const auto all = store_->divided();
    return Divided(all.begin(), all.end());
  };
  const rollups::DividedGpu a{Instant{kDay}, {{Instant{kDay + kMinute}, 5'000'000}, {Instant{kDay + 3 * kMinute}, 7}}}, b{Instant{kDay + kMinute}, {}};
  const GpuId a1 = instance("gpu-a", "1"), b1 = instance("gpu-b", "1"), a2 = instance("gpu-a", "2");
  const auto commit_divided = [&](std::vector<std::pair<GpuId, rollups::DividedGpu>> list) {
    ASSERT_TRUE(store_->begin().ok());
    Store::Checkpoint checkpoint;
    checkpoint.closed_until = {{a1, Instant{kDay}}};
    checkpoint.divided = std::move(list);
    ASSERT_TRUE(store_->commit(checkpoint).ok());
  };
  commit_divided({{a1, a}, {b1, b}});
  reopen();
  EXPECT_EQ(divided(), (Divided{{whole("gpu-a"), a}, {whole("gpu-b"), b}}));
  commit_divided({{a2, b}});
  commit_divided({});
  reopen();
  EXPECT_EQ(divided(), (Divided{{whole("gpu-a"), b}, {whole("gpu-b"), b}})) << "by the GPU, whichever of its instances names it; others stay";
  EXPECT_TRUE(store_->take_notes().empty());
  for (const char* damage : {"x'00'", "x'FFFFFFFFFFFFFFFF'", "substr(closed_until, 1, 9)", "closed_until"}) {
    store_.reset();
    ASSERT_TRUE(Database::open(folder_ + "/flopsight.db", Database::Mode::kReadWrite)->execute(std::string("UPDATE checkpoint SET divided = ") + damage).ok());
    reopen();
    EXPECT_TRUE(divided().empty()) << damage;
    EXPECT_EQ(store_->take_notes().size(), 1U) << damage;
    EXPECT_EQ(store_->closed_until().size(), 1U) << damage;
    EXPECT_EQ(store_->unreadable().count(samples::kNotReadable), 1U) << damage;
  }
}

TEST_F(StoreTest, spans_say_when_a_gpu_was_whose_across_flushes_and_restarts) {
  std::mt19937_64 random(11);
  const std::string plan = "aaab.bba";  // one letter a minute
  for (std::size_t i = 0; i < plan.size(); ++i) {
    ASSERT_TRUE(store_->begin().ok());
    put(1, plan[i] == '.' ? "" : std::string(1, plan[i]), kDay + static_cast<std::int64_t>(i) * kMinute, random);
    commit();
    if (i % 2 == 0) reopen();
  }
  auto held = store_->held(std::nullopt, {{0}, {kDay * 2}}).value();
  std::sort(held.begin(), held.end(), [](const Held& a, const Held& b) { return a.window.start < b.window.start; });
  std::string text;
  for (const Held& span : held) {
    text += name_of(span.job) + std::to_string((span.window.start.unix_milliseconds - kDay) / kMinute) + "-" +
            std::to_string((span.window.end.unix_milliseconds - kDay) / kMinute) + " ";
  }
  EXPECT_EQ(text, "a0-3 b3-4 b5-7 a7-8 ");
  const auto jobs = store_->jobs().value();
  ASSERT_EQ(jobs.size(), 2U);
  EXPECT_EQ(jobs[0].gpu_count, 1U);
}

TEST_F(StoreTest, series_come_in_steps_and_merge_to_the_total) {
  std::mt19937_64 random(12);
  for (int minute = 0; minute < 130; ++minute) {
    ASSERT_TRUE(store_->begin().ok());
    put(1, "a", kDay + minute * kMinute, random);
    put(2, "a", kDay + minute * kMinute, random);
    commit();
  }
  for (const double step : {60.0, 300.0, 600.0, 3600.0}) {
    const auto series = store_->job_series(job("a"), {{kDay}, {kDay + 130 * kMinute}}, Seconds(step));
    ASSERT_TRUE(series.ok());
    Cell sum;
    for (const JobCell& cell : *series) {
      EXPECT_EQ(cell.slot_start.unix_milliseconds % static_cast<std::int64_t>(step * 1000), 0);
      sum.merge(cell.cell);
    }
    EXPECT_EQ(sum, oracle({{kDay}, {kDay + 130 * kMinute}})["a"]) << step;
    EXPECT_EQ(series->size(), static_cast<std::size_t>(std::ceil(130 * 60 / step)));
  }
}

TEST_F(StoreTest, a_file_that_is_no_database_is_put_aside_and_said) {
  store_.reset();
  std::ofstream(folder_ + "/flopsight.db", std::ios::trunc) << std::string(10'000, 'x');
  std::filesystem::remove(folder_ + "/flopsight.db-wal");
  reopen();
  const auto notes = store_->take_notes();
  ASSERT_EQ(notes.size(), 1U);
  EXPECT_NE(notes[0].find("put aside as"), std::string::npos);
  EXPECT_TRUE(std::filesystem::exists(folder_ + "/flopsight.db.damaged-1"));
}

TEST_F(StoreTest, a_damaged_block_costs_its_own_cells_and_is_named) {
  std::mt19937_64 random(14);
  for (int minute = 0; minute < 2; ++minute) {
    ASSERT_TRUE(store_->begin().ok());
    put(1, "a", kDay + minute * kMinute, random);
    commit();
  }
  store_.reset();
  {
    auto database = Database::open(folder_ + "/flopsight.db", Database::Mode::kReadWrite);
    ASSERT_TRUE(database->execute("UPDATE blocks SET bytes = substr(bytes, 1, 20) || x'5A' || substr(bytes, 22) "
                                  "WHERE kind = 0 AND id = (SELECT min(id) FROM blocks WHERE kind = 0)").ok());
  }
  reopen();
  const auto gpus = store_->gpu_totals({{kDay}, {kDay + 3'600'000}}, std::nullopt);
  ASSERT_TRUE(gpus.ok());
  ASSERT_EQ(gpus->size(), 1U);
  EXPECT_EQ((*gpus)[0].cell, all_[1].cell);
  const auto notes = store_->take_notes();
  ASSERT_EQ(notes.size(), 1U);
  EXPECT_NE(notes[0].find("checksum differs"), std::string::npos) << notes[0];
}

TEST_F(StoreTest, a_newer_version_and_another_slot_are_refused_with_both_numbers) {
  SqliteStoreOptions options;
  options.slot = Seconds(30);
  store_.reset();
  EXPECT_NE(open_sqlite_store(folder_, options).error().message.find("slots of 60 s"), std::string::npos);
  Database::open(folder_ + "/flopsight.db", Database::Mode::kReadWrite)->execute("PRAGMA user_version = 99").ok();
  const auto newer = open_sqlite_store(folder_, {});
  EXPECT_EQ(newer.error().code, base::ErrorCode::kUnsupported);
  EXPECT_NE(newer.error().message.find("version 99, this program knows up to 5"), std::string::npos);
}

TEST_F(StoreTest, names_with_quotes_and_markup_are_data) {
  const std::string evil = "x'); DROP TABLE jobs;--<img src=x onerror=alert(1)>";
  std::mt19937_64 random(15);
  ASSERT_TRUE(store_->begin().ok());
  put(1, evil, kDay, random);
  commit();
  reopen();
  EXPECT_EQ(store_->jobs()->at(0).holder.job, evil);
}

TEST_F(StoreTest, people_read_jobs_and_rollups_with_sqlite3) {
  std::mt19937_64 random(16);
  ASSERT_TRUE(store_->begin().ok());
  put(1, "a", kDay, random);
  commit();
  auto database = Database::open(folder_ + "/flopsight.db", Database::Mode::kReadOnly);
  auto rows = database->prepare("SELECT job, gpu_hours_allocated, gpu_hours_delivered + gpu_hours_lost + gpu_hours_unmeasured "
                                "= gpu_hours_allocated OR 1 FROM job_rollups WHERE slot_seconds = 3600");
  ASSERT_TRUE(rows.ok()) << rows.error().message;
  ASSERT_TRUE(rows->step().value());
  EXPECT_EQ(rows->text(0), "a");
  auto list = database->prepare("SELECT job, gpu_count, first FROM job_list");
  ASSERT_TRUE(list.ok()) << list.error().message;
  ASSERT_TRUE(list->step().value());
  EXPECT_EQ(list->integer(1), 1);
}

}  // namespace
}  // namespace flopsight::store
