#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "audit/told_model.h"
#include "serve/paths.h"
#include "serve/routes.h"
#include "serve/test_ingest.h"
#include "training_logs/told_steps.h"

namespace flopsight::app {
namespace {

using net::ServerRequest;
using net::ServerResponse;
using testing::HasSubstr;

const std::string kTokens =
    "tokens:\n"
    "  - {name: writer, token: writer-token-0001, roles: [ingest]}\n"
    "  - {name: reader, token: reader-token-0001, roles: [read]}\n";

class Telling : public testing::Test, public test::IngestHarness {
 protected:
  Telling() {
    auto jobs = JobService::open(folder_.path() + "/" + name_, false);
    EXPECT_TRUE(jobs.ok());
    jobs_ = std::move(jobs).value();
    RouteSettings settings;
    auto access = Access::parse("", "", "tokens.yml", kTokens);
    EXPECT_TRUE(access.ok()) << access.error().message;
    settings.access = std::make_shared<const Access>(std::move(access).value());
    auto answers = std::make_shared<AnswerSettings>();
    answers->fleet.catalog = &catalog_;
    settings.answers = answers;
    routes_ = std::make_unique<Routes>(
        *ingest_, *jobs_, settings, [] { return units::Instant{1'700'000'000'000}; }, [] { return std::string("{}"); },
        [] { return net::ServerCounters{}; });
    routes_->set_ready(true);
  }

  ServerResponse ask(const std::string& method, const std::string& path, const std::string& body,
                     const std::string& token = "writer-token-0001", const std::string& origin = "") {
    ServerRequest request;
    request.method = method;
    request.path = path;
    request.body = body;
    request.headers.emplace_back("authorization", "Bearer " + token);
    request.headers.emplace_back("host", "127.0.0.1:9890");
    if (!origin.empty()) request.headers.emplace_back("origin", origin);
    if (auto refused = routes_->head(request)) return *refused;
    return routes_->handle(request);
  }
  ServerResponse post(const std::string& path, const std::string& body) { return ask("POST", path, body); }

  std::unique_ptr<JobService> jobs_;
  std::unique_ptr<Routes> routes_;
};

TEST_F(Telling, the_page_of_another_site_is_refused_and_its_own_is_not) {
  const std::string jobs = R"([{"id": "7", "hosts": "n1", "start": 1699990000}])";
  for (const auto* origin : {"http://attacker.example", "https://attacker.example:9890", "null", "http://127.0.0.1:80"}) {
    EXPECT_EQ(ask("POST", "/api/v1/jobs", jobs, "writer-token-0001", origin).status, 403) << origin;
  }
  EXPECT_THAT(ask("POST", "/api/v1/jobs", jobs, "writer-token-0001", "http://127.0.0.1:9890").body, HasSubstr("\"added\":1"));
}

TEST_F(Telling, jobs_are_kept_and_the_same_again_is_no_news) {
  const std::string jobs =
      R"([{"cluster": "c1", "id": 7, "user": "ada", "hosts": "n[1-2]", "gpus": ["0-3"], "start": 1699990000},
          {"cluster": "c1", "id": 8, "hosts": "n3", "gpus": ["0"]}])";
  const ServerResponse first = post("/api/v1/jobs", jobs);
  EXPECT_EQ(first.status, 200) << first.body;
  EXPECT_EQ(first.body, "{\"added\":1,\"changed\":0,\"unchanged\":0,\"not_started\":1}\n");
  EXPECT_EQ(post("/api/v1/jobs", jobs).body, "{\"added\":0,\"changed\":0,\"unchanged\":1,\"not_started\":1}\n");
  const auto records = jobs_->records({units::Instant{1'699'999'000'000}, units::Instant{1'700'000'000'000}});
  ASSERT_TRUE(records.ok());
  ASSERT_EQ(records->size(), 1U);
  EXPECT_EQ(records->at(0).hosts, (std::vector<std::string>{"n1", "n2"}));
  EXPECT_EQ(records->at(0).gpu_indices.size(), 4U);
  EXPECT_EQ(records->at(0).rule, "api");
}

TEST_F(Telling, a_job_told_with_and_without_its_cluster_holds_its_gpus_once) {
  const std::string named = R"([{"cluster": "c1", "id": 7, "hosts": "n1", "gpu_count": 2, "start": 1699990000, "end": 1699993600}])";
  const std::string unnamed = R"([{"id": 7, "hosts": "n1", "gpus": ["0-1"], "gpu_count": 2, "start": 1699990000}])";
  const std::string shifted = R"([{"cluster": "c1", "id": 7, "hosts": "n1", "gpu_count": 2, "start": 1699990060, "end": 1699993600}])";
  for (const std::string& told : {unnamed, named, unnamed, shifted}) EXPECT_EQ(post("/api/v1/jobs", told).status, 200);
  const units::Window window{units::Instant{1'699'980'000'000}, units::Instant{1'700'000'000'000}};
  const auto held = jobs_->held(window);
  ASSERT_TRUE(held.ok());
  ASSERT_EQ(held->size(), 1U);
  EXPECT_EQ(held->front().holder.name_space, "c1");
  EXPECT_DOUBLE_EQ(held->front().gpu_seconds.value_or(0), 2 * 3600.0) << "also where two tellings differ in the start";
}

