#include "serve/access.h"

#include <algorithm>
#include <filesystem>

#include "base/text.h"
#include "serve/route_answers.h"

namespace flopsight::app {
namespace {

using base::yaml::Kind;
using base::yaml::Value;

constexpr std::size_t kTokenBytesMin = 16;

base::Error mistake(const std::string& path, int line, const std::string& what) {
  return {base::ErrorCode::kInvalid, path + ":" + std::to_string(std::max(line, 1)) + ": " + what};
}

base::Result<std::string> text_of(const std::string& path, const std::string& key, const Value& value) {
  if (value.kind != Kind::kScalar || value.text.empty()) return mistake(path, value.line, key + ": expected a text");
  return value.text;
}

base::Result<std::vector<std::string>> texts_of(const std::string& path, const std::string& key, const Value& value) {
  std::vector<std::string> out;
  if (value.kind != Kind::kList) return mistake(path, value.line, key + ": expected a list");
  for (const Value& item : value.items) {
    FLOPSIGHT_ASSIGN_OR_RETURN(std::string text, text_of(path, key, item));
    out.push_back(std::move(text));
  }
  return out;
}

base::Status set_roles(const std::string& path, const Value& value, Caller& caller) {
  FLOPSIGHT_ASSIGN_OR_RETURN(const std::vector<std::string> roles, texts_of(path, "roles", value));
  caller.may_ingest = caller.may_read = caller.may_admin = false;
  for (const std::string& role : roles) {
    if (role == "ingest") {
      caller.may_ingest = true;
    } else if (role == "read") {
      caller.may_read = true;
    } else if (role == "admin") {
      caller.may_admin = true;
    } else {
      return mistake(path, value.line, "roles: found \"" + base::printable(role, 40) + "\", expected ingest, read or admin");
    }
  }
  if (roles.empty()) return mistake(path, value.line, "roles: expected at least one");
  return {};
}

base::Status set_limits(const std::string& path, const std::string& key, const Value& value, Caller& caller) {
  FLOPSIGHT_ASSIGN_OR_RETURN(std::vector<std::string> names, texts_of(path, key, value));
  // An empty list would mean no limit.
  if (names.empty()) return mistake(path, value.line, key + ": expected at least one; leave the key out for all");
  (key == "users" ? caller.users : caller.teams) = std::move(names);
  return {};
}

// Relative to the file that names it.
std::string beside(const std::string& config, const std::string& path) {
  if (path.empty() || std::filesystem::path(path).is_absolute()) return path;
  return (std::filesystem::path(config).parent_path() / path).string();
}

base::Result<net::ServerTls> parse_tls(const std::string& path, const Value& section) {
  net::ServerTls tls;
  for (const auto& [key, value] : section.fields) {
    if (key == "cert_file" || key == "key_file" || key == "client_ca_file") {
      FLOPSIGHT_ASSIGN_OR_RETURN(const std::string file, text_of(path, key, value));
      (key == "cert_file" ? tls.cert_file : key == "key_file" ? tls.key_file : tls.client_ca_file) = beside(path, file);
    } else if (key == "client_auth_type") {
      FLOPSIGHT_ASSIGN_OR_RETURN(const std::string type, text_of(path, key, value));
      if (type == "RequireAndVerifyClientCert") {
        tls.client_certificate_required = true;
      } else if (type != "NoClientCert" && type != "VerifyClientCertIfGiven") {
        return mistake(path, value.line, "client_auth_type: found \"" + base::printable(type, 40) +
                                             "\", expected NoClientCert, VerifyClientCertIfGiven or RequireAndVerifyClientCert");
      }
    } else if (key == "min_version") {
      FLOPSIGHT_ASSIGN_OR_RETURN(tls.min_version, text_of(path, key, value));
      if (tls.min_version != "TLS12" && tls.min_version != "TLS13") {
        return mistake(path, value.line, "min_version: expected TLS12 or TLS13");
      }
    } else {
      return mistake(path, value.line, "tls_server_config: " + base::printable(key, 40) + " is not supported here");
    }
  }
  if (tls.cert_file.empty() || tls.key_file.empty()) {
    return mistake(path, section.line, "tls_server_config: expected cert_file and key_file");
  }
  if (tls.client_certificate_required && tls.client_ca_file.empty()) {
    return mistake(path, section.line, "tls_server_config: RequireAndVerifyClientCert needs client_ca_file");
  }
  return tls;
}

bool equal_in_constant_time(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  unsigned difference = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    difference |= static_cast<unsigned>(static_cast<unsigned char>(a[i])) ^
                  static_cast<unsigned>(static_cast<unsigned char>(b[i]));
  }
  return difference == 0;
}

constexpr std::string_view kBase64 = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

std::optional<std::string> decode_base64(std::string_view text) {
  while (text.ends_with('=')) text.remove_suffix(1);
  std::string out;
  std::uint32_t bits = 0;
  int count = 0;
  for (const char c : text) {
    const std::size_t at = kBase64.find(c);
    if (at == std::string_view::npos) return std::nullopt;
    bits = bits << 6 | static_cast<std::uint32_t>(at);
    count += 6;
    if (count >= 8) {
      count -= 8;
      out.push_back(static_cast<char>(bits >> count & 0xFF));
    }
  }
  return out;
}

std::optional<std::string_view> after_scheme(std::string_view header, std::string_view scheme) {
  if (header.size() <= scheme.size() + 1 || base::to_lower(header.substr(0, scheme.size())) != scheme ||
      header[scheme.size()] != ' ') {
    return std::nullopt;
  }
  return base::trim(header.substr(scheme.size() + 1));
}

}  // namespace

