#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "jobs/job_file.h"
#include "jobs/label_rules.h"

namespace flopsight::jobs {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

LabelFacts facts(std::vector<LabelView> labels) { return LabelRules::builtin().apply(labels); }

TEST(LabelRules, exported_pod_wins_over_the_exporters_own_pod) {
  const LabelFacts f = facts({{"gpu", "0"}, {"pod", "dcgm-exporter-abcde"}, {"namespace", "monitoring"},
                              {"container", "exporter"}, {"exported_pod", "train-0"},
                              {"exported_namespace", "team-a"}});
  EXPECT_EQ(f.holder.job, "train-0");
  EXPECT_EQ(f.holder.name_space, "team-a");
  EXPECT_EQ(f.holder.container, "");
  EXPECT_EQ(f.holder.rule, "exported_pod");
}

TEST(LabelRules, a_pod_named_like_the_exporter_is_never_a_job) {
  for (const char* pod : {"dcgm-exporter-abcde", "nvidia-dcgm-exporter-s228n",
                          "gpu-operator-dcgm-exporter-x", "prometheus-node-exporter-1"}) {
    const LabelFacts f = facts({{"pod", pod}, {"namespace", "monitoring"}});
    EXPECT_TRUE(f.holder.unallocated()) << pod;
    EXPECT_TRUE(f.exporter_pod) << pod;
  }
}

TEST(LabelRules, empty_labels_are_no_labels) {
  EXPECT_TRUE(facts({{"container", ""}, {"namespace", ""}, {"pod", ""}}).holder.unallocated());
  EXPECT_TRUE(
      facts({{"job_id", ""}, {"job_user", ""}, {"job_partition", ""}}).holder.unallocated());
}

TEST(LabelRules, prometheus_scrape_job_is_not_a_job) {
  EXPECT_TRUE(facts({{"job", "dcgm"}, {"instance", "n1:9400"}}).holder.unallocated());
}

TEST(LabelRules, slurm_labels_win_over_pods) {
  EXPECT_EQ(facts({{"hpc_job", "101"}, {"pod", "slurmd-0"}}).holder.job, "101");
}

TEST(LabelRules, amd_job_ids_may_be_json) {
  EXPECT_EQ(facts({{"job_id", R"({"job_id": 4711, "user": "x"})"}}).holder.job, "4711");
  EXPECT_TRUE(facts({{"job_id", "{broken"}}).holder.unallocated());
}

TEST(LabelRules, hostname_in_both_spellings_and_instance_without_port) {
  EXPECT_EQ(facts({{"Hostname", "n1"}}).gpu.host, "n1");
  EXPECT_EQ(facts({{"hostname", "n1"}}).gpu.host, "n1");
  EXPECT_EQ(facts({{"instance", "10.0.0.1:9400"}}).gpu.host, "10.0.0.1");
  EXPECT_EQ(facts({{"instance", "[::1]:9400"}}).gpu.host, "[::1]");
  EXPECT_EQ(facts({{"node", "n1"}, {"Hostname", "nvidia-dcgm-exporter-x"}}).gpu.host, "n1");
}

TEST(LabelRules, a_uuid_is_found_under_every_spelling_and_masked_ones_are_none) {
  EXPECT_EQ(facts({{"UUID", "GPU-a"}}).gpu.uuid, "GPU-a");
  EXPECT_EQ(facts({{"gpu_uuid", "GPU-a"}, {"model_name", "L4"}}).gpu.model_raw, "L4");
  EXPECT_EQ(facts({{"gpu", "GPU-a"}}).gpu.uuid, "GPU-a");
  EXPECT_EQ(facts({{"gpu", "3"}}).gpu.uuid, "");
  EXPECT_EQ(facts({{"gpu", "3"}}).gpu.index, "3");
  EXPECT_EQ(facts({{"uuid", "00000000-0000-0000-0000-000000000000"}}).gpu.uuid, "");
  EXPECT_TRUE(facts({{"uuid", "00000000-0000-0000-0000-000000000000"}}).masked_uuid);
  EXPECT_FALSE(facts({{"gpu", "0"}}).masked_uuid);
  for (const char* masked : {"GPU-xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx", "GPU-XXXXXXXX-0000", "MIG-00000000-0000-0000-0000-000000000000", "GPU-********"}) {
    EXPECT_EQ(facts({{"UUID", masked}, {"gpu", "2"}}).gpu.uuid, "") << masked;
    EXPECT_TRUE(facts({{"UUID", masked}, {"gpu", "2"}}).masked_uuid) << masked;
  }
  EXPECT_FALSE(facts({{"UUID", "GPU-11111111-1111-1111-1111-111111111111"}}).masked_uuid);
}

TEST(LabelRules, an_instance_may_be_named_by_a_uuid_of_its_own_and_its_profile_in_the_name_of_the_model) {
  const auto slurm = facts({{"gpu", "MIG-265a219d-a49f-578a-825d-222c72699c16"}, {"gpu_type", "NVIDIA A100-SXM4-40GB"}}).gpu;
  EXPECT_EQ(slurm.mig_instance, "MIG-265a219d-a49f-578a-825d-222c72699c16");
  EXPECT_FALSE(slurm.mig_slices().has_value());
  EXPECT_EQ(samples::whole_gpu_key(slurm), "");
  const auto named = facts({{"UUID", "MIG-265a219d"}, {"modelName", "NVIDIA H100 80GB HBM3 MIG 1g.10gb"}}).gpu;
  EXPECT_EQ(named.mig_profile, "1g.10gb");
  EXPECT_EQ(named.model_raw, "NVIDIA H100 80GB HBM3");
  const auto old = facts({{"UUID", "MIG-GPU-8a5f/7/0"}}).gpu;
  EXPECT_EQ(old.uuid, "GPU-8a5f");
  EXPECT_EQ(old.mig_instance, "7");
  const auto whole = facts({{"UUID", "GPU-a"}, {"modelName", "NVIDIA H100 80GB HBM3"}}).gpu;
  EXPECT_EQ(whole.mig_instance, "");
}

TEST(LabelRules, a_pod_that_nobody_names_is_known_by_its_uid_unless_it_is_the_exporter) {
  EXPECT_EQ(facts({{"pod_uid", "u-1"}}).holder.job, "u-1");
  EXPECT_EQ(facts({{"pod_uid", "u-1"}, {"pod", "train-0"}}).holder.job, "train-0");
  EXPECT_EQ(facts({{"pod_uid", "u-1"}, {"pod", "dcgm-exporter-abcde"}}).holder.job, "");
}

TEST(LabelRules, a_users_file_replaces_the_lists_it_names) {
  const auto rules = LabelRules::parse(
      R"({"holders": [{"rule": "mine", "job": "run_id"}], "team": ["squad"], "bridge_intervals": 0})");
  ASSERT_TRUE(rules.ok()) << rules.error().message;
  const std::vector<LabelView> labels = {
      {"run_id", "r7"}, {"hpc_job", "101"}, {"squad", "blue"}, {"UUID", "GPU-a"}};
  const LabelFacts f = rules->apply(labels);
  EXPECT_EQ(f.holder.job, "r7");
  EXPECT_EQ(f.holder.rule, "mine");
  EXPECT_EQ(f.holder.team, "blue");
  EXPECT_EQ(f.gpu.uuid, "GPU-a");
}

TEST(LabelRules, a_broken_rules_file_names_the_key) {
  EXPECT_THAT(LabelRules::parse(R"({"hots": ["x"]})").error().message, HasSubstr("\"hots\""));
  EXPECT_THAT(LabelRules::parse(R"({"host": "x"})").error().message, HasSubstr("list of strings"));
  EXPECT_THAT(LabelRules::parse(R"({"holders": [{}]})").error().message, HasSubstr("holders"));
  EXPECT_THAT(LabelRules::parse("[]").error().message, HasSubstr("JSON object"));
}

TEST(LabelRules, a_metric_of_one_driver_version_can_be_ignored) {
  const auto rules = LabelRules::parse(
      R"({"ignore_metrics": [{"metric": "DCGM_FI_PROF_DRAM_ACTIVE", "driver_version": "525."}]})");
  ASSERT_TRUE(rules.ok());
  EXPECT_TRUE(rules->ignores("DCGM_FI_PROF_DRAM_ACTIVE", "525.60.13"));
  EXPECT_FALSE(rules->ignores("DCGM_FI_PROF_DRAM_ACTIVE", "580.1"));
  EXPECT_FALSE(rules->ignores("DCGM_FI_PROF_SM_ACTIVE", "525.60.13"));
}

TEST(LabelRules, an_index_map_turns_the_scrapes_index_into_the_schedulers) {
  const auto rules = LabelRules::parse(R"({"index_map": {"n1": {"6": 0, "7": "1"}}})");
  ASSERT_TRUE(rules.ok()) << rules.error().message;
  const auto index_of = [&](std::string_view host, std::string_view index) {
    const std::vector<LabelView> labels = {{"Hostname", host}, {"gpu", index}};
    return rules->apply(labels).gpu.index;
  };
  EXPECT_EQ(index_of("n1", "6"), "0");
  EXPECT_EQ(index_of("n1", "7"), "1");
  EXPECT_EQ(index_of("n1", "5"), "5");
  EXPECT_EQ(index_of("n10", "6"), "6");
  EXPECT_THAT(LabelRules::parse(R"({"index_map": {"n1": 3}})").error().message, HasSubstr("index_map"));
}

TEST(Hosts, names_match_exactly_or_as_short_form_never_by_prefix) {
  EXPECT_TRUE(same_host("n1", "n1"));
  EXPECT_TRUE(same_host("n1", "n1.cluster.example"));
  EXPECT_FALSE(same_host("n1", "n10"));
  EXPECT_FALSE(same_host("", ""));
}

TEST(Hosts, bracket_expressions_expand_with_padding) {
  EXPECT_THAT(*expand_hosts("n[01-03,7],login1"),
              ElementsAre("n01", "n02", "n03", "n7", "login1"));
  EXPECT_THAT(*expand_hosts("r[1-2]n[09-10]"), ElementsAre("r1n09", "r1n10", "r2n09", "r2n10"));
  EXPECT_FALSE(expand_hosts("n[1-").ok());
  EXPECT_FALSE(expand_hosts("n[3-1]").ok());
  EXPECT_FALSE(expand_hosts("n1]").ok());
}

TEST(Hosts, expansion_is_limited_at_65536_names) {
  EXPECT_EQ(expand_hosts("n[1-65536]")->size(), 65536U);
  EXPECT_EQ(expand_hosts("n[1-65537]").error().code, base::ErrorCode::kLimit);
  EXPECT_EQ(expand_hosts("a[1-999]b[1-999]").error().code, base::ErrorCode::kLimit);
}

TEST(JobFile, json_and_csv_say_the_same) {
  const auto json = parse_jobs(
      R"({"jobs": [{"job": 42, "user": "ann", "hosts": ["n[1-2]"], "gpus": [0, 1],
          "start": "2026-01-01T00:00:00Z", "end": null}]})");
  ASSERT_TRUE(json.ok()) << json.error().message;
  const auto csv = parse_jobs("job,user,hosts,gpus,start,end\n42,ann,n[1-2],0;1,2026-01-01T00:00:00Z,\n");
  ASSERT_TRUE(csv.ok()) << csv.error().message;
  for (const auto& jobs : {*json, *csv}) {
    ASSERT_EQ(jobs.size(), 1U);
    EXPECT_EQ(jobs[0].job, "42");
    EXPECT_THAT(jobs[0].hosts, ElementsAre("n1", "n2"));
    EXPECT_THAT(jobs[0].gpu_indices, ElementsAre("0", "1"));
    EXPECT_TRUE(jobs[0].start.has_value());
    EXPECT_FALSE(jobs[0].end.has_value());
  }
}

