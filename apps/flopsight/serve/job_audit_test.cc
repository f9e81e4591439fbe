#include "serve/job_audit.h"

#include <gtest/gtest.h>

#include "base/file.h"
#include "serve/job_answers.h"
#include "serve/job_models.h"
#include "serve/test_ingest.h"

namespace flopsight::app {
namespace {

const Caller kAll{"", true, true, true, {}, {}};
const units::Window kHour{units::Instant{test::kStartMilliseconds}, units::Instant{test::kStartMilliseconds + 3'600'000}};

std::string config(const std::string& name) { return base::read_file(FLOPSIGHT_SOURCE_DIR "/tests/fixtures/hf_configs/" + name + "_config.json").value(); }
std::string told(const std::string& settings) {
  return "{\"config\": " + config("nvidia--NVIDIA-Nemotron-3-Super-120B-A12B-FP8") + settings + "}";
}

class JobAuditTest : public testing::Test, public test::IngestHarness {
 protected:
  JobAuditTest() {
    settings_.fleet.catalog = &catalog_;
    auto jobs = JobService::open(folder_.path() + "/" + name_, false);
    EXPECT_TRUE(jobs.ok());
    jobs_ = std::move(jobs).value();
    holder_.job = "train-0";
    holder_.name_space = "a";
    run("train-0", {0, 1}, 0, 900);
    flush(true);
  }
  analysis::JobAnswer job() {
    samples::QualityLog quality;
    Ingest::StoreHandle store = ingest_->store();
    auto answer = answer_known_job(*store, jobs_.get(), settings_, "train-0@a", kHour, kAll, quality);
    EXPECT_TRUE(answer.ok());
    return std::move(answer).value();
  }
  std::optional<audit::Audit> audited() {
    const analysis::JobAnswer asked = job();
    Ingest::StoreHandle store = ingest_->store();  // one at a time
    auto answer = audits_.audit(*store, *jobs_, settings_, asked, "train-0@a", kAll);
    EXPECT_TRUE(answer.ok());
    return std::move(answer).value();
  }
  void report(double mfu_ratio, double from_seconds = 0) {
    std::vector<training_logs::Step> steps;
    for (int i = 0; i < 10; ++i) {
      training_logs::Step step;
      step.step = i;
      step.time = test::after(60.0 * i + from_seconds);
      step.mfu_ratio = mfu_ratio;
      steps.push_back(step);
    }
    ASSERT_TRUE(jobs_->tell_reported({"train-0", "a", "api"}, "api", steps, now_).ok());
  }

