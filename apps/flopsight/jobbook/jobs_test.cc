#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/csv.h"
#include "test_support.h"
#include "wire/gzip.h"

namespace flopsight::app {
namespace {

using test::run_program;
using testing::HasSubstr;

const std::string kFixtures = std::string(FLOPSIGHT_SOURCE_DIR) + "/tests/fixtures/slurm/";

TEST(Jobs, are_imported_from_slurm_and_the_same_again_is_no_news) {
  const test::TempFolder folder;
  const std::vector<std::string> import = {"jobs", "import", "--store", folder.path() + "/s", "--zone", "UTC", "--format", "json",
                                           kFixtures + "slurm-22.05-sacct.json"};
  const test::Answer first = run_program(import);
  ASSERT_EQ(first.exit_code, 0) << first.err;
  const auto json = base::json::parse(first.out);
  ASSERT_TRUE(json.ok());
  const double added = test::number(*json, "added");
  EXPECT_GT(added, 0);
  const auto again = base::json::parse(run_program(import).out);
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(test::number(*again, "added"), 0);
  EXPECT_EQ(test::number(*again, "unchanged") + test::number(*again, "changed"), added);
}

TEST(Jobs, a_dry_run_prints_and_keeps_nothing) {
  const test::TempFolder folder;
  const test::Answer answer = run_program({"jobs", "import", "--dry-run", "--store", folder.path() + "/s", "--zone", "UTC",
                                           kFixtures + "slurm-22.05-scontrol-jobs.txt"});
  EXPECT_EQ(answer.exit_code, 0) << answer.err;
  EXPECT_THAT(answer.out, HasSubstr("job"));
  EXPECT_THAT(answer.out, HasSubstr("state"));
  EXPECT_FALSE(std::filesystem::exists(folder.path() + "/s"));
}

TEST(Jobs, a_list_as_csv_has_the_keys_of_the_json_and_no_formulas) {
  const test::TempFolder folder;
  const std::string store = folder.path() + "/s";
  const std::string told = folder.write("told.json", R"([{"id": 7, "cluster": "c1", "name": "=1+1", "user": "ann", "hosts": "n1", "gpus": "0-3", "start": ")" +
                                                         units::to_rfc3339({test::kStartMilliseconds}) + R"("}, {"id": 8, "cluster": "c1", "hosts": "n2", "start": ")" +
                                                         units::to_rfc3339({test::kStartMilliseconds}) + R"("}])");
  ASSERT_EQ(run_program({"jobs", "import", "--store", store, told}).exit_code, 0);
  const test::Answer answer = run_program({"jobs", "list", "--store", store, "--format", "csv"});
  ASSERT_EQ(answer.exit_code, 0) << answer.err;
  const auto table = base::parse_csv(answer.out);
  ASSERT_TRUE(table.ok()) << table.error().message;
  ASSERT_EQ(table->rows.size(), 2U);
  const auto cell = [&](std::size_t row, const char* column) { return table->rows[row].fields.at(static_cast<std::size_t>(table->column(column))); };
  EXPECT_EQ(cell(0, "id"), "7@c1");
  EXPECT_EQ(cell(0, "name"), "'=1+1");
  EXPECT_EQ(cell(0, "user"), "ann");
  EXPECT_EQ(cell(0, "gpu_count"), "4");
  EXPECT_EQ(cell(0, "gpu_hours_allocated"), "8");
  EXPECT_EQ(cell(0, "gpu_hours_unmeasured"), "8");
  EXPECT_EQ(cell(0, "ofu_ratio"), "");
  EXPECT_EQ(cell(0, "simulated"), "false");
  // Nobody said how many it held.
  EXPECT_EQ(cell(1, "gpu_count"), "");
  EXPECT_EQ(cell(1, "gpu_hours_allocated"), "");
  const test::Answer show = run_program({"jobs", "show", "--store", store, "--format", "csv", "7@c1"});
  EXPECT_EQ(show.exit_code, 2);
  EXPECT_EQ(show.err, "flopsight jobs: --format csv: expected table or json\n");
}

TEST(Jobs, files_of_three_kinds_are_told_apart) {
  const test::TempFolder folder;
  const std::string csv = folder.write("jobs.csv", "job,hosts,gpus,start\n7,n1,0-3,1700000000\n");
  const std::string told = folder.write("told.json", R"([{"id": 8, "hosts": "n2", "gpus": ["0"], "start": 1700000000}])");
  const test::Answer answer = run_program({"jobs", "import", "--store", folder.path() + "/s", csv, told});
  EXPECT_EQ(answer.exit_code, 0) << answer.err;
  EXPECT_EQ(answer.out, "2 jobs read: 2 new, 0 changed, 0 known already, 0 not started yet\n");
}

