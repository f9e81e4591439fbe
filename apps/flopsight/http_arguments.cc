#include "http_arguments.h"

#include <CLI/CLI.hpp>

#include "base/file.h"
#include "base/text.h"
#include "units/time.h"

namespace flopsight::app {

void add_http(CLI::App& app, HttpArguments& a, HttpTexts& t) {
  app.add_option("--bearer-token-file", a.bearer_token_path, "file with a bearer token")->group("HTTP");
  app.add_option("--basic-user", a.basic_user, "user of basic authentication")->group("HTTP");
  app.add_option("--basic-password-file", a.basic_password_path, "file with its password")->group("HTTP");
  app.add_option("--header", t.headers, "'Name: value', e.g. 'X-Scope-OrgID: a'; may be repeated")
      ->group("HTTP");
  app.add_option("--ca-file", a.http.tls.ca_file, "PEM of the certificate authority")->group("HTTP");
  app.add_option("--cert-file", a.http.tls.cert_file, "PEM of the client certificate")->group("HTTP");
  app.add_option("--key-file", a.http.tls.key_file, "PEM of its key")->group("HTTP");
  app.add_option("--server-name", a.http.tls.server_name, "name to verify the server's certificate for")
      ->group("HTTP");
  app.add_flag("--insecure-skip-verify", a.http.tls.insecure_skip_verify, "do not verify certificates")
      ->group("HTTP");
  app.add_option("--timeout", t.timeout, "limit of one request, e.g. 30s (default 120s)")->group("HTTP");
}

std::optional<std::string> set_http(HttpArguments& a, const HttpTexts& t) {
  if (!t.timeout.empty()) {
    const auto timeout = units::parse_duration(t.timeout);
    if (!timeout) return "--timeout " + t.timeout + ": expected a duration such as 30s";
    a.http.total_timeout = std::chrono::milliseconds(static_cast<long>(timeout->value * 1000));
  }
  for (const std::string& header : t.headers) {
    const std::size_t colon = header.find(':');
    if (colon == std::string::npos || colon == 0) {
      return "--header " + base::printable(header, 40) + ": expected 'Name: value'";
    }
    a.http.auth.headers.emplace_back(header.substr(0, colon),
                                     std::string(base::trim(header.substr(colon + 1))));
  }
  if (a.basic_user.empty() != a.basic_password_path.empty()) {
    return "--basic-user and --basic-password-file belong together";
  }
  if (a.http.tls.cert_file.has_value() != a.http.tls.key_file.has_value()) {
    return "--cert-file and --key-file belong together";
  }
  return std::nullopt;
}

bool any_given(const HttpArguments& a, const HttpTexts& t) {
  const net::HttpTls& tls = a.http.tls;
  return !t.timeout.empty() || !t.headers.empty() || !a.bearer_token_path.empty() || !a.basic_user.empty() ||
         tls.ca_file || tls.cert_file || tls.server_name || tls.insecure_skip_verify;
}

base::Status read_credentials(const HttpArguments& a, net::HttpOptions& http) {
  if (!a.bearer_token_path.empty()) {
    FLOPSIGHT_ASSIGN_OR_RETURN(const std::string token, base::read_file(a.bearer_token_path));
    http.auth.bearer_token = std::string(base::trim(token));
  }
  if (!a.basic_user.empty()) {
    FLOPSIGHT_ASSIGN_OR_RETURN(const std::string password, base::read_file(a.basic_password_path));
    http.auth.basic = {a.basic_user, std::string(base::trim(password))};
  }
  return {};
}

}  // namespace flopsight::app
