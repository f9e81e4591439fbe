// HTTPS against libcurl and the openssl command, with certificates made for the test.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <future>
#include <string>
#include <utility>

#include "net/http_server.h"
#include "net/test_certificates.h"
#include "net/test_echo_server.h"
#include "net/test_raw_client.h"
#include "net/test_requests.h"

namespace flopsight::net {
namespace {

using testing::HasSubstr;
using testing::Not;

class HttpServerTls : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    setenv("no_proxy", "127.0.0.1,localhost", 1);
    certificates_ = new TestCertificates;
  }
  static void TearDownTestSuite() { delete certificates_; }

  static std::string path(const std::string& file) { return certificates_->path(file); }
  static ServerTls tls_of(const std::string& name) {
    ServerTls tls;
    tls.cert_file = path(name + ".pem");
    tls.key_file = path(name + ".key");
    return tls;
  }
  static ServerOptions options() {
    ServerOptions options;
    options.tls = tls_of("server");
    return options;
  }
  static std::string error_of(const ServerTls& tls) {
    ServerOptions with;
    with.tls = tls;
    const auto server = HttpServer::start(with, nullptr, echo);
    if (server.ok()) return "no error";
    EXPECT_EQ(server.error().code, base::ErrorCode::kInvalid);
    EXPECT_THAT(server.error().message, Not(HasSubstr("\n")));
    return server.error().message;
  }

  // Who trusts the test's CA; with the certificate of `identity`, if any.
  static base::Result<HttpResponse> ask(const HttpServer& server, const std::string& identity = {},
                                        const std::string& body = "body") {
    HttpOptions options = quick();
    options.retries = 0;
    options.tls.ca_file = path("ca.pem");
    options.tls.server_name = "metrics.example";
    if (!identity.empty()) {
      options.tls.cert_file = path(identity + ".pem");
      options.tls.key_file = path(identity + ".key");
    }
    HttpClient client = make_client(options);
    return client.send(post("https://127.0.0.1:" + std::to_string(server.port()) + "/path", body));
  }

  // What `openssl s_client` prints of one request.
  static std::string s_client(const HttpServer& server, const std::string& extra) {
    const std::string command =
        "printf 'GET /x HTTP/1.1\\r\\nHost: a\\r\\nConnection: close\\r\\n\\r\\n' | " +
        ("openssl s_client -ign_eof -connect 127.0.0.1:" + std::to_string(server.port())) + " " +
        extra + " 2>&1";
    FILE* const pipe = popen(command.c_str(), "r");
    FLOPSIGHT_CHECK(pipe != nullptr);
    std::string out;
    char buffer[4096];
    while (std::fgets(buffer, sizeof buffer, pipe) != nullptr) out += buffer;
    pclose(pipe);
    return out;
  }

  static TestCertificates* certificates_;
};
TestCertificates* HttpServerTls::certificates_ = nullptr;

TEST_F(HttpServerTls, answers_over_tls) {
  const auto server = start_server(options());
  const auto response = ask(*server);
  ASSERT_TRUE(response.ok()) << response.error().message;
  EXPECT_EQ(response->body, "POST /path body");
  const std::string large(3'000'000, 'x');
  const auto big = ask(*server, {}, large);
  ASSERT_TRUE(big.ok()) << big.error().message;
  EXPECT_EQ(big->body, "POST /path " + large);
}

TEST_F(HttpServerTls, speaks_1_2_and_1_3_and_nothing_older) {
  const auto server = start_server(options());
  EXPECT_THAT(s_client(*server, "-tls1_2"), HasSubstr("GET /x"));
  EXPECT_THAT(s_client(*server, "-tls1_3"), HasSubstr("GET /x"));
  EXPECT_THAT(s_client(*server, "-tls1_1 -cipher ALL:@SECLEVEL=0"), Not(HasSubstr("GET /x")));
  ServerOptions strict = options();
  strict.tls->min_version = "TLS13";
  const auto modern = start_server(strict);
  EXPECT_THAT(s_client(*modern, "-tls1_2"), Not(HasSubstr("GET /x")));
  EXPECT_THAT(s_client(*modern, "-tls1_3"), HasSubstr("GET /x"));
  EXPECT_EQ(modern->counters().tls_failures_total, 1u);
}

TEST_F(HttpServerTls, ends_a_connection_by_the_book) {
  const auto server = start_server(options());
  EXPECT_THAT(s_client(*server, "-tls1_3"), Not(HasSubstr("unexpected eof")));
}

Handler who() {
  return [](const ServerRequest& request) {
    ServerResponse response;
    response.body = "'" + request.client_certificate_name + "'";
    return response;
  };
}

TEST_F(HttpServerTls, a_required_client_certificate_is_required_and_named) {
  ServerOptions with = options();
  with.tls->client_ca_file = path("ca.pem");
  with.tls->client_certificate_required = true;
  const auto server = start_server(with, who());
  const auto known = ask(*server, "client");
  ASSERT_TRUE(known.ok()) << known.error().message;
  EXPECT_EQ(known->body, "'client'");
  EXPECT_FALSE(ask(*server).ok());
  EXPECT_FALSE(ask(*server, "stranger").ok());
  EXPECT_EQ(server->counters().requests_total, 1u);
}

TEST_F(HttpServerTls, an_optional_client_certificate_is_checked_when_there_is_one) {
  ServerOptions with = options();
  with.tls->client_ca_file = path("ca.pem");
  const auto server = start_server(with, who());
  EXPECT_EQ(ask(*server, "client")->body, "'client'");
  EXPECT_EQ(ask(*server)->body, "''");
  EXPECT_FALSE(ask(*server, "stranger").ok());
}

