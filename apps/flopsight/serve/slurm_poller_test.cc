#include "serve/slurm_poller.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "base/file.h"
#include "net/test_http_server.h"
#include "serve/child_process.h"
#include "test_support.h"

namespace flopsight::app {
namespace {

using net::TestHttpServer;
using net::TestReply;
using net::TestRequest;
using std::chrono::milliseconds;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::SizeIs;

// A folder of programs that print what a test says.
class FakeCommands {
 public:
  void add(const std::string& name, const std::string& script) const {
    const std::string path = folder_.write(name, "#!/bin/sh\n" + script);
    std::filesystem::permissions(path, std::filesystem::perms::owner_all);
  }
  // Prints the text as it is.
  void print(const std::string& name, const std::string& text) const {
    folder_.write(name + ".out", text);
    add(name, "exec cat '" + folder_.path() + "/" + name + ".out'\n");
  }
  // scontrol says something else of jobs than of nodes.
  void print_scontrol(const std::string& jobs, const std::string& nodes) const {
    folder_.write("job.out", jobs);
    folder_.write("node.out", nodes);
    add("scontrol", "echo \"$*\" >> '" + folder_.path() + "/scontrol.asked'\nexec cat '" + folder_.path() + "/'$2.out\n");
  }
  const std::string& path() const { return folder_.path(); }
  std::string read(const std::string& name) const {
    return base::read_file(folder_.path() + "/" + name).value();
  }

