#include "schedulers/slurm.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "schedulers/job_json.h"

namespace flopsight::schedulers {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;

const base::Zone& zone(const std::string& name) {
  static const base::Zone kParis = base::Zone::find("Europe/Paris").value();
  static const base::Zone kUtc = base::Zone::find("UTC").value();
  return name == "UTC" ? kUtc : kParis;
}

Parsed read(const std::string& text, const std::string& zone_name = "UTC") {
  SlurmOptions options;
  options.zone = &zone(zone_name);
  options.cluster = "c";
  auto parsed = read_slurm(text, options);
  EXPECT_TRUE(parsed.ok()) << parsed.error().message;
  return parsed.ok() ? std::move(parsed).value() : Parsed();
}

std::string error_of(const std::string& text) {
  const auto parsed = read_slurm(text, {});
  EXPECT_FALSE(parsed.ok());
  return parsed.ok() ? "" : parsed.error().message;
}

constexpr const char* kHeader = "JobIDRaw|State|Start|End|ElapsedRaw|AllocTRES|NodeList\n";

// ---- times
// -----------------------------------------------------------------------------------------------------

TEST(SlurmTimes, elapsed_tells_which_of_the_doubled_hours_is_meant) {
  const Parsed parsed = read(
      "JobIDRaw|Start|End|Elapsed|State|AllocTRES\n"
      "101|2025-10-26T02:30:00|2025-10-26T02:30:00|01:00:00|COMPLETED|gres/gpu=1\n"
      "102|2025-10-26T01:30:00|2025-10-26T02:15:00|00:45:00|COMPLETED|gres/gpu=1\n"
      "103|2025-10-26T01:30:00|2025-10-26T02:15:00|01:45:00|COMPLETED|gres/gpu=1\n"
      "104|2025-10-26T02:45:00|2025-10-26T03:15:00|00:30:00|COMPLETED|gres/gpu=1\n"
      "105|2025-10-26T02:45:00|2025-10-26T03:15:00|01:30:00|COMPLETED|gres/gpu=1\n",
      "Europe/Paris");
  EXPECT_EQ(parsed.problem_count, 0U);
  std::vector<std::string> times;
  for (const Job& job : parsed.jobs)
    times.push_back(units::to_rfc3339(*job.start) + "/" + units::to_rfc3339(*job.end));
  EXPECT_THAT(times, ElementsAre("2025-10-26T00:30:00Z/2025-10-26T01:30:00Z",
                                 "2025-10-25T23:30:00Z/2025-10-26T00:15:00Z",
                                 "2025-10-25T23:30:00Z/2025-10-26T01:15:00Z",
                                 "2025-10-26T01:45:00Z/2025-10-26T02:15:00Z",
                                 "2025-10-26T00:45:00Z/2025-10-26T02:15:00Z"));
}

TEST(SlurmTimes, a_job_starts_after_it_was_submitted_also_in_the_doubled_hour) {
  const Parsed parsed = read(
      "JobIDRaw|Submit|Start|End|Elapsed|State|AllocTRES\n"
      "101|2025-10-26T02:50:00|2025-10-26T02:10:00|2025-10-26T02:30:00|00:20:00|COMPLETED|gres/gpu=1\n"
      "102|2025-10-26T02:50:00|2025-10-26T02:10:00|Unknown|00:20:00|RUNNING|gres/gpu=1\n",
      "Europe/Berlin");
  EXPECT_EQ(parsed.problem_count, 0U);
  ASSERT_THAT(parsed.jobs, SizeIs(2));
  EXPECT_EQ(units::to_rfc3339(*parsed.jobs[0].submit), "2025-10-26T00:50:00Z");
  EXPECT_EQ(units::to_rfc3339(*parsed.jobs[0].start), "2025-10-26T01:10:00Z");
  EXPECT_EQ(units::to_rfc3339(*parsed.jobs[0].end), "2025-10-26T01:30:00Z");
  EXPECT_EQ(units::to_rfc3339(*parsed.jobs[1].start), "2025-10-26T01:10:00Z");
}

TEST(SlurmTimes, where_elapsed_cannot_tell_that_is_said) {
  const Parsed parsed = read(
      "JobIDRaw|Start|End|Elapsed|State|AllocTRES\n"
      "101|2025-10-26T02:10:00|2025-10-26T02:20:00|00:10:00|COMPLETED|gres/gpu=1\n"
      "102|2025-10-26T02:10:00|Unknown|00:10:00|RUNNING|gres/gpu=1\n",
      "Europe/Paris");
  EXPECT_THAT(parsed.jobs, SizeIs(2));
  EXPECT_EQ(parsed.problem_count, 2U);
  EXPECT_THAT(parsed.problems[0].what, HasSubstr("hour that is doubled"));
}

TEST(SlurmGpus, a_table_without_the_column_that_counts_gpus_is_said) {
  const Parsed parsed = read("JobIDRaw|Start|End|Elapsed|State|NodeList\n101|2025-10-26T12:10:00|2025-10-26T12:20:00|00:10:00|COMPLETED|n1\n", "UTC");
  ASSERT_THAT(parsed.jobs, SizeIs(1));
  EXPECT_FALSE(parsed.jobs[0].gpu_count);
  ASSERT_EQ(parsed.problem_count, 1U);
  EXPECT_THAT(parsed.problems[0].what, HasSubstr("no column AllocTRES: how many GPUs the jobs held is not known; ask for --format=Cluster,JobIDRaw"));
}

TEST(SlurmGpus, the_type_is_that_of_job_gres_where_the_accounting_has_none) {
  const auto job = [](const std::string& tres, const std::string& gres) {
    return read("JobId=703 JobName=train\n   UserId=ann(1000)\n   JobState=RUNNING\n   StartTime=2026-11-29T10:00:00 EndTime=Unknown\n   NodeList=n1\n   NumNodes=1 TRES=cpu=8," +
                    tres + "\n   JOB_GRES=" + gres + "\n     Nodes=n1 CPU_IDs=0-7 Mem=0 GRES=" + gres + "(IDX:0-1)\n", "UTC").jobs.at(0);
  };
  EXPECT_EQ(job("gres/gpu=2", "gpu:a100:2").gpu_type(), "a100");
  EXPECT_EQ(*job("gres/gpu=2", "gpu:a100:2").gpu_count, 2U);
  EXPECT_EQ(job("gres/gpu=2,gres/gpu:h100=2", "gpu:h100:2").gpu_type(), "h100");
  // Another number than was allocated is not what was allocated.
  EXPECT_EQ(job("gres/gpu=2", "gpu:a100:4").gpu_type(), "");
  EXPECT_EQ(job("gres/gpu=2", "gpu:2").gpu_type(), "");
}

TEST(SlurmText, the_table_of_squeue_is_refused_with_what_to_ask_instead) {
  const auto parsed = read_slurm("             JOBID PARTITION     NAME     USER ST       TIME  NODES NODELIST(REASON)\n  700_[1-5%2]  gpu train ann PD 0:00 1 (Resources)\n", {});
  ASSERT_FALSE(parsed.ok());
  EXPECT_THAT(parsed.error().message, HasSubstr("expected `squeue --json` or `scontrol show job -d`"));
}

TEST(SlurmText, tasks_of_an_array_that_have_not_begun_are_no_problem) {
  const Parsed parsed = read("JobIDRaw|JobID|Start|End|Elapsed|State|AllocTRES\n700_[4-5%2]|700_[4-5%2]|Unknown|Unknown|00:00:00|PENDING|\n"
                             "703|700_3|2025-10-26T12:10:00|2025-10-26T12:20:00|00:10:00|COMPLETED|gres/gpu=1\n", "UTC");
  EXPECT_EQ(parsed.problem_count, 0U);
  ASSERT_THAT(parsed.jobs, SizeIs(1));
  EXPECT_EQ(parsed.jobs[0].array_task_id, 3U);
}

TEST(SlurmTimes, suspended_time_is_no_part_of_elapsed) {
  const Parsed parsed =
      read(std::string(kHeader) + "7|COMPLETED|2025-07-01T10:00:00|2025-07-01T12:00:00|3600||n1\n");
  EXPECT_EQ(*parsed.jobs[0].end - *parsed.jobs[0].start, units::Seconds(7200));
}

TEST(SlurmTimes, an_offset_makes_a_zone_needless_and_without_either_it_is_an_error) {
  const auto parsed = read_slurm(
      "JobIDRaw|State|Start|End|Timelimit\n2009248|RUNNING|2023-02-21T15:49:06+0100|Unknown|"
      "UNLIMITED\n",
      {});
  ASSERT_TRUE(parsed.ok()) << parsed.error().message;
  EXPECT_EQ(units::to_rfc3339(*parsed->jobs[0].start), "2023-02-21T14:49:06Z");
  EXPECT_TRUE(parsed->jobs[0].is_running());
  EXPECT_TRUE(parsed->jobs[0].time_limit_infinite);
  EXPECT_THAT(error_of("JobIDRaw|State|Start|End\n7|RUNNING|2023-02-21T15:49:06|Unknown\n"),
              testing::AllOf(HasSubstr("line 2, job 7"), HasSubstr("gives no offset"),
                             HasSubstr("time zone")));
  EXPECT_THAT(error_of("JobId=7 JobName=x\n   JobState=RUNNING\n   StartTime=2023-02-21T15:49:06 "
                       "EndTime=Unknown\n"),
              HasSubstr("StartTime"));
}

TEST(SlurmTimes, an_hour_that_the_zone_leaves_out_costs_that_job_only) {
  const Parsed parsed = read(std::string(kHeader) +
                                 "7|COMPLETED|2025-03-30T02:30:00|2025-03-30T04:30:00|3600||n1\n"
                                 "8|COMPLETED|2025-03-30T04:30:00|2025-03-30T05:30:00|3600||n1\n",
                             "Europe/Paris");
  ASSERT_THAT(parsed.jobs, SizeIs(1));
  EXPECT_EQ(parsed.jobs[0].id, "8");
  EXPECT_THAT(parsed.problems[0].what, HasSubstr("does not exist in Europe/Paris"));
}

TEST(SlurmTimes, unix_seconds_are_times_and_other_numbers_are_not) {
  EXPECT_THAT(read(std::string(kHeader) + "7|RUNNING|1700000000|Unknown|5||n1\n").jobs, SizeIs(1));
  EXPECT_EQ(read(std::string(kHeader) + "7|RUNNING|1700000|Unknown|5||n1\n").problem_count, 1U);
  EXPECT_EQ(
      read(std::string(kHeader) + "7|RUNNING|99999999999999999999|Unknown|5||n1\n").problem_count,
      1U);
}

// ---- sacct -P
// --------------------------------------------------------------------------------------------------

TEST(SacctText, the_state_is_the_first_word_and_ids_have_64_bits) {
  const Parsed parsed = read(std::string(kHeader) +
                             "18446744073709551615|CANCELLED by "
                             "1004|2025-07-01T10:00:00|2025-07-01T11:00:00|3600|gres/gpu=1|n1\n");
  ASSERT_THAT(parsed.jobs, SizeIs(1));
  EXPECT_EQ(parsed.jobs[0].id, "18446744073709551615");
  EXPECT_EQ(parsed.jobs[0].state, "CANCELLED");
}

TEST(SacctText, steps_are_no_jobs_and_only_slurms_own_figure_is_taken_from_them) {
  const Parsed parsed = read(
      "JobIDRaw|State|Start|End|AllocTRES|TRESUsageInTot\n"
      "18194943|COMPLETED|2025-07-01T10:00:00|2025-07-01T11:00:00|gres/gpu=1|\n"
      "18194943.batch|COMPLETED|2025-07-01T10:00:00|2025-07-01T11:00:00|gres/gpu=1|gres/"
      "gpumem=40777023488,gres/gpuutil=100\n"
      "18194943.extern|COMPLETED|2025-07-01T10:00:00|2025-07-01T11:00:00|gres/gpu=1|gres/"
      "gpuutil=0\n");
  ASSERT_THAT(parsed.jobs, SizeIs(1));
  EXPECT_EQ(parsed.steps_skipped, 2U);
  EXPECT_EQ(parsed.jobs[0].slurm_gpu_utilization_total, 100.0);
}

TEST(SacctText, arrays_and_heterogeneous_jobs_keep_their_identity) {
  const Parsed parsed = read(
      "JobID|JobIDRaw|State|Start|End\n"
      "12_3|15|RUNNING|2025-07-01T10:00:00|Unknown\n"
      "20+1|21|RUNNING|2025-07-01T10:00:00|Unknown\n"
      "12_[4-9%2]|12|PENDING|Unknown|Unknown\n");
  ASSERT_THAT(parsed.jobs, SizeIs(3));
  EXPECT_EQ(parsed.jobs[0].id, "15");
  EXPECT_EQ(parsed.jobs[0].array_job_id, 12U);
  EXPECT_EQ(parsed.jobs[0].array_task_id, 3U);
  EXPECT_EQ(parsed.jobs[1].het_job_id, 20U);
  EXPECT_EQ(parsed.jobs[1].het_offset, 1U);
  EXPECT_EQ(parsed.jobs[2].array_task_id, std::nullopt);
}

TEST(SacctText, without_raw_ids_an_array_task_cannot_be_named) {
  const Parsed parsed = read(
      "JobID|State|Start|End\n12_3|RUNNING|2025-07-01T10:00:00|Unknown\n13|RUNNING|2025-07-01T10:"
      "00:00|Unknown\n");
  EXPECT_THAT(parsed.jobs, SizeIs(1));
  EXPECT_THAT(parsed.problems[0].what, HasSubstr("expected the column JobIDRaw"));
}

TEST(SacctText, columns_come_in_any_order_with_a_bar_at_the_end_and_crlf) {
  const Parsed parsed = read(
      "End|start|NodeList|AllocTRES|State|JobIDRaw|\r\n"
      "2025-07-01T11:00:00|2025-07-01T10:00:00|r[1-2]n[09-10],login1|gres/"
      "gpu:a100=10|COMPLETED|7|\r\n");
  ASSERT_THAT(parsed.jobs, SizeIs(1));
  EXPECT_THAT(parsed.jobs[0].allocations[0].hosts,
              ElementsAre("r1n09", "r1n10", "r2n09", "r2n10", "login1"));
  EXPECT_EQ(parsed.jobs[0].allocations[0].gpus_per_host, std::nullopt);
  EXPECT_EQ(parsed.jobs[0].gpu_count, 10U);
}

TEST(SacctText, a_bar_in_a_name_moves_no_column_when_the_name_alone_is_free) {
  const Parsed parsed = read(
      "JobIDRaw|JobName|State|Start|End|AllocTRES\n"
      "7|a|RUNNING|2000-01-01|b|RUNNING|2025-07-01T10:00:00|Unknown|gres/gpu=2\n");
  ASSERT_THAT(parsed.jobs, SizeIs(1));
  EXPECT_EQ(parsed.jobs[0].name, "a|RUNNING|2000-01-01|b");
  EXPECT_EQ(parsed.jobs[0].gpu_count, 2U);
}

TEST(SacctText, a_bad_row_costs_itself_only) {
  const Parsed parsed = read(std::string(kHeader) +
                             "7|RUNNING|2025-07-01T10:00:00\n"
                             "8|RUNNING|yesterday|Unknown|5||n1\n"
                             "9|RUNNING|2025-07-01T10:00:00|Unknown|5|gres/gpu=1+|n1\n"
                             "x|RUNNING|2025-07-01T10:00:00|Unknown|5||n1\n"
                             "10|COMPLETED|2025-07-01T10:00:00|2025-07-01T09:00:00|0||n1\n"
                             "11|COMPLETED|2025-07-01T10:00:00|Unknown|60||n1\n");
  EXPECT_EQ(parsed.problem_count, 5U);
  ASSERT_THAT(parsed.jobs, SizeIs(2));
  EXPECT_EQ(parsed.jobs[0].id, "9");
  EXPECT_EQ(parsed.jobs[0].gpu_count, std::nullopt);
  EXPECT_EQ(*parsed.jobs[1].end - *parsed.jobs[1].start,
            units::Seconds(60));  // no End, but Elapsed
  EXPECT_EQ(parsed.problems[0].where, "line 2");
}

TEST(SacctText, a_job_that_never_started_holds_nothing) {
  const Parsed parsed = read(std::string(kHeader) +
                             "7|CANCELLED by 5|None|2025-07-01T10:00:00|0||None assigned\n"
                             "8|PENDING|2025-07-02T10:00:00|Unknown|0|gres/gpu=4|None assigned\n");
  ASSERT_THAT(parsed.jobs, SizeIs(2));
  for (const Job& job : parsed.jobs) {
    EXPECT_EQ(job.start, std::nullopt) << job.id;
    EXPECT_EQ(job.gpu_count, std::nullopt) << job.id;
    EXPECT_TRUE(job.allocations.empty()) << job.id;
  }
}

// ---- JSON
// ------------------------------------------------------------------------------------------------------

TEST(SlurmJson, both_shapes_of_every_value_are_one) {
  const std::string plain =
      R"j({"jobs": [{"job_id": 5, "cluster": "c", "job_state": "RUNNING", "start_time": 1700000000, "end_time": 1700003600,
          "nodes": "n[1-2]", "time_limit": 60, "array_job_id": 4, "array_task_id": 1, "exit_code": 0,
          "tres_alloc_str": "gres/gpu=4", "gres_detail": ["gpu:2(IDX:0-1)", "gpu:2(IDX:0-1)"]}]})j";
  const std::string objects =
      R"j({"jobs": [{"job_id": {"set": true, "infinite": false, "number": 5}, "cluster": "c", "job_state": ["CONFIGURING", "RUNNING"],
          "start_time": {"set": true, "infinite": false, "number": 1700000000}, "end_time": {"set": true, "number": 1700003600},
          "nodes": {"count": 2, "list": "n[1-2]", "allocation": []}, "time_limit": {"set": true, "infinite": false, "number": 60},
          "array_job_id": {"set": true, "number": 4}, "array_task_id": {"set": true, "number": 1},
          "exit_code": {"status": ["SUCCESS"], "return_code": {"set": true, "number": 0}},
          "tres_alloc_str": "gres/gpu=4", "gres_detail": ["gpu:2(IDX:0-1)", "gpu:2(IDX:0-1)"]}]})j";
  for (const std::string& text : {plain, objects}) {
    const Parsed parsed = read(text);
    EXPECT_EQ(parsed.problem_count, 0U);
    ASSERT_THAT(parsed.jobs, SizeIs(1));
    const Job& job = parsed.jobs[0];
    EXPECT_EQ(job.key(), "c/5/2023-11-14T22:13:20Z");
    EXPECT_EQ(job.state, "RUNNING");
    EXPECT_EQ(job.end, std::nullopt);
    EXPECT_EQ(job.time_limit->value, 3600);
    EXPECT_EQ(job.array_task_id, 1U);
    EXPECT_THAT(job.allocations, ElementsAre(Allocation{{"n1", "n2"}, {"0", "1"}, 2}));
  }
}

