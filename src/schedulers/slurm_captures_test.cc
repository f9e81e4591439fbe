// Whole outputs of real clusters, against what was read in them by hand.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "base/file.h"
#include "schedulers/slurm.h"

namespace flopsight::schedulers {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

Parsed read(const std::string& name, const base::Zone* zone = nullptr) {
  const auto text =
      base::read_file(std::string(FLOPSIGHT_SOURCE_DIR) + "/tests/fixtures/slurm/" + name);
  EXPECT_TRUE(text.ok());
  SlurmOptions options;
  options.zone = zone;
  options.cluster = "given";
  auto parsed = read_slurm(*text, options);
  EXPECT_TRUE(parsed.ok()) << parsed.error().message;
  return parsed.ok() ? std::move(parsed).value() : Parsed();
}

const base::Zone& utc() {
  static const base::Zone kUtc = base::Zone::find("UTC").value();
  return kUtc;
}

const Job& with_id(const Parsed& parsed, const std::string& id, std::size_t occurrence = 0) {
  for (const Job& job : parsed.jobs) {
    if (job.id == id && occurrence-- == 0) return job;
  }
  ADD_FAILURE() << "no job " << id;
  static const Job kNone;
  return kNone;
}

double gpu_hours(const Parsed& parsed, std::int64_t now_unix_seconds) {
  double seconds = 0;
  for (const Job& job : parsed.jobs) {
    if (!job.start) continue;
    seconds += job.gpu_count.value_or(0) *
               (job.end.value_or(units::Instant{now_unix_seconds * 1000}) - *job.start).value;
  }
  return seconds / 3600;
}

units::Instant at(std::int64_t unix_seconds) { return {unix_seconds * 1000}; }

TEST(SlurmCaptures, sacct_json_of_25_05) {
  const Parsed parsed = read("sarc-sacct-fromage_1714003200.json");
  ASSERT_EQ(parsed.jobs.size(), 13U);
  EXPECT_EQ(parsed.problem_count, 0U);
  EXPECT_EQ(parsed.steps_skipped, 26U);
  const Job& two = with_id(parsed, "14");
  EXPECT_EQ(two.key(), "fromage/14/2024-02-24T07:38:10Z");
  EXPECT_EQ(two.state, "FAILED");
  EXPECT_EQ(two.gpu_count, 2U);
  EXPECT_EQ(two.gpu_type(), "v100");
  EXPECT_EQ(two.end, at(1'708'802'209));
  EXPECT_EQ(two.time_limit->value, 720 * 60.0);
  EXPECT_EQ(two.allocations[0].hosts, std::vector<std::string>{"fg-v014"});
  EXPECT_EQ(two.array_job_id, std::nullopt);
  EXPECT_EQ(two.source, "JSON, Slurm 25.05.2, data_parser/v0.0.43");
  const Job& running = with_id(parsed, "6");
  EXPECT_TRUE(running.is_running());
  // This cluster counts GPUs by type only, so a job without an entry may hold GPUs of another type.
  EXPECT_EQ(with_id(parsed, "12").gpu_count, std::nullopt);
  EXPECT_NEAR(
      gpu_hours(parsed, 1'714'003'200),
      (7'850'778 + 2 * 41'919 + 2'600'826 + 7'594 + 5'574 + 4'038 + 2'963 + 13'569 + 9'542) /
          3600.0,
      1e-9);

  const Parsed mila = read("sarc-sacct-mila_1714003200.json");
  EXPECT_EQ(mila.jobs.size(), 8U);
  EXPECT_NEAR(gpu_hours(mila, 1'714'003'200),
              (5'242'784 + 2'616'671 + 2 * 2'646'798 + 3'308 + 571) / 3600.0, 1e-9);
  EXPECT_EQ(with_id(mila, "19").gpu_type(), "a100");
}

TEST(SlurmCaptures, squeue_json_with_numbers_plain_and_as_objects) {
  const Parsed parsed = read("rivos-squeue_out.json");
  ASSERT_EQ(parsed.jobs.size(), 2U);
  EXPECT_EQ(parsed.problem_count, 0U);
  const Job& running = with_id(parsed, "26515966");
  EXPECT_EQ(running.start, at(1'684'114'921));
  EXPECT_EQ(running.end, std::nullopt);  // end_time is when its limit is reached
  EXPECT_EQ(running.gpu_count, 0U);
  EXPECT_EQ(running.time_limit->value, 30'240 * 60.0);
  const Job& pending = with_id(parsed, "58948420");
  EXPECT_EQ(pending.state, "PENDING");
  EXPECT_EQ(pending.start, std::nullopt);
  EXPECT_EQ(pending.submit, at(1'729'715'848));
  EXPECT_EQ(pending.time_limit->value, 1'439 * 60.0);
  EXPECT_EQ(pending.array_task_id, std::nullopt);  // tasks 1-10 are still to come
  EXPECT_EQ(pending.gpu_count, std::nullopt);
}

TEST(SlurmCaptures, nodes_without_gpus) {
  const Parsed parsed = read("rivos-sinfo_out.json");
  EXPECT_EQ(parsed.problem_count, 0U);
  ASSERT_FALSE(parsed.nodes.empty());
  EXPECT_EQ(parsed.nodes[0].name, "cs2.example.company.com");
  EXPECT_EQ(parsed.nodes[0].gpu_count, 0U);
}

TEST(SlurmCaptures, what_another_program_made_of_slurm_is_refused_in_one_line) {
  for (const char* name : {"rivos-squeue_fallback.txt", "rivos-sinfo_fallback.txt"}) {
    const auto text =
        base::read_file(std::string(FLOPSIGHT_SOURCE_DIR) + "/tests/fixtures/slurm/" + name);
    ASSERT_TRUE(text.ok());
    const auto parsed = read_slurm(*text, {});
    ASSERT_FALSE(parsed.ok()) << name;
    EXPECT_EQ(parsed.error().message.find('\n'), std::string::npos);
  }
}

TEST(SlurmCaptures, scontrol_show_job_says_which_gpus) {
  const Parsed parsed = read("slurm-22.05-scontrol-jobs.txt", &utc());
  ASSERT_EQ(parsed.jobs.size(), 9U);
  EXPECT_EQ(parsed.problem_count, 0U);
  const Job& named = with_id(parsed, "1");
  EXPECT_EQ(named.name, "two words");
  EXPECT_EQ(named.user, "root");
  EXPECT_EQ(named.account, "physics");
  EXPECT_EQ(named.key(), "given/1/2026-11-29T23:09:56Z");
  EXPECT_EQ(named.end, std::nullopt);
  EXPECT_THAT(named.allocations, ElementsAre(Allocation{{"n1"}, {"0", "1"}, 2}));
  EXPECT_EQ(named.time_limit->value, 3600);
  const Job& part = with_id(parsed, "3");
  EXPECT_EQ(part.het_job_id, 2U);
  EXPECT_EQ(part.het_offset, 1U);
  EXPECT_EQ(part.gpu_count, 0U);
  EXPECT_TRUE(part.time_limit_infinite);
  const Job& task = with_id(parsed, "7");
  EXPECT_EQ(task.array_job_id, 4U);
  EXPECT_EQ(task.array_task_id, 1U);
  EXPECT_THAT(task.allocations, ElementsAre(Allocation{{"n2"}, {"0"}, 1}));
  const Job& mig = with_id(parsed, "5");
  EXPECT_EQ(mig.state, "FAILED");
  EXPECT_EQ(mig.exit_code, 3);
  EXPECT_TRUE(mig.is_mig());
  EXPECT_EQ(mig.gpu_type(), "a100_1g.5gb");
  EXPECT_EQ(*mig.end - *mig.start, units::Seconds(2));
}

TEST(SlurmCaptures, the_one_line_form_says_the_same) {
  const Parsed lines = read("slurm-22.05-scontrol-jobs-oneline.txt", &utc());
  const Parsed blocks = read("slurm-22.05-scontrol-jobs.txt", &utc());
  ASSERT_EQ(lines.jobs.size(), blocks.jobs.size());
  for (std::size_t i = 0; i < lines.jobs.size(); ++i) {
    EXPECT_EQ(lines.jobs[i].key(), blocks.jobs[i].key());
    EXPECT_EQ(lines.jobs[i].name, blocks.jobs[i].name);
    EXPECT_EQ(lines.jobs[i].allocations, blocks.jobs[i].allocations);
    EXPECT_EQ(lines.jobs[i].het_job_id, blocks.jobs[i].het_job_id);
  }
}

TEST(SlurmCaptures, scontrol_show_node_tells_gpus_and_those_in_use) {
  const Parsed parsed = read("slurm-22.05-scontrol-nodes.txt");
  ASSERT_EQ(parsed.nodes.size(), 2U);
  EXPECT_EQ(parsed.nodes[0].name, "n1");
  EXPECT_EQ(parsed.nodes[0].state, "MIXED");
  EXPECT_EQ(parsed.nodes[0].gpu_count, 5U);
  EXPECT_EQ(parsed.nodes[0].gpu_count_used, 4U);
  EXPECT_THAT(parsed.nodes[0].gpus,
              ElementsAre(GpuGroup{"a100", 4, false}, GpuGroup{"a100_1g.5gb", 1, true}));
  EXPECT_EQ(parsed.nodes[1].gpu_count_used, 2U);
  const Parsed json = read("slurm-22.05-sinfo.json");
  ASSERT_EQ(json.nodes.size(), 2U);
  EXPECT_EQ(json.nodes[0].gpu_count, 5U);
  EXPECT_EQ(json.nodes[0].gpus, parsed.nodes[0].gpus);
}

TEST(SlurmCaptures, squeue_json_of_22_05_says_what_scontrol_says) {
  const Parsed json = read("slurm-22.05-squeue.json");
  const Parsed text = read("slurm-22.05-scontrol-jobs.txt", &utc());
  EXPECT_EQ(json.problem_count, 0U);
  ASSERT_EQ(json.jobs.size(), text.jobs.size());
  for (const Job& job : json.jobs) {
    const Job& other = with_id(text, job.id);
    EXPECT_EQ(job.start, other.start) << job.id;
    EXPECT_EQ(job.end, other.end) << job.id;
    EXPECT_EQ(job.state, other.state) << job.id;
    EXPECT_EQ(job.gpu_count, other.gpu_count) << job.id;
    EXPECT_EQ(job.exit_code, other.exit_code) << job.id;
    EXPECT_EQ(job.array_task_id, other.array_task_id) << job.id;
    EXPECT_EQ(job.het_offset, other.het_offset) << job.id;
    if (job.gpu_count != 0U) {
      EXPECT_EQ(job.allocations, other.allocations) << job.id;
    }
  }
}

TEST(SlurmCaptures, a_requeued_job_is_a_new_start_of_the_same_id) {
  const Parsed text = read("slurm-22.05-sacct.txt", &utc());
  const Parsed json = read("slurm-22.05-sacct.json");
  for (const Parsed* parsed : {&text, &json}) {
    EXPECT_EQ(parsed->problem_count, 0U);
    ASSERT_EQ(parsed->jobs.size(), 10U);
    EXPECT_EQ(with_id(*parsed, "1", 0).state, "REQUEUED");
    EXPECT_EQ(with_id(*parsed, "1", 0).start, at(1'795'993'796));
    EXPECT_EQ(with_id(*parsed, "1", 0).end, at(1'795'993'805));
    EXPECT_EQ(with_id(*parsed, "1", 1).start, at(1'795'993'974));
    EXPECT_TRUE(with_id(*parsed, "1", 1).is_running());
    EXPECT_EQ(with_id(*parsed, "6").state, "CANCELLED");
    EXPECT_EQ(with_id(*parsed, "8").gpu_count, 0U);  // this cluster counts gres/gpu
    EXPECT_EQ(with_id(*parsed, "5").gpu_count, 1U);
    EXPECT_EQ(with_id(*parsed, "5").gpu_type(), "a100_1g.5gb");
    EXPECT_TRUE(with_id(*parsed, "9").is_running());
  }
  EXPECT_EQ(text.steps_skipped, 10U);
  EXPECT_EQ(with_id(json, "7").array_task_id, 1U);
  EXPECT_EQ(with_id(json, "3").het_job_id, 2U);
}

TEST(SlurmCaptures, scontrol_tells_the_second_start_of_a_requeued_job_and_which_gpus_it_has_now) {
  const Parsed parsed = read("slurm-22.05-scontrol-jobs-requeued.txt", &utc());
  EXPECT_EQ(parsed.problem_count, 0U);
  ASSERT_EQ(parsed.jobs.size(), 9U);
  const Job& again = with_id(parsed, "1");
  EXPECT_EQ(again.name, "two words");
  EXPECT_EQ(again.restart_count, 1U);
  EXPECT_EQ(again.start, at(1'795'993'974));
  EXPECT_FALSE(again.end);
  EXPECT_EQ(again.gpu_count, 2U);
  EXPECT_EQ(again.allocations, (std::vector<Allocation>{{{"n1"}, {"0", "1"}, 2U}}));
  EXPECT_EQ(with_id(parsed, "2").allocations, (std::vector<Allocation>{{{"n1"}, {"2"}, 1U}}));
  EXPECT_EQ(with_id(parsed, "3").het_job_id, 2U);
  EXPECT_EQ(with_id(parsed, "3").het_offset, 1U);
  EXPECT_EQ(with_id(parsed, "3").gpu_count, 0U);
  for (const auto& [id, task] : {std::pair{"6", 0U}, {"7", 1U}, {"4", 2U}}) {
    EXPECT_EQ(with_id(parsed, id).array_job_id, 4U);
    EXPECT_EQ(with_id(parsed, id).array_task_id, task);
    EXPECT_EQ(with_id(parsed, id).end, at(1'795'993'805));
  }
  EXPECT_TRUE(with_id(parsed, "5").is_mig());
  EXPECT_EQ(with_id(parsed, "9").name, "pipe|name");
  EXPECT_EQ(with_id(parsed, "9").allocations, (std::vector<Allocation>{{{"n2"}, {"0", "1", "2", "3"}, 4U}}));
}

TEST(SlurmCaptures, slurmrestd_gives_running_jobs_an_end_that_is_none) {
  const Parsed parsed = read("slurm-22.05-slurmrestd-db-jobs.json");
  ASSERT_EQ(parsed.jobs.size(), 9U);
  EXPECT_TRUE(with_id(parsed, "9").is_running());
  EXPECT_EQ(with_id(parsed, "4").end, at(1'795'993'805));
}

TEST(SlurmCaptures, a_bar_in_one_of_several_free_columns_leaves_out_that_row_only) {
  const Parsed parsed = read("slurm-22.05-sacct-all-columns.txt", &utc());
  EXPECT_EQ(parsed.jobs.size(), 9U);
  EXPECT_EQ(parsed.problem_count, 1U);
  ASSERT_EQ(parsed.problems.size(), 1U);
  EXPECT_THAT(parsed.problems[0].what, testing::HasSubstr("columns, expected"));
}

}  // namespace
}  // namespace flopsight::schedulers