TEST(JobFile, a_job_holds_by_uuid_or_by_host_and_index) {
  const auto jobs = parse_jobs("job,hosts,gpus\na,n1,0\nb,,GPU-x\nc,n2,\n");
  ASSERT_TRUE(jobs.ok()) << jobs.error().message;
  samples::GpuIdentity gpu;
  gpu.host = "n1";
  gpu.index = "0";
  EXPECT_TRUE((*jobs)[0].holds(gpu));
  gpu.host = "n10";
  EXPECT_FALSE((*jobs)[0].holds(gpu));
  gpu.uuid = "GPU-x";
  EXPECT_TRUE((*jobs)[1].holds(gpu));
  gpu.host = "n2";
  EXPECT_TRUE((*jobs)[2].holds(gpu));
}

TEST(JobFile, errors_name_line_or_entry_and_field) {
  EXPECT_EQ(parse_jobs("job,hosts,start\nx,n1,yesterday\n").error().message,
            "line 2: start: \"yesterday\", expected RFC 3339 with an offset, or Unix seconds");
  EXPECT_THAT(parse_jobs(R"([{"job":"a","hosts":"n1"},{"hosts":"n1"}])").error().message,
              HasSubstr("entry 2: job: missing"));
  EXPECT_THAT(parse_jobs("user\nx\n").error().message, HasSubstr("no column \"job\""));
  EXPECT_THAT(parse_jobs("job\nx\n").error().message, HasSubstr("neither hosts nor GPU UUIDs"));
  EXPECT_THAT(parse_jobs("job,hosts,gpus\nx,n1,first\n").error().message, HasSubstr("\"first\""));
}

TEST(JobFile, output_of_slurm_is_refused_with_the_command_that_reads_it) {
  for (const char* text : {"JobIDRaw|State|Start|End|AllocTRES|NodeList\n7|COMPLETED|2026-11-29T10:10:00|2026-11-29T10:40:00|gres/gpu=2|n1\n",
                           "JobId=703 JobName=train\n   UserId=ann(1000)\n", "{\"jobs\": [{\"job_id\": 6}], \"meta\": {}}"}) {
    const auto read = parse_jobs(text);
    ASSERT_FALSE(read.ok()) << text;
    EXPECT_NE(read.error().message.find("`flopsight jobs import` reads it"), std::string::npos) << read.error().message;
  }
}

}  // namespace
}  // namespace flopsight::jobs