 private:
  test::TempFolder folder_;
};

const std::string kRunning =
    "JobId=7 JobName=train\n   UserId=ann(1004) GroupId=x(1)\n   JobState=RUNNING Reason=None\n"
    "   StartTime=2025-07-01T10:00:00+0000 EndTime=Unknown\n   NodeList=n1\n   "
    "TRES=cpu=1,gres/gpu=2\n"
    "   JOB_GRES=gpu:2\n     Nodes=n1 CPU_IDs=0 Mem=0 GRES=gpu:2(IDX:0-1)\n";
const std::string kNodes =
    "NodeName=n1 State=MIXED Gres=gpu:4 CfgTRES=cpu=8,gres/gpu=4\n\nNodeName=login State=IDLE Gres=(null)\n";
const std::string kEnded =
    "Cluster|JobIDRaw|State|Start|End|AllocTRES|NodeList|JobName\n"
    "c1|6|COMPLETED|2025-07-01T09:00:00+0000|2025-07-01T10:00:00+0000|gres/gpu=1|n1|a|b\n";

SlurmSource source_of(const FakeCommands& commands) {
  SlurmSource source;
  source.cluster = "c1";
  source.command_folder = commands.path();
  source.timeout = milliseconds(20'000);
  return source;
}

std::vector<std::string> keys_of(const std::vector<schedulers::Job>& jobs) {
  std::vector<std::string> out;
  for (const schedulers::Job& job : jobs) out.push_back(job.key());
  return out;
}

// ---- one program
// -----------------------------------------------------------------------------------------------

TEST(ChildProcess, arguments_reach_the_program_as_they_are_and_no_shell_reads_them) {
  const auto text = run_child({"printf", "%s|", "a b", "$(id)", "; rm -rf x", "*"}, {});
  ASSERT_TRUE(text.ok()) << text.error().message;
  EXPECT_EQ(*text, "a b|$(id)|; rm -rf x|*|");
}

TEST(ChildProcess, its_environment_is_ours_with_what_was_added) {
  ChildOptions options;
  options.environment = {{"TZ", "UTC"}, {"FLOPSIGHT_TEST", "1 2"}};
  const auto text = run_child({"sh", "-c", "echo \"$TZ,$FLOPSIGHT_TEST,${PATH:+path}\""}, options);
  ASSERT_TRUE(text.ok());
  EXPECT_EQ(*text, "UTC,1 2,path\n");
}

TEST(ChildProcess, a_program_that_is_not_there_is_named) {
  const auto text = run_child({"flopsight-no-such-program"}, {});
  ASSERT_FALSE(text.ok());
  EXPECT_EQ(text.error().code, base::ErrorCode::kNotFound);
  EXPECT_EQ(text.error().message, "flopsight-no-such-program: no such program in PATH");
}

TEST(ChildProcess, a_failure_is_its_exit_code_and_the_first_line_that_it_said) {
  const auto text = run_child(
      {"sh", "-c", "echo partly; echo 'slurm_load_jobs error: no' >&2; echo more >&2; exit 3"}, {});
  ASSERT_FALSE(text.ok());
  EXPECT_EQ(text.error().message, "sh: ended with 3: slurm_load_jobs error: no");
}

TEST(ChildProcess, one_that_hangs_is_killed_with_what_it_started) {
  ChildOptions options;
  options.timeout = milliseconds(200);
  // The grandchild keeps the pipe open; only killing the whole group ends it.
  const auto text = run_child({"sh", "-c", "sleep 600 & wait"}, options);
  ASSERT_FALSE(text.ok());
  EXPECT_THAT(text.error().message, HasSubstr("no end after 200 ms"));
}

TEST(ChildProcess, output_ends_at_its_limit) {
  ChildOptions options;
  options.output_bytes_max = 100'000;
  EXPECT_THAT(run_child({"head", "-c", "100000", "/dev/zero"}, options).value(), SizeIs(100'000));
  const auto over = run_child({"head", "-c", "100001", "/dev/zero"}, options);
  ASSERT_FALSE(over.ok());
  EXPECT_EQ(over.error().code, base::ErrorCode::kLimit);
}

TEST(ChildProcess, what_passes_the_limit_may_be_dropped_and_how_it_ended_is_said) {
  ChildOptions options;
  options.output_bytes_max = 1'000;
  options.drop_excess_output = true;
  options.input = std::string(200'000, 'x');
  const auto end = run_child_to_end({"sh", "-c", "cat; echo why >&2; exit 7"}, options);
  ASSERT_TRUE(end.ok()) << end.error().message;
  EXPECT_EQ(end->output, std::string(1'000, 'x'));
  EXPECT_EQ(end->complaint, "why");
  EXPECT_EQ(end->exit_code, 7);
  EXPECT_EQ(run_child_to_end({"sh", "-c", "kill -9 $$"}, {})->exit_code, 128 + 9);
}

TEST(ChildProcess, gets_only_the_names_of_the_environment_that_are_listed) {
  setenv("FLOPSIGHT_TEST_SECRET", "secret", 1);
  ChildOptions options;
  options.inherited = std::vector<std::string>{"PATH"};
  options.environment = {{"OWN", "yes"}};
  EXPECT_THAT(run_child({"env"}, options).value(), AllOf(HasSubstr("PATH="), HasSubstr("OWN=yes"), ::testing::Not(HasSubstr("secret"))));
}

TEST(ChildProcess, a_stop_ends_the_waiting) {
  const std::atomic<bool> stop = true;
  ChildOptions options;
  options.stop = &stop;
  EXPECT_THAT(run_child({"sleep", "600"}, options).error().message, HasSubstr("stopped"));
}

// ---- one question
// ----------------------------------------------------------------------------------------------

TEST(SlurmQuery, commands_are_asked_in_utc_for_running_jobs_and_for_those_that_ended) {
  const FakeCommands commands;
  commands.print("scontrol", kRunning);
  commands.add("sacct", "echo \"$*\" > '" + commands.path() +
                            "/asked'\necho \"$TZ $SLURM_TIME_FORMAT\" >> '" + commands.path() +
                            "/asked'\ncat <<'END'\n" + kEnded + "END\n");
  SlurmQuery query(source_of(commands));
  const SlurmAnswer answer = query.ask({1'751'360'400'500});
  EXPECT_TRUE(answer.failures.empty()) << answer.failures[0];
  EXPECT_THAT(keys_of(answer.jobs),
              ElementsAre("c1/6/2025-07-01T09:00:00Z", "c1/7/2025-07-01T10:00:00Z"));
  EXPECT_EQ(answer.jobs[0].name, "a|b");
  EXPECT_THAT(answer.jobs[1].allocations[0].gpu_indices, ElementsAre("0", "1"));
  EXPECT_THAT(commands.read("asked"), HasSubstr("--starttime 2025-07-01T09:00:00 "));
  EXPECT_THAT(commands.read("asked"), HasSubstr("UTC standard"));
}

TEST(SlurmQuery, what_one_command_cannot_say_does_not_silence_the_other) {
  const FakeCommands commands;
  commands.print("scontrol", kRunning);
  commands.add("sacct", "echo 'Slurm accounting storage is disabled' >&2\nexit 1\n");
  SlurmQuery query(source_of(commands));
  const SlurmAnswer answer = query.ask({0});
  EXPECT_THAT(answer.jobs, SizeIs(1));
  ASSERT_THAT(answer.failures, SizeIs(1));
  EXPECT_THAT(answer.failures[0],
              HasSubstr("sacct: ended with 1: Slurm accounting storage is disabled"));
}

TEST(SlurmQuery, without_accounting_sacct_is_not_run) {
  const FakeCommands commands;
  commands.print("scontrol", kRunning);
  SlurmSource source = source_of(commands);
  source.accounting = false;
  SlurmQuery query(source);
  const SlurmAnswer answer = query.ask({0});
  EXPECT_TRUE(answer.failures.empty());
  EXPECT_THAT(answer.jobs, SizeIs(1));
}

TEST(SlurmQuery, commands_that_are_not_there_are_named) {
  const FakeCommands commands;
  SlurmQuery query(source_of(commands));
  const SlurmAnswer answer = query.ask({0});
  EXPECT_TRUE(answer.jobs.empty());
  EXPECT_THAT(answer.failures, ElementsAre(commands.path() + "/sacct: no such program",
                                           commands.path() + "/scontrol: no such program"));
}

const std::string kRestJobs =
    R"j({"meta": {}, "errors": [], "jobs": [{"job_id": 7, "cluster": "c1", "job_state": ["RUNNING"],
    "start_time": {"set": true, "infinite": false, "number": 1751364000}, "nodes": "n1", "tres_alloc_str": "gres/gpu=2",
    "gres_detail": ["gpu:2(IDX:0-1)"]}]})j";
const std::string kRestEnded =
    R"j({"jobs": [{"job_id": 6, "cluster": "c1", "state": {"current": ["COMPLETED"]}, "nodes": "n1",
    "time": {"start": 1751360400, "end": 1751364000, "elapsed": 3600},
    "tres": {"allocated": [{"type": "gres", "name": "gpu", "count": 1}]}}]})j";