TEST_F(Telling, a_run_whose_cluster_cannot_be_known_is_said) {
  post("/api/v1/jobs", R"([{"cluster": "c1", "id": 7, "hosts": "n1", "start": 1699990000}, {"cluster": "c2", "id": 7, "hosts": "n1", "start": 1699990000}])");
  EXPECT_THAT(post("/api/v1/jobs", R"([{"id": 7, "hosts": "n1", "start": 1699990000}])").body, HasSubstr("\"ambiguous\":1,\"first_ambiguous\":\"job 7: c1 and c2 both have it\""));
}

TEST_F(Telling, what_is_told_of_a_job_that_nobody_told_of_is_kept_and_said) {
  EXPECT_THAT(post("/api/v1/jobs/later/mfu", R"({"mfu_ratio": 0.3})").body, HasSubstr("\"is_known\":false"));
  post("/api/v1/jobs", R"([{"id": "later", "hosts": "n1", "gpus": ["0"], "start": 1699990000}])");
  EXPECT_THAT(post("/api/v1/jobs/later/mfu", R"({"mfu_ratio": 0.3})").body, HasSubstr("\"is_known\":true"));
}

TEST_F(Telling, a_key_that_no_job_has_and_an_id_that_is_no_text_are_refused_by_name) {
  const ServerResponse key = post("/api/v1/jobs", R"([{"id": "7", "hosts": "n1", "gpus": ["0"], "start": 1699990000, "colour": "red"}])");
  EXPECT_EQ(key.status, 400);
  EXPECT_THAT(key.body, HasSubstr("entry 1: \\\"colour\\\" is no key of a job"));
  const ServerResponse id = post("/api/v1/jobs", "[{\"id\": \"a\\u0001b\", \"hosts\": \"n1\", \"start\": 1699990000}]");
  EXPECT_EQ(id.status, 400);
  EXPECT_THAT(id.body, HasSubstr("id: a control character in it"));
}

TEST_F(Telling, a_wrong_job_is_told_where_and_keeps_nothing) {
  const ServerResponse response = post("/api/v1/jobs", R"([{"id": "1", "start": 1}, {"id": "2", "start": "noon"}])");
  EXPECT_EQ(response.status, 400);
  EXPECT_THAT(response.body, HasSubstr("entry 2: start: found"));
  EXPECT_EQ(jobs_->book().counts()->first, 0U);
  EXPECT_EQ(post("/api/v1/jobs", "not json").status, 400);
  EXPECT_EQ(post("/api/v1/jobs", "").status, 400);
}

TEST_F(Telling, steps_are_kept_by_job_and_namespace_and_what_cannot_be_is_counted) {
  const ServerResponse response = post("/api/v1/jobs/train@ml/mfu", R"({"source": "trainer", "steps": [
      {"time": 1699999000, "step": 1, "mfu_ratio": -1},
      {"time": 1699999010, "step": 2, "mfu_ratio": 1.7},
      {"time": 1699999020, "step": 3, "mfu_ratio": 0.41, "flops_per_second_per_gpu": 4.05e14}]})");
  EXPECT_EQ(response.status, 200) << response.body;
  EXPECT_EQ(response.body,
            "{\"job\":\"train\",\"namespace\":\"ml\",\"is_known\":false,\"steps\":3,\"excluded\":{\"not_yet_known\":1,\"above_peak\":1}}\n");
  samples::Holder holder;
  holder.job = "train";
  holder.name_space = "ml";
  const auto reported = jobs_->reported_of({&holder, 1}, {units::Instant{0}, units::Instant{1'700'000'000'000}});
  ASSERT_TRUE(reported.ok() && *reported);
  EXPECT_EQ((*reported)->mfu_ratio, 0.41);
  EXPECT_EQ((*reported)->steps_used, 1U);
  EXPECT_EQ((*reported)->steps_excluded, 2U);
  EXPECT_EQ((*reported)->source, "api trainer");
  holder.name_space = "other";
  EXPECT_FALSE(*jobs_->reported_of({&holder, 1}, {units::Instant{0}, units::Instant{1'700'000'000'000}}));
}

TEST_F(Telling, a_reporter_that_does_not_know_its_namespace_is_found_all_the_same) {
  EXPECT_EQ(post("/api/v1/jobs/101/mfu", R"({"mfu_ratio": 0.3})").status, 200);
  samples::Holder holder;
  holder.job = "101";
  holder.name_space = "c1";
  EXPECT_TRUE(*jobs_->reported_of({&holder, 1}, {units::Instant{0}, units::Instant{1'800'000'000'000}}));
}

