// TLS against `openssl s_server`, with a CA and certificates made for the test by the openssl
// command.
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "net/http_client.h"

namespace flopsight::net {
namespace {

using base::ErrorCode;
using testing::HasSubstr;

// A temporary folder with a CA, a server certificate for the name metrics.example only, and a
// client's.
class Certificates {
 public:
  Certificates() {
    char name[] = "/tmp/flopsight-tls-XXXXXX";
    FLOPSIGHT_CHECK(mkdtemp(name) != nullptr);
    folder_ = name;
    const std::string request = "openssl req -newkey rsa:2048 -nodes -batch ";
    run(request + "-x509 -days 2 -subj '/CN=Flopsight test CA' -keyout ca.key -out ca.pem");
    for (const std::string who : {"server", "client"}) {
      run(request + "-subj '/CN=" + who + "' -keyout " + who + ".key -out " + who + ".csr");
      run("echo 'subjectAltName=DNS:metrics.example' > " + who + ".ext");
      run("openssl x509 -req -days 2 -in " + who +
          ".csr -CA ca.pem -CAkey ca.key -CAcreateserial " + "-extfile " + who + ".ext -out " +
          who + ".pem");
    }
  }
  ~Certificates() { std::filesystem::remove_all(folder_); }
  Certificates(const Certificates&) = delete;
  Certificates& operator=(const Certificates&) = delete;

  std::string path(const std::string& file) const { return folder_ + "/" + file; }

 private:
  void run(const std::string& command) const {
    const std::string line = "cd " + folder_ + " && (" + command + ") >>log 2>&1";
    FLOPSIGHT_CHECK(std::system(line.c_str()) == 0);
  }
  std::string folder_;
};

// `openssl s_server -www` on a loopback port of the kernel's choice; it answers any GET with a
// status page.
class OpensslServer {
 public:
  OpensslServer(const Certificates& certificates, std::vector<std::string> extra) {
    std::vector<std::string> words = {"openssl",
                                      "s_server",
                                      "-www",
                                      "-accept",
                                      "127.0.0.1:0",
                                      "-cert",
                                      certificates.path("server.pem"),
                                      "-key",
                                      certificates.path("server.key"),
                                      "-CAfile",
                                      certificates.path("ca.pem")};
    words.insert(words.end(), extra.begin(), extra.end());
    std::vector<char*> arguments;
    for (std::string& word : words) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    int out[2];
    FLOPSIGHT_CHECK(pipe2(out, O_CLOEXEC) == 0);
    child_ = fork();
    if (child_ == 0) {
      dup2(out[1], STDOUT_FILENO);
      const int null = open("/dev/null", O_RDWR);
      dup2(null, STDIN_FILENO);
      dup2(null, STDERR_FILENO);
      execvp(arguments[0], arguments.data());
      _exit(127);
    }
    close(out[1]);
    output_ = out[0];
    port_ = read_port();
  }
  ~OpensslServer() {
    kill(child_, SIGKILL);
    waitpid(child_, nullptr, 0);
    close(output_);
  }
  OpensslServer(const OpensslServer&) = delete;
  OpensslServer& operator=(const OpensslServer&) = delete;

  std::string url() const { return "https://127.0.0.1:" + port_ + "/"; }

 private:
  // "ACCEPT 127.0.0.1:41873" once it listens.
  std::string read_port() const {
    std::string text;
    char buffer[256];
    while (true) {
      const ssize_t got = read(output_, buffer, sizeof buffer);
      FLOPSIGHT_CHECK(got > 0);
      text.append(buffer, static_cast<std::size_t>(got));
      const std::size_t at = text.find("ACCEPT ");
      if (at == std::string::npos) continue;
      const std::size_t colon = text.find(':', at);
      const std::size_t end = text.find('\n', at);
      if (colon != std::string::npos && end != std::string::npos) {
        return text.substr(colon + 1, end - colon - 1);
      }
    }
  }

