#include "net/http_client.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstdio>

#include "net/test_requests.h"

namespace flopsight::net {
namespace {

using base::ErrorCode;
using std::chrono::milliseconds;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::StartsWith;

TestReply status(const std::string& line, const std::string& body = "") {
  TestReply reply = text(body);
  reply.status = line;
  return reply;
}

const std::string kThreeLines = "flopsight_up 1\nflopsight_up 2\nflopsight_up 3\n";
// gzip and zlib forms of kThreeLines.
const std::string kThreeLinesGzip(
    "\x1f\x8b\x08\x00\x00\x00\x00\x00\x02\x03\x4b\xcb\xc9\x2f\x28\xce\x4c\xcf\x28\x89\x2f\x2d\x50"
    "\x30\xe4"
    "\x4a\x43\xe6\x1a\xa1\x72\x8d\xb9\x00\xc6\x05\xea\x7a\x2d\x00\x00\x00",
    42);
const std::string kThreeLinesZlib(
    "\x78\x9c\x4b\xcb\xc9\x2f\x28\xce\x4c\xcf\x28\x89\x2f\x2d\x50\x30\xe4\x4a\x43\xe6\x1a\xa1\x72"
    "\x8d\xb9"
    "\x00\x87\x92\x10\x51",
    30);

TestReply encoded(const std::string& encoding, const std::string& body) {
  TestReply reply = text(body);
  reply.headers = {{"Content-Encoding", encoding}};
  return reply;
}

// ---- What arrives

TEST(HttpClient, gets_a_body_and_its_content_type) {
  TestHttpServer server([](const TestRequest&) {
    TestReply reply = text("up 1\n");
    reply.headers = {{"Content-Type", "text/plain; version=0.0.4"}};
    return reply;
  });
  const auto response = make_client().send(get(server.url("/metrics?a=b")));
  ASSERT_TRUE(response.ok()) << response.error().message;
  EXPECT_EQ(response->status, 200);
  EXPECT_EQ(response->status_line, "200 OK");
  EXPECT_EQ(response->content_type, "text/plain; version=0.0.4");
  EXPECT_EQ(response->body, "up 1\n");
  EXPECT_EQ(response->attempts, 1);
  ASSERT_EQ(server.requests().size(), 1U);
  EXPECT_EQ(server.requests()[0].method, "GET");
  EXPECT_EQ(server.requests()[0].target, "/metrics?a=b");
  EXPECT_EQ(server.requests()[0].header("user-agent"), "flopsight");
  EXPECT_EQ(server.requests()[0].header("accept-encoding"), "gzip, deflate");
  EXPECT_EQ(server.requests()[0].header("authorization"), "");
}

TEST(HttpClient, hands_a_gzip_body_over_as_it_came_where_asked) {
  TestHttpServer server([](const TestRequest&) { return encoded("gzip", kThreeLinesGzip); });
  HttpClient client = HttpClient::create({}).value();
  HttpRequest request;
  request.url = server.url("/");
  request.keep_encoding = true;
  const auto response = client.send(request);
  ASSERT_TRUE(response.ok()) << response.error().message;
  EXPECT_EQ(response->body, kThreeLinesGzip);
  EXPECT_EQ(server.requests()[0].header("accept-encoding"), "gzip");
}

TEST(HttpClient, reads_chunked_gzip_and_deflate_bodies) {
  TestHttpServer server([](const TestRequest& request) {
    TestReply reply = text(kThreeLines);
    if (request.target != "/chunked") {
      reply = request.target == "/zlib" ? encoded("deflate", kThreeLinesZlib)
                                        : encoded("gzip", kThreeLinesGzip);
    }
    reply.chunked = request.target == "/chunked" || request.target == "/both";
    return reply;
  });
  HttpClient client = make_client();
  for (const char* path : {"/chunked", "/gzip", "/zlib", "/both"}) {
    const auto response = client.send(get(server.url(path)));
    ASSERT_TRUE(response.ok()) << response.error().message;
    EXPECT_EQ(response->body, kThreeLines) << path;
  }
}

TEST(HttpClient, chunks_that_say_to_be_larger_than_anything_are_errors_and_nothing_is_waited_for) {
  // Of 63 and 64 bits, of more than 64, and less than nothing.
  for (const char* size : {"7fffffffffffffff", "ffffffffffffffff", "10000000000000000", "fffffffffffffffffffffffff", "-1", "x"}) {
    TestHttpServer server([&](const TestRequest&) {
      TestReply reply = text(kThreeLines);
      reply.chunked = true;
      reply.chunk_size = size;
      reply.drop_after = 200;
      return reply;
    });
    HttpOptions options;
    options.retries = 0;
    auto client = HttpClient::create(options);
    ASSERT_TRUE(client.ok());
    EXPECT_FALSE(client->send(get(server.url("/"))).ok()) << size;
  }
}

TEST(HttpClient, posts_a_form_body_with_zeros_in_it) {
  TestHttpServer server([](const TestRequest& request) { return text(request.body); });
  const std::string body("query=up\0&x=1", 13);
  const auto response = make_client().send(post(server.url("/q"), body));
  ASSERT_TRUE(response.ok()) << response.error().message;
  EXPECT_EQ(response->body, body);
  EXPECT_EQ(server.requests()[0].method, "POST");
  EXPECT_EQ(server.requests()[0].header("content-type"), "application/x-www-form-urlencoded");
}

// ---- Credentials

TEST(HttpClient, sends_token_and_custom_headers) {
  TestHttpServer server([](const TestRequest&) { return text("ok"); });
  HttpOptions options = quick();
  options.auth.bearer_token = "t0ken";
  options.auth.headers = {{"X-Scope-OrgID", "team"}, {"X-Empty", ""}};
  HttpRequest request = get(server.url());
  request.headers = {{"Accept", "application/json"}};
  ASSERT_TRUE(make_client(options).send(request).ok());
  const TestRequest seen = server.requests()[0];
  EXPECT_EQ(seen.header("authorization"), "Bearer t0ken");
  EXPECT_EQ(seen.header("x-scope-orgid"), "team");
  EXPECT_EQ(seen.header("accept"), "application/json");
  EXPECT_EQ(seen.headers.count("x-empty"), 1U);
}

TEST(HttpClient, uses_the_credentials_of_the_url_before_its_own_and_never_prints_them) {
  TestHttpServer server([](const TestRequest&) { return status("401 Unauthorized", "who?"); });
  HttpOptions options = quick();
  options.auth.basic = {"option", "unused"};
  const std::string port = std::to_string(server.port());
  const auto response =
      make_client(options).send(get("http://us%65r:p%40ss@127.0.0.1:" + port + "/x"));
  ASSERT_FALSE(response.ok());
  EXPECT_EQ(response.error().code, ErrorCode::kInvalid);
  EXPECT_EQ(response.error().message,
            server.url("/x") + ": HTTP 401 Unauthorized: who? (1 attempt)");
  EXPECT_EQ(server.requests()[0].header("authorization"), "Basic dXNlcjpwQHNz");  // user:p@ss
}

TEST(HttpClient, sends_user_and_password_of_its_options) {
  TestHttpServer server([](const TestRequest&) { return text("ok"); });
  HttpOptions options = quick();
  options.auth.basic = {"user", "p@ss"};
  ASSERT_TRUE(make_client(options).send(get(server.url())).ok());
  EXPECT_EQ(server.requests()[0].header("authorization"), "Basic dXNlcjpwQHNz");
}

TEST(HttpClient, refuses_options_that_cannot_work) {
  const auto message = [](const HttpOptions& options) {
    const auto client = HttpClient::create(options);
    return client.ok() ? "" : client.error().message;
  };
  HttpOptions options;
  options.tls.ca_file = "/nonexistent/ca.pem";
  EXPECT_THAT(message(options), StartsWith("TLS CA file: /nonexistent/ca.pem: "));
  EXPECT_EQ(HttpClient::create(options).error().code, ErrorCode::kNotFound);
  options.tls = {};
  options.tls.cert_file = FLOPSIGHT_SOURCE_DIR "/src/LAYERS";
  EXPECT_THAT(message(options), HasSubstr("src/LAYERS: expected a PEM file"));
  options.tls = {};
  options.auth.bearer_token = "secret\n";
  EXPECT_EQ(message(options), "the bearer token has a line break or control character");
  options.auth.bearer_token = "token";
  options.auth.basic = {"user", "password"};
  EXPECT_THAT(message(options), StartsWith("both a bearer token and a user"));
}

// ---- Failures

TEST(HttpClient, retries_a_503_until_it_succeeds) {
  std::atomic<int> calls{0};
  TestHttpServer server([&](const TestRequest&) {
    return ++calls < 3 ? status("503 Service Unavailable", "later") : text("now");
  });
  const auto response = make_client().send(post(server.url(), "q"));
  ASSERT_TRUE(response.ok()) << response.error().message;
  EXPECT_EQ(response->body, "now");
  EXPECT_EQ(response->attempts, 3);
  EXPECT_EQ(server.requests()[2].body, "q");
}

TEST(HttpClient, says_in_one_line_why_it_gave_up) {
  TestHttpServer server([](const TestRequest&) {
    return status("503 Service Unavailable", "<html>\r\n\x1b[31m upstream\tgone</html>");
  });
  const auto response = make_client().send(get(server.url("/x")));
  ASSERT_FALSE(response.ok());
  EXPECT_EQ(response.error().code, ErrorCode::kUnavailable);
  EXPECT_EQ(response.error().message,
            server.url("/x") +
                ": HTTP 503 Service Unavailable: <html> [31m upstream gone</html> (3 attempts)");
}

TEST(HttpClient, waits_as_long_as_retry_after_asks) {
  std::atomic<int> calls{0};
  TestHttpServer server([&](const TestRequest&) {
    TestReply busy = status("429 Too Many Requests");
    busy.headers = {{"Retry-After", "1"}};
    return ++calls == 1 ? busy : text("ok");
  });
  const auto start = std::chrono::steady_clock::now();
  ASSERT_TRUE(make_client().send(get(server.url())).ok());
  EXPECT_GE(std::chrono::steady_clock::now() - start, milliseconds(990));
}

TEST(HttpClient, does_not_retry_a_404) {
  TestHttpServer server(
      [](const TestRequest&) { return status("404 Not Found", std::string(5000, 'x')); });
  const auto response = make_client().send(get(server.url("/y")));
  ASSERT_FALSE(response.ok());
  EXPECT_EQ(response.error().code, ErrorCode::kInvalid);
  EXPECT_EQ(response.error().message, server.url("/y") + ": HTTP 404 Not Found: " +
                                          std::string(200, 'x') + "... (1 attempt)");
  EXPECT_EQ(server.requests().size(), 1U);
}

TEST(HttpClient, hands_over_any_status_where_asked_to) {
  TestHttpServer server([](const TestRequest& request) {
    if (request.target == "/long") return status("500 Oops", std::string(1 << 20, 'x'));
    return status("422 Unprocessable Entity", "{\"status\":\"error\"}");
  });
  HttpRequest request = get(server.url());
  request.any_status = true;
  HttpClient client = make_client();
  const auto response = client.send(request);
  ASSERT_TRUE(response.ok()) << response.error().message;
  EXPECT_EQ(response->status, 422);
  EXPECT_EQ(response->status_line, "422 Unprocessable Entity");
  EXPECT_EQ(response->body, "{\"status\":\"error\"}");
  request.url = server.url("/long");
  const auto cut = client.send(request);
  ASSERT_TRUE(cut.ok()) << cut.error().message;
  EXPECT_EQ(cut->attempts, 3);
  EXPECT_EQ(cut->body.size(), 64U * 1024);
}

TEST(HttpClient, names_a_refused_connection) {
  std::string url;
  {
    url = TestHttpServer([](const TestRequest&) { return TestReply{}; }).url("/x");
  }
  const auto response = make_client().send(get(url));
  ASSERT_FALSE(response.ok());
  EXPECT_EQ(response.error().code, ErrorCode::kUnavailable);
  EXPECT_EQ(response.error().message, url + ": connection refused (3 attempts)");
}

TEST(HttpClient, names_a_host_that_does_not_exist) {
  // A label of more than 63 bytes: no resolver is asked.
  const std::string url = "http://" + std::string(64, 'a') + ".invalid/x";
  const auto response = make_client().send(get(url));
  ASSERT_FALSE(response.ok());
  EXPECT_EQ(response.error().code, ErrorCode::kUnavailable);
  EXPECT_THAT(response.error().message, StartsWith(url + ": unknown host"));
}

TEST(HttpClient, retries_a_dropped_connection) {
  std::atomic<int> calls{0};
  TestHttpServer server([&](const TestRequest& request) {
    TestReply reply = text("whole body");
    if (request.target == "/early") reply.drop_after = 0;
    if (request.target == "/middle" || ++calls == 1) reply.drop_after = 45;
    return reply;
  });
  HttpClient client = make_client();
  const auto mended = client.send(get(server.url("/x")));
  ASSERT_TRUE(mended.ok()) << mended.error().message;
  EXPECT_EQ(mended->body, "whole body");
  EXPECT_EQ(mended->attempts, 2);
  EXPECT_EQ(client.send(get(server.url("/early"))).error().message,
            server.url("/early") + ": connection closed before an answer (3 attempts)");
  EXPECT_EQ(client.send(get(server.url("/middle"))).error().message,
            server.url("/middle") + ": connection closed in mid-answer (3 attempts)");
}

TEST(HttpClient, ends_a_body_that_never_ends) {
  TestHttpServer server([](const TestRequest&) {
    TestReply reply = text(std::string(1000, 'x'));
    reply.hold_after = 500;
    return reply;
  });
  HttpOptions options = quick();
  options.total_timeout = milliseconds(150);
  options.retries = 1;
  const auto response = make_client(options).send(get(server.url("/x")));
  ASSERT_FALSE(response.ok());
  EXPECT_EQ(response.error().code, ErrorCode::kUnavailable);
  EXPECT_EQ(response.error().message, server.url("/x") + ": time-out after 150 ms (2 attempts)");
}

TEST(HttpClient, names_a_server_that_takes_the_connection_and_says_nothing) {
  // A plain server waits for the end of a head that the TLS greeting never has.
  TestHttpServer server([](const TestRequest&) { return TestReply{}; });
  HttpOptions options = quick();
  options.connect_timeout = milliseconds(150);
  options.retries = 0;
  const std::string url = "https://127.0.0.1:" + std::to_string(server.port()) + "/x";
  const auto response = make_client(options).send(get(url));
  ASSERT_FALSE(response.ok());
  EXPECT_EQ(response.error().message, url + ": time-out after 150 ms while connecting (1 attempt)");
}

TEST(HttpClient, refuses_what_is_no_http_url) {
  HttpClient client = make_client();
  for (const char* url : {"", "prom:9090", "/x", "file:///etc/passwd", "ftp://host/", "http://",
                          "http://host:99999/", "http://a b/"}) {
    const auto response = client.send(get(url));
    ASSERT_FALSE(response.ok()) << url;
    EXPECT_EQ(response.error().code, ErrorCode::kInvalid) << url;
    EXPECT_THAT(response.error().message, HasSubstr("URL")) << url;
  }
  const auto secret = client.send(get("htp://user:secret@host/"));
  EXPECT_EQ(secret.error().message,
            "htp://host/: expected a URL that starts with http:// or https://");
}

// ---- Limits

TEST(HttpClient, enforces_the_body_limit_while_receiving) {
  TestHttpServer server([](const TestRequest& request) {
    return text(std::string(request.target == "/at" ? 1000 : 100'000'000, 'x'));
  });
  HttpOptions options = quick();
  options.body_bytes_max = 1000;
  HttpClient client = make_client(options);
  EXPECT_TRUE(client.send(get(server.url("/at"))).ok());
  const auto response = client.send(get(server.url("/over")));
  ASSERT_FALSE(response.ok());
  EXPECT_EQ(response.error().code, ErrorCode::kLimit);
  EXPECT_EQ(response.error().message,
            server.url("/over") + ": the body is larger than 1000 bytes (1 attempt)");
}

std::string output_of(const char* command) {
  std::string bytes;
  std::FILE* pipe = popen(command, "r");
  FLOPSIGHT_CHECK(pipe != nullptr);
  char buffer[4096];
  while (const std::size_t got = std::fread(buffer, 1, sizeof buffer, pipe))
    bytes.append(buffer, got);
  FLOPSIGHT_CHECK(pclose(pipe) == 0);
  return bytes;
}

TEST(HttpClient, enforces_the_body_limit_after_decompression) {
  const std::string bomb = output_of("head -c 50000000 /dev/zero | gzip -9");
  ASSERT_LT(bomb.size(), 100'000U);
  TestHttpServer server([&](const TestRequest&) { return encoded("gzip", bomb); });
  HttpOptions options = quick();
  options.body_bytes_max = 1'000'000;
  const auto response = make_client(options).send(get(server.url()));
  ASSERT_FALSE(response.ok());
  EXPECT_EQ(response.error().code, ErrorCode::kLimit);
}

TEST(HttpClient, names_broken_compression) {
  TestHttpServer server([](const TestRequest&) { return encoded("gzip", "no gzip at all"); });
  const auto response = make_client().send(get(server.url()));
  ASSERT_FALSE(response.ok());
  EXPECT_EQ(response.error().code, ErrorCode::kInvalid);
  EXPECT_THAT(response.error().message, HasSubstr("broken compression of the body"));
}

// ---- Many at once

TEST(HttpClient, answers_every_request_once_with_no_more_in_flight_than_allowed) {
  std::mutex mutex;
  std::condition_variable changed;
  int in_flight = 0;
  int in_flight_max = 0;
  int begun = 0;
  TestHttpServer server([&](const TestRequest& request) {
    std::unique_lock lock(mutex);
    ++begun;
    in_flight_max = std::max(in_flight_max, ++in_flight);
    changed.notify_all();
    // Nobody leaves before four have come: the client must have had four in flight.
    changed.wait(lock, [&] { return begun >= 4; });
    --in_flight;
    return text(request.target);
  });
  HttpOptions options = quick();
  options.parallel_max = 4;
  HttpClient client = make_client(options);
  std::vector<HttpRequest> requests;
  for (int i = 0; i < 40; ++i) requests.push_back(get(server.url("/" + std::to_string(i))));
  std::vector<int> answers(requests.size(), 0);
  client.send_all(requests, [&](std::size_t index, base::Result<HttpResponse> response) {
    ++answers[index];
    ASSERT_TRUE(response.ok()) << response.error().message;
    EXPECT_EQ(response->body, "/" + std::to_string(index));
  });
  EXPECT_THAT(answers, testing::Each(1));
  EXPECT_EQ(in_flight_max, 4);
}

TEST(HttpClient, does_not_let_one_dead_server_hold_up_the_others) {
  TestHttpServer server([](const TestRequest& request) {
    TestReply reply = text("ok");
    if (request.target == "/dead") reply.hold_after = 0;
    return reply;
  });
  HttpOptions options = quick();
  options.total_timeout = milliseconds(1500);
  options.retries = 0;
  options.parallel_max = 2;
  const std::vector<HttpRequest> requests = {get(server.url("/dead")), get("nonsense"),
                                             get(server.url("/a")), get(server.url("/b"))};
  std::vector<std::size_t> order;
  make_client(options).send_all(requests,
                                [&](std::size_t index, base::Result<HttpResponse> response) {
                                  order.push_back(index);
                                  EXPECT_EQ(response.ok(), index >= 2);
                                });
  EXPECT_THAT(order, ElementsAre(1, 2, 3, 0));
}

TEST(HttpClient, reuses_a_connection_and_survives_a_move) {
  TestHttpServer server([](const TestRequest&) { return text("ok"); });
  HttpClient first = make_client();
  ASSERT_TRUE(first.send(get(server.url())).ok());
  HttpClient second = std::move(first);
  ASSERT_TRUE(second.send(get(server.url())).ok());
  second.send_all({}, [](std::size_t, base::Result<HttpResponse>) { FAIL(); });
  EXPECT_EQ(server.requests().size(), 2U);
}

}  // namespace
}  // namespace flopsight::net
