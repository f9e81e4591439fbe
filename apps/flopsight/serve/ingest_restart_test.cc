// Restarts, flushes and scrapes: whatever happens in between, the totals are those of a run without it.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include <unistd.h>

#include "serve/test_ingest.h"

namespace flopsight::app {
namespace {

using test::after;
using test::Instant;
using test::kTensor;
using test::LabelTexts;
using test::labels_of;
using test::Message;
using test::Totals;
using testing::HasSubstr;

class Restarted : public testing::Test, public test::IngestHarness {};

TEST_F(Restarted, a_restart_without_a_flush_changes_no_total) {
  const auto feed = [&](bool restarts) {
    for (int part = 0; part < 8; ++part) {
      run("train", {0, 1, 2}, part * 150, (part + 1) * 150);
      run("other", {3}, part * 150, (part + 1) * 150);
      if (part % 3 == 1) flush();
      if (restarts) open();
    }
    flush(true);
    return totals();
  };
  const Totals with = feed(true);
  fresh("whole");
  EXPECT_EQ(with, feed(false));
  EXPECT_EQ(with.size(), 2U);
}

TEST_F(Restarted, a_restart_after_refused_and_repeated_samples_changes_no_total) {
  const auto feed = [&](bool restarts) {
    for (int part = 0; part < 6; ++part) {
      run("train", {0, 1}, part * 300, (part + 1) * 300);
      flush();
      // Late by half a step: what is closed already must not come back as context either.
      write(Message().gpu(labels_of(0, "train"), 0.99, part * 300 + 127).gpu(labels_of(1, "train"), 0.99, part * 300 + 112));
      write(Message().gpu(labels_of(0, "train"), 0.99, part * 300 + 285).gpu(labels_of(1, "train"), 0.01, part * 300 + 285));
      if (restarts) open();
    }
    flush(true);
    return totals();
  };
  const Totals with = feed(true);
  fresh("whole");
  EXPECT_EQ(with, feed(false));
}

// Of a GPU that is closed out the log keeps nothing.
TEST_F(Restarted, a_silence_through_a_restart_is_unmeasured_time_of_whom_the_gpu_was_with) {
  const auto feed = [&](bool restarts) -> Totals {
    run("train", {0, 1}, 0, 600);
    run("other", {2}, 0, 600);
    run("", {3}, 0, 600);
    now_ = after(600 + 1'200);
    flush();
    flush();
    if (restarts) open();
    run("train", {0, 1}, 1'800, 2'400);
    run("next", {2}, 1'800, 2'400);
    run("", {3}, 1'800, 2'400);
    flush(true);
    return totals_but_for_clock_differences();
  };
  const Totals with = feed(true);
  EXPECT_NEAR(hours("train"), 2 * 2'415.0 / 3'600, 0.01);
  fresh("whole");
  const Totals whole = feed(false);
  EXPECT_EQ(with.size(), whole.size());
  for (const auto& [job, fields] : with) {
    for (std::size_t i = 0; i < fields.size(); ++i) EXPECT_EQ(fields[i], whole.at(job)[i]) << job << ": " << rollups::cell_fields()[i].name;
  }
}

TEST_F(Restarted, sending_everything_again_from_the_start_changes_no_total) {
  run("train", {0, 1}, 0, 1'200);
  flush();
  const auto again = [&] {
    for (int t = 0; t < 1'200; t += 15) {
      Message message;
      for (const int gpu : {0, 1}) message.gpu(labels_of(gpu, "train"), tensor_at(gpu, t), t, 1400 + (t / 15 * 7 + gpu) % 300);
      write(message);
    }
  };
  again();
  open();
  again();
  flush();
  open();
  again();
  flush(true);
  const Totals thrice = totals();
  fresh("once");
  run("train", {0, 1}, 0, 1'200);
  flush(true);
  EXPECT_EQ(thrice, totals());
}

TEST_F(Restarted, flush_after_flush_writes_no_slot_twice) {
  for (int t = 0; t < 1'800; t += 15) {
    run("train", {0, 1}, t, t + 15);
    flush();
    if (t % 150 == 0) flush();
  }
  now_ = after(1'800 + 700);  // silent for longer than `idle`
  flush();
  flush();
  EXPECT_NEAR(hours("train"), 2 * 1'800 / 3600.0, 1e-6);
  const Totals often = totals();
  fresh("once");
  run("train", {0, 1}, 0, 1'800);
  flush(true);
  EXPECT_EQ(often, totals());
}

TEST_F(Restarted, a_gpu_that_comes_back_after_it_was_closed_out_counts_from_then_on) {
  run("train", {0}, 0, 600);
  now_ = after(1'300);
  flush();
  open();
  run("train", {0}, 1'300, 1'900);
  flush(true);
  EXPECT_GE(hours("train"), 1'200 / 3600.0 - 1e-6);
  EXPECT_LE(hours("train"), 1'900 / 3600.0 + 1e-6);
}

TEST_F(Restarted, what_was_taken_before_a_crash_is_taken_again_however_much_lies_before_it) {
  base_.live.rows_per_gpu_max = 64;
  base_.live.idle = units::Seconds(86'400);
  open();
  // GPU 1 falls silent and holds the log back; GPU 0 is far past the rows that one GPU may have.
  run("train", {1}, 0, 15);
  now_ = after(6'600);
  for (int part = 0; part < 10; ++part) {
    for (int t = part * 600; t < (part + 1) * 600; t += 15) ASSERT_EQ(write(Message().gpu(labels_of(0, "train"), 0.5, t)).status, 204);
    flush();
  }
  open();
  for (int t = 6'000; t < 6'600; t += 15) ASSERT_EQ(write(Message().gpu(labels_of(0, "train"), 0.5, t)).status, 204) << t;
  flush(true);
  EXPECT_NEAR(hours("train"), (6'600 + 60) / 3600.0, 1e-6);  // a sample alone holds for a minute
}

TEST_F(Restarted, a_gpu_whose_uuid_was_learned_later_is_closed_once) {
  const auto feed = [&](bool restarts) {
    for (int t = 0; t < 900; t += 15) {
      now_ = after(t);
      LabelTexts bare = {{"gpu", "0"}, {"Hostname", "n0"}};
      Message message;
      if (t == 0) message.add(test::kTemperature, bare, 50, t);
      EXPECT_EQ(write(message.gpu(labels_of(0, "train"), 0.5, t)).status, 204);
      if (t % 300 == 285) flush();
    }
    if (restarts) open();
    flush(true);
    return hours("train");
  };
  EXPECT_NEAR(feed(true), 900 / 3600.0, 1e-6);
}

TEST_F(Restarted, a_restart_does_not_lengthen_a_job_that_had_ended) {
  run("train", {0}, 0, 600);
  run("", {0}, 600, 1'800);
  flush();
  const auto spans = [&] {
    std::vector<std::pair<std::int64_t, std::int64_t>> out;
    Ingest::StoreHandle store = ingest_->store();
    const auto held = store->held(std::nullopt, {Instant{0}, after(86'400)});
    for (const store::Held& one : *held) out.emplace_back(one.window.start.unix_milliseconds, one.window.end.unix_milliseconds);
    return out;
  };
  const auto before = spans();
  EXPECT_THAT(before, testing::ElementsAre(std::pair(after(0).unix_milliseconds, after(600).unix_milliseconds)));
  open();
  EXPECT_EQ(spans(), before);
  run("", {0}, 1'800, 3'000);
  flush();
  EXPECT_EQ(spans(), before);
}

TEST_F(Restarted, the_log_does_not_grow_with_what_is_in_the_store) {
  std::uint64_t most = 0;
  for (int part = 0; part < 20; ++part) {
    run("train", {0, 1}, part * 300, (part + 1) * 300);
    flush();
    if (part > 2) most = std::max(most, ingest_->health().log_bytes);
    if (part == 2) most = ingest_->health().log_bytes;
  }
  EXPECT_LE(ingest_->health().log_bytes, most);
  EXPECT_LT(std::distance(std::filesystem::directory_iterator(options().folder + "/log"), {}), 6);
}

TEST_F(Restarted, a_second_ingest_in_the_folder_is_refused_with_the_first_ones_process) {
  const auto second = Ingest::open(options(), rules_);
  ASSERT_FALSE(second.ok());
  EXPECT_THAT(second.error().message, HasSubstr("process " + std::to_string(getpid())));
}

TEST_F(Restarted, what_of_the_log_or_the_store_is_gone_is_said_at_the_start) {
  const auto expect_said = [&](const char* what, const std::function<void(const std::string&)>& lose, const char* said) {
    fresh(what);
    for (int part = 0; part < 4; ++part) {
      run("train", {0, 1}, part * 300, (part + 1) * 300);
      flush();
    }
    EXPECT_THAT(ingest_->take_notes(), testing::IsEmpty());
    ingest_.reset();
    lose(options().folder);
    open();
    EXPECT_THAT(ingest_->take_notes(), testing::Contains(HasSubstr(said))) << what;
    // A cut one may be what a crash leaves, of which nobody was told that it is kept.
    EXPECT_EQ(ingest_->log_unreadable().count("kept_not_readable") > 0, std::string_view(what) != "cut log") << what;
    // And what comes then is kept through the next restart.
    run("train", {0, 1}, 1'200, 1'500);
    open();
    flush(true);
    EXPECT_GE(hours("train"), 2 * 240.0 / 3600) << what;
  };
  namespace fs = std::filesystem;
  expect_said("whole log", [](const std::string& folder) { fs::remove_all(folder + "/log"); }, "was to be read");
  expect_said("cut log", [](const std::string& folder) {
    for (const auto& file : fs::directory_iterator(folder + "/log")) fs::resize_file(file, 0);
  }, "not the head of a segment");
  expect_said("no store", [](const std::string& folder) { fs::remove(folder + "/flopsight.db"); }, "was to be read");
  expect_said("empty store", [](const std::string& folder) { fs::resize_file(folder + "/flopsight.db", 0); }, "was to be read");
  fresh("nothing lost");
  run("train", {0}, 0, 300);
  open();
  EXPECT_THAT(ingest_->take_notes(), testing::IsEmpty());
  EXPECT_EQ(ingest_->log_unreadable().count("kept_not_readable"), 0U);
}

TEST_F(Restarted, without_room_it_starts_and_says_that_it_takes_nothing) {
  run("train", {0}, 0, 600);
  base_.log.free_bytes_min = std::uint64_t{1} << 60;
  open();
  EXPECT_FALSE(ingest_->health().accepting);
  EXPECT_THAT(ingest_->health().why_not, HasSubstr("are kept free"));
  EXPECT_EQ(write(Message().gpu(labels_of(0, "train"), 0.5, 600)).status, 503);
  base_.log.free_bytes_min = 0;
  open();
  EXPECT_TRUE(ingest_->health().accepting);
}

TEST_F(Restarted, a_reserve_is_kept_for_a_start_on_a_full_disk) {
  const std::string reserve = options().folder + "/RESERVE";
  EXPECT_EQ(std::filesystem::file_size(reserve), 1U << 20);
  std::filesystem::remove(reserve);
  open();
  EXPECT_EQ(std::filesystem::file_size(reserve), 1U << 20);
}

// ---- scrapes ----

TEST_F(Restarted, scrapes_survive_a_restart_with_the_labels_of_their_target) {
  const std::vector<wire::Label> labels = {{"hostname", "from a target"}, {"team", "x"}};
  const auto feed = [&](bool restarts) {
    for (int t = 0; t < 600; t += 15) {
      now_ = after(t);
      const std::string text = test::sample(kTensor, "gpu=\"0\",UUID=\"GPU-9\",modelName=\"NVIDIA H100 80GB HBM3\",exported_pod=\"p\"", "0.5") +
                               test::sample(test::kClock, "gpu=\"0\",UUID=\"GPU-9\",modelName=\"NVIDIA H100 80GB HBM3\",exported_pod=\"p\"", "1500");
      EXPECT_TRUE(ingest_->scrape("http://n0:9400/metrics", labels, text, "text/plain", now_).ok());
      if (restarts && t % 150 == 0) open();
    }
    flush(true);
    return totals();
  };
  const Totals with = feed(true);
  EXPECT_EQ(with.size(), 1U);
  EXPECT_NEAR(hours("p"), 600 / 3600.0, 1e-6);
  fresh("whole");
  EXPECT_EQ(with, feed(false));
  Ingest::StoreHandle store = ingest_->store();
  EXPECT_EQ(store->gpus().value().at(0).identity.host, "from a target");
}

TEST_F(Restarted, of_a_scrape_only_what_is_used_fills_the_log) {
  const std::string used = test::sample(kTensor, "gpu=\"0\",UUID=\"GPU-9\"", "0.5") + test::sample(test::kClock, "gpu=\"0\",UUID=\"GPU-9\"", "1500");
  std::string junk = "# HELP node_x A thing.\n# TYPE node_x gauge\n";
  for (int i = 0; i < 50'000; ++i) junk += "node_x{cpu=\"" + std::to_string(i) + "\",id=\"" + std::to_string(i * 7919 % 104'729) + "\"} " + std::to_string(i) + "\n";
  EXPECT_TRUE(ingest_->scrape("http://n0/metrics", {}, used + junk + used, "text/plain", now_).ok());
  EXPECT_LT(ingest_->health().log_bytes, 2'000U);
  EXPECT_EQ(ingest_->counters().samples, 2U);
  EXPECT_EQ(ingest_->counters().samples_unwanted, 50'000U);
  run("train", {0}, 0, 600);
  const auto before = ingest_->health().newest_sample;
  open();
  EXPECT_EQ(ingest_->health().newest_sample, before);
  EXPECT_EQ(ingest_->health().gpus, 2U);
}

TEST_F(Restarted, labels_of_a_target_that_hold_line_ends_harm_nothing) {
  const std::vector<wire::Label> labels = {{"hostname", "two\nlines\x1fx=y"}, {"rack", "7"}};
  const std::string text = test::sample(kTensor, "gpu=\"0\",UUID=\"GPU-9\"", "0.5");
  EXPECT_TRUE(ingest_->scrape("http://n0/metrics", labels, text, "", now_).ok());
  EXPECT_EQ(ingest_->counters().samples, 1U);
  EXPECT_EQ(ingest_->counters().malformed_lines, 0U);
}

TEST_F(Restarted, new_labels_of_a_target_hold_from_then_on) {
  const auto scrape = [&](const char* pod, int t) {
    now_ = after(t);
    const std::vector<wire::Label> labels = {{"exported_pod", pod}, {"exported_namespace", "a"}};
    const std::string text = test::sample(kTensor, "gpu=\"0\",UUID=\"GPU-9\"", "0.5") + test::sample(test::kClock, "gpu=\"0\",UUID=\"GPU-9\"", "1500");
    EXPECT_TRUE(ingest_->scrape("http://n0/metrics", labels, text, "", now_).ok());
  };
  for (int t = 0; t < 300; t += 15) scrape("first", t);
  for (int t = 300; t < 600; t += 15) scrape("second", t);
  flush(true);
  EXPECT_NEAR(hours("first"), 300 / 3600.0, 1e-6);
  EXPECT_NEAR(hours("second"), 300 / 3600.0, 1e-6);
}

}  // namespace
}  // namespace flopsight::app