  pid_t child_ = -1;
  int output_ = -1;
  std::string port_;
};

class HttpClientTls : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    setenv("no_proxy", "127.0.0.1,localhost", 1);
    certificates_ = new Certificates;
  }
  static void TearDownTestSuite() { delete certificates_; }

  static HttpOptions options() {
    HttpOptions options;
    options.retries = 0;
    return options;
  }
  // Trusts the test's CA and expects the name that is in the server's certificate.
  static HttpOptions trusting() {
    HttpOptions trusting = options();
    trusting.tls.ca_file = certificates_->path("ca.pem");
    trusting.tls.server_name = "metrics.example";
    return trusting;
  }
  static base::Result<HttpResponse> get(const std::string& url, const HttpOptions& with) {
    auto client = HttpClient::create(with);
    if (!client.ok()) return client.error();
    HttpRequest request;
    request.url = url;
    return client->send(request);
  }

  static Certificates* certificates_;
};
Certificates* HttpClientTls::certificates_ = nullptr;

TEST_F(HttpClientTls, verifies_against_the_ca_and_the_name_it_was_given) {
  const OpensslServer server(*certificates_, {});
  const auto response = get(server.url(), trusting());
  ASSERT_TRUE(response.ok()) << response.error().message;
  EXPECT_THAT(response->body, HasSubstr("TLS"));
}

TEST_F(HttpClientTls, sends_the_name_it_was_given_as_sni_and_keeps_the_host_header) {
  // Without a match of SNI, s_server ends the handshake.
  const OpensslServer server(*certificates_, {"-servername", "metrics.example", "-servername_fatal",
                                              "-cert2", certificates_->path("server.pem"), "-key2",
                                              certificates_->path("server.key")});
  const auto named = get(server.url(), trusting());
  EXPECT_TRUE(named.ok()) << named.error().message;
  HttpOptions other = trusting();
  other.tls.server_name = "other.example";
  EXPECT_FALSE(get(server.url(), other).ok());
}

TEST_F(HttpClientTls, refuses_a_certificate_for_another_name) {
  const OpensslServer server(*certificates_, {});
  HttpOptions options = trusting();
  options.tls.server_name.reset();
  const auto response = get(server.url(), options);
  ASSERT_FALSE(response.ok());
  EXPECT_EQ(response.error().code, ErrorCode::kInvalid);
  EXPECT_THAT(response.error().message, HasSubstr("certificate not trusted: "));
  EXPECT_THAT(response.error().message, HasSubstr("127.0.0.1"));
}

TEST_F(HttpClientTls, refuses_an_unknown_ca_unless_told_to_skip_the_check) {
  const OpensslServer server(*certificates_, {});
  const auto refused = get(server.url(), options());
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(refused.error().message, HasSubstr("certificate not trusted: "));
  HttpOptions skipping = options();
  skipping.tls.insecure_skip_verify = true;
  const auto response = get(server.url(), skipping);
  EXPECT_TRUE(response.ok()) << response.error().message;
}

TEST_F(HttpClientTls, presents_its_client_certificate) {
  const OpensslServer server(*certificates_, {"-Verify", "1", "-verify_return_error"});
  EXPECT_FALSE(get(server.url(), trusting()).ok());
  HttpOptions options = trusting();
  options.tls.cert_file = certificates_->path("client.pem");
  options.tls.key_file = certificates_->path("client.key");
  const auto response = get(server.url(), options);
  ASSERT_TRUE(response.ok()) << response.error().message;
}

TEST_F(HttpClientTls, names_a_key_that_does_not_fit) {
  HttpOptions options = trusting();
  options.tls.cert_file = certificates_->path("client.pem");
  options.tls.key_file = certificates_->path("server.key");
  const OpensslServer server(*certificates_, {});
  const auto response = get(server.url(), options);
  ASSERT_FALSE(response.ok());
  EXPECT_EQ(response.error().code, ErrorCode::kInvalid);
  EXPECT_THAT(response.error().message, HasSubstr("TLS certificate file not usable"));
}

}  // namespace
}  // namespace flopsight::net