bool Caller::may(Role role) const {
  switch (role) {
    case Role::kIngest: return may_ingest || may_admin;
    case Role::kRead: return may_read || may_admin;
    case Role::kAdmin: return may_admin;
  }
  return false;
}

const Caller& everybody() {
  static const Caller kAll{"", true, true, true, {}, {}};
  return kAll;
}

bool Caller::sees(const samples::Holder& holder) const {
  const auto has = [](const std::vector<std::string>& list, const std::string& who) {
    return !who.empty() && std::find(list.begin(), list.end(), who) != list.end();
  };
  return sees_all() || has(users, holder.user) || has(teams, holder.team);
}

base::Result<Access::Token> Access::parse_token(const std::string& tokens_path, const base::yaml::Value& entry) {
  Token token;
  for (const auto& [key, value] : entry.fields) {
    if (key == "token") {
      FLOPSIGHT_ASSIGN_OR_RETURN(token.token, text_of(tokens_path, key, value));
    } else if (key == "name") {
      FLOPSIGHT_ASSIGN_OR_RETURN(token.caller.name, text_of(tokens_path, key, value));
    } else if (key == "roles") {
      FLOPSIGHT_RETURN_IF_ERROR(set_roles(tokens_path, value, token.caller));
    } else if (key == "users" || key == "teams") {
      FLOPSIGHT_RETURN_IF_ERROR(set_limits(tokens_path, key, value, token.caller));
    } else {
      return mistake(tokens_path, value.line, base::printable(key, 40) + ": expected name, token, roles, users or teams");
    }
  }
  if (token.token.size() < kTokenBytesMin) {
    return mistake(tokens_path, entry.line, "token: expected at least " + std::to_string(kTokenBytesMin) + " characters");
  }
  if (!token.caller.may_ingest && !token.caller.may_read && !token.caller.may_admin) {
    return mistake(tokens_path, entry.line, "roles: expected at least one of ingest, read, admin");
  }
  if (token.caller.name.empty()) token.caller.name = "token of line " + std::to_string(entry.line);
  if (token.caller.may_admin && !token.caller.sees_all()) {
    return mistake(tokens_path, entry.line, "an admin sees all jobs; leave users and teams out, or the role");
  }
  return token;
}

base::Result<Access> Access::parse(const std::string& web_config_path, const std::string& web_config,
                                   const std::string& tokens_path, const std::string& tokens) {
  Access access;
  if (!web_config_path.empty()) FLOPSIGHT_RETURN_IF_ERROR(access.read_web_config(web_config_path, web_config));
  if (!tokens_path.empty()) FLOPSIGHT_RETURN_IF_ERROR(access.read_tokens(tokens_path, tokens));
  return access;
}

base::Status Access::read_web_config(const std::string& path, const std::string& text) {
  FLOPSIGHT_ASSIGN_OR_RETURN(const Value root, base::yaml::parse(text).within(path));
  // Read as empty, a list would let everybody in.
  if (root.kind != Kind::kMap && root.kind != Kind::kNull) {
    return mistake(path, root.line, "found " + std::string(base::yaml::kind_name(root.kind)) + ", expected keys");
  }
  for (const auto& [key, value] : root.fields) {
    if (key == "tls_server_config") {
      FLOPSIGHT_ASSIGN_OR_RETURN(tls_, parse_tls(path, value));
    } else if (key == "basic_auth_users") {
      if (value.kind != Kind::kMap || value.fields.empty()) {
        return mistake(path, value.line, "basic_auth_users: found " + std::string(base::yaml::kind_name(value.kind)) +
                                                        ", expected NAME: HASH");
      }
      for (const auto& [name, hash] : value.fields) {
        if (!net::is_bcrypt_hash(hash.text)) {
          return mistake(path, hash.line, "basic_auth_users: the entry of " + base::printable(name, 40) + " is no bcrypt hash");
        }
        users_.push_back({hash.text, {name, true, true, true, {}, {}}});
      }
    } else if (key != "http_server_config") {
      return mistake(path, value.line, base::printable(key, 40) + ": expected tls_server_config or basic_auth_users");
    }
  }
  return {};
}

