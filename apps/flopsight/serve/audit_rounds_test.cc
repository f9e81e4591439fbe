#include "serve/audit_rounds.h"

#include <gtest/gtest.h>

#include <fstream>

#include "base/file.h"
#include "serve/job_answers.h"
#include "serve/job_audit.h"
#include "serve/test_ingest.h"

namespace flopsight::app {
namespace {

std::string config_path(const std::string& name) { return FLOPSIGHT_SOURCE_DIR "/tests/fixtures/hf_configs/" + name + "_config.json"; }
const std::string kSuper = "nvidia--NVIDIA-Nemotron-3-Super-120B-A12B-FP8";

class AuditRoundsTest : public testing::Test, public test::IngestHarness {
 protected:
  AuditRoundsTest() {
    open_jobs();
    holder_.job = "train-0";
    holder_.name_space = "a";
    run("train-0", {0, 1}, 0, 900);
    flush(true);
  }
  void open_jobs() {
    rounds_.reset();
    jobs_.reset();
    auto jobs = JobService::open(folder_.path() + "/" + name_, false);
    ASSERT_TRUE(jobs.ok());
    jobs_ = std::move(jobs).value();
    make_rounds(nullptr);
  }
  void make_rounds(std::shared_ptr<const JobModels> models) {
    auto settings = std::make_shared<AnswerSettings>();
    settings->fleet.catalog = &catalog_;
    settings->models = std::move(models);
    rounds_ = std::make_unique<AuditRounds>(*jobs_, settings);
  }
  void report(double mfu_ratio, int from = 0) {
    std::vector<training_logs::Step> steps;
    for (int i = 0; i < 10; ++i) {
      training_logs::Step step;
      step.step = i;
      step.time = test::after(60.0 * i + from);
      step.mfu_ratio = mfu_ratio;
      steps.push_back(step);
    }
    ASSERT_TRUE(jobs_->tell_reported({"train-0", "a", "api"}, "api", steps, now_).ok());
  }
  void tell() {
    const std::string told = "{\"config\": " + base::read_file(config_path(kSuper)).value() + R"(, "seq_len": 8192, "precision": "bf16", "recompute": "none"})";
    ASSERT_TRUE(tell_model(*jobs_, holder_, told, now_).ok());
  }
  // A round, at so many seconds after the start.
  void round(double seconds) {
    Ingest::StoreHandle store = ingest_->store();
    for (bool more = true; more;) {
      const auto step = rounds_->step(*store, test::after(seconds));
      ASSERT_TRUE(step.ok()) << step.error().message;
      more = *step;
    }
  }
  std::string verdict() {
    const auto kept = jobs_->book().audit("train-0", "a");
    return kept.ok() && *kept ? (*kept)->verdict : "none";
  }
  double ofu() {
    samples::QualityLog quality;
    AnswerSettings settings;
    settings.fleet.catalog = &catalog_;
    Ingest::StoreHandle store = ingest_->store();
    return *answer_known_job(*store, jobs_.get(), settings, "train-0@a", {test::after(0), test::after(600)}, {"", true, true, true, {}, {}}, quality)->summary.ofu_ratio;
  }

