// Two processes' stores, delivered to a real engine, against one embedded store. tests/e2e/test_engine.py starts the engines and
// names them in the environment.
#include <chrono>
#include <cstdlib>

#include <gtest/gtest.h>

#include "engine/engine_reader.h"
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

TEST_F(EngineRealServer, all_processes_together_answer_like_one_embedded_store) {
  constexpr std::int64_t kHours = 7;
  TestFleet fleet(end_ - kHours * kHourMilliseconds);
  const std::int64_t slots = kHours * 60 - 20;
  fleet.run(slots, [&](std::int64_t minute) {
    // Crashes before and after what was sent is acknowledged; an engine that is away for an hour and a half.
    if (minute % 50 == 17) fleet.open(0);
    if (minute % 70 == 33) fleet.open(1);
    if (minute > 150 && minute < 240) return;
    fleet.deliver(*writer_, 0, minute % 40 == 7 ? 2 : 1);
    fleet.deliver(*writer_, 1);
  });
  fleet.open(0);
  fleet.deliver(*writer_, 0);
  fleet.deliver(*writer_, 1);
  const auto at = [&](std::int64_t minute) { return Instant{fleet.start_ + minute * test::kMinute}; };
  wait_for(fleet, {at(0), at(slots)});
  const auto gpu_name = [&](store::Reader& reader) {
    return [&reader](store::GpuId id) {
      const auto records = reader.gpus({id});
      const samples::GpuIdentity& gpu = records->front().identity;
      return gpu.uuid.empty() ? gpu.host + "/" + gpu.index : gpu.uuid;
    };
  };
  for (const auto& [from, to] : std::vector<std::pair<std::int64_t, std::int64_t>>{
           {0, slots}, {0, 420}, {0, 1}, {59, 61}, {60, 120}, {30, 390}, {1, 399}, {200, 201}, {399, 400}, {100, 340}}) {
    const Window window{at(from), at(to)};
    SCOPED_TRACE(std::to_string(from) + " to " + std::to_string(to));
    EXPECT_EQ(test::totals_of(*reader(), window, std::nullopt), test::totals_of(*fleet.oracle_, window, std::nullopt));
    EXPECT_EQ(test::gpus_of(*reader(), window, std::nullopt), test::gpus_of(*fleet.oracle_, window, std::nullopt));
    const auto of_engine = reader();
    ASSERT_TRUE(of_engine->job_totals(window, std::nullopt).ok());
    EXPECT_EQ(test::members_of(*of_engine, window, gpu_name(*of_engine)),
              test::members_of(*fleet.oracle_, window, gpu_name(*fleet.oracle_)));
  }
  const auto jobs = fleet.oracle_->jobs();
  ASSERT_EQ(jobs->size(), 6U);
  for (const store::JobRecord& job : *jobs) {
    SCOPED_TRACE(job.holder.job + " in " + job.holder.name_space);
    const auto of_engine = reader();
    const auto id = of_engine->find_job(job_text(job.holder));
    ASSERT_TRUE(id.ok()) << id.error().message;
    EXPECT_EQ(test::name_of(*of_engine, *id), test::name_of(*fleet.oracle_, job.id));
    for (const double step : {60.0, 300.0, 600.0, 3600.0, 7200.0}) {
      const Window window{at(7), at(395)};
      EXPECT_EQ(test::series_of(*of_engine, *id, window, Seconds(step)),
                test::series_of(*fleet.oracle_, job.id, window, Seconds(step))) << step;
    }
    const Window window{at(10), at(300)};
    EXPECT_EQ(test::totals_of(*reader(), window, std::nullopt), test::totals_of(*fleet.oracle_, window, std::nullopt));
    EXPECT_EQ(test::totals_of(*of_engine, window, *id), test::totals_of(*fleet.oracle_, window, job.id));
    EXPECT_EQ(test::gpus_of(*of_engine, window, *id), test::gpus_of(*fleet.oracle_, window, job.id));
    const auto member = of_engine->members(window, *id);
    ASSERT_TRUE(member.ok()) << member.error().message;
    const auto expected = fleet.oracle_->members(window, job.id);
    ASSERT_EQ(member->size(), 1U);
    EXPECT_EQ(member->front().ever.start.unix_milliseconds, expected->front().ever.start.unix_milliseconds);
    EXPECT_EQ(member->front().ever.end.unix_milliseconds, expected->front().ever.end.unix_milliseconds);
    EXPECT_EQ(member->front().gpus.size(), expected->front().gpus.size());
  }
  EXPECT_EQ(reader()->find_job("nothing@like-it").error().code, base::ErrorCode::kNotFound);
  EXPECT_EQ(reader()->find_job("17").error().code, base::ErrorCode::kNotFound);
}

}  // namespace
}  // namespace flopsight::engine