TEST(SlurmJson, infinite_is_unlimited_and_not_set_is_unknown) {
  const Parsed parsed = read(R"j({"jobs": [
      {"job_id": 5, "job_state": "RUNNING", "start_time": 1700000000, "time_limit": {"set": false, "infinite": true, "number": 0}},
      {"job_id": 6, "job_state": "RUNNING", "start_time": 1700000000, "time_limit": {"set": false, "infinite": false, "number": 7}}]})j");
  EXPECT_TRUE(parsed.jobs[0].time_limit_infinite);
  EXPECT_FALSE(parsed.jobs[1].time_limit_infinite);
  EXPECT_EQ(parsed.jobs[1].time_limit, std::nullopt);
  EXPECT_EQ(parsed.jobs[1].gpu_count, std::nullopt);
}

TEST(SlurmJson, an_exit_status_is_taken_apart) {
  const Parsed parsed = read(R"j({"jobs": [
      {"job_id": 5, "job_state": "FAILED", "start_time": 1700000000, "end_time": 1700000001, "exit_code": 768},
      {"job_id": 6, "job_state": "CANCELLED", "start_time": 1700000000, "end_time": 1700000001, "exit_code": {"set": true, "number": 15}},
      {"job_id": 7, "job_state": "FAILED", "start_time": 1700000000, "end_time": 1700000001,
       "exit_code": {"status": ["ERROR"], "return_code": {"set": true, "number": 3}, "signal": {"id": {"set": true, "number": 9}}}}]})j");
  EXPECT_EQ(parsed.jobs[0].exit_code, 3);
  EXPECT_EQ(parsed.jobs[1].exit_signal, 15);
  EXPECT_EQ(parsed.jobs[2].exit_code, 3);
  EXPECT_EQ(parsed.jobs[2].exit_signal, 9);
}