TEST_F(Telling, wrong_steps_get_one_line) {
  const std::pair<const char*, const char*> cases[] = {
      {"{}", "no figure in it"},
      {"[]", "steps: an empty list"},
      {R"({"mfu": 0.4})", "\\\"mfu\\\" is no key of a step"},
      {R"({"mfu_ratio": "0.4"})", "mfu_ratio: found \\\"0.4\\\", expected a number"},
      {R"([{"mfu_ratio": 0.4}, {"mfu_ratio": 0.4, "time": "now"}])", "entry 2: time: found"},
      {R"({"mfu_ratio": 0.4, "step": 1.5})", "step: found 1.5, expected a whole number"},
      {R"({"steps": 7})", "steps: found 7, expected a list"}};
  for (const auto& [body, message] : cases) {
    const ServerResponse response = post("/api/v1/jobs/a/mfu", body);
    EXPECT_EQ(response.status, 400) << body;
    EXPECT_THAT(response.body, HasSubstr(message));
  }
  EXPECT_EQ(post("/api/v1/jobs//mfu", R"({"mfu_ratio": 0.3})").status, 405);
  EXPECT_EQ(post("/api/v1/jobs/@ml/mfu", R"({"mfu_ratio": 0.3})").status, 400);
}

TEST_F(Telling, steps_have_a_limit) {
  std::string body = "[";
  for (std::size_t i = 0; i < training_logs::kToldStepsMax; ++i) body += R"({"step_seconds":1},)";
  EXPECT_TRUE(training_logs::parse_told_steps(body.substr(0, body.size() - 1) + "]").ok());
  EXPECT_EQ(training_logs::parse_told_steps(body + R"({"step_seconds":1}])").error().code, base::ErrorCode::kLimit);
}

TEST_F(Telling, is_counted_in_the_services_own_metrics) {
  post("/api/v1/jobs", R"([{"id": 7, "start": 1699990000}, {"id": 8, "start": 1699990000}])");
  post("/api/v1/jobs/7/mfu", R"([{"step": 1, "mfu_ratio": 0.4}, {"step": 2, "mfu_ratio": 0.4}, {"step": 3, "mfu_ratio": 0.4}])");
  TellingHealth health;
  health.slurm.emplace();
  health.slurm->polls = 5;
  health.slurm->failures_in_a_row = 1;
  routes_->set_telling([&] { return health; });
  const std::string page = ask("GET", "/metrics", "", "reader-token-0001").body;
  EXPECT_THAT(page, HasSubstr("\nflopsight_jobs_told 2\n"));
  EXPECT_THAT(page, HasSubstr("\nflopsight_steps_reported 3\n"));
  EXPECT_THAT(page, HasSubstr("\nflopsight_slurm_up 0\n"));
  EXPECT_THAT(page, HasSubstr("\nflopsight_slurm_polls_total 5\n"));
}

TEST_F(Telling, a_model_past_the_limit_is_for_the_sender_to_mend) {
  const std::string model = "{\"config\": {}, \"note\": \"" + std::string(audit::kToldModelBytesMax, 'x') + "\"}";
  const ServerResponse answer = post("/api/v1/jobs/a/model", model);
  EXPECT_EQ(answer.status, 413);
  EXPECT_THAT(answer.body, HasSubstr("expected at most 262144"));
  EXPECT_EQ(post("/api/v1/jobs/a/model", model.substr(0, audit::kToldModelBytesMax)).status, 400);  // as it is no JSON
}

TEST_F(Telling, only_who_may_write_may_tell) {
  EXPECT_EQ(ask("POST", "/api/v1/jobs", "[]", "reader-token-0001").status, 403);
  EXPECT_EQ(ask("POST", "/api/v1/jobs/a/mfu", "{}", "reader-token-0001").status, 403);
  EXPECT_EQ(ask("POST", "/api/v1/jobs", "[]", "nobody-token-0001").status, 401);
}

TEST(Paths, say_which_methods_there_are) {
  EXPECT_EQ(find_path("POST", "/api/v1/jobs").rule->role, Role::kIngest);
  EXPECT_EQ(find_path("HEAD", "/api/v1/jobs").rule->role, Role::kRead);
  EXPECT_EQ(find_path("DELETE", "/api/v1/jobs").rule, nullptr);
  EXPECT_EQ(find_path("DELETE", "/api/v1/jobs").allowed, "GET, POST");
  EXPECT_EQ(find_path("POST", "/api/v1/jobs/a/mfu").rule->suffix, "/mfu");
  for (const char* method : {"GET", "PUT"}) {
    EXPECT_EQ(find_path(method, "/api/v1/jobs/a/mfu").rule, nullptr) << method;
    EXPECT_EQ(find_path(method, "/api/v1/jobs/a/model").allowed, "POST") << method;
  }
  EXPECT_EQ(find_path("POST", "/api/v1/jobs/a").rule, nullptr);
  EXPECT_EQ(find_path("POST", "/api/v1/jobs/a").allowed, "GET");
  EXPECT_EQ(find_path("GET", "/api/v1/nothing").allowed, "");
  EXPECT_FALSE(find_path("GET", "/").rule->role);
  EXPECT_EQ(find_path("GET", "/x").allowed, "");
}

}  // namespace
}  // namespace flopsight::app
