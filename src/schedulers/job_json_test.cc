#include "schedulers/job_json.h"

#include <gtest/gtest.h>

#include "schedulers/merge.h"

namespace flopsight::schedulers {
namespace {

Job full_job() {
  Job job;
  job.cluster = "c1";
  job.id = "18446744073709551615";
  job.array_job_id = 7;
  job.array_task_id = 0;
  job.het_job_id = 9;
  job.het_offset = 1;
  job.name = "llama \"70b\"";
  job.user = "ada";
  job.account = "nlp";
  job.partition = "gpu";
  job.qos = "high";
  job.state = "CANCELLED";
  job.submit = units::Instant{1'700'000'000'000};
  job.start = units::Instant{1'700'000'060'000};
  job.end = units::Instant{1'700'003'660'000};
  job.time_limit = units::Seconds(7200);
  job.time_limit_infinite = true;
  job.restart_count = 2;
  job.exit_code = -1;
  job.exit_signal = 15;
  job.gpu_count = 6;
  job.gpus = {{"a100", 5, false}, {"a100_1g.5gb", 1, true}};
  job.node_count = 2;
  job.allocations = {{{"n1", "n2"}, {"0", "1"}, 2}, {{"n3"}, {}, std::nullopt, {"GPU-ab"}}};
  job.slurm_gpu_utilization_total = 150.5;
  job.source = "test";
  return job;
}

template <typename Set>
Job made(Set set) {
  Job job;
  job.id = "1";
  set(job);
  return job;
}

std::string text(const Job& job) { return base::json::dump(to_json(job), 0); }

std::string jobs_with_hosts(std::size_t more) {
  std::string text = "[";
  for (std::size_t i = 0; i < kHostsPerTextMax / 50'000; ++i) text += R"({"id": ")" + std::to_string(i + 1) + R"(", "hosts": "n[1-50000]", "start": 0},)";
  if (more > 0) text += R"({"id": "0", "hosts": "m[1-)" + std::to_string(more) + R"(]", "start": 0},)";
  text.back() = ']';
  return text;
}

TEST(ToldJobs, hosts_of_all_jobs_together_have_a_limit) {
  EXPECT_TRUE(parse_told_jobs(jobs_with_hosts(0)).ok());
  const auto over = parse_told_jobs(jobs_with_hosts(1));
  ASSERT_FALSE(over.ok());
  EXPECT_EQ(over.error().message, "entry 21: more than 1000000 hosts in all jobs together");
}

TEST(JobJson, gives_back_every_field_that_it_was_given) {
  for (const Job& job : {full_job(), made([](Job&) {})}) {
    const auto value = base::json::parse(text(job));
    ASSERT_TRUE(value.ok());
    const auto back = job_from_json(*value);
    ASSERT_TRUE(back.ok()) << back.error().message;
    EXPECT_EQ(text(*back), text(job));
    EXPECT_EQ(back->id, job.id) << "64 bits survive, as ids are text";
    EXPECT_EQ(back->allocations, job.allocations);
    EXPECT_EQ(back->gpus, job.gpus);
  }
}

TEST(JobJson, takes_what_people_write_by_hand) {
  const auto jobs = parse_told_jobs(R"({"jobs": [
    {"job": "train", "team": "nlp", "namespace": "c1", "hosts": "n[01-02]", "gpus": ["0-3"], "start": 1700000000, "end": null},
    {"id": 42, "hosts": ["n1", "n2"], "gpus": 16, "start": "2023-11-14T22:13:20Z"},
    {"id": "u", "gpu_uuids": ["GPU-aa", "GPU-bb"], "start": 1700000000}]})");
  ASSERT_TRUE(jobs.ok()) << jobs.error().message;
  ASSERT_EQ(jobs->size(), 3U);
  const Job& train = (*jobs)[0];
  EXPECT_EQ(train.cluster, "c1");
  EXPECT_EQ(train.account, "nlp");
  EXPECT_EQ(train.gpu_count, 8U);
  ASSERT_EQ(train.allocations.size(), 1U);
  EXPECT_EQ(train.allocations[0].hosts, (std::vector<std::string>{"n01", "n02"}));
  EXPECT_EQ(train.allocations[0].gpu_indices, (std::vector<std::string>{"0", "1", "2", "3"}));
  EXPECT_FALSE(train.end);
  EXPECT_EQ((*jobs)[1].id, "42");
  EXPECT_EQ((*jobs)[1].gpu_count, 16U);
  EXPECT_EQ((*jobs)[1].allocations[0].gpus_per_host, 8U);
  EXPECT_EQ((*jobs)[2].gpu_count, 2U);
  EXPECT_EQ((*jobs)[2].allocations[0].gpu_uuids, (std::vector<std::string>{"GPU-aa", "GPU-bb"}));
}

TEST(JobJson, an_index_named_twice_is_one_gpu) {
  const auto jobs = parse_told_jobs(R"([{"id": "1", "hosts": "n1", "gpus": "0-3,2"}])");
  ASSERT_TRUE(jobs.ok()) << jobs.error().message;
  EXPECT_EQ((*jobs)[0].gpu_count, 4U);
  EXPECT_EQ((*jobs)[0].allocations[0].gpus_per_host, 4U);
  EXPECT_EQ((*jobs)[0].allocations[0].gpu_indices, (std::vector<std::string>{"0", "1", "2", "3"}));
  EXPECT_TRUE(parse_told_jobs(R"([{"id": "1", "hosts": "n[1-2]", "gpus": "0-3", "gpu_count": 8}])").ok());
}

TEST(JobJson, says_which_entry_and_key_is_wrong) {
  const std::pair<const char*, const char*> cases[] = {
      {R"([{"id": "1", "hosts": "n1"}, {"hosts": "n1"}])", "entry 2: id: missing or empty"},
      {R"([{"id": "1", "gpu_count": -1}])",
       "entry 1: gpu_count: found -1, expected a whole number"},
      {R"([{"id": "1", "gpu_count": 1.5}])",
       "entry 1: gpu_count: found 1.5, expected a whole number"},
      {R"([{"id": "1", "start": "soon"}])",
       "entry 1: start: found \"soon\", expected RFC 3339 with an offset, or Unix seconds, from 1970 on"},
      {R"([{"id": "1", "start": -5}])", "entry 1: start: found -5, expected RFC 3339 with an offset, or Unix seconds, from 1970 on"},
      {R"([{"id": 9007199254740994}])", "entry 1: id: found 9007199254740994, expected text"},
      {R"([{"id": "1", "start": 20, "end": 10}])", "entry 1: job 1: ends before it starts"},
      {R"([{"id": "1", "allocations": [{"host": "n1"}]}])",
       "entry 1: allocations: \"host\" is no key of it"},
      {R"([{"id": "1", "hosts": "n1", "gpus": "0-7", "gpu_count": 4}])", "entry 1: gpu_count: found 4, and gpus names 8"},
      {R"([{"id": "1", "gpus": "0-3", "hosts": "n[1-2]", "gpu_count": 4}])", "entry 1: gpu_count: found 4, and gpus names 4 on each of 2 hosts"},
      {R"(7)", "expected a list of jobs or {\"jobs\": [...]}"}};
  for (const auto& [json, message] : cases) {
    const auto jobs = parse_told_jobs(json);
    ASSERT_FALSE(jobs.ok()) << json;
    EXPECT_EQ(jobs.error().message, message);
  }
}

TEST(JobMerge, fills_in_what_the_other_lacks_and_later_wins) {
  Job known = made([](Job& job) {
    job.user = "ada";
    job.state = "RUNNING";
    job.gpu_count = 2;
  });
  const Job seen = made([](Job& job) {
    job.name = "llama";
    job.state = "COMPLETED";
    job.end = units::Instant{5000};
    job.gpu_count = 2;
  });
  EXPECT_TRUE(merge_into(known, seen));
  EXPECT_EQ(known.user, "ada");
  EXPECT_EQ(known.name, "llama");
  EXPECT_EQ(known.state, "COMPLETED");
  EXPECT_EQ(known.end, units::Instant{5000});
  EXPECT_FALSE(merge_into(known, seen)) << "the same again changes nothing";
}

TEST(JobMerge, a_listing_older_than_the_end_does_not_start_the_job_again) {
  Job known = made([](Job& job) {
    job.state = "FAILED";
    job.end = units::Instant{5000};
    job.exit_code = 1;
  });
  const Job seen = made([](Job& job) {
    job.state = "RUNNING";
    job.exit_code = 0;
  });
  EXPECT_FALSE(merge_into(known, seen));
  EXPECT_EQ(known.state, "FAILED");
  EXPECT_EQ(known.exit_code, 1);
}

TEST(JobMerge, keeps_which_gpus_when_a_later_telling_knows_only_the_hosts) {
  Job known = made([](Job& job) { job.allocations = {{{"n1"}, {"2", "3"}, 2}}; });
  EXPECT_FALSE(merge_into(known, made([](Job& job) { job.allocations = {{{"n1"}, {}, 2}}; })));
  EXPECT_EQ(known.allocations[0].gpu_indices, (std::vector<std::string>{"2", "3"}));
  EXPECT_TRUE(merge_into(known, made([](Job& job) {
                           job.allocations = {{{"n2"}, {}, 2}};
                         })))
      << "other hosts are news";
  EXPECT_EQ(known.allocations[0].hosts, std::vector<std::string>{"n2"});
}

}  // namespace
}  // namespace flopsight::schedulers
