#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "schedulers/job.h"
#include "serve/page.h"
#include "serve/test_routes.h"

namespace flopsight::app {
namespace {

using test::kTokens;
using test::LabelTexts;
using test::Routed;
using testing::ElementsAre;
using testing::HasSubstr;

// ---- courses ----

TEST_F(Routed, the_course_of_the_fleet_adds_up_to_its_hours) {
  const test::Value answer = json("/api/v1/fleet/series", {{"step", "10m"}, {"since", "1h"}});
  double hours = 0, delivered = 0;
  for (std::size_t i = 0; i < test::count(answer, "time"); ++i) {
    const std::string at = "." + std::to_string(i);
    const double held = test::number(answer, "gpu_count" + at) / 6;
    hours += held;
    delivered += held * test::number(answer, "coverage_ratio" + at) * test::number(answer, "ofu_ratio" + at);
  }
  const test::Value fleet = json("/api/v1/fleet");
  EXPECT_NEAR(hours, test::number(fleet, "fleet.gpu_hours_allocated"), 0.01);
  EXPECT_NEAR(delivered, test::number(fleet, "fleet.gpu_hours_delivered"), 0.001);
}

TEST_F(Routed, of_a_window_that_cuts_an_hour_which_is_kept_whole_every_answer_says_and_has_the_hour) {
  store::Retention retention;
  retention.fine = units::Seconds(3600);
  retention.middle = units::Seconds(7200);
  ingest_->set_retention(retention);
  for (bool more = true; more;) more = ingest_->maintain(test::after(50 * 3'600));
  const LabelTexts cut = {{"start", "2026-11-29T10:10:00Z"}, {"end", "2026-11-29T10:50:00Z"}};
  const std::string start = "2026-11-29T10:00:00Z", end = "2026-11-29T11:00:00Z";
  ASSERT_EQ(units::to_rfc3339(test::after(0)), start);
  const auto with = [&](const char* name, const std::string& value) {
    LabelTexts query = cut;
    query.emplace_back(name, value);
    return query;
  };
  const auto expect_hour = [&](const test::Value& answer, const std::string& what) {
    EXPECT_EQ(test::text(answer, "window.start"), start) << what;
    EXPECT_EQ(test::text(answer, "window.end"), end) << what;
  };
  for (const char* by : {"job", "user", "host", "gpu", "model"}) {
    const test::Value fleet = json("/api/v1/fleet", with("by", by));
    expect_hour(fleet, by);
    EXPECT_NEAR(test::number(fleet, "fleet.gpu_hours_allocated"), 5, 0.01) << by;
  }
  for (const char* path : {"/api/v1/waste", "/api/v1/jobs", "/api/v1/gpus", "/api/v1/mfu"}) expect_hour(json(path, cut), path);
  const std::string job = "/api/v1/jobs/" + id_of("a-0");
  for (const char* part : {"", "/gpus", "/phases", "/advice", "/series"}) expect_hour(json(job + part, cut), part);
  EXPECT_NEAR(test::number(json(job, cut), "gpu_hours_allocated"), 1, 0.01);
  // Steps are no shorter than what is kept, and answers say so.
  for (const test::Value& course : {json("/api/v1/fleet/series", with("step", "10m")), json("/api/v1/gpus/series", with("host", "n0"))}) {
    expect_hour(course, "course");
    EXPECT_EQ(test::number(course, "step_seconds"), 3600);
  }
  EXPECT_NEAR(test::number(json("/api/v1/fleet/series", cut), "gpu_count.0"), 5, 0.01);
}

TEST_F(Routed, courses_of_a_jobs_gpus_of_a_host_and_of_one_gpu_are_the_same_cells) {
  const LabelTexts hour = {{"since", "1h"}, {"step", "20m"}, {"columns", "ofu_ratio"}};
  const auto with = [&](const char* name, const std::string& value) {
    LabelTexts query = hour;
    query.emplace_back(name, value);
    return json("/api/v1/gpus/series", query);
  };
  const test::Value job = with("job", "a-2@a");
  ASSERT_EQ(test::count(job, "gpus"), 1U);
  const test::Value gpu = with("uuid", test::text(job, "gpus.0.uuid"));
  const test::Value host = with("host", "n0");
  EXPECT_EQ(test::count(host, "gpus"), 5U);
  EXPECT_EQ(test::text(host, "gpus.2.uuid"), test::text(job, "gpus.0.uuid"));
  for (const char* at : {"0", "1", "2"}) {
    const double ofu = test::number(job, std::string("gpus.0.ofu_ratio.") + at);
    EXPECT_NEAR(ofu, 0.3 * 1500 / 1830, 1e-4);
    EXPECT_EQ(test::number(gpu, std::string("gpus.0.ofu_ratio.") + at), ofu);
    EXPECT_EQ(test::number(host, std::string("gpus.2.ofu_ratio.") + at), ofu);
  }
  EXPECT_EQ(test::find(job, "gpus", "index", "2").find("sm_clock_hertz"), nullptr) << "only the columns that were asked for";
}

TEST_F(Routed, the_map_has_a_place_in_every_column_for_each_gpu) {
  const test::Value answer = json("/api/v1/gpus", {{"since", "1h"}});
  EXPECT_EQ(test::number(answer, "gpu_count"), 5);
  for (const char* column : {"host", "index", "uuid", "model", "job", "ofu_ratio", "coverage_ratio", "absent_reason"}) {
    EXPECT_EQ(test::count(answer, std::string("gpus.") + column), 5U) << column;
  }
  EXPECT_EQ(test::text(answer, "hosts.0"), "n0");
}

TEST_F(Routed, steps_that_a_job_reported_are_in_its_course) {
  ASSERT_EQ(tell("/api/v1/jobs/a-1@a/mfu", R"([{"step": 1, "time": "2026-11-29T10:02:10Z", "mfu_ratio": 0.3},
                                              {"step": 2, "time": "2026-11-29T10:02:50Z", "mfu_ratio": 0.4},
                                              {"step": 3, "time": "2026-11-29T10:03:50Z", "mfu_ratio": 7}])").status, 200);
  const test::Value answer = json("/api/v1/jobs/a-1@a/series", {{"start", "2026-11-29T10:00:00Z"}, {"end", "2026-11-29T10:05:00Z"}, {"step", "1m"}});
  const base::json::Array& reported = *answer.find("reported_mfu_ratio")->as_array();
  ASSERT_EQ(reported.size(), 5U);
  EXPECT_TRUE(reported[1].is_null());
  EXPECT_NEAR(*reported[2].as_number(), 0.35, 1e-12);
  EXPECT_TRUE(reported[3].is_null()) << "an impossible MFU is excluded";
}

TEST_F(Routed, names_are_found_in_any_case_and_as_they_are_written) {
  const auto found = [&](const std::string& text, const std::string& token = "") {
    std::vector<std::string> out;
    const test::Value answer = json("/api/v1/search", {{"q", text}}, token);
    for (std::size_t i = 0; i < test::count(answer, "matches"); ++i) {
      const std::string at = "matches." + std::to_string(i);
      out.push_back(test::text(answer, at + ".kind") + " " + test::text(answer, at + ".name"));
    }
    return out;
  };
  EXPECT_THAT(found("BOB"), ElementsAre("user bob", "user bob1"));
  EXPECT_THAT(found("A-1"), ElementsAre("job a-1@a"));
  EXPECT_THAT(found("n0"), ElementsAre("host n0"));
  EXPECT_THAT(found("%"), ElementsAre());
  EXPECT_THAT(found("00000003-aaaa"), ElementsAre("gpu GPU-00000003-aaaa-bbbb-cccc-000000000000"));
  EXPECT_THAT(found("h100"), ElementsAre("model H100-SXM5-80GB"));
}

TEST_F(Routed, what_only_a_scheduler_told_of_is_found_too) {
  schedulers::Job job;
  job.cluster = "c1";
  job.id = "9001";
  job.user = "zoe";
  job.account = "vision";
  job.start = now_ - units::Seconds(1'800);
  job.gpu_count = 8;
  job.allocations = {{.hosts = {"elsewhere"}, .gpu_indices = {}, .gpus_per_host = 8}};
  ASSERT_TRUE(jobs_->tell({&job, 1}, now_).ok());
  const auto found = [&](const std::string& text, const std::string& token = "") {
    const test::Value answer = json("/api/v1/search", {{"q", text}}, token);
    return test::count(answer, "matches") == 0 ? "" : test::text(answer, "matches.0.kind") + " " + test::text(answer, "matches.0.name");
  };
  EXPECT_EQ(found("9001"), "job 9001@c1");
  EXPECT_EQ(found("ZOE"), "user zoe");
  EXPECT_EQ(found("vision"), "team vision");
  set(kTokens);
  EXPECT_EQ(found("zoe", "alice-token-00001"), "");
}

TEST_F(Routed, what_a_limited_reader_may_not_see_is_in_no_course) {
  set(kTokens);
  const std::string alice = "alice-token-00001";
  const test::Value fleet = json("/api/v1/fleet/series", {{"step", "1h"}, {"since", "1h"}}, alice);
  EXPECT_NEAR(test::number(fleet, "gpu_count.0"), 1, 0.02);
  EXPECT_EQ(test::number(json("/api/v1/gpus", {{"since", "1h"}}, alice), "gpu_count"), 1);
  EXPECT_EQ(test::count(json("/api/v1/gpus/series", {{"host", "n0"}, {"since", "1h"}}, alice), "gpus"), 1U);
  EXPECT_THAT(error("/api/v1/gpus/series", {{"uuid", "GPU-00000001-aaaa-bbbb-cccc-000000000000"}}, alice), HasSubstr("404 no GPU"));
  EXPECT_THAT(error("/api/v1/gpus/series", {{"job", "a-1@a"}}, alice), HasSubstr("404"));
  EXPECT_EQ(test::count(json("/api/v1/search", {{"q", "n0"}}, alice), "matches"), 0U);
  EXPECT_EQ(test::count(json("/api/v1/search", {{"q", "bob"}}, alice), "matches"), 0U);
}

TEST_F(Routed, wrong_questions_about_courses_are_one_line) {
  EXPECT_EQ(error("/api/v1/gpus/series"), "400 expected exactly one of job, host and uuid");
  EXPECT_EQ(error("/api/v1/gpus/series", {{"job", "a-1@a"}, {"host", "n0"}}), "400 expected exactly one of job, host and uuid");
  EXPECT_THAT(error("/api/v1/gpus/series", {{"host", "n0"}, {"columns", "ofu"}}), HasSubstr("400 columns: found \"ofu\", expected names of columns, as in ofu_ratio"));
  EXPECT_EQ(error("/api/v1/gpus/series", {{"host", "n9"}}), "404 no host n9 in this window");
  EXPECT_THAT(error("/api/v1/gpus/series", {{"host", "n0"}, {"step", "7s"}}), HasSubstr("400 step"));
  EXPECT_THAT(error("/api/v1/gpus", {{"host", "n0"}}), HasSubstr("400 parameter: found \"host\""));
  EXPECT_EQ(error("/api/v1/search"), "400 q: expected a text of 1 to 200 bytes");
  EXPECT_EQ(error("/api/v1/search", {{"q", std::string(201, 'a')}}), "400 q: expected a text of 1 to 200 bytes");
  EXPECT_EQ(test::count(json("/api/v1/search", {{"q", std::string(200, 'a')}}), "matches"), 0U);
  EXPECT_THAT(error("/api/v1/search", {{"q", "a"}, {"limit", "101"}}), HasSubstr("400 limit"));
}

TEST_F(Routed, cells_of_single_gpus_at_the_limit_and_one_past) {
  config_.limits_query_cells = 5;
  set("");
  EXPECT_EQ(test::number(json("/api/v1/gpus", {{"since", "1h"}}), "gpu_count"), 5);
  EXPECT_EQ(test::count(json("/api/v1/gpus/series", {{"host", "n0"}, {"since", "1h"}, {"step", "1h"}}), "gpus"), 5U);
  EXPECT_EQ(error("/api/v1/gpus/series", {{"host", "n0"}, {"since", "1h"}, {"step", "30m"}}),
            "422 5 GPUs in 2 steps, over 5 (limits.query-cells); give a larger step, a shorter window or fewer GPUs");
  config_.limits_query_cells = 4;
  set("");
  EXPECT_THAT(error("/api/v1/gpus", {{"since", "1h"}}), HasSubstr("422 5 GPUs in 1 steps, over 4"));
}

// ---- the page ----

const std::string kPack =
    "flopsight-page 1\n"
    "assets/a-1.js\ttext/javascript\tt1\t5\t3\n"
    "index.html\ttext/html\tt2\t4\t2\n"
    "\n"
    "plaingz!pageGZ";

net::ServerResponse page(const std::string& path, const LabelTexts& headers = {}) {
  net::ServerRequest request;
  request.method = "GET";
  request.path = path;
  request.headers = headers;
  const auto files = read_page_pack(kPack);
  EXPECT_TRUE(files.ok());
  return page_answer(request, *files);
}

std::string header_of(const net::ServerResponse& response, const std::string& name) {
  for (const auto& [key, value] : response.headers) {
    if (key == name) return value;
  }
  return "";
}

TEST(Page, every_view_is_the_one_document) {
  for (const char* path : {"/", "/job", "/map"}) {
    const net::ServerResponse response = page(path);
    EXPECT_EQ(response.body, "page") << path;
    EXPECT_EQ(header_of(response, "Cache-Control"), "no-cache");
    EXPECT_THAT(header_of(response, "Content-Security-Policy"), HasSubstr("default-src 'none'; script-src 'self'; style-src 'self'"));
  }
}

TEST(Page, files_are_kept_for_ever_and_compressed_for_those_who_take_it) {
  EXPECT_EQ(page("/assets/a-1.js").body, "plain");
  EXPECT_EQ(page("/assets/a-1.js", {{"accept-encoding", "br;q=1, gzip;q=0"}}).body, "plain");
  const net::ServerResponse compressed = page("/assets/a-1.js", {{"accept-encoding", "deflate, gzip, br"}});
  EXPECT_EQ(compressed.body, "gz!");
  EXPECT_EQ(header_of(compressed, "Content-Encoding"), "gzip");
  EXPECT_EQ(header_of(compressed, "Cache-Control"), "public, max-age=31536000, immutable");
  EXPECT_EQ(header_of(compressed, "Vary"), "Accept-Encoding");
  EXPECT_EQ(page("/assets/../index.html").status, 404);
}

TEST(Page, what_a_browser_has_already_is_not_sent_again) {
  EXPECT_EQ(page("/", {{"if-none-match", "\"t2\""}}).status, 304);
  EXPECT_EQ(page("/", {{"if-none-match", "\"t1\""}}).status, 200);
}

TEST(Page, without_a_page_it_says_how_to_build_it) {
  net::ServerRequest request;
  request.path = "/";
  EXPECT_THAT(page_answer(request, {}).body, HasSubstr("tools/build-web"));
}

TEST(Page, a_damaged_pack_is_named) {
  for (const std::string bad : {"x\n\n", "flopsight-page 1\na\tb\tc\t1\n\n", "flopsight-page 1\na\tb\tc\t1\t1\n\nx", "flopsight-page 1\na\tb\tc\t-1\t1\n\nx",
                                "flopsight-page 1"}) {
    EXPECT_FALSE(read_page_pack(bad).ok()) << bad;
  }
  EXPECT_TRUE(read_page_pack("")->empty());
}

}  // namespace
}  // namespace flopsight::app