TEST(SlurmJson, hosts_that_got_different_gpus_are_allocations_of_their_own) {
  const Parsed parsed = read(
      R"j({"jobs": [{"job_id": 5, "job_state": "RUNNING", "start_time": 1700000000, "nodes": "n[1-3]",
      "tres_alloc_str": "gres/gpu=5", "gres_detail": ["gpu:a100:2(IDX:0-1)", "gpu:a100:2(IDX:0-1)", "gpu:a100:1(IDX:3)"]},
      {"job_id": 6, "job_state": "RUNNING", "start_time": 1700000000, "nodes": "n[1-3]", "tres_alloc_str": "gres/gpu=5",
       "gres_detail": ["gpu:a100:2(IDX:0-1)"]}]})j");
  EXPECT_THAT(parsed.jobs[0].allocations,
              ElementsAre(Allocation{{"n1", "n2"}, {"0", "1"}, 2}, Allocation{{"n3"}, {"3"}, 1}));
  EXPECT_THAT(parsed.jobs[1].allocations, ElementsAre(Allocation{{"n1", "n2", "n3"}, {}, {}}));
  EXPECT_EQ(parsed.problem_count, 1U);
}

TEST(SlurmJson, an_entry_of_the_wrong_kind_costs_itself_only) {
  const Parsed parsed = read(
      R"j({"jobs": [null, 5, {}, {"job_id": 0, "job_state": "RUNNING"}, {"job_id": -1, "job_state": "RUNNING"},
      {"job_id": 9, "job_state": "RUNNING", "start_time": 1700000000, "tres_alloc_str": "gres/gpu="},
      {"job_id": 10, "job_state": "RUNNING", "start_time": 1700000000}]})j");
  EXPECT_EQ(parsed.problem_count, 6U);
  ASSERT_THAT(parsed.jobs, SizeIs(2));
  EXPECT_EQ(parsed.jobs[0].id, "9") << "what cannot be read is how many GPUs it has";
  EXPECT_FALSE(parsed.jobs[0].gpu_count);
  EXPECT_EQ(parsed.jobs[1].id, "10");
}

