#include <gtest/gtest.h>

#include <filesystem>

#include "store/job_book.h"

namespace flopsight::store {
namespace {

using units::Instant;
using units::Seconds;

constexpr Instant kNow{1'790'000'000'000};
constexpr Seconds kDay{86'400};

class JobBookModels : public ::testing::Test {
 protected:
  JobBookModels() {
    folder_ = std::filesystem::temp_directory_path() / ("flopsight-models-" + std::to_string(::getpid()) + "-" +
                                                        ::testing::UnitTest::GetInstance()->current_test_info()->name());
    std::filesystem::create_directories(folder_);
    open({});
  }
  ~JobBookModels() override {
    book_.reset();
    std::filesystem::remove_all(folder_);
  }
  void open(JobBookOptions options) {
    book_.reset();
    auto opened = JobBook::open(folder_, options);
    ASSERT_TRUE(opened.ok()) << opened.error().message;
    book_ = std::move(opened).value();
  }
  bool is_known(std::string_view job) { return book_->model(job, "a")->has_value(); }
  void report(const std::string& job, Instant time) {
    training_logs::Step step;
    step.step = 1;
    step.time = time;
    ASSERT_TRUE(book_->put_reported({job, "a", "api"}, "api", std::vector{step}, time).ok());
  }
  static jobs::AuditFinding finding(const std::string& job, Instant time) {
    jobs::AuditFinding finding;
    finding.holder.job = job;
    finding.holder.name_space = "a";
    finding.holder.user = "ada";
    finding.time = time;
    finding.verdict = "over_reported";
    finding.summary = "twice";
    finding.hypotheses = {"latent_ignored", "sparse_peak+gqa_ignored"};
    finding.evidence_json = "{\"ofu_ratio\":0.25}";
    return finding;
  }

  std::filesystem::path folder_;
  std::unique_ptr<JobBook> book_;
};

TEST_F(JobBookModels, past_the_limit_the_oldest_of_a_silent_job_makes_room_and_no_other) {
  JobBookOptions options;
  options.models_max = 3;
  open(options);
  ASSERT_TRUE(book_->put_model("busy", "a", "{}", kNow - Seconds(90 * kDay.value)).ok());
  ASSERT_TRUE(book_->put_model("silent", "a", "{}", kNow - Seconds(60 * kDay.value)).ok());
  ASSERT_TRUE(book_->put_model("new", "a", "{}", kNow).ok());
  report("busy", kNow - kDay);
  EXPECT_TRUE(book_->put_model("new", "a", "{\"again\": 1}", kNow).ok());
  EXPECT_EQ(*book_->models_total(), 3U);
  EXPECT_TRUE(book_->put_model("newer", "a", "{}", kNow).ok());
  EXPECT_FALSE(is_known("silent"));
  EXPECT_TRUE(is_known("busy"));
  EXPECT_EQ(book_->put_model("newest", "a", "{}", kNow).error().code, base::ErrorCode::kLimit);
  EXPECT_FALSE(is_known("newest"));
  EXPECT_EQ(book_->model("new", "a")->value().text, "{\"again\": 1}");
}

TEST_F(JobBookModels, the_last_audit_of_each_job_is_kept_whole_and_found_after_a_restart) {
  ASSERT_TRUE(book_->put_audit(finding("1", kNow - kDay)).ok());
  ASSERT_TRUE(book_->put_audit(finding("1", kNow)).ok());
  ASSERT_TRUE(book_->put_audit(finding("2", kNow - kDay)).ok());
  open({});
  const auto kept = book_->audit("1", "a");
  ASSERT_TRUE(kept.ok() && *kept);
  EXPECT_EQ((*kept)->time, kNow);
  EXPECT_EQ((*kept)->holder.user, "ada");
  EXPECT_EQ((*kept)->hypotheses, (std::vector<std::string>{"latent_ignored", "sparse_peak+gqa_ignored"}));
  EXPECT_EQ((*kept)->evidence_json, "{\"ofu_ratio\":0.25}");
  EXPECT_TRUE((*kept)->is_discrepancy());
  EXPECT_FALSE(book_->audit("1", "")->has_value());
  ASSERT_EQ(book_->audits(kNow)->size(), 1U);
  EXPECT_EQ(book_->audits(kNow)->front().holder.job, "1");
}

TEST_F(JobBookModels, past_the_limit_the_oldest_audit_goes) {
  JobBookOptions options;
  options.audits_max = 2;
  open(options);
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(book_->put_audit(finding(std::to_string(i), kNow + Seconds(i))).ok());
  EXPECT_FALSE(book_->audit("0", "a")->has_value());
  EXPECT_EQ(book_->audits(Instant{0})->size(), 2U);
}

TEST_F(JobBookModels, both_are_forgotten_with_the_job_but_not_the_model_of_one_that_reports) {
  ASSERT_TRUE(book_->put_model("gone", "a", "{}", kNow - kDay).ok());
  ASSERT_TRUE(book_->put_model("reports", "a", "{}", kNow - kDay).ok());
  ASSERT_TRUE(book_->put_audit(finding("gone", kNow - kDay)).ok());
  report("reports", kNow);
  ASSERT_TRUE(book_->forget(kNow).ok());
  EXPECT_FALSE(is_known("gone"));
  EXPECT_TRUE(is_known("reports"));
  EXPECT_FALSE(book_->audit("gone", "a")->has_value());
}

TEST_F(JobBookModels, a_book_of_before_is_read_without_them) {
  book_.reset();
  {
    auto database = Database::open(folder_ / "flopsight-jobs.db", Database::Mode::kReadWrite);
    ASSERT_TRUE(database.ok());
    ASSERT_TRUE(database->execute("DROP TABLE told_models; DROP TABLE job_audits;").ok());
  }
  JobBookOptions options;
  options.read_only = true;
  open(options);
  EXPECT_FALSE(is_known("1"));
  EXPECT_TRUE(book_->audits(Instant{0})->empty());
}

TEST_F(JobBookModels, a_file_that_was_cut_is_said_by_who_only_reads) {
  book_.reset();
  std::filesystem::resize_file(folder_ / "flopsight-jobs.db", 1);
  JobBookOptions options;
  options.read_only = true;
  const auto opened = JobBook::open(folder_, options);
  ASSERT_FALSE(opened.ok());
  EXPECT_NE(opened.error().message.find("flopsight-jobs.db: empty or cut, expected a book of jobs"), std::string::npos) << opened.error().message;
}

}  // namespace
}  // namespace flopsight::store
