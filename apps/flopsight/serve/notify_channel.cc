#include "serve/notify_channel.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>

#include "base/file.h"
#include "base/text.h"
#include "net/http_options.h"
#include "notify/alerts.h"
#include "serve/child_process.h"

namespace flopsight::app {
namespace {

using notify::Telling;
using std::chrono::milliseconds;
using Kind = SendOutcome::Kind;

constexpr std::size_t kSecretBytesMax = 64 * 1024;
constexpr std::size_t kAnswerBytesMax = 64 * 1024;
constexpr std::size_t kOutputBytesMax = 64 * 1024;  // of a command; the rest is dropped
constexpr milliseconds kConnectMax{5'000};
constexpr milliseconds kStopLatency{100};
constexpr std::string_view kAlertsPath = "/api/v2/alerts";

// What a command needs to find its programs, its language and its cluster; the rest of the service's environment may be secret.
const std::vector<std::string>& inherited() {
  static const std::vector<std::string> kNames = {"PATH", "HOME", "USER", "LOGNAME", "LANG", "LC_ALL", "TZ", "TMPDIR", "SLURM_CONF", "KUBECONFIG"};
  return kNames;
}

milliseconds milliseconds_of(units::Seconds seconds) { return milliseconds(std::llround(seconds.value * 1000)); }

base::Result<std::string> secret(const std::string& path) {
  FLOPSIGHT_ASSIGN_OR_RETURN(const std::string text, base::read_file(path, kSecretBytesMax));
  return std::string(base::trim(text));
}

std::vector<std::pair<std::string, std::string>> headers_of(const notify::Receiver& receiver) {
  std::vector<std::pair<std::string, std::string>> out;
  for (const std::string_view header : receiver.headers) {
    const std::size_t colon = header.find(':');
    out.emplace_back(base::trim(header.substr(0, colon)), base::trim(header.substr(colon + 1)));
  }
  return out;
}

SendOutcome of_status(const net::HttpResponse& response) {
  SendOutcome out;
  const int status = response.status;
  if (status >= 200 && status < 300) return out;
  const std::string text = base::printable(base::trim(response.body), 200);
  out.why = "HTTP " + response.status_line + (text.empty() ? "" : ": " + text);
  if (response.retry_after) out.retry_after = units::Seconds(static_cast<double>(response.retry_after->count()));
  const bool is_later = status == 408 || status == 425 || status == 429 || status >= 500;
  const bool is_content = status == 400 || status == 413 || status == 422;
  out.kind = is_later ? Kind::kLater : is_content ? Kind::kRefused : Kind::kDenied;
  return out;
}

}  // namespace

SendOutcome NotifyChannel::send(const notify::Message& message, const store::ToldFindings& told) {
  if (receiver_.is_command()) return run(message);
  if (!receiver_.is_alertmanager()) return post(notify::message_json(message));
  std::vector<notify::Alert> alerts;
  for (const notify::Due& due : message.due) {
    const auto before = told.find(due.record->id);
    // Other labels make another alert; the one that was sent ends.
    if (before != told.end() && (due.telling == Telling::kChanged || due.telling == Telling::kEnded)) {
      auto ended = notify::ended_alert(*due.record, before->second.labels, message.external_url, message.now);
      if (ended.ok()) alerts.push_back(std::move(ended).value());
    }
    if (due.telling != Telling::kEnded) alerts.push_back(notify::open_alert(*due.record, receiver_, message.external_url, message.now));
  }
  return alerts.empty() ? SendOutcome() : post(notify::alerts_body(alerts));
}

SendOutcome NotifyChannel::run(const notify::Message& message) {
  notify::Message first = message;
  first.due = message.due.first(std::min<std::size_t>(1, message.due.size()));
  ChildOptions options;
  options.timeout = milliseconds_of(receiver_.timeout);
  options.output_bytes_max = kOutputBytesMax;
  options.drop_excess_output = true;
  options.inherited = inherited();
  options.environment = notify::command_environment(first);
  options.input = notify::message_json(first) + "\n";
  options.stop = &stopped_;
  const base::Result<ChildEnd> end = run_child_to_end(receiver_.command, options);
  SendOutcome out;
  if (!end.ok()) return {Kind::kLater, end.error().message, {}, {}};
  out.exit_code = end->exit_code;
  if (end->exit_code == 0) return out;
  out.kind = Kind::kLater;
  out.why = receiver_.command[0] + ": ended with " + std::to_string(end->exit_code) + (end->complaint.empty() ? "" : ": " + end->complaint);
  return out;
}

base::Result<std::string> NotifyChannel::url() const {
  std::string url = receiver_.url;
  if (!receiver_.url_file.empty()) {
    FLOPSIGHT_ASSIGN_OR_RETURN(url, secret(receiver_.url_file));
  }
  if (!url.starts_with("http://") && !url.starts_with("https://")) {
    return base::Error{base::ErrorCode::kInvalid, receiver_.url_file + ": expected a URL that begins with http:// or https://"};
  }
  if (!receiver_.is_alertmanager() || url.ends_with(kAlertsPath)) return url;
  while (url.ends_with('/')) url.pop_back();
  return url + std::string(kAlertsPath);
}

base::Result<net::HttpOptions> NotifyChannel::http_options() const {
  net::HttpOptions http;
  const auto path = [](const std::string& text) { return text.empty() ? std::nullopt : std::optional(text); };
  if (!receiver_.bearer_token_file.empty()) {
    FLOPSIGHT_ASSIGN_OR_RETURN(http.auth.bearer_token, secret(receiver_.bearer_token_file));
  }
  if (!receiver_.basic_user.empty()) {
    FLOPSIGHT_ASSIGN_OR_RETURN(const std::string password, secret(receiver_.basic_password_file));
    http.auth.basic = {receiver_.basic_user, password};
  }
  http.auth.headers = headers_of(receiver_);
  http.tls = {path(receiver_.ca_file), path(receiver_.cert_file), path(receiver_.key_file), path(receiver_.server_name), receiver_.insecure_skip_verify};
  http.total_timeout = milliseconds_of(receiver_.timeout);
  http.connect_timeout = std::min(kConnectMax, http.total_timeout);
  http.retries = 0;  // when to try again is the pace's
  http.body_bytes_max = kAnswerBytesMax;
  return http;
}

SendOutcome NotifyChannel::post(const std::string& body) {
  const base::Result<std::string> to = url();
  if (!to.ok()) return {Kind::kLater, to.error().message, {}, {}};
  base::Result<net::HttpOptions> options = http_options();
  if (!options.ok()) return {Kind::kLater, options.error().message, {}, {}};
  base::Result<net::HttpClient> client = net::HttpClient::create(std::move(options).value());
  if (!client.ok()) return {Kind::kLater, client.error().message, {}, {}};
  net::HttpRequest request;
  request.url = *to;
  request.body = body;
  request.content_type = "application/json";
  request.any_status = true;
  std::optional<SendOutcome> outcome;
  client->start(0, std::move(request));
  while (!outcome && !stopped_) {
    client->poll(kStopLatency, [&](std::uint64_t, base::Result<net::HttpResponse> response) {
      if (response.ok()) {
        outcome = of_status(*response);
      } else {
        const bool is_redirect = response.error().code == base::ErrorCode::kInvalid;
        outcome = SendOutcome{is_redirect ? Kind::kDenied : Kind::kLater, response.error().message, {}, {}};
      }
    });
  }
  if (!outcome) return {Kind::kLater, "stopped", {}, {}};
  // A path may be what lets one in.
  const std::string shown = net::url_without_credentials(*to);
  if (const std::size_t at = outcome->why.find(shown); !receiver_.url_file.empty() && at != std::string::npos) {
    outcome->why.replace(at, shown.size(), "the URL of " + receiver_.url_file);
  }
  return std::move(*outcome);
}

base::Status check_receiver(const notify::Receiver& receiver) {
  const auto within = [&](const base::Error& error) { return error.within("notify.receivers: " + receiver.name); };
  for (const std::string& path : {receiver.url_file, receiver.bearer_token_file, receiver.basic_password_file, receiver.ca_file, receiver.cert_file, receiver.key_file}) {
    if (path.empty()) continue;
    if (const auto readable = base::read_file(path, kSecretBytesMax); !readable.ok()) return within(readable.error());
  }
  // One without a slash is looked for in PATH when it is run.
  const bool is_path = receiver.is_command() && receiver.command[0].find('/') != std::string::npos;
  if (is_path && ::access(receiver.command[0].c_str(), X_OK) != 0) {
    return within({base::ErrorCode::kNotFound, "command: " + base::printable(receiver.command[0]) + ": no such program, or it may not be run"});
  }
  net::HttpOptions options;
  options.auth.headers = headers_of(receiver);
  if (const base::Status carried = net::check_options(options); !carried.ok()) return within(carried.error());
  return {};
}

}  // namespace flopsight::app