TEST(SlurmJson, what_slurmrestd_reports_as_an_error_is_a_problem) {
  const Parsed parsed = read(
      R"j({"errors": [{"error": "Unable to query", "description": "slurmdbd is away"}], "jobs": []})j");
  EXPECT_THAT(parsed.problems[0].what, HasSubstr("slurmdbd is away"));
}

// ---- scontrol
// --------------------------------------------------------------------------------------------------

TEST(Scontrol, a_name_cannot_pose_as_other_fields) {
  const Parsed parsed = read(
      "JobId=7 JobName=x JobState=COMPLETED UserId=root(0) StartTime=2000-01-01T00:00:00\n"
      "   UserId=ann(1004) GroupId=x(1)\n   JobState=RUNNING Reason=None\n"
      "   StartTime=2025-07-01T10:00:00 EndTime=Unknown\n   NodeList=n1\n"
      "   TRES=cpu=1,gres/gpu=1\n   Command=/x JobState=FAILED\n");
  ASSERT_THAT(parsed.jobs, SizeIs(1));
  EXPECT_EQ(parsed.jobs[0].state, "RUNNING");
  EXPECT_EQ(parsed.jobs[0].user, "ann");
  EXPECT_EQ(parsed.jobs[0].gpu_count, 1U);
  EXPECT_EQ(units::to_rfc3339(*parsed.jobs[0].start), "2025-07-01T10:00:00Z");
}

