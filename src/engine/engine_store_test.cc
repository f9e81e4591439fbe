#include "engine/engine_store.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/test_fleet.h"

namespace flopsight::engine {
namespace {

using rollups::CellField;
using test::kMinute;
using units::Instant;
using units::Seconds;

constexpr std::int64_t kHour = 1'790'035'200'000;

class EngineStoreTest : public testing::Test {
 protected:
  EngineStoreTest() : folder_(testing::TempDir() + "flopsight_engine_store_" +
                              testing::UnitTest::GetInstance()->current_test_info()->name()) {
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
    reopen();
  }
  ~EngineStoreTest() override {
    store_.reset();
    std::filesystem::remove_all(folder_);
  }
  void reopen() {
    store_.reset();
    auto opened = EngineStore::open(folder_, options_);
    ASSERT_TRUE(opened.ok()) << opened.error().message;
    store_ = std::move(opened).value();
  }
  // A minute of a GPU for a job.
  void add(int gpu, const std::string& job, std::int64_t minute) {
    samples::GpuIdentity identity;
    identity.uuid = "GPU-" + std::to_string(gpu);
    samples::Holder holder;
    holder.job = job;
    rollups::Cell cell;
    cell[CellField::kMeasured] = 60'000'000;
    cell[CellField::kDelivered] = 1'000'000 * gpu;
    cell[CellField::kCellCount] = 1;
    const store::GpuId id = store_->gpu(identity);
    ASSERT_TRUE(store_->add({id, store_->job(holder), {kHour + minute * kMinute}, cell}, store_->model("H100")).ok());
    closed_[id] = std::max(closed_[id], kHour + (minute + 1) * kMinute);
  }
  base::Status commit() {
    store::Store::Checkpoint checkpoint;
    for (const auto& [id, time] : closed_) checkpoint.closed_until.emplace_back(id, Instant{time});
    return store_->commit(checkpoint);
  }
  void flush(const std::vector<std::tuple<int, std::string, std::int64_t>>& cells) {
    ASSERT_TRUE(store_->begin().ok());
    for (const auto& [gpu, job, minute] : cells) add(gpu, job, minute);
    ASSERT_TRUE(commit().ok());
  }
  // The samples of a metric and field that wait, taken out: value@minute.
  std::vector<std::string> take(const std::string& metric, const std::string& field, const std::string& job = "a") {
    std::vector<std::string> out;
    for (;;) {
      const auto letter = store_->next();
      FLOPSIGHT_CHECK(letter.ok());
      if (*letter == nullptr) return out;
      for (const Series& series : (*letter)->series) {
        const std::string text = text_of(series);
        if (text.find("\"" + metric + "\"") == std::string::npos || text.find("\"" + field + "\"") == std::string::npos ||
            text.find("job=\"" + job + "\"") == std::string::npos) {
          continue;
        }
        for (const auto& sample : series.samples) {
          out.push_back(std::to_string(static_cast<long long>(sample.value)) + "@" +
                        std::to_string((sample.timestamp_milliseconds - kHour) / kMinute));
        }
      }
      FLOPSIGHT_CHECK(store_->delivered((*letter)->id).ok());
    }
  }

