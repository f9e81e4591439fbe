// Metrics in which trainers export their speed, from samples to what a job reports.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "serve/job_answers.h"
#include "serve/mfu_answers.h"
#include "serve/test_ingest.h"

namespace flopsight::app {
namespace {

using test::after;
using test::LabelTexts;
using test::Message;
using testing::SizeIs;

const Caller kEverybody{"", true, true, true, {}, {}};
const units::Window kHour{after(0), after(3'600)};
constexpr const char* kMfu = "our_trainer_mfu";
constexpr const char* kTflops = "megatron_training_throughput_tflops";

class ReportedMetrics : public testing::Test, public test::IngestHarness {
 protected:
  ReportedMetrics() {
    auto metrics = training_logs::ExportedMetrics::parse("training-metrics:\n- {name: our_trainer_mfu, means: mfu, unit: '%'}\n");
    EXPECT_TRUE(metrics.ok());
    base_.metrics = std::move(metrics).value();
    settings_.fleet.catalog = &catalog_;
    settings_.grouping = std::make_shared<const jobs::Grouping>();
    open();
    open_book();
  }
  void open_book() {
    jobs_.reset();
    auto jobs = JobService::open(folder_.path() + "/" + name_, false);
    EXPECT_TRUE(jobs.ok());
    jobs_ = std::move(jobs).value();
  }
  static LabelTexts rank(const std::string& pod, int number) {
    return {{"pod", pod}, {"namespace", "a"}, {"rank", std::to_string(number)}, {"instance", "10.0.0.1:8000"}};
  }
  // Two ranks of a pod that export, while its GPU works; its samples may be `ahead` of theirs. The figures differ within a minute, around
  // `mfu_percent`.
  void train(const std::string& pod, int gpu, int from, int to, double mfu_percent = 40, int ahead = 0) {
    for (int t = from; t < to; t += 15) {
      run(pod, {gpu}, t + ahead, t + ahead + 15);
      Message message;
      const double now_percent = mfu_percent + (t % 60 - 22.5) / 10;
      message.add(kMfu, rank(pod, 0), now_percent - 1, t).add(kMfu, rank(pod, 1), now_percent + 1, t);
      message.add(kTflops, rank(pod, 0), 400, t);
      ASSERT_EQ(write(message).status, 204);
    }
  }
  // As the service does at a flush.
  void keep(bool everything = false) {
    std::vector<store::PodOwner> owned = ingest_->owned_pods();
    ASSERT_TRUE(jobs_->keep_owners(owned, now_).ok());
    ASSERT_TRUE(jobs_->tell_exported(ingest_->take_reported(now_), now_).ok());
    flush(everything);
  }
  std::vector<training_logs::Step> steps(const std::string& pod) {
    const auto sources = jobs_->book().reported(pod, "a", kHour);
    EXPECT_TRUE(sources.ok());
    return sources.ok() && sources->size() == 1 ? sources->front().steps : std::vector<training_logs::Step>();
  }
  std::optional<analysis::Reported> reported(const std::string& id) {
    samples::QualityLog quality;
    Ingest::StoreHandle store = ingest_->store();
    const auto job = answer_known_job(*store, jobs_.get(), settings_, id, kHour, kEverybody, quality);
    EXPECT_TRUE(job.ok()) << job.error().message;
    return job.ok() ? job->reported : std::nullopt;
  }

  AnswerSettings settings_;
  std::unique_ptr<JobService> jobs_;
};

TEST_F(ReportedMetrics, are_steps_of_the_job_that_their_labels_name) {
  train("train-0", 0, 0, 600);
  keep(true);
  const auto job = reported("train-0@a");
  ASSERT_TRUE(job);
  EXPECT_NEAR(*job->mfu_ratio, 0.40, 1e-12);
  EXPECT_NEAR(*job->flops_per_second_per_gpu, 400e12, 1);
  EXPECT_NEAR(*job->peak_flops_per_second_implied, 1000e12, 1e3);
  EXPECT_EQ(job->source, "prometheus");
  EXPECT_EQ(job->steps_used, 8U) << "a minute each; the last two wait";
  Ingest::StoreHandle store = ingest_->store();
  const auto comparison = answer_mfu(*store, *jobs_, settings_, kHour, kEverybody);
  ASSERT_TRUE(comparison.ok());
  ASSERT_THAT(comparison->comparison.points, SizeIs(1));
  EXPECT_NEAR(comparison->comparison.points[0].mfu_ratio, 0.40, 1e-12);
  EXPECT_GT(comparison->comparison.points[0].ofu_ratio, 0);
}

TEST_F(ReportedMetrics, of_the_pods_of_one_job_are_one) {
  for (int i = 0; i < 2; ++i) {
    Message owner;
    owner.add("kube_pod_owner", {{"namespace", "a"}, {"pod", "llama-" + std::to_string(i)}, {"owner_kind", "PyTorchJob"}, {"owner_name", "llama"}}, 1, 0);
    ASSERT_EQ(write(owner).status, 204);
    train("llama-" + std::to_string(i), i, 0, 600, 40 + 10 * i);
  }
  keep(true);
  const auto job = reported("llama@a");
  ASSERT_TRUE(job);
  EXPECT_NEAR(*job->mfu_ratio, 0.45, 1e-12);
  EXPECT_EQ(job->steps_used, 8U) << "of two pods, and each minute once";
  Ingest::StoreHandle store = ingest_->store();
  const auto comparison = answer_mfu(*store, *jobs_, settings_, kHour, kEverybody);
  ASSERT_THAT(comparison->comparison.points, SizeIs(1));
  EXPECT_EQ(comparison->comparison.points[0].job, "llama");
  EXPECT_EQ(comparison->comparison.points[0].gpu_count, 2U);
}

TEST_F(ReportedMetrics, come_by_scrape_with_the_labels_of_the_target) {
  const wire::Label labels[] = {{"pod", "train-0"}, {"namespace", "a"}};
  for (int t = 0; t < 300; t += 15) {
    now_ = after(t);
    ASSERT_TRUE(ingest_->scrape("10.0.0.1:8000", labels, "our_trainer_mfu{rank=\"0\"} 38\n# nothing\n", "text/plain", now_).ok());
  }
  keep();
  ASSERT_THAT(steps("train-0"), SizeIs(3));
  EXPECT_NEAR(*steps("train-0")[0].mfu_ratio, 0.38, 1e-12);
  EXPECT_EQ(steps("train-0")[0].time, after(60));
}

TEST_F(ReportedMetrics, are_the_same_after_crashes) {
  const auto feed = [&](bool crashes) {
    for (int part = 0; part < 8; ++part) {
      train("train-0", 0, part * 105, (part + 1) * 105, 40, 30);
      if (part != 4) keep();
      // Between what goes to the book and what goes to the store.
      if (!crashes) continue;
      if (part == 3) {
        EXPECT_TRUE(jobs_->tell_exported(ingest_->take_reported(now_), now_).ok());
      }
      open();
      open_book();
    }
    keep();
  };
  feed(true);
  const auto with = steps("train-0");
  fresh("whole");
  open_book();
  feed(false);
  const auto without = steps("train-0");
  ASSERT_THAT(without, SizeIs(12));
  ASSERT_EQ(with.size(), without.size());
  for (std::size_t i = 0; i < with.size(); ++i) {
    EXPECT_EQ(with[i].time, without[i].time);
    EXPECT_EQ(with[i].mfu_ratio, without[i].mfu_ratio);
    EXPECT_EQ(with[i].flops_per_second_per_gpu, without[i].flops_per_second_per_gpu);
  }
}

TEST_F(ReportedMetrics, that_cannot_be_used_are_counted_by_reason) {
  train("train-0", 0, 0, 300);
  keep();
  now_ = after(300);
  Message message;
  message.add(kMfu, {{"instance", "n1:8000"}}, 40, 300);
  message.add(kMfu, rank("train-0", 0), 0, 300);
  message.add(kMfu, rank("train-0", 0), 40, 15);
  message.add("our_trainer_loss", rank("train-0", 0), 3, 300);
  ASSERT_EQ(write(message).status, 204);
  const IngestCounters counters = ingest_->counters();
  EXPECT_EQ(counters.samples_reported, 63U);
  EXPECT_EQ(counters.reported_without_job, 1U);
  EXPECT_EQ(counters.reported_no_measurement, 1U);
  EXPECT_EQ(counters.reported_out_of_time, 1U);
  EXPECT_EQ(counters.reported_over_limit, 0U);
  EXPECT_EQ(counters.samples_unwanted, 1U);
}

}  // namespace
}  // namespace flopsight::app
