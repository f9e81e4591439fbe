// Two processes' stores, delivered to a real engine, against one embedded store. tests/e2e/test_engine.py starts the engines and
// names them in the environment.
#include <chrono>
#include <cstdlib>
#include <thread>

#include <gtest/gtest.h>

#include "engine/engine_reader.h"
#include "jobs/job_name.h"
#include "engine/test_fleet.h"

namespace flopsight::engine {
namespace {

using test::TestFleet;
using units::Instant;
using units::Seconds;
using units::Window;

class EngineRealServer : public testing::Test {
 protected:
  void SetUp() override {
    const char* url = std::getenv("FLOPSIGHT_E2E_ENGINE_URL");
    if (url == nullptr) GTEST_SKIP() << "FLOPSIGHT_E2E_ENGINE_URL is not set: run tests/e2e/test_engine.py";
    url_ = url;
    const auto now = std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::system_clock::now().time_since_epoch());
    now_ = now.count();
    end_ = now_ / kHourMilliseconds * kHourMilliseconds;
    auto writer = RemoteWriter::create(url_ + "/api/v1/write", {});
    ASSERT_TRUE(writer.ok()) << writer.error().message;
    writer_.emplace(std::move(writer).value());
    writer_->samples_max = 1'000;
  }
  std::unique_ptr<EngineReader> reader(bool gpu_cells = true) const {
    EngineReaderOptions options;
    options.url = url_;
    options.now = Instant{now_};
    options.gpu_cells = gpu_cells;
    auto reader = EngineReader::create(options);
    FLOPSIGHT_CHECK(reader.ok());
    return std::move(reader).value();
  }
  // What was written is seen a moment later.
  void wait_for(TestFleet& fleet, Window window) const {
    for (int i = 0; i < 600; ++i) {
      if (test::totals_of(*reader(), window, std::nullopt) == test::totals_of(*fleet.oracle_, window, std::nullopt)) return;
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
    }
  }

  std::string url_;
  std::int64_t now_ = 0, end_ = 0;
  std::optional<RemoteWriter> writer_;
};

// Runs a fleet with everything that goes wrong in between, and compares.
class EngineRealServerFleet : public EngineRealServer {
 protected:
  static constexpr std::int64_t kSlots = 400;

  void SetUp() override {
    EngineRealServer::SetUp();
    if (!writer_) return;
    fleet_.emplace(testing::TempDir() + "flopsight_engine_real", end_ - 7 * kHourMilliseconds);
    fleet_->run(kSlots, [&](std::int64_t minute) {
      // Crashes before and after what was sent is acknowledged; an engine that is away for an hour and a half.
      if (minute % 50 == 17) fleet_->open(0);
      if (minute % 70 == 33) fleet_->open(1);
      if (minute > 150 && minute < 240) return;
      deliver(0, minute % 40 == 7 ? 2 : 1);
      deliver(1, 1);
    });
    fleet_->open(0);
    deliver(0, 1);
    deliver(1, 1);
    wait_for(*fleet_, {at(0), at(kSlots)});
  }
  void deliver(std::uint64_t shard, int times) {
    const auto sent = fleet_->deliver(*writer_, shard, times);
    ASSERT_TRUE(sent.ok()) << sent.error().message;
    ASSERT_EQ(sent->rejected, 0U) << sent->rejection;
  }
  Instant at(std::int64_t minute) const { return Instant{fleet_->start_ + minute * test::kMinute}; }
  static std::function<std::string(store::GpuId)> gpu_names(store::Reader& reader) {
    return [&reader](store::GpuId id) {
      const auto records = reader.gpus({id});
      const samples::GpuIdentity& gpu = records->front().identity;
      return gpu.uuid.empty() ? gpu.host + "/" + gpu.index : gpu.uuid;
    };
  }
  void compare_job(const store::JobRecord& job) {
    const auto of_engine = reader();
    store::Store& oracle = *fleet_->oracle_;
    const auto ids = of_engine->find_job(jobs::job_text(job.holder));
    ASSERT_TRUE(ids.ok()) << ids.error().message;
    const store::JobId id = ids->front();
    EXPECT_EQ(test::name_of(*of_engine, id), test::name_of(oracle, job.id));
    for (const double step : {60.0, 300.0, 600.0, 3600.0, 7200.0}) {
      const Window window{at(7), at(395)};
      EXPECT_EQ(test::series_of(*of_engine, id, window, Seconds(step)), test::series_of(oracle, job.id, window, Seconds(step)))
          << step;
    }
    const Window window{at(10), at(300)};
    EXPECT_EQ(test::totals_of(*of_engine, window, id), test::totals_of(oracle, window, job.id));
    EXPECT_EQ(test::gpus_of(*of_engine, window, id), test::gpus_of(oracle, window, job.id));
    const auto member = of_engine->members(window, id);
    ASSERT_TRUE(member.ok()) << member.error().message;
    const auto expected = oracle.members(window, job.id);
    ASSERT_EQ(member->size(), 1U);
    EXPECT_EQ(member->front().ever.start.unix_milliseconds, expected->front().ever.start.unix_milliseconds);
    EXPECT_EQ(member->front().ever.end.unix_milliseconds, expected->front().ever.end.unix_milliseconds);
    EXPECT_EQ(member->front().gpus.size(), expected->front().gpus.size());
  }

  std::optional<TestFleet> fleet_;
};

TEST_F(EngineRealServerFleet, all_processes_together_answer_like_one_embedded_store) {
  store::Store& oracle = *fleet_->oracle_;
  for (const auto& [from, to] : std::vector<std::pair<std::int64_t, std::int64_t>>{
           {0, kSlots}, {0, 420}, {0, 1}, {59, 61}, {60, 120}, {30, 390}, {1, 399}, {200, 201}, {399, 400}, {100, 340}}) {
    const Window window{at(from), at(to)};
    SCOPED_TRACE(std::to_string(from) + " to " + std::to_string(to));
    ASSERT_EQ(test::totals_of(*reader(), window, std::nullopt), test::totals_of(oracle, window, std::nullopt));
    ASSERT_EQ(test::gpus_of(*reader(), window, std::nullopt), test::gpus_of(oracle, window, std::nullopt));
    const auto of_engine = reader();
    ASSERT_TRUE(of_engine->job_totals(window, std::nullopt).ok());
    ASSERT_EQ(test::members_of(*of_engine, window, gpu_names(*of_engine)), test::members_of(oracle, window, gpu_names(oracle)));
  }
  const auto jobs = oracle.jobs();
  ASSERT_EQ(jobs->size(), 6U);
  for (const store::JobRecord& job : *jobs) {
    SCOPED_TRACE(job.holder.job + " in " + job.holder.name_space);
    compare_job(job);
  }
  EXPECT_EQ(reader()->find_job("nothing@like-it").error().code, base::ErrorCode::kNotFound);
  EXPECT_EQ(reader()->find_job("17").error().code, base::ErrorCode::kNotFound);
}

}  // namespace
}  // namespace flopsight::engine
