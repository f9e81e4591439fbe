// Ingest with an engine that answers, is away, rejects, or is too slow for what comes.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>

#include "net/test_http_server.h"
#include "serve/test_ingest.h"

namespace flopsight::app {
namespace {

using net::TestHttpServer;
using net::TestReply;
using net::TestRequest;
using test::after;
using test::labels_of;
using test::Message;
using testing::HasSubstr;

class IngestedWithEngine : public testing::Test, public test::IngestHarness {
 protected:
  IngestedWithEngine()
      : server_([this](const TestRequest&) { return TestReply{status_ == 204 ? "204 No Content" : std::to_string(status_) + " No", {}, "why"}; }) {
    base_.engine.emplace();
    base_.engine->reader.url = server_.url();
    base_.engine->reader.http.retries = 0;
    base_.engine->write_url = server_.url("/api/v1/write");
    base_.engine->store.outbox_bytes_max = 1 << 20;
    fresh("with-engine");
  }
  // Until nothing waits; how many parcels went.
  int deliver_all() {
    for (int count = 0;; ++count) {
      const auto more = ingest_->deliver();
      FLOPSIGHT_CHECK(more.ok());
      if (!*more) return count;
    }
  }

  std::atomic<int> status_ = 204;
  TestHttpServer server_;
};

TEST_F(IngestedWithEngine, what_is_flushed_is_delivered_once_and_counted) {
  run("train", {0, 1}, 0, 600);
  flush(true);
  EXPECT_GT(ingest_->engine_health()->outbox.parcels, 0U);
  EXPECT_GT(deliver_all(), 0);
  const EngineHealth health = *ingest_->engine_health();
  EXPECT_EQ(health.outbox.parcels, 0U);
  EXPECT_EQ(health.outbox.lag.value, 0);
  EXPECT_GT(health.samples, 100U);
  EXPECT_EQ(health.samples_rejected, 0U);
  EXPECT_EQ(deliver_all(), 0);
  for (const TestRequest& request : server_.requests()) EXPECT_EQ(request.target, "/api/v1/write");
}

TEST_F(IngestedWithEngine, an_engine_that_is_away_keeps_nothing_from_coming_in) {
  status_ = 503;
  run("train", {0, 1}, 0, 600);
  flush(true);
  const auto more = ingest_->deliver();
  ASSERT_FALSE(more.ok());
  EXPECT_EQ(more.error().code, base::ErrorCode::kUnavailable);
  EXPECT_THAT(ingest_->engine_health()->error, HasSubstr("503"));
  EXPECT_EQ(ingest_->engine_health()->failures, 1U);
  EXPECT_TRUE(ingest_->health().accepting);
  const auto reader = ingest_->reader(now_);
  ASSERT_TRUE(reader.ok());
  EXPECT_EQ(const_cast<Ingest::ReaderHandle&>(*reader)->job_totals({{0}, {1}}, std::nullopt).error().code, base::ErrorCode::kUnavailable);
  const auto waiting = ingest_->engine_health()->outbox.parcels;
  open();  // killed: it is still there
  EXPECT_EQ(ingest_->engine_health()->outbox.parcels, waiting);
  status_ = 204;
  EXPECT_EQ(deliver_all(), static_cast<int>(waiting));
  EXPECT_EQ(ingest_->engine_health()->error, "");
}

TEST_F(IngestedWithEngine, past_the_limit_of_the_outbox_samples_are_refused_until_there_is_room) {
  base_.engine->store.outbox_bytes_max = 1;
  open();
  run("train", {0}, 0, 600);
  flush(true);
  EXPECT_FALSE(ingest_->health().accepting);
  EXPECT_THAT(ingest_->health().why_not, HasSubstr("engine.outbox-bytes"));
  now_ = after(600);
  const WriteAnswer refused = write(Message().gpu(labels_of(0, "train"), 0.5, 600));
  EXPECT_EQ(refused.status, 503);
  EXPECT_THAT(refused.text, HasSubstr("outbox"));
  EXPECT_FALSE(ingest_->scrape("t", {}, "m 1\n", "", now_).ok());
  EXPECT_EQ(ingest_->flush(now_).error().code, base::ErrorCode::kLimit);
  deliver_all();
  EXPECT_TRUE(ingest_->health().accepting);
  EXPECT_EQ(write(Message().gpu(labels_of(0, "train"), 0.5, 600)).status, 204);
  EXPECT_TRUE(ingest_->flush(now_).ok());
}

TEST_F(IngestedWithEngine, samples_that_the_engine_rejects_are_counted_said_once_and_not_kept) {
  status_ = 400;
  run("train", {0}, 0, 600);
  flush(true);
  EXPECT_GT(deliver_all(), 1);
  EXPECT_GT(ingest_->engine_health()->samples_rejected, 0U);
  EXPECT_EQ(ingest_->engine_health()->outbox.parcels, 0U);
  const auto notes = ingest_->take_notes();
  ASSERT_EQ(notes.size(), 1U);
  EXPECT_THAT(notes.front(), HasSubstr("the engine rejects samples"));
  EXPECT_THAT(notes.front(), HasSubstr("flopsight_"));
  EXPECT_THAT(notes.front(), HasSubstr("HTTP 400 No: why"));
}

TEST_F(IngestedWithEngine, questions_wait_for_no_flush_and_are_limited) {
  const Ingest::StoreHandle busy = ingest_->store();
  std::vector<Ingest::ReaderHandle> readers;
  for (int i = 0; i < 8; ++i) {
    auto reader = ingest_->reader(now_);
    ASSERT_TRUE(reader.ok());
    readers.push_back(std::move(reader).value());
  }
  const auto one_more = ingest_->reader(now_);
  EXPECT_EQ(one_more.error().code, base::ErrorCode::kUnavailable);
  readers.pop_back();
  EXPECT_TRUE(ingest_->reader(now_).ok());
}

}  // namespace
}  // namespace flopsight::app