TEST(Scontrol, gpus_that_accounting_does_not_track_are_counted_on_their_hosts) {
  const Parsed parsed = read(
      "JobId=7 JobName=x\n   JobState=RUNNING\n   StartTime=2025-07-01T10:00:00 EndTime=Unknown\n"
      "   NodeList=n[1-3]\n   TRES=cpu=3,node=3,billing=3\n   JOB_GRES=gpu:v100:5\n"
      "     Nodes=n[1-2] CPU_IDs=0 Mem=0 GRES=gpu:v100:2(IDX:0,3)\n"
      "     Nodes=n3 CPU_IDs=0 Mem=0 GRES=gpu:v100:1(IDX:1)\n");
  ASSERT_THAT(parsed.jobs, SizeIs(1));
  EXPECT_EQ(parsed.jobs[0].gpu_count, 5U);
  EXPECT_THAT(parsed.jobs[0].allocations,
              ElementsAre(Allocation{{"n1", "n2"}, {"0", "3"}, 2}, Allocation{{"n3"}, {"1"}, 1}));
}

TEST(Scontrol, the_older_gres_idx_is_read) {
  const Parsed parsed = read(
      "JobId=7 JobName=x\n   JobState=RUNNING\n   StartTime=2025-07-01T10:00:00 EndTime=Unknown\n"
      "   NodeList=n1\n     Nodes=n1 CPU_IDs=0 Mem=0 GRES_IDX=gpu(IDX:2-3)\n");
  EXPECT_THAT(parsed.jobs[0].allocations, ElementsAre(Allocation{{"n1"}, {"2", "3"}, 2}));
}

