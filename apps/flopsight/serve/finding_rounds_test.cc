// Findings at the level of the service: samples in by remote write, closed minutes to the detectors, records out. Above all that nothing about the work
// is concluded from what was not measured.
#include "serve/finding_rounds.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <set>

#include "serve/test_ingest.h"

namespace flopsight::app {
namespace {

using test::after;
using test::LabelTexts;
using test::Message;

constexpr int kGpus = 8;
constexpr int kStepSeconds = 30;
constexpr int kSecondsAtOnce = 300;  // of samples in a message, each of which is made durable

// One sample of a GPU that trains; a test changes it.
struct Sample {
  double tensor = 0.5;
  double sm = 0.8;
  double engine = 0.95;
  double utilization_percent = 98;
  double watts = 600;
  double megahertz = 1'700;
  double joules = 0;  // of the energy counter; 0: as the power says
  bool has_profiling = true;
  bool is_there = true;
};
using Change = std::function<void(int gpu, int minute, Sample& sample)>;

class Rounds : public testing::Test, public test::IngestHarness {
 protected:
  Rounds() {
    jobs_ = std::move(JobService::open(folder_.path() + "/" + name_, false)).value();
    settings_ = std::make_shared<AnswerSettings>();
    settings_->fleet.catalog = &catalog_;
    begin();
  }

