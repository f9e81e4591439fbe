// What the server does for clients that behave, and how it starts.
#include "net/http_server.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "net/test_echo_server.h"
#include "net/test_raw_client.h"
#include "net/test_requests.h"

namespace flopsight::net {
namespace {

using testing::HasSubstr;

class HttpServerTest : public testing::Test {
 protected:
  static void SetUpTestSuite() { setenv("no_proxy", "127.0.0.1,localhost,::1", 1); }
};

TEST_F(HttpServerTest, answers_a_get_with_decoded_path_and_query) {
  const auto server = start_server();
  RawClient client(server->port());
  const RawReply reply = client.ask(request_text("GET /a%20b/c?q=up%7Bx%3D1%7D&empty=&t=1+2"));
  EXPECT_EQ(reply.status, 200);
  EXPECT_EQ(reply.body, "GET /a b/c q=up{x=1} empty= t=1 2");
  EXPECT_TRUE(reply.has("content-type: text/plain; charset=utf-8"));
  EXPECT_TRUE(reply.has("\r\ndate: "));
  EXPECT_FALSE(reply.has("connection: close"));
}

TEST_F(HttpServerTest, answers_libcurl_with_a_body) {
  const auto server = start_server();
  const std::string url = "http://127.0.0.1:" + std::to_string(server->port());
  HttpClient client = make_client();
  const std::string body(3'000'000, 'x');
  const auto response = client.send(post(url + "/write", body));
  ASSERT_TRUE(response.ok()) << response.error().message;
  EXPECT_EQ(response->body, "POST /write " + body);
  EXPECT_EQ(client.send(get(url + "/next"))->body, "GET /next");
  EXPECT_EQ(server->counters().connections_total, 1u);
}

TEST_F(HttpServerTest, tells_the_handler_headers_in_lower_case_and_the_address) {
  const auto server = start_server({}, [](const ServerRequest& request) {
    ServerResponse response;
    response.body = std::string(request.header("x-scope-orgid")) + "|" + request.remote_address +
                    "|" + std::string(request.header("absent")) + "|" +
                    std::string(request.query_value("a").value_or("none")) + "|" +
                    std::string(request.query_value("b").value_or("none"));
    return response;
  });
  RawClient client(server->port());
  const RawReply reply = client.ask(
      request_text("GET /?a=1&a=2", "X-Scope-OrgID:  team  \r\nx-scope-orgid: other\r\n"));
  EXPECT_EQ(reply.body, "team|127.0.0.1||1|none");
}

TEST_F(HttpServerTest, sends_headers_and_status_of_the_handler) {
  const auto server = start_server({}, [](const ServerRequest&) {
    ServerResponse response;
    response.status = 405;
    response.content_type = "application/json";
    response.headers = {{"Allow", "GET, HEAD"}};
    response.body = "{}";
    return response;
  });
  RawClient client(server->port());
  const RawReply reply = client.ask(request_text("DELETE /"));
  EXPECT_THAT(reply.head, HasSubstr("http/1.1 405 method not allowed\r\n"));
  EXPECT_TRUE(reply.has("allow: GET, HEAD\r\n"));
  EXPECT_TRUE(reply.has("content-type: application/json\r\n"));
  EXPECT_EQ(reply.body, "{}");
}

TEST_F(HttpServerTest, a_header_of_a_handler_cannot_start_another_header_or_response) {
  const auto server = start_server({}, [](const ServerRequest& request) {
    ServerResponse response;
    response.content_type = std::string(*request.query_value("x"));
    response.headers = {{"X-Echo", std::string(*request.query_value("x"))},
                        {std::string(*request.query_value("x")), "value"},
                        {"Content-Length", "5"},
                        {"Transfer-Encoding", "chunked"}};
    response.body = "body";
    return response;
  });
  RawClient client(server->port());
  const RawReply reply =
      client.ask(request_text("GET /?x=a%0d%0aEvil:%201%0d%0a%0d%0aHTTP/1.1%20200"));
  EXPECT_EQ(reply.status, 200);
  EXPECT_EQ(reply.body, "body");
  EXPECT_FALSE(reply.has("\r\nevil"));
  EXPECT_TRUE(reply.has("x-echo: a  evil: 1    http/1.1 200\r\n"));
  EXPECT_TRUE(reply.has("content-length: 4\r\n"));
  EXPECT_FALSE(reply.has("transfer-encoding"));
  EXPECT_EQ(client.ask(request_text("GET /?x=2")).body, "body");
}

TEST_F(HttpServerTest, head_has_the_length_and_no_body) {
  const auto server = start_server();
  RawClient client(server->port());
  client.say(request_text("HEAD /abc"));
  const RawReply reply = client.hear(true);
  EXPECT_EQ(reply.status, 200);
  EXPECT_TRUE(reply.has("content-length: 9\r\n"));
  EXPECT_EQ(client.ask(request_text("GET /next")).body, "GET /next");  // no stray bytes between
}

TEST_F(HttpServerTest, no_content_has_neither_length_nor_body) {
  const auto server = start_server({}, [](const ServerRequest&) {
    ServerResponse response;
    response.status = 204;
    response.body = "must not be sent";
    return response;
  });
  RawClient client(server->port());
  const RawReply reply = client.ask(request_text("GET /"));
  EXPECT_EQ(reply.status, 204);
  EXPECT_FALSE(reply.has("content-length"));
  EXPECT_EQ(client.ask(request_text("GET /")).status, 204);
}

TEST_F(HttpServerTest, keeps_a_connection_and_answers_pipelined_requests_in_order) {
  const auto server = start_server();
  RawClient client(server->port());
  std::string all;
  for (int i = 0; i < 100; ++i) {
    all += i % 2 == 0 ? request_text("GET /" + std::to_string(i))
                      : post_text("/" + std::to_string(i), "body");
  }
  client.say(all);
  for (int i = 0; i < 100; ++i) {
    const std::string path = "/" + std::to_string(i);
    EXPECT_EQ(client.hear().body, i % 2 == 0 ? "GET " + path : "POST " + path + " body");
  }
  EXPECT_EQ(server->counters().connections_total, 1u);
  EXPECT_EQ(server->counters().requests_total, 100u);
}

TEST_F(HttpServerTest, closes_when_the_client_asks_for_it) {
  const auto server = start_server();
  RawClient client(server->port());
  const RawReply reply = client.ask(request_text("GET /", "Connection: close\r\n"));
  EXPECT_TRUE(reply.has("connection: close"));
  EXPECT_TRUE(client.closed());
}

TEST_F(HttpServerTest, http_1_0_closes_unless_asked_to_stay) {
  const auto server = start_server();
  RawClient client(server->port());
  const RawReply staying = client.ask("GET /a HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
  EXPECT_EQ(staying.body, "GET /a");
  EXPECT_TRUE(staying.has("connection: keep-alive"));
  EXPECT_EQ(client.ask("GET /b HTTP/1.0\r\n\r\n").body, "GET /b");
  EXPECT_TRUE(client.closed());
}

TEST_F(HttpServerTest, a_client_that_has_said_everything_still_gets_its_answer) {
  const auto server = start_server();
  RawClient client(server->port());
  client.say(request_text("GET /abc"));
  client.end_of_saying();
  EXPECT_EQ(client.hear().body, "GET /abc");
  EXPECT_TRUE(client.closed());
}

TEST_F(HttpServerTest, takes_a_chunked_body_with_extensions_and_trailers) {
  const auto server = start_server();
  RawClient client(server->port());
  const RawReply reply =
      client.ask(request_text("POST /", "Transfer-Encoding: chunked\r\n",
                              "3;ext=1\r\nabc\r\n4\r\ndefg\r\n0\r\nX-Trailer: 1\r\n\r\n"));
  EXPECT_EQ(reply.body, "POST / abcdefg");
  EXPECT_EQ(client.ask(request_text("GET /next")).body, "GET /next");
}

TEST_F(HttpServerTest, takes_a_request_a_byte_at_a_time) {
  const auto server = start_server();
  RawClient client(server->port());
  for (const char c :
       request_text("POST /x", "Transfer-Encoding: chunked\r\n", "3\r\nabc\r\n0\r\n\r\n")) {
    client.say(std::string_view(&c, 1));
  }
  EXPECT_EQ(client.hear().body, "POST /x abc");
  for (const char c : request_text("POST /x", "Transfer-Encoding: chunked\r\n", "0\r\n\r\n")) {
    client.say(std::string_view(&c, 1));
  }
  EXPECT_EQ(client.hear().body, "POST /x");
}

TEST_F(HttpServerTest, says_100_continue_before_a_body_that_waits_for_it) {
  const auto server = start_server();
  RawClient client(server->port());
  const RawReply waiting =
      client.ask(request_text("POST /", "Expect: 100-continue\r\nContent-Length: 3\r\n"));
  EXPECT_EQ(waiting.status, 100);
  EXPECT_EQ(client.ask("abc").body, "POST / abc");
}

TEST_F(HttpServerTest, refuses_another_expectation) {
  const auto server = start_server();
  RawClient client(server->port());
  EXPECT_EQ(client.ask(request_text("POST /", "Expect: magic\r\nContent-Length: 3\r\n")).status,
            417);
}

TEST_F(HttpServerTest, answers_from_the_head_before_the_body_is_there) {
  const auto server =
      start_server({}, echo, [](const ServerRequest& head) -> std::optional<ServerResponse> {
        if (head.path != "/secret") return std::nullopt;
        ServerResponse response;
        response.status = 401;
        response.headers = {{"WWW-Authenticate", "Basic"}};
        return response;
      });
  RawClient small(server->port());
  const RawReply first = small.ask(request_text("POST /secret", "Content-Length: 5\r\n"));
  EXPECT_EQ(first.status, 401);
  EXPECT_TRUE(first.has("www-authenticate: basic"));
  EXPECT_FALSE(first.has("connection: close"));
  EXPECT_EQ(small.ask("abcde" + request_text("GET /open")).body,
            "GET /open");  // its body was skipped

  RawClient large(server->port());
  const RawReply second = large.ask(request_text("POST /secret", "Content-Length: 500000\r\n"));
  EXPECT_EQ(second.status, 401);
  EXPECT_TRUE(second.has("connection: close"));

  RawClient expecting(server->port());
  const RawReply third =
      expecting.ask(request_text("POST /secret", "Expect: 100-continue\r\nContent-Length: 5\r\n"));
  EXPECT_EQ(third.status, 401);
  EXPECT_TRUE(expecting.closed());
}

TEST_F(HttpServerTest, a_client_that_sends_its_whole_body_first_can_read_the_early_answer) {
  const auto server =
      start_server({}, echo, [](const ServerRequest&) -> std::optional<ServerResponse> {
        ServerResponse response;
        response.status = 404;
        return response;
      });
  RawClient client(server->port());
  EXPECT_TRUE(client.say(post_text("/", std::string(900'000, 'x'))));
  EXPECT_EQ(client.hear().status, 404);
}

TEST_F(HttpServerTest, what_a_handler_throws_is_a_500_without_details) {
  const auto server = start_server(
      {},
      [](const ServerRequest&) -> ServerResponse {
        throw std::runtime_error("secret of the server");
      },
      [](const ServerRequest& head) -> std::optional<ServerResponse> {
        if (head.path == "/head") throw 42;
        return std::nullopt;
      });
  RawClient client(server->port());
  for (const std::string path : {"/", "/head", "/"}) {
    const RawReply reply = client.ask(request_text("GET " + path));
    EXPECT_EQ(reply.status, 500);
    EXPECT_EQ(reply.body, "{\"error\":\"500 Internal Server Error\"}\n");
    EXPECT_TRUE(reply.has("content-type: application/json"));
  }
}

TEST_F(HttpServerTest, answers_many_clients_at_once) {
  const auto server = start_server();
  std::vector<std::thread> threads;
  for (int t = 0; t < 8; ++t) {
    threads.emplace_back([&, t] {
      RawClient client(server->port());
      for (int i = 0; i < 200; ++i) {
        const std::string body = std::to_string(t * 1000 + i);
        EXPECT_EQ(client.ask(post_text("/", body)).body, "POST / " + body);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(server->counters().requests_total, 1600u);
}

TEST_F(HttpServerTest, a_port_that_is_taken_is_named) {
  const auto first = start_server();
  ServerOptions options;
  options.port = first->port();
  const auto second = HttpServer::start(options, nullptr, echo);
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.error().code, base::ErrorCode::kIo);
  EXPECT_EQ(second.error().message, "cannot listen on 127.0.0.1:" + std::to_string(first->port()) +
                                        ": address already in use");
}

TEST_F(HttpServerTest, listens_on_ipv6) {
  for (const std::string address : {"::1", "[::1]"}) {
    ServerOptions options;
    options.address = address;
    const auto server = start_server(options, [](const ServerRequest& request) {
      ServerResponse response;
      response.body = request.remote_address;
      return response;
    });
    HttpClient client = make_client();
    const auto response = client.send(get("http://[::1]:" + std::to_string(server->port()) + "/"));
    ASSERT_TRUE(response.ok()) << response.error().message;
    EXPECT_EQ(response->body, "::1");
  }
}

TEST_F(HttpServerTest, a_v4_client_of_a_v6_socket_has_its_v4_address) {
  ServerOptions options;
  options.address = "::";
  const auto server = start_server(options, [](const ServerRequest& request) {
    ServerResponse response;
    response.body = request.remote_address;
    return response;
  });
  EXPECT_EQ(RawClient(server->port()).ask(request_text("GET /")).body, "127.0.0.1");
}

TEST_F(HttpServerTest, an_address_that_is_none_is_an_error) {
  for (const std::string address : {"", "localhost:80", "300.1.1.1", "a\nb"}) {
    ServerOptions options;
    options.address = address;
    const auto server = HttpServer::start(options, nullptr, echo);
    ASSERT_FALSE(server.ok()) << address;
    EXPECT_EQ(server.error().code, base::ErrorCode::kInvalid);
    EXPECT_THAT(server.error().message, HasSubstr("expected an IPv4 or IPv6 address"));
  }
  ServerOptions foreign;
  foreign.address = "192.0.2.1";  // of nobody
  EXPECT_EQ(HttpServer::start(foreign, nullptr, echo).error().code, base::ErrorCode::kInvalid);
}

}  // namespace
}  // namespace flopsight::net