  samples::Holder holder_;
  std::unique_ptr<JobService> jobs_;
  std::unique_ptr<AuditRounds> rounds_;
};

TEST_F(AuditRoundsTest, a_job_is_audited_without_anybody_asking_and_a_discrepancy_is_said_once) {
  report(2.124 * ofu());
  round(1000);
  EXPECT_EQ(verdict(), "none") << "its model is not known";
  tell();
  round(1100);
  EXPECT_EQ(verdict(), "none") << "a round every ten minutes";
  rounds_->ask(holder_);
  round(1100);
  EXPECT_EQ(verdict(), "over_reported");
  const auto kept = jobs_->book().audit("train-0", "a");
  EXPECT_EQ((*kept)->hypotheses.front(), "latent_ignored");
  const auto evidence = base::json::parse((*kept)->evidence_json);
  ASSERT_TRUE(evidence.ok());
  EXPECT_EQ(test::text(*evidence, "time"), "2026-11-29T10:18:20Z") << (*kept)->evidence_json;
  EXPECT_EQ(test::text(*evidence, "hypotheses.0.id"), "latent_ignored");
  const std::vector<std::string> notes = rounds_->take_notes();
  ASSERT_EQ(notes.size(), 1U);
  EXPECT_EQ(notes.front().substr(0, 30), "job train-0@a: over_reported: ");
  round(1100 + 3700);
  EXPECT_EQ(rounds_->health().audits, 2U) << "an hour later again";
  EXPECT_TRUE(rounds_->take_notes().empty());
}

TEST_F(AuditRoundsTest, what_did_not_change_waits_an_hour_and_new_steps_do_not) {
  tell();
  report(ofu());
  round(1000);
  EXPECT_EQ(verdict(), "consistent");
  round(1700);
  EXPECT_EQ(rounds_->health().audits, 1U);
  report(2.124 * ofu(), 30);
  round(2400);
  EXPECT_EQ(verdict(), "over_reported");
  EXPECT_EQ(rounds_->health().findings.size(), 1U);
  round(2400 + 2 * 86'400);
  EXPECT_TRUE(rounds_->health().findings.empty()) << "of the last day";
}

TEST_F(AuditRoundsTest, steps_of_a_time_without_ofu_are_undecided) {
  tell();
  report(0.01, 1800);
  round(2600);
  EXPECT_EQ(verdict(), "undecided");
  EXPECT_NE(jobs_->book().audit("train-0", "a")->value().evidence_json.find(kNoOfu), std::string::npos);
}

TEST_F(AuditRoundsTest, what_was_found_is_known_after_a_restart) {
  tell();
  report(2.124 * ofu());
  round(1000);
  open_jobs();
  round(1010);
  EXPECT_EQ(rounds_->health().findings.front().verdict, "over_reported");
  EXPECT_TRUE(rounds_->take_notes().empty()) << "said before";
}

TEST_F(AuditRoundsTest, a_rule_for_names_tells_the_model_and_a_told_one_goes_before_it) {
  const std::string folder = folder_.path();
  std::ofstream(folder + "/super.json") << base::read_file(config_path(kSuper)).value();
  std::ofstream(folder + "/models.yml") << "models:\n"
                                           "  - {match: 'train-*', config: none.json}\n"
                                           "  - {match: 'tr*-0', config: super.json, seq_len: 8192, precision: bf16, recompute: none}\n"
                                           "  - {match: '*', config: super.json, seq_len: 0}\n";
  std::vector<std::string> mistakes;
  auto models = JobModels::read(folder + "/models.yml", mistakes);
  ASSERT_TRUE(models.ok()) << models.error().message;
  ASSERT_EQ(mistakes.size(), 2U) << "the rest is used";
  EXPECT_NE(mistakes[0].find("models.yml: line 2: "), std::string::npos) << mistakes[0];
  EXPECT_NE(mistakes[0].find("none.json: cannot open"), std::string::npos) << mistakes[0];
  EXPECT_NE(mistakes[1].find("models.yml: line 4: super.json: seq_len: found 0"), std::string::npos) << mistakes[1];
  make_rounds(std::make_shared<const JobModels>(std::move(models).value()));
  report(2.124 * ofu());
  round(1000);
  EXPECT_EQ(verdict(), "over_reported");
  EXPECT_NE(jobs_->book().audit("train-0", "a")->value().evidence_json.find("model: rule tr*-0"), std::string::npos);
  ASSERT_TRUE(tell_model(*jobs_, holder_, "{\"config\": " + base::read_file(config_path("made--GPT-2")).value() + "}", now_).ok());
  round(1700);
  EXPECT_NE(jobs_->book().audit("train-0", "a")->value().evidence_json.find("model: told of the job"), std::string::npos);
}

TEST_F(AuditRoundsTest, the_answer_about_the_job_has_the_last_audit_where_its_window_has_no_steps) {
  tell();
  report(2.124 * ofu());
  round(1000);
  samples::QualityLog quality;
  AnswerSettings settings;
  settings.fleet.catalog = &catalog_;
  Ingest::StoreHandle store = ingest_->store();
  const auto job = answer_known_job(*store, jobs_.get(), settings, "train-0@a", {test::after(660), test::after(900)}, {"", true, true, true, {}, {}}, quality);
  ASSERT_TRUE(job.ok());
  EXPECT_FALSE(job->reported);
  ASSERT_TRUE(job->audit);
  EXPECT_EQ(job->audit->verdict, "over_reported");
  note_discrepancy(*job, quality);
  EXPECT_EQ(quality.count("mfu_discrepancy"), 1U);
}

}  // namespace
}  // namespace flopsight::app