  // As a process begins: with what is on the disk.
  void begin(FindingRoundOptions options = {}) {
    rounds_.reset();
    findings_ = std::move(FindingService::open(folder_.path() + "/" + name_, {}, {}, now_)).value();
    rounds_ = std::make_unique<FindingRounds>(*ingest_, *jobs_, *findings_, settings_, options);
  }
  void restart() {
    open();
    begin();
  }
  void write_sample(Message& message, int gpu, int t, const Sample& sample) {
    const LabelTexts labels = test::labels_of(gpu, job_of_(gpu));
    message.add("DCGM_FI_DEV_GPU_UTIL", labels, sample.utilization_percent, t).add("DCGM_FI_DEV_POWER_USAGE", labels, sample.watts, t);
    message.add(test::kClock, labels, sample.megahertz, t);
    message.add("DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION", labels, 1'000 * (sample.joules > 0 ? sample.joules : 1e6 + 600.0 * t), t);
    if (!sample.has_profiling) return;
    message.add(test::kTensor, labels, sample.tensor, t).add("DCGM_FI_PROF_SM_ACTIVE", labels, sample.sm, t);
    message.add("DCGM_FI_PROF_GR_ENGINE_ACTIVE", labels, sample.engine, t);
  }
  void fresh_rounds(const std::string& name) {
    rounds_.reset();
    fresh(name);
    begin();
  }
  // Minutes of a job of eight GPUs on one host, and then all that shows.
  void run_minutes(int from, int to, const Change& change) {
    Message message;
    for (int t = from * 60; t < to * 60; t += kStepSeconds) {
      for (int gpu = 0; gpu < gpus_; ++gpu) {
        // Real counters never repeat: a percent of noise.
        const double noise = 1 + 0.01 * std::sin(t * 0.37 + gpu);
        Sample sample;
        sample.tensor *= noise;
        sample.sm *= noise;
        sample.watts *= noise;
        change(gpu, t / 60, sample);
        if (sample.is_there) write_sample(message, gpu, t, sample);
      }
      now_ = after(t);
      if ((t + kStepSeconds) % kSecondsAtOnce != 0 && t + kStepSeconds < to * 60) continue;
      ASSERT_EQ(write(message).status, 204);
      message = Message();
    }
    if (flushes_) flush();
    look();
  }
  void look() {
    for (;;) {
      const auto more = rounds_->step(now_);
      ASSERT_TRUE(more.ok()) << more.error().message;
      if (!*more) return;
    }
  }
  std::vector<findings::Record> all() {
    const auto page = findings_->find({});
    EXPECT_TRUE(page.ok());
    return all_ = page.ok() ? page->records : std::vector<findings::Record>();
  }
  std::set<std::string> kinds() {
    std::set<std::string> out;
    for (const findings::Record& record : all()) out.insert(record.kind);
    return out;
  }
  // Only about the measurement, and nothing costs anything.
  void expect_only(const std::string& kind) {
    EXPECT_EQ(kinds(), std::set<std::string>{kind});
    for (const findings::Record& record : all()) {
      EXPECT_TRUE(record.data_quality) << record.text;
      EXPECT_FALSE(record.cost.has_value()) << record.text;
      EXPECT_FALSE(record.cost_usd.has_value()) << record.text;
    }
  }

  int gpus_ = kGpus;
  bool flushes_ = true;
  std::function<std::string(int gpu)> job_of_ = [](int) { return "train"; };
  std::vector<findings::Record> all_;  // as they were asked for last
  std::unique_ptr<JobService> jobs_;
  std::shared_ptr<AnswerSettings> settings_;
  std::unique_ptr<FindingService> findings_;
  std::unique_ptr<FindingRounds> rounds_;
};

const Change kNothing = [](int, int, Sample&) {};

TEST_F(Rounds, a_job_that_works_as_ever_has_no_finding) {
  run_minutes(0, 180, kNothing);
  EXPECT_TRUE(all().empty()) << all().front().text;
  EXPECT_EQ(rounds_->health().jobs_watched, 1u);
  EXPECT_EQ(rounds_->health().jobs_unwatched, 0u);
}

// Quiet minutes of a backlog are not written one by one.
TEST_F(Rounds, how_far_was_looked_is_known_after_a_restart) {
  run_minutes(0, 180, kNothing);
  const auto looked_until = rounds_->health().looked_until;
  ASSERT_GE(looked_until, after(170 * 60));
  restart();
  EXPECT_EQ(findings_->looked_until(), looked_until);
}

TEST_F(Rounds, a_drop_of_two_and_a_half_times_is_found_within_five_minutes_of_data) {
  const auto drop = [](int, int minute, Sample& sample) {
    if (minute >= 90) sample.tensor /= 2.5;
  };
  // The last two minutes wait for late samples: those up to 95 have been looked at.
  run_minutes(0, 97, drop);
  ASSERT_EQ(kinds(), std::set<std::string>{"regression"});
  const findings::Record record = all().front();
  EXPECT_EQ(record.job, "train@a");
  EXPECT_EQ(record.gpu_model, "H100-SXM5-80GB");
  EXPECT_LE(std::abs((record.first - after(90 * 60)).value), 60);
  // 60 % of the time of eight GPUs.
  run_minutes(97, 120, drop);
  const findings::Record later = all().front();
  EXPECT_NEAR(later.cost->value, 0.6 * kGpus * ((later.last - after(89 * 60)).value / 3'600), 0.3);
}

// Between two flushes hours of samples may come in, after an outage or by an import.
TEST_F(Rounds, minutes_of_a_backlog_are_looked_at_when_they_are_written_and_not_when_they_came_in) {
  const auto drop = [](int, int minute, Sample& sample) {
    if (minute >= 90) sample.tensor /= 2.5;
  };
  for (const bool is_first : {true, false}) {
    fresh_rounds(is_first ? "first" : "second");
    if (!is_first) run_minutes(0, 60, drop);
    flushes_ = false;
    run_minutes(is_first ? 0 : 60, 120, drop);
    EXPECT_TRUE(all().empty());
    flushes_ = true;
    flush();
    look();
    EXPECT_EQ(kinds(), std::set<std::string>{"regression"}) << is_first;
  }
}

TEST_F(Rounds, a_report_from_the_store_names_what_is_open_and_showed_in_its_window) {
  const auto report = [&](int from_minute, int to_minute, const std::string& format) {
    return test::run_program({"report", "--store", folder_.path() + "/" + name_, "--start", units::to_rfc3339(after(60 * from_minute)), "--end",
                              units::to_rfc3339(after(60 * to_minute)), "--format", format});
  };
  run_minutes(0, 110, [](int, int minute, Sample& sample) {
    if (minute >= 90) sample.tensor /= 2.5;
  });
  const test::Answer answer = report(0, 110, "json");
  ASSERT_EQ(answer.exit_code, 0) << answer.err;
  const auto json = base::json::parse(answer.out);
  ASSERT_TRUE(json.ok());
  EXPECT_EQ(test::number(*json, "finding_count"), 1);
  EXPECT_EQ(test::text(*json, "findings.0.kind"), "regression");
  const std::string table = report(0, 110, "table").out;
  EXPECT_NE(table.find("Findings that are open\n  " + all()[0].id), std::string::npos) << table;
  EXPECT_NE(table.find("regression: train@a: OFU fell from"), std::string::npos) << table;
  const auto before = base::json::parse(report(0, 60, "json").out);
  ASSERT_TRUE(before.ok());
  EXPECT_EQ(test::number(*before, "finding_count"), 0);
  EXPECT_EQ(report(0, 60, "table").out.find("Findings"), std::string::npos);
}

TEST_F(Rounds, pods_that_were_replaced_as_a_job_became_slower_are_its_first_suspect) {
  std::vector<store::PodOwner> owners;
  for (const char* pod : {"train-5d4f-a", "train-7c9b-a"}) owners.push_back({"a", pod, {"Deployment", "train"}});
  ASSERT_TRUE(jobs_->keep_owners(owners, after(0)).ok());
  settings_->grouping = std::make_shared<const jobs::Grouping>();
  begin();
  job_of_ = [this](int) { return now_ < after(90 * 60) ? "train-5d4f-a" : "train-7c9b-a"; };
  run_minutes(0, 110, [](int, int minute, Sample& sample) {
    if (minute >= 90) sample.tensor /= 2.5;
  });
  ASSERT_EQ(kinds(), std::set<std::string>{"regression"});
  const auto whole = findings_->record(all()[0].id);
  ASSERT_TRUE(whole.ok() && *whole);
  ASSERT_FALSE((*whole)->suspects.empty());
  EXPECT_EQ((*whole)->suspects[0].kind, detect::SuspectKind::kLabelChange);
  EXPECT_NE((*whole)->suspects[0].text.find("from 'train-5d4f-a' to 'train-7c9b-a'"), std::string::npos) << (*whole)->suspects[0].text;
  EXPECT_EQ((*whole)->severity, detect::Severity::kCritical) << "evaluations have none";
}

TEST_F(Rounds, a_run_is_compared_with_runs_of_its_family_that_ended_before_the_process_began) {
  settings_->families = std::make_shared<const analysis::FamilyRule>(analysis::FamilyRule::builtin());
  begin();
  job_of_ = [](int gpu) { return "llama-" + std::to_string(gpu); };
  run_minutes(0, 135, [](int gpu, int, Sample& sample) { sample.is_there = gpu < 6; });
  EXPECT_TRUE(all().empty());
  restart();
  run_minutes(135, 215, [](int gpu, int, Sample& sample) {
    sample.is_there = gpu == 7;
    sample.tensor *= 0.6;
  });
  ASSERT_EQ(kinds(), std::set<std::string>{"below_family"});
  EXPECT_EQ(all()[0].job, "llama-7@a");
}

TEST_F(Rounds, counters_that_a_host_loses_at_once_are_a_profilers_and_no_regression_stall_or_hang) {
  run_minutes(0, 150, [](int, int minute, Sample& sample) {
    if (minute >= 90) sample.tensor = sample.sm = sample.engine = 140'737'488'355'328.0;
  });
  expect_only("profiler_pause");
}

TEST_F(Rounds, counters_that_say_zero_while_the_gpu_is_busy_are_no_regression_stall_or_hang) {
  run_minutes(0, 150, [](int, int minute, Sample& sample) {
    if (minute >= 90) sample.tensor = sample.sm = sample.engine = 0;
  });
  expect_only("counter_dead");
}

TEST_F(Rounds, frozen_counters_are_no_regression_whatever_level_they_froze_at) {
  run_minutes(0, 150, [](int, int minute, Sample& sample) {
    if (minute < 90) return;
    sample = Sample();
    sample.tensor = 0.123456;
    sample.joules = 5e6;
  });
  expect_only("counter_frozen");
}

TEST_F(Rounds, a_profiler_that_holds_the_counters_is_no_regression_or_stall) {
  run_minutes(0, 150, [](int, int minute, Sample& sample) { sample.has_profiling = minute < 90 || minute >= 120; });
  for (const findings::Record& record : all()) {
    EXPECT_TRUE(record.data_quality) << record.kind << " " << record.text;
    EXPECT_FALSE(record.cost.has_value());
  }
  EXPECT_FALSE(kinds().empty()) << "that the time is unmeasured is a finding";
}

TEST_F(Rounds, gpus_that_are_not_seen_while_their_job_goes_on_are_no_regression_or_straggler) {
  run_minutes(0, 150, [](int gpu, int minute, Sample& sample) { sample.is_there = minute < 90 || gpu < 4; });
  expect_only("unseen");
}

TEST_F(Rounds, a_job_that_ends_with_its_exporter_is_no_finding) {
  run_minutes(0, 90, kNothing);
  run_minutes(150, 160, [](int gpu, int, Sample& sample) { sample.is_there = gpu == 0; });
  EXPECT_FALSE(kinds().contains("stall"));
  EXPECT_FALSE(kinds().contains("regression"));
}

// Of the job that the samples name, as a scheduler tells of it.
schedulers::Job told_job(std::optional<double> end_seconds = std::nullopt) {
  schedulers::Job job;
  job.id = "train";
  job.cluster = "a";
  job.source = "squeue";
  job.start = after(0);
  if (end_seconds) job.end = after(*end_seconds);
  return job;
}
// Another host goes on, so that minutes go by.
const Change kJobSilentFrom90 = [](int gpu, int minute, Sample& sample) { sample.is_there = minute < 90 || gpu >= 8; };

TEST_F(Rounds, a_job_that_is_silent_as_a_whole_while_its_scheduler_says_that_it_runs_is_unseen_and_no_regression) {
  ASSERT_TRUE(jobs_->tell(std::array{told_job()}, after(0)).ok());
  gpus_ = 16;
  job_of_ = [](int gpu) { return gpu < 8 ? "train" : "other"; };
  run_minutes(0, 98, kJobSilentFrom90);
  EXPECT_TRUE(all().empty()) << "ten minutes are needed";
  run_minutes(98, 120, kJobSilentFrom90);
  expect_only("unseen");
  ASSERT_EQ(all().size(), 1u) << "one for the job, and none for its GPUs and hosts";
  const findings::Record record = all()[0];
  EXPECT_EQ(record.job, "train@a");
  EXPECT_EQ(record.host + record.gpu, "");
  EXPECT_EQ(record.gpu_model, "H100-SXM5-80GB");
  // The last slots of silent GPUs are closed when others were looked at already.
  EXPECT_LE(std::abs((record.first - after(90 * 60)).value), 180);
  EXPECT_NE(record.text.find("nothing comes of any of its 8 GPUs; it is told to hold its GPUs by squeue"), std::string::npos) << record.text;
  run_minutes(120, 150, kNothing);
  EXPECT_EQ(all()[0].state, findings::State::kResolved) << "it is seen again";
  EXPECT_EQ(all().size(), 1u);
}

TEST_F(Rounds, a_job_that_is_silent_because_it_ended_or_of_which_nobody_tells_is_no_finding) {
  gpus_ = 16;
  job_of_ = [](int gpu) { return gpu < 8 ? "train" : "other"; };
  run_minutes(0, 115, kJobSilentFrom90);
  EXPECT_TRUE(all().empty());
  ASSERT_TRUE(jobs_->tell(std::array{told_job(90 * 60)}, after(0)).ok());
  run_minutes(115, 130, kJobSilentFrom90);
  EXPECT_TRUE(all().empty());
}

TEST_F(Rounds, a_job_that_ended_and_left_free_gpus_behind_is_not_silent) {
  ASSERT_TRUE(jobs_->tell(std::array{told_job()}, after(0)).ok());
  gpus_ = 16;
  job_of_ = [this](int) { return now_ < after(90 * 60) ? "train" : ""; };
  run_minutes(0, 120, kJobSilentFrom90);
  EXPECT_FALSE(kinds().contains("unseen")) << all()[0].text;
}

TEST_F(Rounds, a_job_is_unseen_while_the_exporters_of_all_its_hosts_do_not_answer) {
  std::set<std::string> down = {"n1.cluster.example"};
  rounds_->set_hosts_down([&] { return down; });
  gpus_ = 16;
  job_of_ = [](int gpu) { return gpu < 8 ? "train" : "other"; };
  run_minutes(0, 110, kJobSilentFrom90);
  EXPECT_TRUE(all().empty()) << "that is another host";
  fresh_rounds("other");
  rounds_->set_hosts_down([&] { return down; });
  down.insert("n0.cluster.example");
  run_minutes(0, 110, kJobSilentFrom90);
  expect_only("unseen");
  ASSERT_FALSE(all().empty());
  EXPECT_NE(all()[0].text.find("the exporter of its host does not answer"), std::string::npos) << all()[0].text;
}

TEST_F(Rounds, when_nothing_comes_at_all_a_held_job_is_unseen_and_what_was_open_stays_so_through_a_restart) {
  ASSERT_TRUE(jobs_->tell(std::array{told_job()}, after(0)).ok());
  run_minutes(0, 120, [](int, int minute, Sample& sample) {
    if (minute >= 90) sample.tensor /= 2.5;
  });
  ASSERT_EQ(kinds(), std::set<std::string>{"regression"});
  for (int minute = 121; minute < 200; minute += minute == 150 ? 45 : 1) {
    now_ = after(60 * minute);
    flush();
    look();
    if (minute == 150) restart();
  }
  EXPECT_EQ(kinds(), (std::set<std::string>{"regression", "unseen"}));
  for (const findings::Record& record : all()) EXPECT_EQ(record.state, findings::State::kOpen) << record.text;
  EXPECT_EQ(all().size(), 2u);
  const auto unseen = std::find_if(all_.begin(), all_.end(), [](const auto& record) { return record.kind == "unseen"; });
  ASSERT_NE(unseen, all_.end());
  EXPECT_GE(unseen->last, after(197 * 60));
  EXPECT_FALSE(unseen->cost.has_value());
}

TEST_F(Rounds, a_restart_forgets_neither_the_finding_nor_what_it_cost_nor_the_level_before) {
  const auto drop = [](int, int minute, Sample& sample) {
    if (minute >= 90) sample.tensor /= 2.5;
  };
  run_minutes(0, 110, drop);
  const findings::Record before = all().at(0);
  restart();
  run_minutes(110, 130, drop);
  ASSERT_EQ(all().size(), 1u);
  const findings::Record later = all().at(0);
  EXPECT_EQ(later.id, before.id);
  EXPECT_EQ(later.state, findings::State::kOpen);
  EXPECT_EQ(later.first, before.first);
  const double hours = (later.last - before.last).value / 3'600;
  EXPECT_NEAR(later.cost->value - before.cost->value, 0.6 * kGpus * hours, 0.1 * kGpus * hours);
}

TEST_F(Rounds, a_kind_that_is_off_is_not_found) {
  FindingRoundOptions options;
  options.watch.kinds_off = {"regression"};
  begin(options);
  run_minutes(0, 110, [](int, int minute, Sample& sample) {
    if (minute >= 90) sample.tensor /= 2.5;
  });
  EXPECT_TRUE(all().empty());
}

TEST_F(Rounds, past_their_limit_jobs_are_not_watched_and_counted) {
  FindingRoundOptions options;
  options.watch.jobs_max = 0;
  begin(options);
  run_minutes(0, 10, kNothing);
  EXPECT_EQ(rounds_->health().jobs_watched, 0u);
  EXPECT_EQ(rounds_->health().jobs_unwatched, 1u);
}

TEST_F(Rounds, a_discrepancy_of_an_audit_is_a_finding_until_it_is_mended) {
  std::vector<jobs::AuditFinding> audits(1);
  audits[0].holder.job = "train";
  audits[0].holder.name_space = "a";
  audits[0].holder.user = "ada";
  audits[0].verdict = "over_reported";
  audits[0].summary = "reported 54 %, recomputed 26 %";
  audits[0].time = after(600);
  rounds_->set_audits([&] { return audits; });
  run_minutes(0, 20, kNothing);
  ASSERT_EQ(kinds(), std::set<std::string>{"audit"});
  EXPECT_EQ(all()[0].text, "over_reported: reported 54 %, recomputed 26 %");
  EXPECT_EQ(all()[0].job, "train@a");
  audits[0].verdict = "consistent";
  run_minutes(20, 90, kNothing);
  EXPECT_EQ(all()[0].state, findings::State::kResolved);
}

TEST_F(Rounds, an_audit_of_a_simulated_fleet_says_so) {
  ASSERT_EQ(write(Message().add(live::kSimulatedMetric, test::labels_of(0, ""), 1, 0)).status, 204);
  std::vector<jobs::AuditFinding> audits(1);
  audits[0].holder.job = "train";
  audits[0].verdict = "over_reported";
  audits[0].time = after(600);
  rounds_->set_audits([&] { return audits; });
  run_minutes(0, 20, kNothing);
  ASSERT_EQ(kinds(), std::set<std::string>{"audit"});
  EXPECT_TRUE(all()[0].simulated);
}

TEST_F(Rounds, waste_is_a_finding_where_it_costs_more_a_day_than_is_allowed_and_none_without_a_price) {
  FindingRoundOptions options;
  options.waste_usd_per_day = 10;
  begin(options);
  run_minutes(0, 90, kNothing);
  EXPECT_TRUE(all().empty());
  settings_->prices = *analysis::Prices::parse("model,usd_per_gpu_hour\nH100-SXM5-80GB,10\n");
  settings_->targets = *analysis::parse_targets("model,attainable_ofu_ratio\nH100-SXM5-80GB,0.9\n");
  begin(options);
  run_minutes(90, 180, kNothing);
  ASSERT_EQ(kinds(), std::set<std::string>{"waste"});
  EXPECT_GT(all()[0].cost_usd->value, 10);
  options.waste_usd_per_day = 1e6;
  fresh("other");
  begin(options);
  run_minutes(0, 90, kNothing);
  EXPECT_TRUE(all().empty());
}

}  // namespace
}  // namespace flopsight::app
