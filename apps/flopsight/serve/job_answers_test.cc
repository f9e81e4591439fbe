#include "serve/job_answers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "schedulers/job_json.h"
#include "serve/late_jobs.h"
#include "serve/mfu_answers.h"
#include "serve/test_ingest.h"
#include "views/jobs_table.h"
#include "views/report_views.h"

namespace flopsight::app {
namespace {

using test::after;
using test::labels_of;
using test::LabelTexts;
using test::Message;
using testing::ElementsAre;
using testing::IsEmpty;
using units::Instant;

const Caller kEverybody{"", true, true, true, {}, {}};
const units::Window kHour{after(0), after(3'600)};

// A fleet that is rolled up, the book beside it, and answers about both.
class KnownJobs : public testing::Test, public test::IngestHarness {
 protected:
  KnownJobs() {
    auto jobs = JobService::open(folder_.path() + "/" + name_, false);
    EXPECT_TRUE(jobs.ok());
    jobs_ = std::move(jobs).value();
    settings_.fleet.catalog = &catalog_;
    settings_.grouping = std::make_shared<const jobs::Grouping>();
    settings_.families = std::make_shared<const analysis::FamilyRule>(analysis::FamilyRule::builtin());
  }
  // As the service does before a flush.
  void attribute() {
    auto records = jobs_->records({after(-86'400), after(86'400)});
    ASSERT_TRUE(records.ok());
    ingest_->set_jobs(std::move(records).value());
    ASSERT_TRUE(jobs_->keep_owners(ingest_->owned_pods(), now_).ok());
  }
  void tell(const std::string& json) {
    const auto told = schedulers::parse_told_jobs(json);
    ASSERT_TRUE(told.ok()) << told.error().message;
    ASSERT_TRUE(jobs_->tell(*told, now_).ok());
  }
  std::vector<analysis::JobAnswer> list(const Caller& caller = kEverybody, units::Window window = kHour) {
    quality_ = {};
    Ingest::StoreHandle store = ingest_->store();
    auto page = answer_known_jobs(*store, jobs_.get(), settings_, window, caller, {}, {}, quality_);
    EXPECT_TRUE(page.ok()) << page.error().message;
    return page.ok() ? std::move(page->jobs) : std::vector<analysis::JobAnswer>();
  }
  std::vector<std::string> ids(const Caller& caller = kEverybody) {
    std::vector<std::string> out;
    for (const analysis::JobAnswer& job : list(caller)) out.push_back(job.id);
    return out;
  }
  base::Result<analysis::JobAnswer> show(const std::string& id, const Caller& caller = kEverybody) {
    Ingest::StoreHandle store = ingest_->store();
    return answer_known_job(*store, jobs_.get(), settings_, id, kHour, caller, quality_);
  }
  void owner(const std::string& pod, const std::string& kind, const std::string& name, double seconds) {
    Message message;
    message.add("kube_pod_owner",
                {{"namespace", "a"}, {"pod", pod}, {"owner_kind", kind}, {"owner_name", name}, {"owner_is_controller", "true"}, {"uid", "u-" + pod}},
                1, seconds);
    ASSERT_EQ(write(message).status, 204);
  }

  AnswerSettings settings_;
  std::unique_ptr<JobService> jobs_;
  samples::QualityLog quality_;
};

TEST_F(KnownJobs, pods_of_one_owner_are_one_job_now_and_after_a_restart) {
  owner("llama-worker-0", "PyTorchJob", "llama", 0);
  owner("llama-worker-1", "PyTorchJob", "llama", 0);
  run("llama-worker-0", {0, 1}, 0, 1'800);
  run("llama-worker-1", {2}, 0, 1'800);
  run("single", {3}, 0, 1'800);
  attribute();
  flush(true);
  for (int restarted = 0; restarted < 2; ++restarted) {
    EXPECT_THAT(ids(), testing::UnorderedElementsAre("llama@a", "single@a"));
    const auto job = show("llama@a");
    ASSERT_TRUE(job.ok()) << job.error().message;
    EXPECT_EQ(job->summary.gpu_count, 3U);
    EXPECT_NEAR(*job->summary.gpu_hours_allocated, 1.5, 0.01);
    EXPECT_THAT(job->members, ElementsAre("llama-worker-0@a", "llama-worker-1@a"));
    EXPECT_THAT(job->holder.rule, testing::HasSubstr("owner PyTorchJob"));
    EXPECT_NEAR(*show("llama-worker-1@a")->summary.gpu_hours_allocated, 0.5, 0.01) << "a member by its own id";
    EXPECT_THAT(show("single@a")->members, IsEmpty());
    Ingest::StoreHandle store = ingest_->store();
    const auto found = find_known_job(*store, jobs_.get(), settings_, "llama@a", kHour, kEverybody);
    ASSERT_TRUE(found.ok());
    EXPECT_EQ(answer_job_gpus(*store, settings_, *found, kHour, quality_)->size(), 3U);
    const auto series = answer_series(*store, nullptr, *found, kHour, units::Seconds(60));
    ASSERT_TRUE(series.ok());
    EXPECT_NEAR(*series->gpu_count[5], 3, 1e-6);
    // The owner's exporter may be gone by now: what it told is kept.
    jobs_.reset();
    jobs_ = std::move(JobService::open(folder_.path() + "/" + name_, false)).value();
  }
}

TEST_F(KnownJobs, labels_of_pods_say_user_and_team_also_when_they_come_after_the_samples) {
  run("llama-worker-0", {0, 1}, 0, 900);
  flush();
  Message message;
  message.add("kube_pod_labels", {{"namespace", "a"}, {"pod", "llama-worker-0"}, {"label_team", "vision"}, {"label_user", "ada"}}, 1, 900);
  ASSERT_EQ(write(message).status, 204);
  run("llama-worker-0", {0, 1}, 915, 1'800);
  attribute();
  flush(true);
  const auto job = show("llama-worker-0@a");
  ASSERT_TRUE(job.ok()) << job.error().message;
  EXPECT_EQ(job->holder.user, "ada");
  EXPECT_EQ(job->holder.team, "vision");
  EXPECT_THAT(ids(), ElementsAre("llama-worker-0@a")) << "one job, before and after";
}

TEST_F(KnownJobs, of_the_future_nothing_is_counted_as_held) {
  tell(R"([{"id": 7, "cluster": "c1", "hosts": "n9", "gpus": "0-1", "start": ")" + units::to_rfc3339(after(0)) + R"(", "end": "9999-12-31T23:59:59Z"},
           {"id": 8, "cluster": "c1", "state": "RUNNING", "hosts": "n8", "gpus": "0-1", "start": ")" + units::to_rfc3339(after(0)) + R"("}])");
  jobs_->use_clock([] { return after(1'800); });
  const auto jobs = list(kEverybody, {after(0), after(360'000)});
  ASSERT_EQ(jobs.size(), 2U);
  for (const analysis::JobAnswer& job : jobs) EXPECT_NEAR(*job.summary.gpu_hours_allocated, 1, 1e-9) << job.id;
}

TEST_F(KnownJobs, patterns_make_one_job_of_names_and_the_fleet_adds_up) {
  settings_.grouping = std::make_shared<const jobs::Grouping>(std::move(jobs::Grouping::parse({"^(.*)-[0-9]+$"})).value());
  run("train-0", {0}, 0, 600);
  run("train-1", {1}, 0, 600);
  flush(true);
  EXPECT_THAT(ids(), ElementsAre("train@a"));
  Ingest::StoreHandle store = ingest_->store();
  const auto report = answer_fleet(*store, settings_, kHour, analysis::GroupBy::kJob, {}, true, kEverybody, jobs_.get());
  ASSERT_TRUE(report.ok());
  ASSERT_EQ(report->groups.size(), 1U);
  EXPECT_EQ(report->groups[0].key[0].second, "train");
  EXPECT_EQ(report->groups[0].summary.gpu_count, 2U);
}

TEST_F(KnownJobs, a_pod_that_ended_leaves_the_gpu_though_its_label_stays) {
  owner("train-0", "StatefulSet", "train", 0);
  run("train-0", {0}, 0, 300);
  Message ended;
  ended.add("kube_pod_completion_time", {{"namespace", "a"}, {"pod", "train-0"}, {"uid", "u-train-0"}},
            static_cast<double>(after(120).unix_milliseconds) / 1000, 300);
  ASSERT_EQ(write(ended).status, 204);
  attribute();
  run("train-0", {0}, 300, 600);
  flush(true);
  EXPECT_NEAR(hours("train-0"), 120.0 / 3600, 1e-6);
  EXPECT_NEAR(hours("nobody"), 480.0 / 3600, 0.005);
}

TEST_F(KnownJobs, a_scheduler_attributes_gpus_to_the_second) {
  now_ = after(0);
  tell(R"([{"cluster": "c1", "id": 101, "user": "ada", "account": "nlp", "name": "llama-7", "hosts": "n0", "gpus": ["0-1"],
            "start": "2026-11-29T10:01:07Z", "end": "2026-11-29T10:05:03Z", "state": "COMPLETED"}])");
  run("", {0, 1, 2}, 0, 600);
  attribute();
  flush(true);
  const auto jobs = list();
  ASSERT_EQ(jobs.size(), 1U);
  EXPECT_EQ(jobs[0].id, "101@c1");
  EXPECT_NEAR(*jobs[0].summary.gpu_hours_allocated, 2 * 236.0 / 3600, 1e-6);
  EXPECT_EQ(jobs[0].holder.user, "ada");
  EXPECT_EQ(jobs[0].holder.team, "nlp");
  EXPECT_EQ(jobs[0].holder.rule, "told");
  ASSERT_EQ(jobs[0].runs.size(), 1U);
  EXPECT_EQ(jobs[0].runs[0].state, "COMPLETED");
  EXPECT_EQ(jobs[0].family, "llama# | ada | H100-SXM5-80GB | 2 GPUs");
}

TEST_F(KnownJobs, a_job_that_is_told_after_its_slots_were_closed_gets_those_that_were_wholly_its) {
  run("", {0, 1, 2}, 0, 1'800);
  run("labelled", {3}, 0, 1'800);
  flush(true);
  EXPECT_NEAR(hours("nobody"), 1.5, 0.01);
  // From 10:01:30 to 10:11:00, and a second one on the GPU that somebody has by label.
  tell(R"([{"cluster": "c1", "id": 101, "hosts": "n0", "gpus": ["0-1"], "start": "2026-11-29T10:01:30Z", "end": "2026-11-29T10:11:00Z"},
           {"cluster": "c1", "id": 102, "hosts": "n0", "gpus": ["3"], "start": "2026-11-29T10:01:00Z", "end": "2026-11-29T10:11:00Z"}])");
  const double before = hours("nobody") + hours("labelled");
  LateJobs late(*jobs_);
  const auto all = [&] {
    for (bool more = true; more;) {
      Ingest::StoreHandle store = ingest_->store();
      const auto step = late.step(*store);
      ASSERT_TRUE(step.ok()) << step.error().message;
      more = *step;
    }
  };
  all();
  EXPECT_NEAR(hours("101"), 2 * 9.0 / 60, 1e-9) << "the half minute at its begin stays nobody's";
  EXPECT_EQ(hours("102"), 0);
  EXPECT_NEAR(hours("nobody") + hours("labelled") + hours("101"), before, 1e-9);
  EXPECT_NEAR(late.gpu_seconds(), 2 * 9 * 60, 1e-6);
  const auto job = show("101@c1");
  ASSERT_TRUE(job.ok()) << job.error().message;
  EXPECT_TRUE(job->summary.ofu_ratio);
  EXPECT_EQ(job->summary.gpu_count, 2U);
  EXPECT_EQ(quality_.count("held_not_attributed"), 1U) << "half a minute of nine and a half";
  EXPECT_TRUE(jobs_->book().late_jobs(10)->empty());
  all();
  EXPECT_NEAR(late.gpu_seconds(), 2 * 9 * 60, 1e-6) << "once";
  // And what is closed afterwards is its as ever.
  open();
  EXPECT_NEAR(hours("101"), 2 * 9.0 / 60, 1e-9);
}

TEST_F(KnownJobs, a_job_of_which_only_the_number_was_said_has_what_nobody_else_can_have) {
  now_ = after(0);
  schedulers::Node node;
  node.name = "n0";
  node.gpu_count = 4;
  ASSERT_TRUE(jobs_->tell_nodes({&node, 1}, now_).ok());
  // The second began and was over between two polls: sacct says how many it had.
  tell(R"([{"cluster": "c1", "id": 101, "hosts": "n0", "gpus": ["0", "2", "3"], "start": "2026-11-29T10:00:00Z"},
           {"cluster": "c1", "id": 102, "hosts": "n0", "gpu_count": 1, "start": "2026-11-29T10:03:05Z", "end": "2026-11-29T10:03:35Z"}])");
  run("", {0, 1, 2, 3}, 0, 600);
  attribute();
  flush(true);
  EXPECT_NEAR(hours("102"), 30.0 / 3600, 1e-9);
  EXPECT_NEAR(hours("nobody"), 570.0 / 3600, 0.005);
  EXPECT_THAT(show("102@c1")->holder.rule, testing::HasSubstr("by elimination"));
}

TEST_F(KnownJobs, mig_instances_that_no_map_places_are_said) {
  run("", {0}, 0, 600);
  flush(true);
  schedulers::Job job;
  job.cluster = "c1";
  job.id = "103";
  job.start = after(0);
  job.end = after(600);
  job.gpu_count = 1;
  job.gpus = {{"a100_1g.5gb", 1, true}};
  job.allocations = {{{"n0"}, {"4"}, 1}};
  ASSERT_TRUE(jobs_->tell({&job, 1}, now_).ok());
  const auto jobs = list();
  ASSERT_EQ(jobs.size(), 1U);
  EXPECT_EQ(jobs[0].id, "103@c1");
  EXPECT_EQ(jobs[0].summary.gpu_count, 1U);
  EXPECT_FALSE(jobs[0].summary.gpu_hours_allocated) << "of a share that nobody knows";
  EXPECT_FALSE(jobs[0].summary.cost_usd || jobs[0].summary.cost_lost_usd || jobs[0].summary.cost_unmeasured_usd);
  const auto entries = quality_.entries();
  const auto said = std::find_if(entries.begin(), entries.end(), [](const auto& entry) { return entry.code == "held_instances_not_placed"; });
  ASSERT_NE(said, entries.end());
  EXPECT_EQ(said->where, "103@c1");
}

TEST_F(KnownJobs, held_gpus_without_a_sample_are_unmeasured_time_of_the_job) {
  now_ = after(0);
  // n0 has all its GPUs seen and held; of n7 there is no exporter.
  tell(R"([{"cluster": "c1", "id": 101, "hosts": ["n0", "n7"], "gpus": ["0"], "start": "2026-11-29T10:00:00Z", "end": "2026-11-29T10:30:00Z"},
           {"cluster": "c1", "id": 102, "hosts": ["n8"], "gpus": ["0-3"], "start": "2026-11-29T10:00:00Z", "end": "2026-11-29T11:00:00Z"}])");
  run("", {0}, 0, 1'800);
  attribute();
  flush(true);
  const auto jobs = list();
  ASSERT_EQ(jobs.size(), 2U);
  EXPECT_EQ(jobs[0].id, "101@c1");
  EXPECT_NEAR(*jobs[0].summary.gpu_hours_allocated, 1.0, 0.02);
  EXPECT_NEAR(*jobs[0].summary.gpu_hours_unmeasured, 0.5, 0.02);
  EXPECT_EQ(jobs[1].id, "102@c1");
  EXPECT_NEAR(*jobs[1].summary.gpu_hours_unmeasured, 4.0, 1e-6);
  EXPECT_FALSE(jobs[1].summary.ofu_ratio) << "nothing seen is not zero";
  EXPECT_EQ(jobs[1].absent_reason, "not_seen");
  EXPECT_EQ(quality_.count("held_not_seen"), 2U);
  EXPECT_NEAR(*show("102@c1")->summary.gpu_hours_allocated, 4.0, 1e-6);
  EXPECT_NEAR(*show("102")->summary.gpu_hours_allocated, 4.0, 1e-6);
  Ingest::StoreHandle store = ingest_->store();
  const auto report = answer_fleet(*store, settings_, kHour, analysis::GroupBy::kJob, {}, false, kEverybody, jobs_.get());
  ASSERT_TRUE(report.ok());
  EXPECT_NEAR(*report->fleet.gpu_hours_allocated, 5.0, 0.02);
  EXPECT_NEAR(*report->fleet.gpu_hours_unmeasured, 4.5, 0.02);
}

TEST_F(KnownJobs, what_nobody_saw_is_no_gpu_of_an_unknown_model) {
  now_ = after(0);
  tell(R"([{"cluster": "c1", "id": 102, "hosts": ["n8"], "gpus": ["0-3"], "start": "2026-11-29T10:00:00Z", "end": "2026-11-29T11:00:00Z"}])");
  Ingest::StoreHandle store = ingest_->store();
  const auto report = answer_fleet(*store, settings_, kHour, analysis::GroupBy::kJob, {}, false, kEverybody, jobs_.get());
  ASSERT_TRUE(report.ok());
  for (const samples::QualityEntry& entry : report->quality) EXPECT_EQ(entry.code, "held_not_seen");
  for (const std::string& text : report->assumptions) EXPECT_THAT(text, testing::Not(testing::HasSubstr("attributed by")));
}

TEST_F(KnownJobs, the_number_of_gpus_that_only_the_scheduler_knows_is_told_by_jobs_and_reports_alike) {
  now_ = after(0);
  tell(R"([{"cluster": "c1", "id": 102, "user": "ada", "hosts": ["n8"], "gpus": ["0-3"], "start": "2026-11-29T10:00:00Z", "end": "2026-11-29T11:00:00Z"},
           {"cluster": "c1", "id": 103, "user": "bob", "hosts": ["n0"], "gpus": ["0"], "start": "2026-11-29T10:00:00Z", "end": "2026-11-29T10:10:00Z"}])");
  run("", {0}, 0, 600);
  attribute();
  flush(true);
  const auto jobs = list();
  ASSERT_EQ(jobs.size(), 2U);
  EXPECT_EQ(jobs[1].gpu_count_told, 4U);
  EXPECT_FALSE(jobs[0].gpu_count_told) << "of which all were seen";
  EXPECT_THAT(views::jobs_table(jobs), testing::HasSubstr("4 told"));
  Ingest::StoreHandle store = ingest_->store();
  for (const auto by : {analysis::GroupBy::kJob, analysis::GroupBy::kUser, analysis::GroupBy::kNamespace}) {
    for (const bool with_gpus : {false, true}) {
      const auto report = answer_fleet(*store, settings_, kHour, by, {}, with_gpus, kEverybody, jobs_.get());
      ASSERT_TRUE(report.ok());
      std::vector<std::pair<std::uint64_t, bool>> counts;
      for (const analysis::Group& group : report->groups) counts.emplace_back(group.summary.gpu_count, group.gpu_count_told.has_value());
      std::sort(counts.begin(), counts.end());
      if (by == analysis::GroupBy::kNamespace) {
        EXPECT_THAT(counts, ElementsAre(std::pair(4U, true)));
      } else {
        EXPECT_THAT(counts, ElementsAre(std::pair(1U, false), std::pair(4U, true)));
      }
      EXPECT_THAT(views::report_table(*report), testing::HasSubstr("4 told"));
      EXPECT_THAT(views::report_json(*report), testing::HasSubstr("\"gpu_count_told\": 4"));
      EXPECT_EQ(report->fleet.gpu_count, 4U) << "at least";
      EXPECT_EQ(report->fleet_gpu_count_told, 4U);
    }
  }
}

TEST_F(KnownJobs, a_gpu_hour_that_may_be_counted_already_is_not_counted_again) {
  now_ = after(0);
  run("", {0, 1}, 0, 1'800);
  flush(true);
  // Told after the slots were closed: the time is in there as nobody's.
  tell(R"([{"cluster": "c1", "id": 101, "hosts": "n0", "gpus": ["0-1"], "start": "2026-11-29T10:00:00Z", "end": "2026-11-29T10:30:00Z"}])");
  Ingest::StoreHandle store = ingest_->store();
  samples::QualityLog quality;
  const auto report = answer_fleet(*store, settings_, kHour, analysis::GroupBy::kJob, {}, false, kEverybody, jobs_.get());
  ASSERT_TRUE(report.ok());
  EXPECT_NEAR(*report->fleet.gpu_hours_allocated, 1.0, 0.01);
}

TEST_F(KnownJobs, a_job_that_its_scheduler_no_longer_lists_holds_nothing_after_it_was_last_told_of) {
  now_ = after(600);
  tell(R"([{"cluster": "c1", "id": 101, "hosts": "n9", "gpus": ["0"], "start": "2026-11-29T10:00:00Z"}])");
  EXPECT_NEAR(*list()[0].summary.gpu_hours_allocated, 1.0, 1e-6) << "no end: still running";
  jobs_->listed("c2", after(3'000));
  EXPECT_NEAR(*list()[0].summary.gpu_hours_allocated, 1.0, 1e-6) << "another cluster's listing says nothing of it";
  jobs_->listed("c1", after(3'000));
  EXPECT_NEAR(*list()[0].summary.gpu_hours_allocated, 1.0 / 6, 1e-6);
  EXPECT_EQ(list()[0].runs[0].state, "GONE");
}

TEST_F(KnownJobs, what_a_caller_may_not_see_is_in_no_answer) {
  now_ = after(0);
  tell(R"([{"cluster": "c1", "id": 101, "user": "ada", "hosts": "n8", "gpus": ["0"], "start": "2026-11-29T10:00:00Z"},
           {"cluster": "c1", "id": 102, "user": "bob", "hosts": "n9", "gpus": ["0"], "start": "2026-11-29T10:00:00Z"}])");
  run("x", {0}, 0, 600, wire::RemoteWriteVersion::kV1, {{"user", "ada"}});
  run("y", {1}, 0, 600, wire::RemoteWriteVersion::kV1, {{"user", "bob"}});
  flush(true);
  const Caller ada{"ada", true, true, false, {"ada"}, {}};
  EXPECT_THAT(ids(ada), ElementsAre("x@a", "101@c1"));
  EXPECT_TRUE(show("101", ada).ok());
  EXPECT_EQ(show("102", ada).error().code, base::ErrorCode::kNotFound);
  EXPECT_EQ(show("y@a", ada).error().code, base::ErrorCode::kNotFound);
}

TEST_F(KnownJobs, the_reported_mfu_stands_beside_the_ofu) {
  run("train", {0}, 0, 600);
  flush(true);
  training_logs::Step step;
  step.step = 1;
  step.time = after(300);
  step.mfu_ratio = 0.44;
  ASSERT_TRUE(jobs_->tell_reported({"train", "a", "api"}, "api", {&step, 1}, now_).ok());
  const auto jobs = list();
  ASSERT_EQ(jobs.size(), 1U);
  ASSERT_TRUE(jobs[0].reported);
  EXPECT_EQ(jobs[0].reported->mfu_ratio, 0.44);
  EXPECT_FALSE(list(kEverybody, {after(0), after(240)})[0].reported) << "not in this window";
}

TEST_F(KnownJobs, reported_mfu_is_compared_with_ofu_over_the_time_that_was_reported) {
  settings_.known_wrong = [] {
    std::vector<base::Regex> list;
    list.push_back(std::move(base::Regex::parse("^wrong")).value());
    return std::make_shared<const std::vector<base::Regex>>(std::move(list));
  }();
  run("train", {0}, 0, 600);
  run("wrong-1", {1}, 0, 600);
  flush(true);
  const auto report = [&](const std::string& job, double mfu) {
    std::vector<training_logs::Step> steps(2);
    for (int i = 0; i < 2; ++i) {
      steps[static_cast<std::size_t>(i)].step = i;
      steps[static_cast<std::size_t>(i)].time = after(120 + 240 * i);
      steps[static_cast<std::size_t>(i)].mfu_ratio = mfu;
    }
    ASSERT_TRUE(jobs_->tell_reported({job, "a", "api"}, "api", steps, now_).ok());
  };
  report("train", 0.4);
  report("wrong-1", 0.9);
  report("never-seen", 0.5);
  Ingest::StoreHandle store = ingest_->store();
  const auto answer = answer_mfu(*store, *jobs_, settings_, kHour, kEverybody);
  ASSERT_TRUE(answer.ok()) << answer.error().message;
  EXPECT_EQ(answer->comparison.all.job_count, 2U);
  EXPECT_EQ(answer->comparison.without_known_wrong.job_count, 1U);
  EXPECT_EQ(answer->jobs_without_ofu, 1U);
  const auto totals = store->job_totals({after(120), after(360)}, store->find_job("train@a")->front());
  const rollups::Totals sum = rollups::totals_of(totals->at(0).cell);
  EXPECT_NEAR(answer->comparison.points[0].ofu_ratio, sum.delivered_seconds / sum.measured_seconds, 1e-9);
}

TEST_F(KnownJobs, a_log_read_in_the_wrong_zone_is_doubted_and_not_shifted) {
  // Half an hour at a time, between which it does nothing.
  const auto works = [](int t) { return t / 1'800 % 2 == 0; };
  for (int t = 0; t < 4 * 3'600; t += 15) {
    now_ = after(t);
    ASSERT_EQ(write(Message().gpu(labels_of(0, "train"), works(t) ? 0.5 : 0.01, t)).status, 204);
  }
  flush(true);
  const auto told = [&](int wrong_seconds) {
    std::vector<training_logs::Step> steps;
    for (int t = 30; t < 4 * 3'600; t += 30) {
      if (!works(t)) continue;
      training_logs::Step step;
      step.step = t;
      step.time = after(t + wrong_seconds);
      step.is_zone_assumed = true;
      step.mfu_ratio = 0.4;
      steps.push_back(step);
    }
    quality_ = {};
    EXPECT_TRUE(jobs_->tell_reported({"train", "a", "log /logs/a.out"}, "torchtitan", steps, now_).ok());
    EXPECT_TRUE(show("train@a").ok());
    return quality_.entries();
  };
  for (const samples::QualityEntry& entry : told(0)) EXPECT_NE(entry.code, "log_zone_doubtful");
  const auto entries = told(2 * 3'600);
  const auto doubt = std::find_if(entries.begin(), entries.end(), [](const auto& entry) { return entry.code == "log_zone_doubtful"; });
  ASSERT_NE(doubt, entries.end());
  EXPECT_THAT(doubt->where, testing::HasSubstr("log /logs/a.out: -2 h fits better, with a correlation of "));
  EXPECT_THAT(doubt->where, testing::HasSubstr("minutes with steps in which the job had no GPUs"));
  EXPECT_FALSE(show("train@a")->reported) << "as they were read, none of its steps is in the hour that is asked about";
}

TEST_F(KnownJobs, a_name_that_several_have_needs_its_namespace) {
  run("train", {0}, 0, 600);
  Message other;
  for (int t = 0; t < 600; t += 15) {
    LabelTexts labels = labels_of(1, "");
    labels.insert(labels.end(), {{"exported_pod", "train"}, {"exported_namespace", "b"}});
    other.gpu(labels, 0.3, t);
  }
  ASSERT_EQ(write(other).status, 204);
  flush(true);
  EXPECT_EQ(show("train").error().code, base::ErrorCode::kInvalid);
  EXPECT_TRUE(show("train@b").ok());
  EXPECT_EQ(show("nothing").error().code, base::ErrorCode::kNotFound);
}

}  // namespace
}  // namespace flopsight::app