TEST(Scontrol, used_gpus_come_from_gres_where_tres_does_not_track_them) {
  const Parsed parsed = read(
      "NodeName=n1 Arch=x86_64\n   Gres=gpu:h100:8(S:0-1)\n   GresUsed=gpu:h100:5(IDX:0-4)\n"
      "   State=MIXED*+DRAIN\n   CfgTRES=cpu=192,mem=800G\n   AllocTRES=cpu=4\n\n"
      "NodeName=n2 Arch=x86_64\n   Gres=(null)\n   State=IDLE\n   CfgTRES=cpu=8\n");
  ASSERT_THAT(parsed.nodes, SizeIs(2));
  EXPECT_EQ(parsed.nodes[0].gpu_count, 8U);
  EXPECT_EQ(parsed.nodes[0].gpu_count_used, 5U);
  EXPECT_EQ(parsed.nodes[0].state, "MIXED");
  EXPECT_EQ(parsed.nodes[1].gpu_count, 0U);
}

// ---- the whole
// -------------------------------------------------------------------------------------------------

TEST(ReadSlurm, a_text_of_no_known_form_says_what_was_expected) {
  EXPECT_THAT(error_of(""), HasSubstr("empty"));
  EXPECT_THAT(error_of("slurm_load_jobs error: Unable to contact slurm controller"),
              HasSubstr("expected JSON"));
  EXPECT_THAT(error_of("7|RUNNING|2025-07-01T10:00:00|Unknown\n"),
              HasSubstr("expected the header"));
  EXPECT_THAT(error_of("JobIDRaw|State\n7|RUNNING\n"), HasSubstr("no column start"));
  EXPECT_THAT(error_of(R"j({"sinfo": [], "meta": {}})j"), HasSubstr("sinfo"));
  EXPECT_TRUE(read("No jobs in the system\n").jobs.empty());
}

