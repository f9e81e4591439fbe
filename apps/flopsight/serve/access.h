#pragma once
// Who may do what: bearer tokens with roles, and the users of a web configuration file as Prometheus exporters have it.
//
// Without users and tokens everybody may do everything; the service then listens on loopback only, unless told otherwise.
// Roles: ingest (write samples), read (ask; limited to named users' or teams' jobs where the token says so), admin (both, all jobs,
// and jobs from outside). Users of the web configuration have all three; whoever is to have fewer gets a token.
// Threads: immutable after reading, but for the password cache, which has its own lock.

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/yaml.h"
#include "net/http_server.h"
#include "net/password.h"
#include "samples/gpu.h"

namespace flopsight::app {

enum class Role { kIngest, kRead, kAdmin };

struct Caller {
  std::string name;  // a user, or the name of the token; empty: anybody, as no users are configured
  bool may_ingest = false;
  bool may_read = false;
  bool may_admin = false;
  // Of jobs it may read; both empty: all.
  std::vector<std::string> users;
  std::vector<std::string> teams;

  bool may(Role role) const;
  bool sees_all() const { return users.empty() && teams.empty(); }
  bool sees(const samples::Holder& holder) const;
};

// For the program's own questions, and whoever may run it on a folder.
const Caller& everybody();

class Access {
 public:
  // Texts of the files (empty: none), paths for messages. Errors: kInvalid with file and line.
  static base::Result<Access> parse(const std::string& web_config_path, const std::string& web_config,
                                    const std::string& tokens_path, const std::string& tokens);

  bool is_open() const { return tokens_.empty() && users_.empty(); }
  bool has_users() const { return !is_open(); }
  bool has_passwords() const { return !users_.empty(); }
  const std::optional<net::ServerTls>& tls() const { return tls_; }

  // Who asks; nothing: nobody that we know. Runs bcrypt where a password is new to it: not on an event loop.
  std::optional<Caller> caller(const net::ServerRequest& request) const;
  // The quick half: true when the request carries nothing that could ever let it in.
  bool surely_refused(const net::ServerRequest& head) const;
  // The other one: true when a token, or that there are no users, lets it in. False where a password would have to be looked at.
  bool surely_may(const net::ServerRequest& head, Role role) const;

 private:
  struct Token {
    std::string token;
    Caller caller;
  };
  struct User {
    std::string hash;
    Caller caller;
  };
  static base::Result<Token> parse_token(const std::string& tokens_path, const base::yaml::Value& entry);
  const Token* token_of(std::string_view header) const;
  base::Status read_web_config(const std::string& path, const std::string& text);
  base::Status read_tokens(const std::string& path, const std::string& text);
  static base::Result<Token> token_from(const std::string& path, const base::yaml::Value& entry);

  std::vector<Token> tokens_;
  std::vector<User> users_;
  std::optional<net::ServerTls> tls_;
  std::shared_ptr<net::PasswordCache> cache_ = std::make_shared<net::PasswordCache>();
};

// Whether a request's Host is a name that the DNS of a stranger may have turned to this machine, so that a page in somebody's browser can read what a
// service on loopback tells everybody: one that is no address, not localhost and none of `known`. Names are compared without case and port.
bool is_strange_host(std::string_view host_header, std::span<const std::string> known);

// The answer to who may not: 403 to somebody whom we know, 401 to everybody else.
net::ServerResponse unauthorized(const Access& access, bool known);

// Whether an address may be listened on: loopback always, another only with TLS and users, or where that was waived.
// `web_config`: the file that would say so, for the message; may be empty. Errors: kInvalid.
base::Status check_exposure(const std::string& listen, bool is_loopback, bool allow_insecure, const std::string& web_config, const Access& access);

}  // namespace flopsight::app