TEST(Jobs, json_of_slurm_is_told_from_a_list_by_its_own_keys_however_it_is_spaced) {
  const test::TempFolder folder;
  const std::string slurm = R"({"jobs":[{"job_id":6,"cluster":"c1","state":{"current":["COMPLETED"]},"nodes":"n1",)"
                            R"("time":{"start":1751360400,"end":1751364000,"elapsed":3600},"name":"meta",)"
                            R"("tres":{"allocated":[{"type":"gres","name":"gpu","count":1}]}}],"meta":{},"errors":[]})";
  const std::string told = R"({"jobs": [{"id": 8, "name": "\"meta\"", "user": "meta", "hosts": "n2", "gpus": ["0"], "start": 1700000000}], "note": {"meta": 1}})";
  for (const std::string& text : {slurm, told}) {
    const test::Answer answer = run_program({"jobs", "import", "--dry-run", folder.write("jobs.json", text)});
    EXPECT_EQ(answer.exit_code, 0) << answer.err;
    EXPECT_THAT(answer.out, HasSubstr("n")) << text;
  }
}

// As `sacct --json | jq '{jobs}'` and `jq .jobs` leave it.
TEST(Jobs, json_of_slurm_without_what_is_around_it_is_known_by_its_keys) {
  const test::TempFolder folder;
  const std::string job = R"({"job_id":6,"cluster":"c1","state":{"current":["COMPLETED"]},"nodes":"n1","association":{"id":1},)"
                          R"("time":{"start":1751360400,"end":1751364000,"elapsed":3600},"tres":{"allocated":[{"type":"gres","name":"gpu","count":1}]}})";
  const test::Answer whole = run_program({"jobs", "import", "--dry-run", folder.write("jobs.json", "{\"jobs\":[" + job + "]}")});
  EXPECT_EQ(whole.exit_code, 0) << whole.err;
  const test::Answer list = run_program({"jobs", "import", "--dry-run", folder.write("jobs.json", "[" + job + "]")});
  EXPECT_EQ(list.exit_code, 2);
  EXPECT_THAT(list.err, HasSubstr("looks like the jobs of Slurm's JSON without what is around them"));
  const test::Answer live = run_program({"jobs", "import", "--dry-run", folder.write("jobs.json", R"({"jobs":[{"job_id":6,"job_state":["RUNNING"],"nodes":"n1","start_time":1751360400}]})")});
  EXPECT_EQ(live.exit_code, 0) << live.err;
  const test::Answer report = run_program({"report", "--file", folder.write("m.prom", ""), "--jobs", folder.write("jobs.json", "{\"jobs\":[" + job + "]}")});
  EXPECT_THAT(report.err, HasSubstr("output of Slurm, expected a jobs file"));
}

TEST(Jobs, of_no_gpu_has_no_hours_and_that_is_known) {
  const test::TempFolder folder;
  const std::string store = folder.path() + "/s";
  const std::string told = folder.write("jobs.json", R"([{"id": "5", "hosts": "n1", "gpu_count": 0, "start": "2026-11-30T10:00:00Z", "end": "2026-11-30T11:00:00Z"}])");
  ASSERT_EQ(run_program({"jobs", "import", "--store", store, told}).exit_code, 0);
  const std::string shown = run_program({"jobs", "show", "--store", store, "--start", "2026-11-30T09:00:00Z", "--end", "2026-11-30T12:00:00Z", "5"}).out;
  EXPECT_THAT(shown, HasSubstr("GPUs           0\n"));
  EXPECT_THAT(shown, HasSubstr("GPU-hours      0.00 held, "));
}

