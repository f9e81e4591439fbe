// Where a request goes instead of straight to its URL: redirects and proxies.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

#include "net/test_requests.h"

namespace flopsight::net {
namespace {

using std::chrono::milliseconds;
using testing::HasSubstr;

TestReply redirect(const std::string& location) {
  TestReply reply;
  reply.status = "302 Found";
  reply.headers = {{"Location", location}};
  return reply;
}

// ---- Redirects

TEST(HttpClientRoute, follows_a_redirect_within_the_origin_with_credentials) {
  TestHttpServer server([](const TestRequest& request) {
    return request.target == "/old/x" ? redirect("../new?a=b") : text("here");
  });
  HttpOptions options = quick();
  options.auth.bearer_token = "t0ken";
  options.auth.headers = {{"X-Scope-OrgID", "team"}};
  const auto response = make_client(options).send(get(server.url("/old/x")));
  ASSERT_TRUE(response.ok()) << response.error().message;
  EXPECT_EQ(response->body, "here");
  ASSERT_EQ(server.requests().size(), 2U);
  EXPECT_EQ(server.requests()[1].target, "/new?a=b");
  EXPECT_EQ(server.requests()[1].header("authorization"), "Bearer t0ken");
  EXPECT_EQ(server.requests()[1].header("x-scope-orgid"), "team");
}

TEST(HttpClientRoute, keeps_every_credential_from_another_origin) {
  TestHttpServer other([](const TestRequest&) { return text("elsewhere"); });
  TestHttpServer server([&](const TestRequest&) { return redirect(other.url("/x")); });
  HttpOptions options = quick();
  options.auth.headers = {{"X-Api-Key", "key"}};
  HttpRequest request = get("http://user:pass@127.0.0.1:" + std::to_string(server.port()) + "/x");
  request.headers = {{"X-Other", "key"}};
  const auto response = make_client(options).send(request);
  ASSERT_TRUE(response.ok()) << response.error().message;
  EXPECT_EQ(response->body, "elsewhere");
  EXPECT_NE(server.requests()[0].header("authorization"), "");
  EXPECT_EQ(server.requests()[0].header("x-api-key"), "key");
  for (const char* name : {"authorization", "x-api-key", "x-other"}) {
    EXPECT_EQ(other.requests()[0].header(name), "") << name;
  }
}

TEST(HttpClientRoute, refuses_a_redirect_that_it_must_not_follow) {
  TestHttpServer server([](const TestRequest& request) {
    if (request.target == "/file") return redirect("file:///etc/passwd");
    return redirect(request.target == "/post" ? "/elsewhere" : "/loop");
  });
  HttpClient client = make_client();
  EXPECT_EQ(
      client.send(get(server.url("/file"))).error().message,
      server.url("/file") +
          ": HTTP 302 Found to file:///etc/passwd, expected a URL that starts with http:// or "
          "https:// (1 attempt)");
  EXPECT_EQ(client.send(post(server.url("/post"), "q")).error().message,
            server.url("/post") +
                ": HTTP 302 Found to /elsewhere, which is not followed for a POST (1 attempt)");
  const std::size_t before = server.requests().size();
  EXPECT_THAT(client.send(get(server.url("/loop"))).error().message,
              HasSubstr("the last of too many redirects"));
  EXPECT_EQ(server.requests().size() - before, 11U);
}

// ---- Proxies

TEST(HttpClientRoute, goes_through_the_proxy_of_the_environment) {
  TestHttpServer proxy([](const TestRequest&) { return text("by proxy"); });
  setenv("http_proxy", proxy.url().c_str(), 1);
  const auto response = make_client().send(get("http://metrics.example:9090/x"));
  unsetenv("http_proxy");
  ASSERT_TRUE(response.ok()) << response.error().message;
  EXPECT_EQ(response->body, "by proxy");
  EXPECT_EQ(proxy.requests()[0].target, "http://metrics.example:9090/x");
  EXPECT_EQ(proxy.requests()[0].header("host"), "metrics.example:9090");
}

}  // namespace
}  // namespace flopsight::net
