#include "store/job_book.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace flopsight::store {
namespace {

using schedulers::Job;
using training_logs::Step;
using units::Instant;

class JobBookTest : public ::testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::temp_directory_path() /
              ("flopsight-book-" + std::to_string(::getpid()) + "-" +
               ::testing::UnitTest::GetInstance()->current_test_info()->name());
    std::filesystem::create_directories(folder_);
    open();
  }
  void TearDown() override {
    book_.reset();
    std::filesystem::remove_all(folder_);
  }
  void open(JobBookOptions options = {}) {
    book_.reset();
    auto opened = JobBook::open(folder_, options);
    ASSERT_TRUE(opened.ok()) << opened.error().message;
    book_ = std::move(opened).value();
  }
  static Job job(const std::string& id, std::int64_t start_seconds,
                 std::optional<std::int64_t> end_seconds = {}) {
    Job job;
    job.cluster = "c1";
    job.id = id;
    job.start = Instant{start_seconds * 1000};
    if (end_seconds) job.end = Instant{*end_seconds * 1000};
    return job;
  }
  static Job pending() {
    Job job;
    job.id = "pending";
    return job;
  }
  JobBook::Put put(const std::vector<Job>& jobs, std::int64_t now_seconds = 1000) {
    const auto put = book_->put_jobs(jobs, Instant{now_seconds * 1000});
    EXPECT_TRUE(put.ok()) << put.error().message;
    return put.ok() ? *put : JobBook::Put{};
  }
  std::vector<std::string> held(std::int64_t start_seconds, std::int64_t end_seconds) {
    const auto found =
        book_->jobs({Instant{start_seconds * 1000}, Instant{end_seconds * 1000}}, 100);
    EXPECT_TRUE(found.ok());
    std::vector<std::string> ids;
    for (const ToldJob& told : *found) ids.push_back(told.job.id);
    return ids;
  }
  static Step step(std::int64_t number, std::int64_t seconds, double mfu) {
    Step step;
    step.step = number;
    step.time = Instant{seconds * 1000};
    step.mfu_ratio = mfu;
    return step;
  }

  std::filesystem::path folder_;
  std::unique_ptr<JobBook> book_;
};

TEST_F(JobBookTest, finds_what_was_held_in_a_window_and_keeps_it_when_opened_again) {
  const JobBook::Put put_all =
      put({job("1", 0, 100), job("2", 100, 200), job("3", 150), pending()});
  EXPECT_EQ(put_all.added, 3U);
  EXPECT_EQ(put_all.not_started, 1U);
  for (int again = 0; again < 2; ++again) {
    EXPECT_EQ(held(0, 100), std::vector<std::string>{"1"});
    EXPECT_EQ(held(100, 151), (std::vector<std::string>{"2", "3"}));
    EXPECT_EQ(held(5000, 6000), std::vector<std::string>{"3"}) << "no end: still running";
    open();
  }
}

TEST_F(JobBookTest, a_requeued_job_is_two_runs_of_one_id_and_a_second_telling_is_none) {
  put({job("1", 0, 50), job("1", 80)});
  Job told = job("1", 80, 120);
  told.state = "COMPLETED";
  const JobBook::Put second = put({job("1", 0, 50), told}, 2000);
  EXPECT_EQ(second.added, 0U);
  EXPECT_EQ(second.changed, 1U);
  EXPECT_EQ(second.unchanged, 1U);
  Job other = job("1", 80);
  other.cluster = "c2";
  put({other});
  const auto runs = book_->runs("1", "c1");
  ASSERT_TRUE(runs.ok());
  ASSERT_EQ(runs->size(), 2U);
  EXPECT_EQ((*runs)[1].job.state, "COMPLETED");
  EXPECT_EQ((*runs)[1].told, Instant{2'000'000}) << "when it was last heard of";
  EXPECT_EQ(book_->runs("1", std::nullopt)->size(), 3U);
}

