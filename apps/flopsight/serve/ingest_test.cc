#include "serve/ingest.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <limits>
#include <thread>

#include "serve/test_ingest.h"
#include "wire/test_remote_write.h"

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
using wire::kV1;
using wire::kV2;

class Ingested : public testing::Test, public test::IngestHarness {};

// ---- what is taken, and what is said of the rest ----

TEST_F(Ingested, samples_of_an_hour_are_the_hours_of_their_job) {
  run("train", {0, 1}, 0, 3600);
  flush(true);
  EXPECT_NEAR(hours("train"), 2.0, 1e-6);
  EXPECT_EQ(ingest_->counters().samples, 240U * 4);
}

TEST_F(Ingested, the_good_samples_of_a_mixed_message_are_kept_and_the_bad_one_is_named) {
  Message message;
  message.gpu(labels_of(0, "train"), 0.5, 0).gpu(labels_of(1, "train"), 0.5, 3'000);
  const WriteAnswer answer = write(message);
  EXPECT_EQ(answer.status, 400);
  EXPECT_EQ(answer.samples, 2U);
  EXPECT_EQ(answer.text, std::string(kTensor) + "{UUID=\"GPU-00000001-aaaa-bbbb-cccc-000000000000\"}: the sample's time is too "
                                                "far in the future (and 1 more)");
  EXPECT_EQ(ingest_->counters().samples_too_new, 2U);
  EXPECT_EQ(ingest_->counters().requests_refused, 1U);
  run("train", {0}, 15, 600);
  flush(true);
  EXPECT_NEAR(hours("train"), 600 / 3600.0, 1e-6);
}

TEST_F(Ingested, a_sample_up_to_the_limit_in_the_future_is_taken) {
  EXPECT_EQ(write(Message().gpu(labels_of(0, "train"), 0.5, 600)).status, 204);
  EXPECT_EQ(write(Message().gpu(labels_of(0, "train"), 0.5, 600.001)).status, 400);
}

TEST_F(Ingested, a_sample_before_what_is_closed_is_too_old_and_changes_nothing) {
  run("train", {0}, 0, 600);
  flush();
  const Totals before = totals();
  const WriteAnswer answer = write(Message().gpu(labels_of(0, "train"), 0.9, 7));
  EXPECT_EQ(answer.status, 400);
  EXPECT_THAT(answer.text, HasSubstr("older than what is closed"));
  EXPECT_EQ(ingest_->counters().samples_too_old, 2U);
  flush();
  EXPECT_EQ(totals(), before);
}

TEST_F(Ingested, a_late_sample_of_an_open_slot_is_as_good_as_one_in_time) {
  run("train", {0}, 0, 300);
  flush();
  for (const int t : {345, 315, 330, 300}) EXPECT_EQ(write(Message().gpu(labels_of(0, "train"), tensor_at(0, t), t)).status, 204);
  run("train", {0}, 360, 600);
  flush(true);
  const Totals late = totals();
  fresh("in order");
  run("train", {0}, 0, 300);
  for (const int t : {300, 315, 330, 345}) EXPECT_EQ(write(Message().gpu(labels_of(0, "train"), tensor_at(0, t), t)).status, 204);
  run("train", {0}, 360, 600);
  flush(true);
  EXPECT_EQ(late, totals());
}

TEST_F(Ingested, a_malformed_series_is_named_and_its_neighbours_are_kept) {
  const std::string good = wire::series_v1(wire::label("__name__", std::string(kTensor)) +
                                           wire::label("UUID", "GPU-1") + wire::sample(0.5, now_.unix_milliseconds));
  const std::string bad = wire::series_v1(wire::label("__name__", std::string(kTensor)) + wire::label("UUID", "GPU-2") +
                                          wire::label("", "x") + wire::sample(0.5, now_.unix_milliseconds));
  const WriteAnswer answer = ingest_->remote_write(kV1, wire::snappy_compress(good + bad + good), now_);
  EXPECT_EQ(answer.status, 400);
  EXPECT_THAT(answer.text, HasSubstr("an empty label name"));
  EXPECT_EQ(answer.samples, 2U);  // the second is a duplicate
  EXPECT_EQ(ingest_->counters().samples_rejected, 1U);
}

TEST_F(Ingested, what_is_no_message_is_400_and_no_samples_are_logged_twice) {
  for (const std::string& body : {std::string("no snappy at all"), wire::snappy_compress("\x0a\xff\xff\xff\xff\x0f"),
                                  wire::snappy_compress(std::string(100, '\xff')), std::string()}) {
    const WriteAnswer answer = ingest_->remote_write(kV1, body, now_);
    EXPECT_EQ(answer.status, 400) << answer.text;
    EXPECT_FALSE(answer.text.empty());
    EXPECT_EQ(answer.text.find('\n'), std::string::npos);
  }
  EXPECT_EQ(write(Message()).status, 204);  // nothing, well said
  open();
  EXPECT_EQ(ingest_->health().gpus, 0U);
}

TEST_F(Ingested, metrics_of_no_use_are_counted_and_not_kept) {
  EXPECT_EQ(write(Message().add("node_load1", {{"instance", "n0"}}, 1, 0).add("up", {{"instance", "n0"}}, 1, 0)).status, 204);
  EXPECT_EQ(ingest_->counters().samples_unwanted, 2U);
  EXPECT_EQ(ingest_->health().label_sets, 0U);
  EXPECT_EQ(write(Message().add(kTensor, {{"instance", "n0"}}, 0.5, 0)).status, 204);
  EXPECT_EQ(ingest_->counters().samples_not_ours, 1U);
}

TEST_F(Ingested, a_stale_marker_ends_the_job_and_is_no_value) {
  run("train", {0}, 0, 300);
  const double stale = std::bit_cast<double>(std::uint64_t{0x7ff0000000000002});
  now_ = after(300);
  ASSERT_EQ(write(Message().gpu(labels_of(0, "train"), stale, 300, stale)).status, 204);
  run("other", {0}, 300, 600);
  flush(true);
  EXPECT_NEAR(hours("train"), 300 / 3600.0, 1e-6);
  EXPECT_NEAR(hours("other"), 300 / 3600.0, 1e-6);
}

TEST_F(Ingested, histograms_and_exemplars_are_counted) {
  const std::string message = wire::series_v1(
      wire::label("__name__", std::string(kTensor)) + wire::label("UUID", "GPU-1") +
      wire::sample(0.5, now_.unix_milliseconds) + wire::bytes_field(3, wire::bytes_field(1, wire::label("trace", "x"))) +
      wire::bytes_field(4, wire::varint_field(1, 4)) + wire::bytes_field(4, wire::varint_field(1, 5)));
  const WriteAnswer answer = ingest_->remote_write(kV1, wire::snappy_compress(message), now_);
  EXPECT_EQ(answer.status, 204) << answer.text;
  EXPECT_EQ(answer.samples, 1U);
  EXPECT_EQ(answer.histograms, 2U);
  EXPECT_EQ(answer.exemplars, 1U);
  EXPECT_EQ(ingest_->counters().histograms, 2U);
  EXPECT_EQ(ingest_->counters().exemplars, 1U);
}

TEST_F(Ingested, a_pair_of_replicas_counts_every_hour_once) {
  for (int t = 0; t < 600; t += 15) {
    now_ = after(t);
    for (const char* replica : {"prometheus-0", "prometheus-1"}) {
      ASSERT_EQ(write(Message().gpu(labels_of(0, "train", {{"prometheus_replica", replica}}), tensor_at(0, t), t)).status, 204);
    }
  }
  flush(true);
  EXPECT_NEAR(hours("train"), 600 / 3600.0, 1e-6);
  EXPECT_EQ(ingest_->counters().samples_duplicate, 80U);
  // Shifted by some seconds, as two servers really scrape.
  fresh("shifted");
  for (int t = 0; t < 600; t += 15) {
    now_ = after(t + 6);
    ASSERT_EQ(write(Message().gpu(labels_of(0, "train", {{"replica", "a"}}), 0.5, t)).status, 204);
    ASSERT_EQ(write(Message().gpu(labels_of(0, "train", {{"replica", "b"}}), 0.5, t + 6)).status, 204);
  }
  flush(true);
  EXPECT_NEAR(hours("train"), 600 / 3600.0, 10 / 3600.0);
}

TEST_F(Ingested, both_versions_of_remote_write_give_the_same_cells) {
  run("train", {0, 1, 2}, 0, 900, kV1);
  flush(true);
  const Totals one = totals();
  fresh("two");
  run("train", {0, 1, 2}, 0, 900, kV2);
  flush(true);
  EXPECT_EQ(one, totals());
  EXPECT_EQ(one.size(), 1U);
}

// ---- limits, at and one past ----

TEST_F(Ingested, gpus_past_the_limit_are_refused_and_the_known_ones_go_on) {
  base_.live.gpus_max = 2;
  open();
  EXPECT_EQ(write(Message().gpu(labels_of(0, "a"), 0.5, 0).gpu(labels_of(1, "a"), 0.5, 0)).status, 204);
  const WriteAnswer third = write(Message().gpu(labels_of(2, "a"), 0.5, 0).gpu(labels_of(0, "a"), 0.5, 15));
  EXPECT_EQ(third.status, 400);
  EXPECT_EQ(third.samples, 2U);
  EXPECT_THAT(third.text, HasSubstr("a limit"));
  EXPECT_EQ(ingest_->counters().samples_over_limit, 2U);
}

TEST_F(Ingested, label_sets_past_the_limit_are_refused) {
  base_.live.label_sets_max = 2;
  open();
  EXPECT_EQ(write(Message().gpu(labels_of(0, "a"), 0.5, 0).gpu(labels_of(1, "a"), 0.5, 0)).status, 204);
  EXPECT_EQ(write(Message().gpu(labels_of(0, "b"), 0.5, 15)).status, 400);
  EXPECT_EQ(write(Message().gpu(labels_of(0, "a"), 0.5, 30)).status, 204);
}

TEST_F(Ingested, limits_of_a_message) {
  base_.remote_write.series_max = 4;
  base_.remote_write.labels_per_series_max = 8;
  base_.remote_write.label_value_bytes_max = 60;
  base_.decompressed_bytes_max = 1'000;
  open();
  Message four, five;
  four.gpu(labels_of(0, "a"), 0.5, 0).gpu(labels_of(1, "a"), 0.5, 0);
  five.gpu(labels_of(0, "a"), 0.5, 15).gpu(labels_of(1, "a"), 0.5, 15).add(kTensor, {{"UUID", "x"}}, 0, 15);
  EXPECT_EQ(write(four).status, 204);
  EXPECT_EQ(write(five).status, 400);
  EXPECT_EQ(write(Message().add(kTensor, labels_of(0, "a", {{"l1", "1"}}), 0.5, 30)).status, 204);
  EXPECT_EQ(write(Message().add(kTensor, labels_of(0, "a", {{"l1", "1"}, {"l2", "2"}}), 0.5, 45)).status, 400);
  EXPECT_EQ(write(Message().add(kTensor, labels_of(0, std::string(60, 'p')), 0.5, 60)).status, 204);
  EXPECT_EQ(write(Message().add(kTensor, labels_of(0, std::string(61, 'p')), 0.5, 75)).status, 400);
  EXPECT_EQ(ingest_->remote_write(kV1, wire::snappy_compress(std::string(1'001, 'x')), now_).status, 413);
}

TEST_F(Ingested, a_full_log_is_503_until_a_flush_makes_room) {
  base_.log.bytes_max = 16'000;
  base_.log.segment_bytes = 1'000;
  open();
  WriteAnswer answer;
  int t = 0;
  for (; t < 15 * 400 && answer.status == 204; t += 15) {
    now_ = after(t);
    answer = write(Message().gpu(labels_of(0, "a"), 0.5, t));
  }
  EXPECT_EQ(answer.status, 503);
  EXPECT_THAT(answer.text, HasSubstr("the log would pass its 16000 bytes"));
  EXPECT_FALSE(ingest_->health().accepting);
  EXPECT_EQ(ingest_->counters().requests_unavailable, 1U);
  flush();
  // It says so before anybody writes: who waits for that would never write.
  EXPECT_TRUE(ingest_->health().accepting) << ingest_->health().why_not;
  EXPECT_EQ(write(Message().gpu(labels_of(0, "a"), 0.5, t)).status, 204);
}

TEST_F(Ingested, a_log_that_fills_before_late_samples_were_waited_for_makes_room_with_the_next_flush) {
  base_.live.late = units::Seconds(60);
  const auto fill = [&](std::uint64_t bytes_max) {
    base_.log.bytes_max = bytes_max;
    base_.log.segment_bytes = 200;
    fresh("log of " + std::to_string(bytes_max));
    for (int t = 0;; t += 15) {
      now_ = after(t);
      const WriteAnswer answer = write(Message().gpu(labels_of(0, "a"), 0.5, t));
      if (answer.status != 204) return t;
    }
  };
  const int room_for = fill(100'000);
  // A hundred seconds of samples: a slot has ended, and late ones would still be waited for.
  const int full_at = fill(static_cast<std::uint64_t>(100'000 * 105 / room_for));
  ASSERT_GE(full_at, 90);
  ASSERT_LT(full_at, 120);
  EXPECT_TRUE(ingest_->wants_flush());
  flush();
  EXPECT_TRUE(ingest_->health().accepting) << ingest_->health().why_not;
  EXPECT_EQ(write(Message().gpu(labels_of(0, "a"), 0.5, full_at)).status, 204);
  // Nothing of what was taken is missing.
  now_ = after(86'400);
  flush();
  EXPECT_NEAR(hours("a") * 3'600, full_at + 15, 1);
}

TEST_F(Ingested, what_trainers_reported_stays_in_the_log_until_it_is_kept) {
  run("train", {0}, 0, 300);
  ASSERT_EQ(write(Message().add("flopsight_training_mfu_ratio", {{"pod", "train"}, {"namespace", "a"}}, 0.4, 285)).status, 204);
  const auto taken = [&] {
    now_ = after(86'400);
    const std::size_t count = ingest_->take_reported(now_).size();
    flush();
    flush();
    return count;
  };
  for (int start = 0; start < 3; ++start) {
    EXPECT_EQ(taken(), 1U) << "nobody said that it is kept";
    open();
  }
  EXPECT_EQ(ingest_->take_reported(now_).size(), 1U);
  ingest_->reported_is_kept();
  flush();
  flush();
  open();
  EXPECT_EQ(taken(), 0U);
}

TEST_F(Ingested, of_what_is_in_cells_the_log_keeps_nothing_though_nothing_more_comes) {
  open();
  const std::uint64_t empty = ingest_->health().log_bytes;
  run("train", {0}, 0, 600);
  EXPECT_GT(ingest_->health().log_bytes, 1'000U);
  now_ = after(86'400);
  flush();
  flush();
  EXPECT_LE(ingest_->health().log_bytes, empty);
  const Totals before = totals();
  EXPECT_FALSE(before.empty());
  open();  // and nothing of it is missed
  EXPECT_EQ(ingest_->take_notes(), std::vector<std::string>());
  EXPECT_EQ(totals(), before);
  // Nor that something does not exist, which says nothing of any GPU's time.
  ASSERT_EQ(write(Message().add("flopsight_simulated", {}, 1, 600)).status, 204);
  flush();
  open();
  EXPECT_TRUE(ingest_->health().simulated);
}

TEST_F(Ingested, a_disk_below_its_reserve_is_503_and_reading_goes_on) {
  run("train", {0}, 0, 600);
  flush();
  const Totals before = totals();
  base_.log.free_bytes_min = std::uint64_t{1} << 60;
  open();
  EXPECT_EQ(totals(), before);
  const WriteAnswer answer = write(Message().gpu(labels_of(0, "train"), 0.5, 600));
  EXPECT_EQ(answer.status, 503);
  EXPECT_THAT(answer.text, HasSubstr("bytes left"));
  EXPECT_EQ(totals(), before);
}

TEST_F(Ingested, a_backlog_that_is_sent_faster_than_slots_close_is_taken_whole) {
  base_.live.rows_per_gpu_max = 64;
  open();
  now_ = after(86'400);
  int refused = 0;
  for (int t = 0; t < 15 * 1'000; t += 15) {
    WriteAnswer answer = write(Message().gpu(labels_of(0, "train"), 0.5, t));
    // A client tries again what is 5xx, and drops what is 4xx.
    while (answer.status >= 500) {
      ++refused;
      flush();
      answer = write(Message().gpu(labels_of(0, "train"), 0.5, t));
    }
    ASSERT_EQ(answer.status, 204) << answer.text << " at " << t;
  }
  EXPECT_GT(refused, 0);
  flush(true);
  EXPECT_NEAR(hours("train"), 15 * 1'000 / 3600.0, 1e-6);
}

// ---- threads ----

TEST_F(Ingested, writers_readers_and_flushes_at_once) {
  now_ = after(1'200);
  std::vector<std::jthread> threads;
  std::atomic<int> done{0};
  for (int gpu = 0; gpu < 4; ++gpu) {
    threads.emplace_back([&, gpu] {
      for (int t = 0; t < 1'200; t += 15) {
        const Message message = Message().gpu(labels_of(gpu, "train"), 0.5, t);
        EXPECT_EQ(ingest_->remote_write(kV1, message.body(), now_).status, 204);
      }
      ++done;
    });
  }
  threads.emplace_back([&] {
    while (done < 4) {
      static_cast<void>(ingest_->health());
      static_cast<void>(ingest_->counters());
      static_cast<void>(ingest_->store()->jobs());
    }
  });
  while (done < 4) EXPECT_TRUE(ingest_->flush(now_).ok());
  threads.clear();
  flush(true);
  EXPECT_NEAR(hours("train"), 4 * 1'200 / 3600.0, 1e-6);
}

}  // namespace
}  // namespace flopsight::app