TEST(Jobs, imported_after_the_samples_have_the_time_that_was_nobodys) {
  const test::TempFolder folder;
  const std::string store = folder.path() + "/s";
  const auto gpu = [](const std::string& uuid, const std::string& index) {
    const std::string labels = test::h100(uuid, "n1", index, "");
    return test::series(test::kTensor, labels, 15, test::times(240, "0.5")) + test::series(test::kClock, labels, 15, test::times(240, "1500"));
  };
  const std::string samples = folder.write("a.prom", gpu("GPU-a", "0") + gpu("GPU-b", "1"));
  ASSERT_EQ(run_program({"import", "--store", store, "--file", samples}).exit_code, 0);
  // The whole host from 10:10 to 10:40; that it has two GPUs is told afterwards.
  const std::string sacct = folder.write("sacct.txt", "JobIDRaw|State|Start|End|AllocTRES|NodeList\n"
                                                      "7|COMPLETED|2026-11-29T10:10:00|2026-11-29T10:40:00|gres/gpu=2|n1\n");
  const test::Answer jobs = run_program({"jobs", "import", "--store", store, "--cluster", "c1", "--zone", "UTC", sacct});
  EXPECT_EQ(jobs.exit_code, 0) << jobs.err;
  EXPECT_EQ(jobs.out, "1 jobs read: 1 new, 0 changed, 0 known already, 0 not started yet\n");
  const std::string nodes = folder.write("nodes.txt", "NodeName=n1 State=IDLE Gres=gpu:2 CfgTRES=cpu=8,gres/gpu=2\n");
  const test::Answer hosts = run_program({"jobs", "import", "--store", store, nodes});
  EXPECT_EQ(hosts.exit_code, 0) << hosts.err;
  EXPECT_THAT(hosts.out, HasSubstr("1 GPU-hours of the store that were nobody's are theirs now\n"));
  const test::Answer report = run_program({"report", "--store", store, "--start", "2026-11-29T10:00:00Z", "--end", "2026-11-29T11:00:00Z", "--format", "json"});
  ASSERT_EQ(report.exit_code, 0) << report.err;
  const auto json = base::json::parse(report.out);
  ASSERT_TRUE(json.ok());
  for (const base::json::Value& group : *json->find("groups")->as_array()) {
    const bool is_job = !group.find("key")->find("job")->is_null();
    EXPECT_NEAR(test::number(group, "gpu_hours_allocated"), 1, 0.01) << is_job;
    EXPECT_NEAR(test::number(group, "ofu_ratio"), 0.5 * 1500 / 1830, 1e-4);
  }
  EXPECT_EQ(json->find("groups")->as_array()->size(), 2U);
}

TEST(Jobs, are_listed_and_reported_where_no_sample_ever_came) {
  const test::TempFolder folder;
  const std::string store = folder.path() + "/s";
  const std::string told = folder.write("told.json", R"([{"id": 8, "hosts": "n2", "gpus": ["0-3"], "start": 1790000000, "end": 1790003600}])");
  ASSERT_EQ(run_program({"jobs", "import", "--store", store, told}).exit_code, 0);
  const std::vector<std::string> window = {"--store", store, "--start", "1790000000", "--end", "1790007200"};
  const auto with_window = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.end(), window.begin(), window.end());
    return run_program(arguments);
  };
  for (const auto& command : {std::vector<std::string>{"jobs", "list"}, {"jobs", "show", "8"}, {"report"}}) {
    const test::Answer answer = with_window(command);
    EXPECT_EQ(answer.exit_code, 0) << answer.err;
    EXPECT_THAT(answer.out, HasSubstr("4 told"));
  }
}

TEST(Jobs, are_shown_whenever_they_ran_where_no_time_is_named) {
  const test::TempFolder folder;
  const std::string store = folder.path() + "/s";
  const std::string told = folder.write("told.json", R"([{"id": 8, "hosts": "n2", "gpus": ["0-3"], "start": 1790000000, "end": 1790003600},
                                                        {"id": 9, "hosts": "n3", "gpus": ["0"], "start": 1790000000, "end": 1790003600}])");
  ASSERT_EQ(run_program({"jobs", "import", "--store", store, told}).exit_code, 0);
  const test::Answer shown = run_program({"jobs", "show", "--store", store, "8"});
  EXPECT_EQ(shown.exit_code, 0) << shown.err;
  EXPECT_THAT(shown.out, HasSubstr("2026-09-21T14:13:20Z to 2026-09-21T15:13:20Z"));
  const test::Answer beside = run_program({"jobs", "show", "--store", store, "--since", "2h", "8"});
  EXPECT_EQ(beside.exit_code, 2);
  EXPECT_THAT(beside.err, HasSubstr("it ran from 2026-09-21T14:13:20Z to 2026-09-21T15:13:20Z (--start 2026-09-21T14:13:20Z --end 2026-09-21T15:13:20Z)"));
  EXPECT_THAT(run_program({"jobs", "show", "--store", store, "10"}).err, HasSubstr("no job with the id 10"));
}

TEST(Jobs, of_an_unknown_number_of_gpus_are_listed_with_the_reason) {
  const test::TempFolder folder;
  const std::string store = folder.path() + "/s";
  const std::string sacct = folder.write("sacct.txt", "JobIDRaw|State|Start|End|NodeList\n7|COMPLETED|2026-11-29T10:10:00|2026-11-29T10:40:00|n1\n");
  const test::Answer import = run_program({"jobs", "import", "--store", store, "--zone", "UTC", sacct});
  EXPECT_THAT(import.err, HasSubstr("no column AllocTRES"));
  EXPECT_THAT(import.err, HasSubstr("of none of the 1 jobs the number of GPUs is known"));
  const std::vector<std::string> window = {"--store", store, "--start", "2026-11-29T10:00:00Z", "--end", "2026-11-29T11:00:00Z"};
  const auto in_window = [&](std::vector<std::string> arguments) {
    arguments.insert(arguments.end(), window.begin(), window.end());
    return run_program(arguments);
  };
  EXPECT_THAT(in_window({"jobs", "list"}).out, HasSubstr("\n7 "));
  EXPECT_THAT(in_window({"jobs", "show", "7"}).out, HasSubstr("not known: its scheduler did not say how many"));
  const auto json = base::json::parse(in_window({"jobs", "list", "--format", "json"}).out);
  ASSERT_TRUE(json.ok());
  const base::json::Value& job = json->find("jobs")->as_array()->at(0);
  EXPECT_TRUE(job.find("gpu_count")->is_null());
  EXPECT_TRUE(job.find("gpu_hours_allocated")->is_null());
  EXPECT_EQ(*json->find("quality")->as_array()->at(0).find("code")->as_string(), "held_number_unknown");
}

