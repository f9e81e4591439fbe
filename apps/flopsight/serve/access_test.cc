#include "serve/access.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace flopsight::app {
namespace {

using testing::HasSubstr;

// "secret", with 2^4 rounds.
const std::string kHash = "$2b$04$abcdefghijklmnopqrstuu2r9OfJnfCsdneAXAGHnS4UpFFP8WIrW";

std::string base64(std::string_view text) {
  constexpr std::string_view kDigits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string out;
  for (std::size_t i = 0; i < text.size(); i += 3) {
    unsigned bits = 0;
    for (std::size_t k = 0; k < 3; ++k) bits = bits << 8 | (i + k < text.size() ? static_cast<unsigned char>(text[i + k]) : 0U);
    for (std::size_t k = 0; k < 4; ++k) out += i + k > text.size() ? '=' : kDigits[bits >> (18 - 6 * k) & 63];
  }
  return out;
}

net::ServerRequest with(const std::string& authorization) {
  net::ServerRequest request;
  request.headers.emplace_back("authorization", authorization);
  return request;
}
net::ServerRequest user(const std::string& name, const std::string& password) {
  return with("Basic " + base64(name + ":" + password));
}

Access parsed(const std::string& web, const std::string& tokens) {
  auto access = Access::parse(web.empty() ? "" : "web.yml", web, tokens.empty() ? "" : "tokens.yml", tokens);
  EXPECT_TRUE(access.ok()) << access.error().message;
  return access.ok() ? std::move(access).value() : Access();
}
std::string mistake_of_web(const std::string& web) {
  const auto access = Access::parse("web.yml", web, "", "");
  return access.ok() ? "" : access.error().message;
}
std::string mistake_of_tokens(const std::string& tokens) {
  const auto access = Access::parse("", "", "tokens.yml", tokens);
  return access.ok() ? "" : access.error().message;
}

const std::string kTokens =
    "tokens:\n"
    "  - {name: writer, token: writer-token-0001, roles: [ingest]}\n"
    "  - {name: reader, token: reader-token-0001, roles: [read]}\n"
    "  - {name: admin, token: admin-token-00001, roles: [admin]}\n"
    "  - {name: n1, token: limited-token-001, roles: [read], users: [n1], teams: [blue, red]}\n";

samples::Holder holder(const std::string& user, const std::string& team) {
  samples::Holder holder;
  holder.job = "j";
  holder.user = user;
  holder.team = team;
  return holder;
}

TEST(Access, without_users_and_tokens_everybody_may_everything) {
  const Access access = parsed("", "");
  EXPECT_TRUE(access.is_open());
  const auto caller = access.caller({});
  ASSERT_TRUE(caller);
  for (const Role role : {Role::kIngest, Role::kRead, Role::kAdmin}) EXPECT_TRUE(caller->may(role));
  EXPECT_TRUE(caller->sees_all());
  EXPECT_FALSE(access.surely_refused({}));
}

TEST(Access, who_has_passwords_and_tokens_asks_for_either) {
  const auto asked = [](const Access& access) { return unauthorized(access, false).headers.back().second; };
  EXPECT_EQ(asked(parsed("", kTokens)), "Bearer");
  EXPECT_EQ(asked(parsed("basic_auth_users: {alice: " + kHash + "}\n", kTokens)), "Basic realm=\"flopsight\", Bearer");
}

TEST(Access, a_name_that_a_strangers_dns_may_have_turned_here_is_told_from_addresses_and_from_what_is_known) {
  const std::vector<std::string> known = {"gpu.example"};
  for (const char* host : {"", "localhost", "LocalHost:9890", "localhost.:9890", "page.localhost", "127.0.0.1", "127.0.0.1:9890", "10.0.0.7:80", "[::1]", "[::1]:9890",
                           "GPU.example:443", "gpu.example"}) {
    EXPECT_FALSE(is_strange_host(host, known)) << host;
  }
  for (const char* host : {"attacker.example", "attacker.example:9890", "127.0.0.1.attacker.example", "localhost.attacker.example", "xgpu.example", "gpu.example.org",
                           "127.0.0.999:1", "[attacker]", "1", "0x7f000001", ":9890x:1"}) {
    EXPECT_TRUE(is_strange_host(host, known)) << host;
  }
}

TEST(Access, a_token_has_its_roles_and_no_other) {
  const Access access = parsed("", kTokens);
  const auto may = [&](const std::string& token) {
    const auto caller = access.caller(with("Bearer " + token));
    if (!caller) return std::string("nobody");
    return caller->name + ":" + (caller->may(Role::kIngest) ? "i" : "") + (caller->may(Role::kRead) ? "r" : "") +
           (caller->may(Role::kAdmin) ? "a" : "");
  };
  EXPECT_EQ(may("writer-token-0001"), "writer:i");
  EXPECT_EQ(may("reader-token-0001"), "reader:r");
  EXPECT_EQ(may("admin-token-00001"), "admin:ira");
  EXPECT_EQ(may("limited-token-001"), "n1:r");
  for (const char* wrong : {"", "writer-token-0002", "writer-token-000", "writer-token-00011", "WRITER-TOKEN-0001", "writer"}) {
    EXPECT_EQ(may(wrong), "nobody") << wrong;
    EXPECT_TRUE(access.surely_refused(with(std::string("Bearer ") + wrong))) << wrong;
  }
  EXPECT_FALSE(access.surely_refused(with("Bearer reader-token-0001")));
  EXPECT_TRUE(access.caller(with("bearer   reader-token-0001")));
  for (const char* wrong : {"reader-token-0001", "Token reader-token-0001", "Bearerreader-token-0001", "Bearer"}) {
    EXPECT_FALSE(access.caller(with(wrong))) << wrong;
  }
  EXPECT_FALSE(access.caller({}));
  EXPECT_TRUE(access.surely_refused({}));
}

TEST(Access, a_limited_reader_sees_exactly_its_users_and_teams) {
  const Access access = parsed("", kTokens);
  const auto caller = access.caller(with("Bearer limited-token-001"));
  ASSERT_TRUE(caller);
  EXPECT_FALSE(caller->sees_all());
  EXPECT_TRUE(caller->sees(holder("n1", "")));
  EXPECT_TRUE(caller->sees(holder("other", "red")));
  for (const auto& other : {holder("n10", ""), holder("n", "blu"), holder("N1", "Blue"), holder("", ""), holder("blue", "n1"),
                            holder("n1 ", ""), holder("other", "green")}) {
    EXPECT_FALSE(caller->sees(other)) << other.user << "/" << other.team;
  }
}

TEST(Access, users_of_the_web_configuration_by_bcrypt) {
  const Access access = parsed("basic_auth_users:\n  alice: " + kHash + "\n", "");
  const bool right = access.caller(user("alice", "secret")).has_value();
  EXPECT_EQ(right, net::password_matches("secret", kHash));
  EXPECT_TRUE(right);
  // A wrong password and a name that nobody has are told apart by nothing.
  for (const auto& request : {user("alice", "Secret"), user("alice", ""), user("bob", "secret"), user("", ""), user("alic", "esecret"),
                              with("Basic"), with("Basic !!!"), with("Basic " + base64("alice")), with("Bearer alice:secret")}) {
    EXPECT_FALSE(access.caller(request)) << request.headers[0].second;
  }
  EXPECT_FALSE(access.surely_refused(user("alice", "wrong")));
  EXPECT_FALSE(access.surely_refused(user("bob", "wrong")));
}

TEST(Access, a_password_may_hold_colons_and_bytes) {
  EXPECT_EQ(base64("a:b:c"), "YTpiOmM=");
  const Access access = parsed("basic_auth_users:\n  alice: " + kHash + "\n", "");
  EXPECT_FALSE(access.caller(user("alice", std::string("secret\0x", 8))));
  EXPECT_FALSE(access.caller(user("alice", "secret:")));
}

TEST(Access, mistakes_in_the_tokens_file) {
  const std::string good = "name: n, token: 0123456789abcdef";
  EXPECT_EQ(mistake_of_tokens(""), "tokens.yml:1: expected a list under the key tokens");
  EXPECT_EQ(mistake_of_tokens("tokens: []\n"), "tokens.yml:1: expected a list under the key tokens");
  EXPECT_EQ(mistake_of_tokens("tokens: x\n"), "tokens.yml:1: expected a list under the key tokens");
  EXPECT_EQ(mistake_of_tokens("- a\n"), "tokens.yml:1: expected a list under the key tokens");
  EXPECT_EQ(mistake_of_tokens("tokens:\n  - {token: 0123456789abcde, roles: [read]}\n"),
            "tokens.yml:2: token: expected at least 16 characters");
  EXPECT_EQ(mistake_of_tokens("tokens:\n  - {token: '', roles: [read]}\n"), "tokens.yml:2: token: expected a text");
  EXPECT_EQ(mistake_of_tokens("tokens:\n  - {roles: [read]}\n"), "tokens.yml:2: token: expected at least 16 characters");
  EXPECT_EQ(mistake_of_tokens("tokens:\n  - {" + good + "}\n"), "tokens.yml:2: roles: expected at least one of ingest, read, admin");
  EXPECT_EQ(mistake_of_tokens("tokens:\n  - {" + good + ", roles: []}\n"), "tokens.yml:2: roles: expected at least one");
  EXPECT_EQ(mistake_of_tokens("tokens:\n  - {" + good + ", roles: read}\n"), "tokens.yml:2: roles: expected a list");
  EXPECT_EQ(mistake_of_tokens("tokens:\n  - {" + good + ", roles: [reed]}\n"),
            "tokens.yml:2: roles: found \"reed\", expected ingest, read or admin");
  EXPECT_EQ(mistake_of_tokens("tokens:\n  - {" + good + ", roles: [read], users: []}\n"),
            "tokens.yml:2: users: expected at least one; leave the key out for all");
  EXPECT_EQ(mistake_of_tokens("tokens:\n  - {" + good + ", roles: [read], users: [[a]]}\n"), "tokens.yml:2: users: expected a text");
  EXPECT_EQ(mistake_of_tokens("tokens:\n  - {" + good + ", roles: [admin], teams: [a]}\n"),
            "tokens.yml:2: an admin sees all jobs; leave users and teams out, or the role");
  EXPECT_EQ(mistake_of_tokens("tokens:\n  - {" + good + ", roles: [read]}\n  - x: 1\n"),
            "tokens.yml:3: x: expected name, token, roles, users or teams");
  EXPECT_EQ(mistake_of_tokens("tokens:\n  - {" + good + ", roles: [read]}\ntoken: x\n"), "tokens.yml:3: token: expected tokens");
  EXPECT_EQ(mistake_of_tokens("tokens:\n  - {" + good + ", roles: [read]}\n  - {" + good + ", roles: [admin]}\n"),
            "tokens.yml:3: token: another entry has the same");
  EXPECT_THAT(mistake_of_tokens("tokens: [\n"), HasSubstr("tokens.yml: line"));
  // A complaint must not print the secret.
  EXPECT_THAT(mistake_of_tokens("tokens:\n  - {token: hunter2hunter2, roles: [read]}\n"), testing::Not(HasSubstr("hunter2")));
}

TEST(Access, mistakes_in_the_web_configuration) {
  EXPECT_EQ(mistake_of_web(""), "");
  EXPECT_EQ(mistake_of_web("http_server_config:\n  http2: false\n"), "");
  EXPECT_EQ(mistake_of_web("x: 1\n"), "web.yml:1: x: expected tls_server_config or basic_auth_users");
  EXPECT_EQ(mistake_of_web("basic_auth_users:\n  alice: secret\n"),
            "web.yml:2: basic_auth_users: the entry of alice is no bcrypt hash");
  // Read as no users at all, these would let everybody in.
  EXPECT_EQ(mistake_of_web("- basic_auth_users\n"), "web.yml:1: found a list, expected keys");
  EXPECT_EQ(mistake_of_web("alice\n"), "web.yml:1: found a value, expected keys");
  EXPECT_EQ(mistake_of_web("basic_auth_users: [alice]\n"), "web.yml:1: basic_auth_users: found a list, expected NAME: HASH");
  EXPECT_EQ(mistake_of_web("basic_auth_users: alice\n"), "web.yml:1: basic_auth_users: found a value, expected NAME: HASH");
  EXPECT_EQ(mistake_of_web("tls_server_config:\n"), "web.yml:1: tls_server_config: expected cert_file and key_file");
  EXPECT_EQ(mistake_of_web("tls_server_config: {cert_file: c}\n"), "web.yml:1: tls_server_config: expected cert_file and key_file");
  EXPECT_EQ(mistake_of_web("tls_server_config: {cert_file: c, key_file: k, ciphers: x}\n"),
            "web.yml:1: tls_server_config: ciphers is not supported here");
  EXPECT_EQ(mistake_of_web("tls_server_config: {cert_file: c, key_file: k, min_version: TLS10}\n"),
            "web.yml:1: min_version: expected TLS12 or TLS13");
  EXPECT_THAT(mistake_of_web("tls_server_config: {cert_file: c, key_file: k, client_auth_type: RequestClientCert}\n"),
              HasSubstr("web.yml:1: client_auth_type: found \"RequestClientCert\""));
  EXPECT_EQ(mistake_of_web("tls_server_config: {cert_file: c, key_file: k, client_auth_type: RequireAndVerifyClientCert}\n"),
            "web.yml:1: tls_server_config: RequireAndVerifyClientCert needs client_ca_file");
}

TEST(Access, files_of_tls_lie_beside_the_configuration) {
  const auto access = Access::parse("/etc/f/web.yml",
                                    "tls_server_config:\n  cert_file: c.pem\n  key_file: /k.pem\n  client_ca_file: ca.pem\n"
                                    "  client_auth_type: RequireAndVerifyClientCert\n  min_version: TLS13\n",
                                    "", "");
  ASSERT_TRUE(access.ok()) << access.error().message;
  ASSERT_TRUE(access->tls());
  EXPECT_EQ(access->tls()->cert_file, "/etc/f/c.pem");
  EXPECT_EQ(access->tls()->key_file, "/k.pem");
  EXPECT_EQ(access->tls()->client_ca_file, "/etc/f/ca.pem");
  EXPECT_TRUE(access->tls()->client_certificate_required);
  EXPECT_EQ(access->tls()->min_version, "TLS13");
  EXPECT_TRUE(access->is_open());
}

}  // namespace
}  // namespace flopsight::app