// sacct names the cluster, `scontrol show job` never does.
TEST_F(JobBookTest, a_run_told_with_and_without_its_cluster_is_one_in_either_order_and_after_a_restart) {
  for (const bool is_unnamed_first : {true, false}) {
    const std::string id = is_unnamed_first ? "7" : "8";
    Job named = job(id, 0), unnamed = job(id, 0);
    named.user = "ada";
    named.gpu_count = 8;
    unnamed.cluster.clear();
    unnamed.gpu_count = 8;
    unnamed.allocations = {{{"gpu001"}, {"0", "1"}, 8}};
    EXPECT_EQ(put({is_unnamed_first ? unnamed : named}).added, 1U);
    open();
    const JobBook::Put second = put({is_unnamed_first ? named : unnamed});
    EXPECT_EQ(second.added, 0U);
    EXPECT_EQ(second.changed, 1U);
    EXPECT_EQ(put({named, unnamed}).unchanged, 2U);
    open();
    const auto runs = book_->runs(id, std::nullopt);
    ASSERT_EQ(runs->size(), 1U);
    EXPECT_EQ(runs->front().job.cluster, "c1");
    EXPECT_EQ(runs->front().job.user, "ada");
    EXPECT_EQ(runs->front().job.allocations, unnamed.allocations);
    EXPECT_EQ(book_->counts()->first, is_unnamed_first ? 1U : 2U);
  }
  const auto late = book_->late_jobs(10);
  ASSERT_EQ(late->size(), 2U) << "and are attributed once";
  EXPECT_EQ(late->front().job.cluster, "c1");
  Job requeued = job("7", 500);
  requeued.cluster.clear();
  EXPECT_EQ(put({requeued}).added, 1U) << "another start is another run";
}

TEST_F(JobBookTest, a_run_without_a_cluster_that_several_clusters_have_stays_apart_and_is_said_once) {
  Job other = job("7", 0), unnamed = job("7", 0);
  other.cluster = "c2";
  unnamed.cluster.clear();
  const JobBook::Put told = put({job("7", 0), other, unnamed});
  EXPECT_EQ(told.added, 3U);
  EXPECT_EQ(told.ambiguous, 1U);
  EXPECT_EQ(told.first_ambiguous, "job 7: c1 and c2 both have it");
  const JobBook::Put again = put({job("7", 0), other, unnamed});
  EXPECT_EQ(again.unchanged, 3U);
  EXPECT_EQ(again.ambiguous, 0U);
  EXPECT_EQ(book_->runs("7", std::nullopt)->size(), 3U);
}