TEST_F(HttpServerTls, a_session_is_taken_up_again_where_clients_have_certificates) {
  ServerOptions with = options();
  with.tls->client_ca_file = path("ca.pem");
  const auto server = start_server(with);
  const std::string session = path("session");
  const std::string first = s_client(*server, "-tls1_2 -sess_out " + session);
  EXPECT_THAT(first, HasSubstr("GET /x"));
  EXPECT_THAT(s_client(*server, "-tls1_2 -sess_in " + session),
              testing::AllOf(HasSubstr("Reused, "), HasSubstr("GET /x")));
}

TEST_F(HttpServerTls, nobody_is_asked_for_a_certificate_without_a_client_ca) {
  const auto server = start_server(options(), who());
  EXPECT_EQ(ask(*server, "client")->body, "''");
}

TEST_F(HttpServerTls, reloads_certificates_for_new_connections) {
  const auto server = start_server(options());
  EXPECT_THAT(s_client(*server, ""), HasSubstr("CN = server"));
  ASSERT_TRUE(server->reload_tls(tls_of("renewed")).ok());
  EXPECT_THAT(s_client(*server, ""), HasSubstr("CN = renewed"));

  ServerTls broken = tls_of("server");
  broken.key_file = path("absent.key");
  const base::Status failed = server->reload_tls(broken);
  ASSERT_FALSE(failed.ok());
  EXPECT_THAT(failed.error().message, HasSubstr("absent.key"));
  EXPECT_THAT(s_client(*server, ""), HasSubstr("CN = renewed"));
}

TEST_F(HttpServerTls, a_server_without_tls_has_nothing_to_reload) {
  EXPECT_FALSE(start_server()->reload_tls(tls_of("server")).ok());
}

TEST_F(HttpServerTls, files_that_cannot_work_are_named) {
  ServerTls tls = tls_of("absent");
  EXPECT_THAT(error_of(tls), HasSubstr("absent.pem"));
  tls = tls_of("server");
  tls.cert_file = path("garbage.pem");
  EXPECT_THAT(error_of(tls), HasSubstr("garbage.pem: no usable PEM certificate"));
  tls = tls_of("server");
  tls.key_file = path("garbage.pem");
  EXPECT_THAT(error_of(tls), HasSubstr("garbage.pem: no usable PEM key"));
  tls.key_file = path("locked.key");
  EXPECT_THAT(error_of(tls), HasSubstr("locked.key: no usable PEM key without a passphrase"));
  tls.key_file = path("client.key");
  EXPECT_EQ(error_of(tls),
            path("client.key") + ": is not the key of the certificate in " + path("server.pem"));
  tls = tls_of("server");
  tls.client_ca_file = path("garbage.pem");
  EXPECT_THAT(error_of(tls), HasSubstr("garbage.pem: no usable PEM certificate of a client CA"));
  tls.client_ca_file = path("absent.pem");
  EXPECT_THAT(error_of(tls), HasSubstr("absent.pem"));
  tls.client_ca_file = "";
  tls.client_certificate_required = true;
  EXPECT_EQ(error_of(tls), "required client certificates need a client CA file");
  tls = tls_of("server");
  tls.min_version = "TLS10";
  EXPECT_EQ(error_of(tls), "TLS version 'TLS10': expected TLS12 or TLS13");
  tls = tls_of("server");
  tls.cert_file = "";
  EXPECT_EQ(error_of(tls), "TLS needs a certificate file");
}

TEST_F(HttpServerTls, plain_http_to_a_tls_port_is_told_so) {
  const auto server = start_server(options());
  RawClient client(server->port());
  const RawReply reply = client.ask(request_text("GET /"));
  EXPECT_EQ(reply.status, 400);
  EXPECT_EQ(reply.body, "{\"error\":\"400 Bad Request: this port speaks HTTPS\"}\n");
  EXPECT_TRUE(client.closed());
  EXPECT_EQ(server->counters().tls_failures_total, 1u);
  EXPECT_EQ(server->counters().requests_total, 0u);
}

TEST_F(HttpServerTls, what_is_neither_is_closed) {
  const auto server = start_server(options());
  RawClient client(server->port());
  client.say(std::string(1'000, '\xff'));
  EXPECT_THAT(client.hear_all(), Not(HasSubstr("HTTP")));
  EXPECT_EQ(server->counters().tls_failures_total, 1u);
}

TEST_F(HttpServerTls, a_handshake_that_stalls_meets_its_deadline) {
  ServerOptions with = options();
  with.head_timeout = std::chrono::milliseconds(60);
  const auto server = start_server(with);
  RawClient client(server->port());
  client.say("\x16\x03\x01");
  EXPECT_TRUE(client.closed());
  EXPECT_EQ(server->counters().timeouts_total, 1u);
}

TEST_F(HttpServerTls, stop_does_not_wait_for_handshakes) {
  ServerOptions with = options();
  with.stop_timeout = std::chrono::hours(1);
  const auto server = start_server(with);
  RawClient client(server->port());
  client.say("\x16\x03\x01");
  while (server->counters().connections_open == 0) std::this_thread::yield();
  server->stop();
  EXPECT_TRUE(client.closed());
}

TEST_F(HttpServerTls, a_full_server_closes_without_a_handshake) {
  ServerOptions with = options();
  with.connections_max = 1;
  const auto server = start_server(with);
  RawClient holder(server->port());
  while (server->counters().connections_open == 0) std::this_thread::yield();
  RawClient refused(server->port());
  EXPECT_TRUE(refused.closed());
  EXPECT_EQ(server->counters().connections_refused_total, 1u);
}

}  // namespace
}  // namespace flopsight::net