TEST(ReadSlurm, jobs_end_at_their_limit) {
  SlurmOptions options;
  options.jobs_max = 2;
  const std::string entry = R"j({"job_id": 5, "job_state": "RUNNING", "start_time": 1700000000})j";
  EXPECT_TRUE(read_slurm("{\"jobs\": [" + entry + "," + entry + "]}", options).ok());
  const auto over = read_slurm("{\"jobs\": [" + entry + "," + entry + "," + entry + "]}", options);
  ASSERT_FALSE(over.ok());
  EXPECT_EQ(over.error().code, base::ErrorCode::kLimit);
}

TEST(ReadSlurm, of_many_problems_the_first_are_kept_and_all_are_counted) {
  std::string text = kHeader;
  for (int i = 0; i < 150; ++i) text += "bad\n";
  const Parsed parsed = read(text);
  EXPECT_EQ(parsed.problem_count, 150U);
  EXPECT_THAT(parsed.problems, SizeIs(kProblemsMax));
}

TEST(ReadSlurm, a_text_longer_than_any_name_is_cut_and_said) {
  const auto named = [](std::size_t size) {
    return read(R"j({"jobs": [{"job_id": 5, "job_state": "RUNNING", "start_time": 1700000000, "name": ")j" + std::string(size, 'x') + "\"}]}");
  };
  EXPECT_EQ(named(kTextBytesMax).jobs.at(0).name.size(), kTextBytesMax);
  EXPECT_EQ(named(kTextBytesMax).problem_count, 0U);
  const Parsed cut = named(kTextBytesMax + 1);
  EXPECT_EQ(cut.jobs.at(0).name.size(), kTextBytesMax);
  EXPECT_EQ(cut.problems.at(0).where, "job 5");
}

// ---- what is not known is not 0
// -----------------------------------------------------------------------------------------------------

// One job that is known to have a GPU goes before, so that the accounting is known to count them.
std::string sacct(const std::string& tres) {
  return std::string(kHeader) + "1|COMPLETED|2026-01-01T00:00:00|2026-01-01T01:00:00|3600|cpu=1,gres/gpu=1|n1\n" +
         "2|COMPLETED|2026-01-01T00:00:00|2026-01-01T01:00:00|3600|" + tres + "|n1\n";
}

