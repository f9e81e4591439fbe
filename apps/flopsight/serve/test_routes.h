#pragma once
// For tests of the API: its routes over a store with an hour of a small fleet, asked as the server asks them. Not part of the program.

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "serve/routes.h"
#include "serve/test_ingest.h"

namespace flopsight::app::test {

using net::ServerRequest;
using net::ServerResponse;

inline const std::string kTokens =
    "tokens:\n"
    "  - {name: writer, token: writer-token-0001, roles: [ingest]}\n"
    "  - {name: reader, token: reader-token-0001, roles: [read]}\n"
    "  - {name: admin, token: admin-token-00001, roles: [admin]}\n"
    "  - {name: alice, token: alice-token-00001, roles: [read], users: [alice]}\n";

// Four jobs over an hour: pod "a-<n>" of user alice, bob, bob1 and of nobody known; and a GPU without a job.
class Routed : public testing::Test, public IngestHarness {
 protected:
  Routed() {
    const char* users[] = {"alice", "bob", "bob1", ""};
    for (int t = 0; t < 3'600; t += 15) {
      Message message;
      for (int n = 0; n < 4; ++n) {
        LabelTexts user;
        if (users[n][0] != '\0') user = {{"user", users[n]}};
        message.gpu(labels_of(n, "a-" + std::to_string(n), user), 0.1 * (n + 1), t);
      }
      message.gpu(labels_of(4, ""), 0.9, t);
      now_ = after(t);
      EXPECT_EQ(write(message).status, 204);
    }
    flush(true);
    now_ = after(3'600);
    auto jobs = JobService::open(folder_.path() + "/" + name_, false);
    EXPECT_TRUE(jobs.ok()) << jobs.error().message;
    jobs_ = std::move(jobs).value();
    set("");
  }

  void set(const std::string& tokens) {
    RouteSettings settings;
    settings.config = config_;
    auto access = Access::parse("", "", tokens.empty() ? "" : "tokens.yml", tokens);
    ASSERT_TRUE(access.ok()) << access.error().message;
    settings.access = std::make_shared<const Access>(std::move(access).value());
    auto answers = std::make_shared<AnswerSettings>();
    answers->fleet.catalog = &catalog_;
    settings.answers = answers;
    if (routes_) {
      routes_->replace(settings);
      return;
    }
    routes_ = std::make_unique<Routes>(*ingest_, *jobs_, settings, [this] { return now_; }, [] { return std::string("{\"targets\":[]}\n"); },
                                       [] { return net::ServerCounters{}; });
    routes_->set_ready(true);
  }

  // As the server does: the head first.
  ServerResponse ask(ServerRequest request) {
    if (auto refused = routes_->head(request)) return *refused;
    return routes_->handle(request);
  }
  ServerResponse get(const std::string& path, const LabelTexts& query = {}, const std::string& token = "") {
    ServerRequest request;
    request.method = "GET";
    request.path = path;
    request.query = query;
    if (!token.empty()) request.headers.emplace_back("authorization", "Bearer " + token);
    return ask(request);
  }
  ServerResponse post(const Message& message, const LabelTexts& headers) {
    ServerRequest request;
    request.method = "POST";
    request.path = "/api/v1/write";
    request.headers = headers;
    request.body = message.body();
    return ask(request);
  }
  ServerResponse tell(const std::string& path, const std::string& body) {
    ServerRequest request;
    request.method = "POST";
    request.path = path;
    request.body = body;
    return ask(request);
  }
  Value json(const std::string& path, const LabelTexts& query = {}, const std::string& token = "") {
    const ServerResponse response = get(path, query, token);
    EXPECT_EQ(response.status, 200) << path << " " << response.body;
    auto parsed = base::json::parse(response.body);
    EXPECT_TRUE(parsed.ok()) << response.body;
    return parsed.ok() ? std::move(parsed).value() : Value("no JSON");
  }
  // "400 the complaint" without JSON around it.
  std::string error(const std::string& path, const LabelTexts& query = {}, const std::string& token = "") {
    const ServerResponse response = get(path, query, token);
    const auto parsed = base::json::parse(response.body);
    EXPECT_TRUE(parsed.ok()) << response.body;
    return std::to_string(response.status) + " " + (parsed.ok() ? text(*parsed, "error") : response.body);
  }
  std::string id_of(const std::string& job) { return text(find(json("/api/v1/jobs"), "jobs", "job", job), "id"); }
  std::vector<std::string> jobs_seen(const std::string& token) {
    std::vector<std::string> out;
    const Value answer = json("/api/v1/jobs", {}, token);
    for (std::size_t i = 0; i < count(answer, "jobs"); ++i) out.push_back(text(answer, "jobs." + std::to_string(i) + ".job"));
    return out;
  }

  ServeConfig config_;
  std::unique_ptr<JobService> jobs_;
  std::unique_ptr<Routes> routes_;
};

}  // namespace flopsight::app::test