TEST_F(JobBookTest, told_again_a_job_that_is_over_is_not_written_and_one_that_runs_was_heard_of) {
  Job over = job("over", 0, 100);
  over.user = "ada";
  over.source = "sacct";
  put({over, job("runs", 0)}, 1000);
  Job from_elsewhere = over;  // the same of another command, which says less
  from_elsewhere.source = "squeue";
  from_elsewhere.user.clear();
  for (const Job& again : {over, from_elsewhere}) {
    const JobBook::Put told = put({again, job("runs", 0)}, 2000);
    EXPECT_EQ(told.unchanged, 2U);
    EXPECT_EQ(told.changed, 0U);
  }
  const auto runs = [&](const std::string& id) { return book_->runs(id, "c1")->front(); };
  EXPECT_EQ(runs("over").told, Instant{1000'000});
  EXPECT_EQ(runs("over").job.source, "sacct");
  EXPECT_EQ(runs("over").job.user, "ada");
  EXPECT_EQ(runs("runs").told, Instant{2000'000});
}

TEST_F(JobBookTest, a_put_is_whole_or_not_at_all) {
  JobBookOptions options;
  options.jobs_max = 2;
  open(options);
  EXPECT_EQ(put({job("1", 0)}).added, 1U);
  const auto refused = book_->put_jobs(std::vector<Job>{job("2", 0), job("3", 0)}, Instant{0});
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, base::ErrorCode::kLimit);
  EXPECT_EQ(held(0, 10), std::vector<std::string>{"1"});
  EXPECT_EQ(put({job("2", 0)}).added, 1U) << "at the limit";
}

TEST_F(JobBookTest, gives_steps_by_source_with_every_figure) {
  Step full = step(10, 100, 0.41);
  full.flops_per_second_per_gpu = 400e12;
  full.tokens_per_second_per_gpu = 9000;
  full.tokens_per_second = 72'000;
  full.samples_per_second = 9;
  full.step_seconds = 1.5;
  full.peak_flops_per_second = 989e12;
  full.loss = training_logs::Loss{2.5};
  Step excluded = step(1, 90, 7.0);
  excluded.excluded = training_logs::Exclusion::kAbovePeak;
  const std::vector<Step> steps = {full, excluded};
  ASSERT_TRUE(book_->put_reported({"train", "ml", "api"}, "api", steps, Instant{0}).ok());
  Step untimed = step(3, 0, 0.2);
  untimed.time.reset();
  ASSERT_TRUE(book_
                  ->put_reported({"train", "ml", "log a"}, "nanogpt", std::vector<Step>{untimed},
                                 Instant{95'000})
                  .ok());
  const auto found = book_->reported("train", "ml", {Instant{80'000}, Instant{200'000}});
  ASSERT_TRUE(found.ok()) << found.error().message;
  ASSERT_EQ(found->size(), 2U);
  ASSERT_EQ((*found)[0].steps.size(), 2U);
  EXPECT_EQ((*found)[0].steps[0].excluded, training_logs::Exclusion::kAbovePeak);
  const Step& back = (*found)[0].steps[1];
  EXPECT_EQ(back.step, 10);
  EXPECT_EQ(back.mfu_ratio, 0.41);
  EXPECT_EQ(back.flops_per_second_per_gpu, 400e12);
  EXPECT_EQ(back.tokens_per_second_per_gpu, 9000);
  EXPECT_EQ(back.tokens_per_second, 72'000);
  EXPECT_EQ(back.samples_per_second, 9);
  EXPECT_EQ(back.step_seconds, 1.5);
  EXPECT_EQ(back.peak_flops_per_second, 989e12);
  EXPECT_EQ(back.loss->value, 2.5);
  EXPECT_FALSE(back.excluded);
  EXPECT_FALSE((*found)[1].steps[0].time)
      << "received in the window, and without a time of its own";
  EXPECT_TRUE(book_->reported("train", "other", {Instant{0}, Instant{200'000}})->empty());
  EXPECT_EQ(book_->reporters({Instant{0}, Instant{200'000}})->size(), 1U);
}

TEST_F(JobBookTest, a_step_that_is_told_twice_is_one) {
  const ReportedKey key{"train", "", "api"};
  ASSERT_TRUE(book_
                  ->put_reported(key, "api", std::vector<Step>{step(1, 10, 0.3), step(2, 20, 0.3)},
                                 Instant{0})
                  .ok());
  ASSERT_TRUE(
      book_->put_reported(key, "api", std::vector<Step>{step(2, 20, 0.4)}, Instant{0}).ok());
  const auto found = book_->reported("train", "", {Instant{0}, Instant{100'000}});
  ASSERT_TRUE(found.ok());
  ASSERT_EQ(found->at(0).steps.size(), 2U);
  EXPECT_EQ(found->at(0).steps[1].mfu_ratio, 0.4);
}

TEST_F(JobBookTest, forgets_what_ended_and_who_was_not_heard_of) {
  put({job("old", 0, 50), job("lost", 0)}, 60);
  put({job("new", 0, 500), job("running", 0)}, 600);
  ASSERT_TRUE(
      book_
          ->put_reported({"old", "", "api"}, "api", std::vector<Step>{step(1, 10, 0.3)}, Instant{0})
          .ok());
  const auto more = book_->forget(Instant{100'000});
  ASSERT_TRUE(more.ok()) << more.error().message;
  EXPECT_FALSE(*more);
  EXPECT_EQ(held(0, 1000), (std::vector<std::string>{"new", "running"}));
  EXPECT_TRUE(book_->reporters({Instant{0}, Instant{200'000}})->empty());
  EXPECT_EQ(*book_->counts(), (std::pair<std::uint64_t, std::uint64_t>(2, 0)));
}

TEST_F(JobBookTest, a_damaged_file_is_put_aside_and_said) {
  put({job("1", 0)});
  book_.reset();
  std::ofstream(folder_ / "flopsight-jobs.db", std::ios::binary | std::ios::trunc)
      << "this is no database at all, but long enough to be one";
  open();
  EXPECT_NE(book_->damage().find("put aside as"), std::string::npos) << book_->damage();
  EXPECT_TRUE(std::filesystem::exists(folder_ / "flopsight-jobs.db.damaged-1"));
  EXPECT_TRUE(held(0, 10).empty());
}

TEST_F(JobBookTest, lists_jobs_that_were_told_late_until_they_are_dropped) {
  const auto on = [](Job job, std::vector<std::string> indices) {
    job.gpu_count = 1;
    job.allocations = {{{"n1"}, std::move(indices), 1}};
    return job;
  };
  const auto late = [&] {
    std::vector<std::string> ids;
    const auto jobs = book_->late_jobs(100);
    for (const ToldJob& told : *jobs) ids.push_back(told.job.id);
    return ids;
  };
  using Ids = std::vector<std::string>;
  Job none = job("without GPUs", 100);
  none.gpu_count = 0;
  put({on(job("in time", 990), {"0"}), on(job("late", 900), {"0"}), on(job("later", 100, 200), {}), none});
  EXPECT_EQ(late(), (Ids{"later", "late"}));
  EXPECT_EQ(book_->late_jobs(1)->size(), 1U);
  open();
  ASSERT_TRUE(book_->drop_late(*book_->late_jobs(100)).ok());
  EXPECT_EQ(late(), Ids{});
  // The same again is no news; its GPUs are.
  put({on(job("late", 900, 950), {"0"}), on(job("later", 100, 200), {})});
  EXPECT_EQ(late(), Ids{});
  put({on(job("later", 100, 200), {"3"})});
  EXPECT_EQ(late(), Ids{"later"});
  ASSERT_TRUE(book_->look_again(Instant{940'000}).ok());
  EXPECT_EQ(late(), (Ids{"later", "late", "in time"}));
  ASSERT_TRUE(book_->forget(Instant{500'000}).ok());
  EXPECT_EQ(late(), (Ids{"late", "in time"}));
}

TEST_F(JobBookTest, keeps_notes) {
  EXPECT_FALSE(*book_->note("log /a"));
  ASSERT_TRUE(book_->put_note("log /a", "12").ok());
  ASSERT_TRUE(book_->put_note("log /a", "13").ok());
  open();
  EXPECT_EQ(*book_->note("log /a"), "13");
  ASSERT_TRUE(book_->put_note("other", "1").ok());
  EXPECT_EQ(*book_->notes("log "), std::vector<std::string>{"13"});
}

TEST_F(JobBookTest, keeps_owners_of_pods_and_gpus_of_hosts) {
  const std::vector<PodOwner> owners = {{"ml", "w-0", {"PyTorchJob", "llama"}},
                                        {"ml", "old", {"Job", "x"}}};
  ASSERT_TRUE(book_->put_owners(owners, Instant{1000}).ok());
  ASSERT_TRUE(book_->put_owners(std::span(owners).first(1), Instant{5000}).ok());
  const std::vector<std::pair<std::string, std::uint32_t>> hosts = {{"n1", 8}, {"n2", 4}};
  ASSERT_TRUE(book_->put_hosts(hosts).ok());
  ASSERT_TRUE(book_->forget(Instant{2000}).ok());
  open();
  ASSERT_EQ(book_->owners()->size(), 1U) << "the one that was not told of again is gone";
  EXPECT_EQ(book_->owners()->at(0).owner, (jobs::Owner{"PyTorchJob", "llama"}));
  EXPECT_EQ(*book_->hosts(), hosts);
}

// A book of version 1 is one whose rows have no `hosts`.
TEST_F(JobBookTest, hosts_of_runs_are_told_whatever_version_wrote_them_and_also_from_a_book_of_version_1_that_is_only_read) {
  Job split = job("1", 0, 50);
  split.allocations = {{{"n1", "n2"}, {}, 8}, {{"n2", "n3"}, {}, 4}};
  Job partly = job("2", 0, 50);
  partly.allocations = {{{"n1"}, {}, 8}, {{}, {}, 4}};
  put({split, partly, job("3", 0, 50), job("9", 500)});
  const auto hosts = [&] {
    std::vector<std::string> lines;
    const base::Status read = book_->for_run_hosts(
        {Instant{0}, Instant{100'000}}, [](const RunRow& run) { return run.id != "3"; },
        [&](const RunRow& run, std::span<const std::string> names) {
          std::string line = run.cluster + "/" + run.id + ":";
          for (const std::string& name : names) line += " " + name;
          lines.push_back(line);
        });
    EXPECT_TRUE(read.ok());
    return lines;
  };
  const std::vector<std::string> expected = {"c1/1: n1 n2 n3", "c1/2:"};
  EXPECT_EQ(hosts(), expected);
  book_.reset();
  {
    auto database = Database::open((folder_ / "flopsight-jobs.db").string(), Database::Mode::kReadWrite);
    ASSERT_TRUE(database.ok());
    ASSERT_TRUE(database->execute("ALTER TABLE scheduler_jobs DROP COLUMN hosts; PRAGMA user_version = 1").ok());
  }
  JobBookOptions read_only;
  read_only.read_only = true;
  open(read_only);
  EXPECT_EQ(hosts(), expected) << "only read, so without the column";
  open();
  EXPECT_EQ(hosts(), expected) << "with a column that has nothing";
  split.end = Instant{60'000};
  put({split});
  EXPECT_EQ(hosts(), expected);
}

TEST_F(JobBookTest, ids_that_are_sql_are_ids) {
  const std::string evil = "1'; DROP TABLE scheduler_jobs; --";
  put({job(evil, 0)});
  EXPECT_EQ(held(0, 10), std::vector<std::string>{evil});
  EXPECT_EQ(book_->runs(evil, std::nullopt)->size(), 1U);
}

}  // namespace
}  // namespace flopsight::store