  EngineStoreOptions options_;
  std::string folder_;
  std::unique_ptr<EngineStore> store_;
  std::map<store::GpuId, std::int64_t> closed_;
};

TEST_F(EngineStoreTest, a_part_that_comes_later_is_sent_as_the_whole_slot_also_after_a_restart) {
  flush({{1, "a", 0}, {2, "a", 0}, {1, "a", 1}});
  EXPECT_THAT(take("flopsight_job_sum", "cell_count"), testing::ElementsAre("2@0", "1@1"));
  flush({{2, "a", 1}});
  EXPECT_THAT(take("flopsight_job_sum", "cell_count"), testing::ElementsAre("2@1"));
  reopen();
  flush({{3, "a", 0}});
  EXPECT_THAT(take("flopsight_job_sum", "delivered_microseconds"), testing::ElementsAre("6000000@0"));
  // Many jobs at once are looked for by slot instead of one by one.
  std::vector<std::tuple<int, std::string, std::int64_t>> cells, more;
  for (int i = 0; i < 100; ++i) cells.emplace_back(10 + i, "job-" + std::to_string(i), 2);
  for (int i = 0; i < 100; ++i) more.emplace_back(200 + i, "job-" + std::to_string(i), 2);
  flush(cells);
  reopen();
  flush(more);
  EXPECT_THAT(take("flopsight_job_sum", "cell_count", "job-42"), testing::ElementsAre("1@2", "2@2"));
}

TEST_F(EngineStoreTest, what_was_not_acknowledged_is_sent_again_as_it_was) {
  flush({{1, "a", 0}, {2, "b", 0}});
  const auto before = store_->next();
  ASSERT_TRUE(before.ok());
  ASSERT_NE(*before, nullptr);
  const std::int64_t id = (*before)->id;
  std::vector<std::string> texts;
  for (const Series& series : (*before)->series) texts.push_back(text_of(series) + std::to_string(series.samples.front().value));
  reopen();  // killed between sending and the acknowledgment
  const auto after = store_->next();
  ASSERT_TRUE(after.ok());
  EXPECT_EQ((*after)->id, id);
  std::vector<std::string> again;
  for (const Series& series : (*after)->series) again.push_back(text_of(series) + std::to_string(series.samples.front().value));
  EXPECT_EQ(again, texts);
  ASSERT_TRUE(store_->delivered(id).ok());
  reopen();
  EXPECT_GT((*store_->next())->id, id);
}

TEST_F(EngineStoreTest, a_flush_that_does_not_end_puts_nothing_into_the_outbox) {
  ASSERT_TRUE(store_->begin().ok());
  for (int i = 0; i < 1'500; ++i) add(i, "a", 0);  // more than one parcel
  store_->roll_back();
  EXPECT_EQ(store_->state()->parcels, 0U);
  ASSERT_TRUE(store_->begin().ok());
  for (int i = 0; i < 1'500; ++i) add(i, "a", 0);
  reopen();  // killed
  closed_.clear();
  EXPECT_EQ(store_->state()->parcels, 0U);
  flush({{1, "a", 0}});
  EXPECT_THAT(take("flopsight_job_sum", "cell_count"), testing::ElementsAre("1@0"));
}

TEST_F(EngineStoreTest, an_hour_is_sent_once_it_is_over_and_again_when_a_part_comes_late) {
  for (std::int64_t minute = 0; minute < 69; ++minute) flush({{1, "a", minute}});
  EXPECT_THAT(take("flopsight_job_hour_sum", "cell_count"), testing::IsEmpty());
  flush({{1, "a", 69}});
  EXPECT_THAT(take("flopsight_job_hour_sum", "cell_count"), testing::ElementsAre("60@0"));
  flush({{1, "a", 70}});
  EXPECT_THAT(take("flopsight_job_hour_sum", "cell_count"), testing::IsEmpty());
  reopen();
  flush({{2, "a", 3}, {2, "a", 4}});
  EXPECT_THAT(take("flopsight_job_hour_sum", "cell_count"), testing::ElementsAre("62@0"));
}

TEST_F(EngineStoreTest, parts_that_are_later_than_what_is_kept_are_dropped_and_said) {
  options_.late_max = Seconds(7'200);
  reopen();
  flush({{1, "a", 0}});
  flush({{1, "a", 300}});
  take("", "");
  flush({{2, "a", 0}, {2, "a", 299}});
  EXPECT_THAT(take("flopsight_job_sum", "cell_count"), testing::ElementsAre("1@299"));
  EXPECT_THAT(store_->take_notes(), testing::ElementsAre(testing::HasSubstr("1 parts of slots came later than retention.fine")));
}

TEST_F(EngineStoreTest, its_state_is_what_waits_and_its_limit) {
  EXPECT_EQ(store_->state()->lag, Seconds(0));
  flush({{1, "a", 0}});
  flush({{1, "a", 5}});
  const auto state = store_->state();
  EXPECT_EQ(state->lag, Seconds(360));
  EXPECT_GT(state->parcels, 0U);
  EXPECT_FALSE(state->is_full);
  options_.outbox_bytes_max = state->bytes + 1;
  reopen();
  EXPECT_FALSE(store_->state()->is_full);
  options_.outbox_bytes_max = state->bytes;
  reopen();
  EXPECT_TRUE(store_->state()->is_full);
  take("", "");
  EXPECT_FALSE(store_->state()->is_full);
  EXPECT_EQ(store_->state()->bytes, 0U);
}

TEST_F(EngineStoreTest, its_shard_is_its_own_and_stays) {
  const std::string shard = store_->shard();
  EXPECT_TRUE(shard.starts_with("0-")) << shard;
  reopen();
  EXPECT_EQ(store_->shard(), shard);
  std::filesystem::create_directories(folder_ + "/other");
  const auto other = EngineStore::open(folder_ + "/other", options_);
  ASSERT_TRUE(other.ok());
  EXPECT_NE((*other)->shard(), shard);
}

}  // namespace
}  // namespace flopsight::engine