TEST(SlurmQuery, slurmrestd_is_asked_in_the_newest_version_that_it_has) {
  std::mutex mutex;
  std::vector<TestRequest> requests;
  TestHttpServer server([&](const TestRequest& request) {
    const std::scoped_lock guard(mutex);
    requests.push_back(request);
    TestReply reply;
    if (request.target.find("/v0.0.41/") == std::string::npos) {
      reply.status = "404 Not Found";
    } else {
      reply.body = request.target.starts_with("/slurmdb/") ? kRestEnded : kRestJobs;
    }
    return reply;
  });
  const test::TempFolder folder;
  SlurmSource source;
  source.rest_url = server.url("");
  source.rest_user = "ann";
  source.rest_token_file = folder.write("token", "SLURM_JWT=secret.token\n");
  SlurmQuery query(source);
  const SlurmAnswer answer = query.ask({1'751'360'000'000});
  EXPECT_TRUE(answer.failures.empty()) << answer.failures[0];
  EXPECT_THAT(keys_of(answer.jobs),
              ElementsAre("c1/6/2025-07-01T09:00:00Z", "c1/7/2025-07-01T10:00:00Z"));
  EXPECT_EQ(requests.back().target, "/slurmdb/v0.0.41/jobs?start_time=uts1751360000");
  EXPECT_EQ(requests.back().header("x-slurm-user-name"), "ann");
  EXPECT_EQ(requests.back().header("x-slurm-user-token"), "secret.token");
  const std::size_t before = requests.size();
  (void)query.ask({1'751'360'000'000});
  EXPECT_EQ(requests.size(), before + 2);  // the version is known now
}

TEST(SlurmQuery, a_slurmrestd_that_refuses_is_asked_once) {
  std::atomic<int> requests = 0;
  TestHttpServer server([&](const TestRequest&) {
    ++requests;
    TestReply reply;
    reply.status = "401 Unauthorized";
    reply.body = "no user 404";  // digits in a text, or a port, are not the status
    return reply;
  });
  SlurmSource source;
  source.rest_url = server.url("");
  SlurmQuery query(source);
  const SlurmAnswer answer = query.ask({0});
  EXPECT_EQ(requests, 1);
  ASSERT_THAT(answer.failures, SizeIs(1));
  EXPECT_THAT(answer.failures[0], HasSubstr("401"));
}

// ---- again and again
// -------------------------------------------------------------------------------------------

struct Sink {
  std::mutex mutex;
  std::condition_variable more;
  std::vector<SlurmTelling> seen;

  SlurmSink function() {
    return [this](const SlurmTelling& told) {
      const std::scoped_lock guard(mutex);
      seen.push_back(told);
      more.notify_all();
    };
  }
  bool wait_for(std::size_t count) {
    std::unique_lock lock(mutex);
    return more.wait_for(lock, std::chrono::seconds(60), [&] { return seen.size() >= count; });
  }
};

units::Instant noon() { return {1'751'371'200'000}; }

TEST(SlurmPoller, jobs_come_at_every_interval_and_the_accounting_is_read_from_the_last_success) {
  const FakeCommands commands;
  commands.print_scontrol(kRunning, kNodes);
  commands.add("sacct",
               "echo \"$*\" >> '" + commands.path() + "/asked'\ncat <<'END'\n" + kEnded + "END\n");
  Sink sink;
  SlurmPollerOptions options;
  options.source = source_of(commands);
  options.interval = milliseconds(10);
  SlurmPoller poller(options, sink.function(), noon);
  ASSERT_TRUE(sink.wait_for(2));
  poller.stop();
  EXPECT_THAT(sink.seen[0].jobs, SizeIs(2));
  EXPECT_TRUE(sink.seen[0].is_whole);
  const SlurmHealth health = poller.health();
  EXPECT_GE(health.polls, 2U);
  EXPECT_EQ(health.failures, 0U);
  EXPECT_EQ(health.last_success, noon());
  EXPECT_EQ(health.jobs, 2U);
  const std::string asked = commands.read("asked");
  EXPECT_THAT(asked.substr(0, asked.find('\n')),
              HasSubstr("--starttime 2025-06-30T12:00:00"));  // a day of history
  EXPECT_THAT(asked.substr(asked.find('\n')),
              HasSubstr("--starttime 2025-07-01T11:50:00"));  // ten minutes of overlap
}

