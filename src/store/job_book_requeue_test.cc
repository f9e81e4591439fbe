// A job that its scheduler put back and began anew is several runs, of which one is held at a time.
#include <gtest/gtest.h>

#include <filesystem>

#include "store/job_book.h"

namespace flopsight::store {
namespace {

using schedulers::Job;
using units::Instant;

constexpr std::int64_t kHour = 3'600'000;

class RequeuedJobs : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::temp_directory_path() /
              ("flopsight-requeue-" + std::to_string(::getpid()) + "-" + ::testing::UnitTest::GetInstance()->current_test_info()->name());
    std::filesystem::create_directories(folder_);
    auto opened = JobBook::open(folder_, {});
    ASSERT_TRUE(opened.ok()) << opened.error().message;
    book_ = std::move(opened).value();
  }
  void TearDown() override {
    book_.reset();
    std::filesystem::remove_all(folder_);
  }
  static Job job(const char* state, double submit_hours, std::optional<double> start_hours, std::optional<double> end_hours, const char* cluster = "c1") {
    const auto at = [](double hours) { return Instant{static_cast<std::int64_t>(hours * static_cast<double>(kHour))}; };
    Job job;
    job.cluster = cluster;
    job.id = "901";
    job.state = state;
    job.submit = at(submit_hours);
    if (start_hours) job.start = at(*start_hours);
    if (end_hours) job.end = at(*end_hours);
    return job;
  }
  void put(const Job& job) {
    const std::vector<Job> jobs = {job};
    ASSERT_TRUE(book_->put_jobs(jobs, Instant{100 * kHour}).ok());
  }
  // In hours; -1 where there is none.
  std::vector<double> ends() {
    const auto runs = book_->runs("901", {});
    std::vector<double> out;
    for (const ToldJob& told : *runs) out.push_back(told.job.end ? static_cast<double>(told.job.end->unix_milliseconds) / static_cast<double>(kHour) : -1);
    std::sort(out.begin(), out.end());
    return out;
  }
  std::filesystem::path folder_;
  std::unique_ptr<JobBook> book_;
};

TEST_F(RequeuedJobs, the_run_before_ended_when_the_job_was_submitted_again) {
  put(job("RUNNING", 0, 1, {}));
  put(job("COMPLETED", 2, 10, 12));
  EXPECT_EQ(ends(), (std::vector<double>{2, 12}));
  const auto runs = book_->runs("901", {});
  EXPECT_TRUE(std::any_of(runs->begin(), runs->end(), [](const ToldJob& told) { return told.job.state == "REQUEUED"; }));
  put(job("RUNNING", 0, 1, {}));
  EXPECT_EQ(ends(), (std::vector<double>{2, 12})) << "the old telling again";
  put(job("NODE_FAIL", 0, 1, 1.5));
  EXPECT_EQ(ends(), (std::vector<double>{1.5, 12})) << "what the scheduler says goes before";
}

TEST_F(RequeuedJobs, in_either_order_and_at_the_latest_when_the_next_run_began) {
  put(job("COMPLETED", 0, 10, 12));
  put(job("RUNNING", 0, 1, {}));
  EXPECT_EQ(ends(), (std::vector<double>{10, 12}));
}

TEST_F(RequeuedJobs, a_job_that_waits_again_holds_nothing) {
  put(job("RUNNING", 0, 1, {}));
  put(job("PENDING", 0, {}, {}));
  EXPECT_EQ(ends(), (std::vector<double>{-1})) << "an older telling, of before it began";
  put(job("PENDING", 3, {}, {}));
  EXPECT_EQ(ends(), (std::vector<double>{3}));
}

TEST_F(RequeuedJobs, a_restart_that_is_counted_tells_as_well) {
  put(job("RUNNING", 0, 1, {}));
  Job again = job("PENDING", 0, {}, {});
  again.restart_count = 1;
  put(again);
  EXPECT_EQ(ends(), (std::vector<double>{100}));
}

TEST_F(RequeuedJobs, another_cluster_has_the_same_id) {
  put(job("RUNNING", 0, 1, {}));
  put(job("COMPLETED", 2, 10, 12, "c2"));
  EXPECT_EQ(ends(), (std::vector<double>{-1, 12}));
}

TEST_F(RequeuedJobs, who_told_without_a_cluster_means_the_only_one) {
  put(job("RUNNING", 0, 1, {}));
  put(job("COMPLETED", 2, 10, 12, ""));
  EXPECT_EQ(ends(), (std::vector<double>{2, 12}));
}

}  // namespace
}  // namespace flopsight::store