base::Result<Access::Token> Access::token_from(const std::string& path, const Value& entry) {
  FLOPSIGHT_ASSIGN_OR_RETURN(Token token, parse_token(path, entry));
  return token;
}

base::Status Access::read_tokens(const std::string& path, const std::string& text) {
  FLOPSIGHT_ASSIGN_OR_RETURN(const Value root, base::yaml::parse(text).within(path));
  const Value* list = root.find("tokens");
  if (list == nullptr || list->kind != Kind::kList || list->items.empty()) {
    return mistake(path, root.line, "expected a list under the key tokens");
  }
  for (const auto& [key, value] : root.fields) {
    if (key != "tokens") return mistake(path, value.line, base::printable(key, 40) + ": expected tokens");
  }
  for (const Value& entry : list->items) {
    FLOPSIGHT_ASSIGN_OR_RETURN(Token token, token_from(path, entry));
    if (std::any_of(tokens_.begin(), tokens_.end(), [&](const Token& t) { return t.token == token.token; })) {
      return mistake(path, entry.line, "token: another entry has the same");
    }
    tokens_.push_back(std::move(token));
  }
  return {};
}

const Access::Token* Access::token_of(std::string_view header) const {
  const auto presented = after_scheme(header, "bearer");
  if (!presented) return nullptr;
  const Token* found = nullptr;
  for (const Token& token : tokens_) {
    if (equal_in_constant_time(token.token, *presented)) found = &token;
  }
  return found;
}

std::optional<Caller> Access::caller(const net::ServerRequest& request) const {
  if (is_open()) return Caller{"", true, true, true, {}, {}};
  const std::string_view header = request.header("authorization");
  if (const Token* token = token_of(header)) return token->caller;
  const auto basic = after_scheme(header, "basic");
  if (!basic) return std::nullopt;
  const auto decoded = decode_base64(*basic);
  const std::size_t colon = decoded ? decoded->find(':') : std::string::npos;
  if (colon == std::string::npos) return std::nullopt;
  const std::string_view name = std::string_view(*decoded).substr(0, colon);
  const std::string_view password = std::string_view(*decoded).substr(colon + 1);
  const auto user = std::find_if(users_.begin(), users_.end(), [&](const User& u) { return u.caller.name == name; });
  // An unknown name takes as long as a wrong password.
  const bool matches = cache_->matches(password, user == users_.end() ? net::kNobodyHash : std::string_view(user->hash));
  if (user == users_.end() || !matches) return std::nullopt;
  return user->caller;
}

bool Access::surely_refused(const net::ServerRequest& head) const {
  if (is_open()) return false;
  const std::string_view header = head.header("authorization");
  if (after_scheme(header, "basic")) return users_.empty();
  return token_of(header) == nullptr;
}

bool Access::surely_may(const net::ServerRequest& head, Role role) const {
  if (is_open()) return true;
  const Token* token = token_of(head.header("authorization"));
  return token != nullptr && token->caller.may(role);
}

net::ServerResponse unauthorized(const Access& access, bool known) {
  if (known) return failed(403, "these credentials do not allow this");
  net::ServerResponse response = failed(401, "expected a bearer token or a user");
  response.headers.emplace_back("WWW-Authenticate", access.has_passwords() ? "Basic realm=\"flopsight\", Bearer" : "Bearer");
  return response;
}

bool is_strange_host(std::string_view host_header, std::span<const std::string> known) {
  std::string name = base::to_lower(host_header);
  const std::size_t colon = name.rfind(':');
  if (colon != std::string::npos && name.find(']', colon) == std::string::npos) name.resize(colon);
  if (name.ends_with('.')) name.pop_back();
  // Without a Host it is no browser.
  if (name.empty() || name == "localhost" || name.ends_with(".localhost")) return false;
  const bool is_bracketed = name.front() == '[' && name.back() == ']';
  if (net::is_ip_address(is_bracketed ? name.substr(1, name.size() - 2) : name)) return false;
  return std::none_of(known.begin(), known.end(), [&](const std::string& one) { return base::to_lower(one) == name; });
}

base::Status check_exposure(const std::string& listen, bool is_loopback, bool allow_insecure, const std::string& web_config, const Access& access) {
  if (is_loopback || allow_insecure || (access.tls() && !access.is_open())) return {};
  return base::Error{base::ErrorCode::kInvalid, "listen: " + listen + " is not loopback and " + (web_config.empty() ? "the configuration" : web_config) +
                                                    " gives " + (access.tls() ? "no users" : "no TLS") + "; expected both, or allow-insecure"};
}

}  // namespace flopsight::app