  AnswerSettings settings_;
  samples::Holder holder_;
  std::unique_ptr<JobService> jobs_;
  JobAudits audits_;
};

TEST_F(JobAuditTest, a_job_is_audited_once_its_model_and_its_mfu_are_known) {
  EXPECT_FALSE(audited());
  report(0.3);
  EXPECT_FALSE(audited()) << "no model yet";
  ASSERT_TRUE(tell_model(*jobs_, holder_, told(R"(, "seq_len": 8192, "precision": "bf16", "recompute": "none")"), now_).ok());
  const auto first = audited();
  ASSERT_TRUE(first);
  ASSERT_TRUE(first->ofu_ratio && *first->ofu_ratio > 0);
  report(*first->ofu_ratio);
  EXPECT_EQ(audited()->verdict, audit::Verdict::kConsistent) << "not the one that was kept";
  report(2.124 * *first->ofu_ratio);
  const auto wrong = audited();
  EXPECT_EQ(wrong->verdict, audit::Verdict::kOverReported);
  EXPECT_EQ(wrong->hypotheses.front().hypothesis.id, "latent_ignored");
  EXPECT_NEAR(*wrong->own_peak_flops_per_second, 989.4e12, 1e11);
  EXPECT_EQ(audited()->summary, wrong->summary);
}

TEST_F(JobAuditTest, what_is_computed_again_is_known_where_the_model_the_sequence_and_the_setting_are) {
  const auto overhead = [&] { return recompute_overhead(*jobs_, settings_, job()).value(); };
  EXPECT_FALSE(overhead()) << "no model";
  ASSERT_TRUE(tell_model(*jobs_, holder_, told(R"(, "seq_len": 8192)"), now_).ok());
  EXPECT_FALSE(overhead()) << "not told what is computed again";
  ASSERT_TRUE(tell_model(*jobs_, holder_, told(R"(, "recompute": "full")"), now_).ok());
  EXPECT_FALSE(overhead()) << "not told how long sequences are";
  ASSERT_TRUE(tell_model(*jobs_, holder_, told(R"(, "seq_len": 8192, "recompute": "none")"), now_).ok());
  EXPECT_EQ(overhead(), 1);
  ASSERT_TRUE(tell_model(*jobs_, holder_, told(R"(, "seq_len": 8192, "recompute": "full")"), now_).ok());
  // One forward pass more than the three of a step, but for what lies outside of the blocks.
  EXPECT_GT(*overhead(), 1.25);
  EXPECT_LT(*overhead(), 4.0 / 3 + 1e-9);
}

// The job ran and was not sampled while it reported; later it was.
TEST_F(JobAuditTest, ofu_of_another_time_than_that_of_the_steps_is_not_compared_with_them) {
  ASSERT_TRUE(tell_model(*jobs_, holder_, told(R"(, "seq_len": 8192, "precision": "bf16", "recompute": "none")"), now_).ok());
  report(0.01, 1800);
  const analysis::JobAnswer asked = job();
  ASSERT_TRUE(asked.summary.ofu_ratio) << "in the window there is one";
  const auto audit = audited();
  ASSERT_TRUE(audit);
  EXPECT_FALSE(audit->ofu_ratio);
  EXPECT_EQ(audit->verdict, audit::Verdict::kUndecided);
  EXPECT_EQ(audit->missing.front(), kNoOfu);
}

TEST_F(JobAuditTest, a_model_is_kept_over_a_restart_and_told_without_a_namespace) {
  report(0.3);
  samples::Holder unnamed;
  unnamed.job = "train-0";
  ASSERT_TRUE(tell_model(*jobs_, unnamed, told(""), now_).ok());
  jobs_.reset();
  auto jobs = JobService::open(folder_.path() + "/" + name_, false);
  ASSERT_TRUE(jobs.ok());
  jobs_ = std::move(jobs).value();
  EXPECT_TRUE(audited());
}

// The command on the same folder, while the service has it open: OFU and the claim are the store's.
TEST_F(JobAuditTest, the_command_finds_claim_and_ofu_in_the_store) {
  ASSERT_TRUE(tell_model(*jobs_, holder_, told(""), now_).ok());
  report(0.3);
  const double ofu_ratio = *audited()->ofu_ratio;
  report(2.124 * ofu_ratio);
  const test::Answer answer = test::run_program({"audit", "--config", FLOPSIGHT_SOURCE_DIR "/tests/fixtures/hf_configs/nvidia--NVIDIA-Nemotron-3-Super-120B-A12B-FP8_config.json",
                                                 "--gpu", "H100-SXM5-80GB", "--precision", "bf16", "--seq-len", "8192", "--recompute", "none", "--store", folder_.path() + "/" + name_,
                                                 "--job", "train-0@a", "--format", "json"});
  EXPECT_EQ(answer.exit_code, 1) << answer.err;
  const auto out = base::json::parse(answer.out);
  ASSERT_TRUE(out.ok()) << answer.out;
  EXPECT_EQ(test::text(*out, "hypotheses.0.id"), "latent_ignored");
  EXPECT_NEAR(test::number(*out, "ofu_ratio"), ofu_ratio, 1e-9);
  EXPECT_NEAR(test::number(*out, "reported.mfu_ratio"), 2.124 * ofu_ratio, 1e-9);
  EXPECT_EQ(test::number(*out, "reported.steps_used"), 10);
  const test::Answer unknown = test::run_program({"audit", "--config", FLOPSIGHT_SOURCE_DIR "/tests/fixtures/hf_configs/made--GPT-2_config.json", "--gpu", "H100-SXM5-80GB", "--store",
                                                  folder_.path() + "/" + name_, "--job", "nobody"});
  EXPECT_EQ(unknown.exit_code, 2);
}

}  // namespace
}  // namespace flopsight::app