TEST(SlurmUnknownGpus, a_number_that_cannot_be_read_is_not_0) {
  for (const char* tres : {"cpu=1,gres/gpu=1K", "cpu=1,gres/gpu=-1", "cpu=1,gres/gpu:a100=x"}) {
    const Parsed parsed = read(sacct(tres));
    ASSERT_THAT(parsed.jobs, SizeIs(2));
    EXPECT_FALSE(parsed.jobs[1].gpu_count) << tres;
    EXPECT_FALSE(parsed.jobs[1].allocations.at(0).gpus_per_host) << tres;
    EXPECT_EQ(parsed.problem_count, 1U);
  }
  const Parsed live = read("JobId=2 JobName=a\n   JobState=RUNNING StartTime=2026-01-01T00:00:00 EndTime=Unknown\n   NodeList=n1\n   TRES=cpu=1,gres/gpu=1K\n"
                           "   JOB_GRES=(null)\n");
  ASSERT_THAT(live.jobs, SizeIs(1));
  EXPECT_FALSE(live.jobs[0].gpu_count);
}

TEST(SlurmUnknownGpus, an_allocation_of_nothing_at_all_says_nothing) {
  const Parsed parsed = read(sacct(""));
  ASSERT_THAT(parsed.jobs, SizeIs(2));
  EXPECT_FALSE(parsed.jobs[1].gpu_count);
  ASSERT_THAT(parsed.problems, SizeIs(1));
  EXPECT_THAT(parsed.problems[0].what, HasSubstr("names no resource at all"));
  EXPECT_EQ(read(sacct("cpu=1")).jobs.at(1).gpu_count, 0U);
}

TEST(SlurmUnknownGpus, shares_of_gpus_are_no_gpus_and_not_none) {
  for (const char* tres : {"cpu=1,gres/shard=4", "cpu=1,gres/mps=50", "cpu=1,gres/gpu=0,gres/shard=4"}) {
    const Parsed parsed = read(sacct(tres));
    ASSERT_THAT(parsed.jobs, SizeIs(2));
    EXPECT_FALSE(parsed.jobs[1].gpu_count) << tres;
    ASSERT_THAT(parsed.problems, SizeIs(1));
    EXPECT_THAT(parsed.problems[0].what, HasSubstr("shares of GPUs"));
  }
  EXPECT_EQ(read(sacct("cpu=1,gres/gpu=2,gres/shard=4")).jobs.at(1).gpu_count, 2U);
  const Parsed live = read("JobId=2 JobName=a\n   JobState=RUNNING StartTime=2026-01-01T00:00:00 EndTime=Unknown\n   NodeList=n1\n   TRES=cpu=1\n"
                           "   JOB_GRES=shard:4\n     Nodes=n1 CPU_IDs=0 Mem=0 GRES=shard:4\n");
  ASSERT_THAT(live.jobs, SizeIs(1));
  EXPECT_FALSE(live.jobs[0].gpu_count);
}

TEST(SlurmUnknownGpus, so_it_is_in_json) {
  const auto job = [](const std::string& id, const std::string& tres) {
    return R"({"job_id": )" + id + R"(, "state": {"current": ["COMPLETED"]}, "nodes": "n1", "time": {"start": 1767225600, "end": 1767229200, "elapsed": 3600})" + tres + "}";
  };
  const auto gpus = [](const std::string& count) {
    return R"(, "tres": {"allocated": [{"type": "cpu", "name": "", "count": 1}, {"type": "gres", "name": "gpu")" + count + "}]}";
  };
  for (const std::string& tres : {gpus(R"(, "count": -1)"), gpus(""), std::string(R"(, "tres": {"allocated": []})"), std::string()}) {
    const Parsed parsed = read(R"({"jobs": [)" + job("1", gpus(R"(, "count": 1)")) + ", " + job("2", tres) + "]}");
    ASSERT_THAT(parsed.jobs, SizeIs(2));
    EXPECT_EQ(parsed.jobs[0].gpu_count, 1U);
    EXPECT_FALSE(parsed.jobs[1].gpu_count) << tres;
    EXPECT_EQ(parsed.problem_count, 1U) << tres;
  }
}

}  // namespace
}  // namespace flopsight::schedulers