TEST(SlurmPoller, hosts_are_asked_for_at_first_and_then_rarely) {
  const FakeCommands commands;
  commands.print_scontrol(kRunning, kNodes);
  Sink sink;
  SlurmPollerOptions options;
  options.source = source_of(commands);
  options.source.accounting = false;
  options.interval = milliseconds(5);
  options.polls_between_nodes = 2;
  SlurmPoller poller(options, sink.function(), noon);
  ASSERT_TRUE(sink.wait_for(4));
  poller.stop();
  std::vector<std::size_t> nodes;
  for (std::size_t i = 0; i < 4; ++i) nodes.push_back(sink.seen[i].nodes.size());
  EXPECT_THAT(nodes, ElementsAre(2, 0, 0, 2));
  EXPECT_EQ(sink.seen[0].nodes[0].name, "n1");
  EXPECT_EQ(sink.seen[0].nodes[0].gpu_count, 4U);
  EXPECT_EQ(poller.health().hosts, 1U) << "with GPUs";
}

TEST(SlurmPoller, a_cluster_without_jobs_is_an_answer) {
  const FakeCommands commands;
  commands.print_scontrol("No jobs in the system\n", "No nodes in the system\n");
  Sink sink;
  SlurmPollerOptions options;
  options.source = source_of(commands);
  options.source.accounting = false;
  options.interval = milliseconds(5);
  SlurmPoller poller(options, sink.function(), noon);
  ASSERT_TRUE(sink.wait_for(1));
  poller.stop();
  EXPECT_TRUE(sink.seen[0].jobs.empty());
  EXPECT_TRUE(sink.seen[0].is_whole);
}

TEST(SlurmPoller, without_the_list_of_running_jobs_nothing_is_whole_but_the_accounting_goes_on) {
  const FakeCommands commands;
  commands.add("scontrol", "exit 1\n");
  commands.add("sacct", "echo \"$*\" >> '" + commands.path() + "/asked'\ncat <<'END'\n" + kEnded + "END\n");
  Sink sink;
  SlurmPollerOptions options;
  options.source = source_of(commands);
  options.interval = milliseconds(5);
  SlurmPoller poller(options, sink.function(), noon);
  ASSERT_TRUE(sink.wait_for(2));
  poller.stop();
  EXPECT_FALSE(sink.seen[0].is_whole);
  EXPECT_THAT(sink.seen[0].jobs, SizeIs(1));
  const std::string asked = commands.read("asked");
  EXPECT_THAT(asked.substr(asked.find('\n')), HasSubstr("--starttime 2025-07-01T11:50:00")) << "not a day of history again";
}

TEST(SlurmPoller, failures_are_counted_with_the_last_reason_and_nothing_is_handed_over) {
  const FakeCommands commands;
  Sink sink;
  SlurmPollerOptions options;
  options.source = source_of(commands);
  options.interval = milliseconds(5);
  SlurmPoller poller(options, sink.function(), noon);
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (poller.health().failures < 3 && std::chrono::steady_clock::now() < deadline)
    std::this_thread::yield();
  poller.stop();
  const SlurmHealth health = poller.health();
  EXPECT_GE(health.failures_in_a_row, 3U);
  EXPECT_EQ(health.last_success, std::nullopt);
  EXPECT_THAT(health.last_error, HasSubstr("no such program"));
  EXPECT_TRUE(sink.seen.empty());
}

TEST(SlurmPoller, it_stops_while_a_command_hangs) {
  const FakeCommands commands;
  commands.add("scontrol", "touch '" + commands.path() + "/begun'\nsleep 600\n");
  SlurmPollerOptions options;
  options.source = source_of(commands);
  options.source.accounting = false;
  options.source.timeout = milliseconds(600'000);
  SlurmPoller poller(
      options, [](const SlurmTelling&) {}, noon);
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (!std::filesystem::exists(commands.path() + "/begun") &&
         std::chrono::steady_clock::now() < deadline) {
    std::this_thread::yield();
  }
  poller.stop();
  EXPECT_EQ(poller.health().polls, 0U);
}

}  // namespace
}  // namespace flopsight::app
