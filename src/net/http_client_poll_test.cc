// start(), poll(), wake(): requests one after another, without waiting for all of them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <map>
#include <thread>

#include "net/test_requests.h"

namespace flopsight::net {
namespace {

using std::chrono::milliseconds;
using testing::HasSubstr;

using Answers = std::map<std::uint64_t, base::Result<HttpResponse>>;

void poll_all(HttpClient& client, Answers& answers) {
  while (client.in_flight() > 0) {
    client.poll(milliseconds(1000), [&](std::uint64_t id, base::Result<HttpResponse> response) {
      answers.emplace(id, std::move(response));
    });
  }
}

TEST(HttpClientPoll, hands_over_each_answer_once_under_the_number_it_was_given) {
  TestHttpServer server([](const TestRequest& request) { return text(request.target); });
  HttpClient client = make_client();
  Answers answers;
  for (std::uint64_t id = 0; id < 200; ++id) client.start(id * 7, get(server.url("/" + std::to_string(id * 7))));
  EXPECT_EQ(client.in_flight(), 200U);
  poll_all(client, answers);
  ASSERT_EQ(answers.size(), 200U);
  for (const auto& [id, answer] : answers) {
    ASSERT_TRUE(answer.ok()) << answer.error().message;
    EXPECT_EQ(answer->body, "/" + std::to_string(id));
  }
}

TEST(HttpClientPoll, a_slow_answer_does_not_keep_the_others) {
  TestHttpServer server([](const TestRequest& request) {
    TestReply reply = text("done");
    if (request.target == "/slow") reply.hold_after = 1;
    return reply;
  });
  HttpClient client = make_client();
  client.start(1, get(server.url("/slow")));
  client.start(2, get(server.url("/quick")));
  std::vector<std::uint64_t> ended;
  while (ended.empty()) {
    client.poll(milliseconds(1000), [&](std::uint64_t id, const base::Result<HttpResponse>&) { ended.push_back(id); });
  }
  EXPECT_THAT(ended, testing::ElementsAre(2));
  EXPECT_EQ(client.in_flight(), 1U);  // and goes with the client
}

TEST(HttpClientPoll, a_request_may_have_a_time_limit_of_its_own) {
  TestHttpServer server([](const TestRequest&) {
    TestReply reply = text("done");
    reply.hold_after = 1;
    return reply;
  });
  HttpOptions options = quick();
  options.retries = 0;
  HttpClient client = make_client(options);
  HttpRequest request = get(server.url("/"));
  request.timeout = milliseconds(50);
  client.start(1, request);
  Answers answers;
  poll_all(client, answers);
  ASSERT_FALSE(answers.at(1).ok());
  EXPECT_THAT(answers.at(1).error().message, HasSubstr("time-out after 50 ms"));
}

TEST(HttpClientPoll, what_cannot_work_is_an_answer_too) {
  HttpClient client = make_client();
  client.start(1, get("ftp://n1/"));
  Answers answers;
  poll_all(client, answers);
  ASSERT_FALSE(answers.at(1).ok());
}

TEST(HttpClientPoll, more_may_be_started_from_within_an_answer) {
  TestHttpServer server([](const TestRequest&) { return text("done"); });
  HttpClient client = make_client();
  int answered = 0;
  client.start(0, get(server.url("/")));
  while (client.in_flight() > 0) {
    client.poll(milliseconds(1000), [&](std::uint64_t id, const base::Result<HttpResponse>&) {
      ++answered;
      if (id < 5) client.start(id + 1, get(server.url("/")));
    });
  }
  EXPECT_EQ(answered, 6);
}

TEST(HttpClientPoll, wake_ends_a_poll_with_nothing_in_flight) {
  HttpClient client = make_client();
  std::thread waker([&] { client.wake(); });
  client.poll(std::chrono::hours(1), [](std::uint64_t, const base::Result<HttpResponse>&) {});
  waker.join();
}

}  // namespace
}  // namespace flopsight::net