TEST(Jobs, a_task_of_an_array_answers_to_the_name_that_squeue_gives_it) {
  const test::TempFolder folder;
  const std::string store = folder.path() + "/s";
  const std::string sacct = folder.write("sacct.txt", "JobIDRaw|JobID|State|Start|End|AllocTRES|NodeList\n"
                                                      "703|700_3|COMPLETED|2026-11-29T10:10:00|2026-11-29T10:40:00|gres/gpu=2|n1\n");
  ASSERT_EQ(run_program({"jobs", "import", "--store", store, "--cluster", "c1", "--zone", "UTC", sacct}).exit_code, 0);
  for (const char* id : {"700_3", "700_3@c1", "703"}) {
    const test::Answer answer = run_program({"jobs", "show", "--store", store, "--start", "2026-11-29T10:00:00Z", "--end", "2026-11-29T11:00:00Z", id});
    EXPECT_EQ(answer.exit_code, 0) << answer.err;
    EXPECT_THAT(answer.out, testing::StartsWith("703@c1\n"));
  }
  EXPECT_EQ(run_program({"jobs", "show", "--store", store, "--start", "2026-11-29T10:00:00Z", "--end", "2026-11-29T11:00:00Z", "700_4"}).exit_code, 2);
}

TEST(Jobs, a_compressed_file_is_read_and_hosts_are_shown) {
  const test::TempFolder folder;
  const std::string nodes = folder.write("nodes.gz", wire::gzip("NodeName=n1 State=IDLE Gres=gpu:a100:8 CfgTRES=cpu=8,gres/gpu=8\n"));
  const test::Answer dry = run_program({"jobs", "import", "--dry-run", nodes});
  EXPECT_EQ(dry.exit_code, 0) << dry.err;
  EXPECT_THAT(dry.out, HasSubstr("n1"));
  EXPECT_THAT(dry.out, HasSubstr("a100"));
  EXPECT_THAT(run_program({"jobs", "import", "--store", folder.path() + "/s", nodes}).out, HasSubstr("1 hosts read\n"));
}

TEST(Jobs, texts_have_a_limit) {
  const test::TempFolder folder;
  const auto told = [&](std::size_t bytes) {
    return run_program({"jobs", "import", "--dry-run", folder.write("told.json", "[{\"id\": \"" + std::string(bytes, 'x') + "\", \"hosts\": \"n1\", \"start\": 1}]")});
  };
  EXPECT_EQ(told(4'096).exit_code, 0);
  EXPECT_EQ(told(4'097).exit_code, 2);
  EXPECT_THAT(told(4'097).err, HasSubstr("entry 1: id: longer than 4096 bytes"));
}

TEST(Jobs, mistakes_get_one_line) {
  const test::TempFolder folder;
  const std::string odd = folder.write("odd.txt", "this is no output of any scheduler\n");
  const std::pair<std::vector<std::string>, const char*> cases[] = {
      {{"jobs"}, "A subcommand is required"},
      {{"jobs", "import"}, "file is required"},
      {{"jobs", "import", "/nonexistent"}, "/nonexistent: cannot open"},
      {{"jobs", "import", "--dry-run", odd}, "odd.txt"},
      {{"jobs", "import", "--zone", "Nowhere/Never", odd}, "--zone"},
      {{"jobs", "list", "--store", folder.path() + "/none"}, "none: no store there, expected the folder of flopsight serve or flopsight import"},
      {{"jobs", "list", "--format", "xml"}, "--format xml: expected table, json or csv"},
      {{"jobs", "list", "--since", "soon"}, "--since soon: expected a duration"}};
  for (const auto& [arguments, message] : cases) {
    const test::Answer answer = run_program(arguments);
    EXPECT_EQ(answer.exit_code, 2) << message;
    EXPECT_THAT(answer.err, HasSubstr(message));
    EXPECT_EQ(answer.out, "") << message;
    EXPECT_EQ(std::count(answer.err.begin(), answer.err.end(), '\n'), 1) << answer.err;
  }
}

}  // namespace
}  // namespace flopsight::app
