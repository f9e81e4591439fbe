#include "notify/receiver.h"

#include <algorithm>
#include <functional>
#include <set>

#include "base/text.h"
#include "jobs/label_rules.h"

namespace flopsight::notify {
namespace {

namespace yaml = base::yaml;

constexpr unsigned kAlertmanagers = 1, kWebhooks = 2, kCommands = 4;
constexpr unsigned kOverHttp = kAlertmanagers | kWebhooks, kMessages = kWebhooks | kCommands, kAll = 7;
constexpr std::size_t kItemsMax = 1'000;  // of a list
constexpr std::uint64_t kPerHourMax = 3'600;
constexpr std::uint64_t kAttemptsMax = 10;

constexpr std::string_view kFile = "a file";
constexpr std::string_view kGlobs = "a list of names, * allowed";

// False when the value is not what was expected.
using Setter = std::function<bool(Receiver&, const yaml::Value&)>;

struct Key {
  ReceiverKey info;
  unsigned types;
  Setter set;
};

bool is_text(const yaml::Value& value) { return value.kind == yaml::Kind::kScalar && !value.text.empty(); }

Setter text_of(std::string Receiver::*field) {
  return [field](Receiver& receiver, const yaml::Value& value) {
    receiver.*field = value.text;
    return is_text(value);
  };
}

// One text stands for a list of one.
bool read_texts(const yaml::Value& value, std::vector<std::string>& out) {
  if (is_text(value)) {
    out = {value.text};
    return true;
  }
  if (value.kind != yaml::Kind::kList || value.items.empty() || value.items.size() > kItemsMax) return false;
  for (const yaml::Value& item : value.items) {
    if (!is_text(item)) return false;
    out.push_back(item.text);
  }
  return true;
}

Setter texts_of(std::vector<std::string> Receiver::*field) {
  return [field](Receiver& receiver, const yaml::Value& value) { return read_texts(value, receiver.*field); };
}
Setter globs_of(std::vector<std::string> Route::*field) {
  return [field](Receiver& receiver, const yaml::Value& value) { return read_texts(value, receiver.route.*field); };
}

bool read_flag(const yaml::Value& value, bool& out) {
  if (value.kind != yaml::Kind::kScalar || (value.text != "true" && value.text != "false")) return false;
  out = value.text == "true";
  return true;
}

// 0 where it means never.
Setter duration_of(units::Seconds Receiver::*field, double seconds_min, double seconds_max) {
  return [=](Receiver& receiver, const yaml::Value& value) {
    if (value.kind != yaml::Kind::kScalar) return false;
    const auto seconds = value.text == "0" ? units::Seconds(0) : units::parse_duration(value.text);
    if (!seconds || seconds->value < seconds_min || seconds->value > seconds_max) return false;
    receiver.*field = *seconds;
    return true;
  };
}

Setter count_of(std::uint64_t Receiver::*field, std::uint64_t most, std::uint64_t least) {
  return [=](Receiver& receiver, const yaml::Value& value) {
    const auto number = value.kind == yaml::Kind::kScalar ? base::parse_number(value.text) : std::nullopt;
    if (!number || *number < static_cast<double>(least) || *number > static_cast<double>(most)) return false;
    receiver.*field = static_cast<std::uint64_t>(*number);
    return static_cast<double>(receiver.*field) == *number;
  };
}

bool set_severity(Receiver& receiver, const yaml::Value& value) {
  const auto severity = findings::parse_severity(value.text);
  if (severity) receiver.route.severity_min = *severity;
  return severity.has_value();
}

bool is_label_name(std::string_view name) {
  constexpr std::string_view kLetters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_";
  return !name.empty() && name.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789") == std::string_view::npos &&
         kLetters.find(name.front()) != std::string_view::npos;
}

bool set_labels(Receiver& receiver, const yaml::Value& value) {
  if (value.kind != yaml::Kind::kMap || value.fields.size() > 32) return false;
  for (const yaml::Field& field : value.fields) {
    if (!is_label_name(field.key) || !is_text(field.value)) return false;
    receiver.labels.emplace_back(field.key, field.value.text);
  }
  return true;
}

bool set_headers(Receiver& receiver, const yaml::Value& value) {
  return read_texts(value, receiver.headers) &&
         std::all_of(receiver.headers.begin(), receiver.headers.end(), [](const std::string& header) { return header.find(':') != std::string::npos && header.front() != ':'; });
}

bool is_url(std::string_view text) { return text.starts_with("http://") || text.starts_with("https://"); }

bool set_url(Receiver& receiver, const yaml::Value& value) {
  receiver.url = value.text;
  return is_text(value) && is_url(value.text);
}

std::vector<Key> route_keys() {
  return {
      {{"min-severity", "info, warning or critical", "", "only findings of this severity or a higher one; default warning"}, kAll, set_severity},
      {{"kinds", kGlobs, "", "only findings of these kinds (docs/detection.md)"}, kAll, globs_of(&Route::kinds)},
      {{"jobs", kGlobs, "", "only findings of these jobs"}, kAll, globs_of(&Route::jobs)},
      {{"namespaces", kGlobs, "", "only of jobs in these namespaces or clusters"}, kAll, globs_of(&Route::namespaces)},
      {{"users", kGlobs, "", "only of jobs of these users"}, kAll, globs_of(&Route::users)},
      {{"teams", kGlobs, "", "only of jobs of these teams"}, kAll, globs_of(&Route::teams)},
      {{"hosts", kGlobs, "", "only findings of these hosts"}, kAll, globs_of(&Route::hosts)},
      {{"data-quality", "true or false", "", "findings about the measurement (dead counters, silent hosts) too; default true"}, kAll,
       [](Receiver& receiver, const yaml::Value& value) { return read_flag(value, receiver.route.data_quality); }},
  };
}

std::vector<Key> http_keys() {
  constexpr std::string_view kBoth = "alertmanager, webhook";
  return {
      {{"url", "http:// or https://", kBoth, "where to send; of an Alertmanager its own address, or that of its /api/v2/alerts"}, kOverHttp, set_url},
      {{"url-file", kFile, kBoth, "instead of url, for one that is a secret; read anew for every message"}, kOverHttp, text_of(&Receiver::url_file)},
      {{"bearer-token-file", kFile, kBoth, "bearer token; read anew for every message, like the password"}, kOverHttp, text_of(&Receiver::bearer_token_file)},
      {{"basic-user", "a name", kBoth, "user of basic authentication"}, kOverHttp, text_of(&Receiver::basic_user)},
      {{"basic-password-file", kFile, kBoth, "its password"}, kOverHttp, text_of(&Receiver::basic_password_file)},
      {{"ca-file", kFile, kBoth, "PEM of the certificate authority"}, kOverHttp, text_of(&Receiver::ca_file)},
      {{"cert-file", kFile, kBoth, "PEM of the client certificate"}, kOverHttp, text_of(&Receiver::cert_file)},
      {{"key-file", kFile, kBoth, "PEM of its key"}, kOverHttp, text_of(&Receiver::key_file)},
      {{"server-name", "a name", kBoth, "to verify the certificate for, instead of the URL's host"}, kOverHttp, text_of(&Receiver::server_name)},
      {{"insecure-skip-verify", "true or false", kBoth, "do not verify the certificate"}, kOverHttp,
       [](Receiver& receiver, const yaml::Value& value) { return read_flag(value, receiver.insecure_skip_verify); }},
      {{"headers", "a list of Name: value", kBoth, "sent with every message"}, kOverHttp, set_headers},
      {{"labels", "a mapping of label names to values", "alertmanager", "of every alert, e.g. cluster: a"}, kAlertmanagers, set_labels},
  };
}

std::vector<Key> pace_keys() {
  constexpr std::string_view kMessage = "webhook, command";
  return {
      {{"command", "a list: a program and its arguments", "command", "run once for each change, without a shell (docs/notifications.md)"}, kCommands,
       texts_of(&Receiver::command)},
      {{"timeout", "100ms to 1h", "", "of one attempt; default 10s, of a command 60s"}, kAll, duration_of(&Receiver::timeout, 0.1, 3'600)},
      {{"resend", "1s to 1h", "alertmanager", "how often an open finding is sent again; the alert ends by itself four times as long after the last time; default 60s"}, kAlertmanagers,
       duration_of(&Receiver::resend, 1, 3'600)},
      {{"reminder", "1m or longer; 0: never", kMessage, "how often an open finding that nobody acknowledged is told again; default 0"}, kMessages,
       [](Receiver& receiver, const yaml::Value& value) {
         return duration_of(&Receiver::reminder, 0, 30 * 86'400.0)(receiver, value) && (receiver.reminder.value == 0 || receiver.reminder.value >= 60);
       }},
      {{"group-wait", "0 to 1h", "", "what else comes in this time is told in the same message; default 5s"}, kAll, duration_of(&Receiver::group_wait, 0, 3'600)},
      {{"min-interval", "0 to 7d", kMessage, "between two messages about one finding that comes and goes; its end is told at once; default 5m"}, kMessages,
       duration_of(&Receiver::min_interval, 0, 7 * 86'400.0)},
      {{"per-hour", "0 to 3600; 0: no limit", kMessage, "messages in an hour, default 60; runs of a command, default 20; what is over waits"}, kMessages,
       count_of(&Receiver::per_hour, kPerHourMax, 0)},
      {{"give-up", "1s to 7d", "webhook", "how long messages are tried where the receiver lets nobody in (401, 403, 404 …); default 1h"}, kWebhooks,
       duration_of(&Receiver::give_up, 1, 7 * 86'400.0)},
      {{"attempts", "1 to 10", "command", "how often a command is run that fails; default 3"}, kCommands, count_of(&Receiver::attempts, kAttemptsMax, 1)},
  };
}

const std::vector<Key>& keys() {
  static const std::vector<Key> kKeys = [] {
    std::vector<Key> all;
    for (std::vector<Key> more : {http_keys(), pace_keys(), route_keys()}) std::move(more.begin(), more.end(), std::back_inserter(all));
    return all;
  }();
  return kKeys;
}

std::optional<ReceiverType> parse_type(std::string_view name) {
  for (const ReceiverType type : {ReceiverType::kAlertmanager, ReceiverType::kWebhook, ReceiverType::kCommand}) {
    if (type_name(type) == name) return type;
  }
  return std::nullopt;
}

class Reader {
 public:
  explicit Reader(std::string_view where) : where_(where) {}

  base::Result<Receiver> receiver(const yaml::Value& entry) const {
    if (entry.kind != yaml::Kind::kMap) return mistake(entry.line, "found " + std::string(kind_name(entry.kind)) + ", expected a receiver: name, type and what it needs");
    Receiver out;
    const yaml::Value* name = entry.find("name");
    if (name == nullptr || !is_name(*name)) {
      return mistake(name == nullptr ? entry.line : name->line, "name: expected up to 64 letters, digits, '-', '_' or '.', which stand in messages and metrics");
    }
    out.name = name->text;
    const yaml::Value* type = entry.find("type");
    const auto known = type == nullptr ? std::nullopt : parse_type(type->text);
    if (!known) return mistake(type == nullptr ? entry.line : type->line, out.name + ": type: expected alertmanager, webhook or command");
    out.type = *known;
    if (out.is_command()) {
      out.timeout = units::Seconds(60);
      out.per_hour = 20;
    }
    if (out.is_alertmanager()) out.per_hour = 0;
    for (const yaml::Field& field : entry.fields) {
      if (field.key != "name" && field.key != "type") FLOPSIGHT_RETURN_IF_ERROR(set(out, field));
    }
    FLOPSIGHT_RETURN_IF_ERROR(check(out, entry.line));
    return out;
  }

  base::Error mistake(int line, const std::string& what) const {
    return {base::ErrorCode::kInvalid, std::string(where_) + ":" + std::to_string(line) + ": notify.receivers: " + what};
  }

 private:
  static bool is_name(const yaml::Value& value) {
    return is_text(value) && value.text.size() <= 64 &&
           value.text.find_first_not_of("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.") == std::string::npos;
  }

  base::Status set(Receiver& out, const yaml::Field& field) const {
    const auto key = std::find_if(keys().begin(), keys().end(), [&](const Key& k) { return k.info.key == field.key; });
    if (key == keys().end()) return mistake(field.value.line, out.name + ": " + base::printable(field.key, 60) + ": no such key (docs/notifications.md has all)");
    const std::string what = out.name + ": " + std::string(key->info.key);
    if ((key->types & (1U << static_cast<unsigned>(out.type))) == 0) {
      return mistake(field.value.line, what + ": is not for a receiver of type " + std::string(type_name(out.type)) + ", only for " + std::string(key->info.of));
    }
    if (key->set(out, field.value)) return {};
    const std::string found = field.value.kind == yaml::Kind::kScalar ? "\"" + shown(field) + "\"" : std::string(kind_name(field.value.kind));
    return mistake(field.value.line, what + ": found " + found + ", expected " + std::string(key->info.expected));
  }

  // A URL may carry a password.
  static std::string shown(const yaml::Field& field) { return field.key == "url" ? "…" : base::printable(field.value.text, 60); }

  base::Status check(const Receiver& r, int line) const {
    const auto wrong = [&](const std::string& what) { return mistake(line, r.name + ": " + what); };
    if (r.is_command()) {
      if (r.command.empty()) return wrong("command: missing, expected a program and its arguments");
      return {};
    }
    if (r.url.empty() == r.url_file.empty()) return wrong("expected one of url and url-file");
    if (r.basic_user.empty() != r.basic_password_file.empty()) return wrong("basic-user and basic-password-file belong together");
    if (!r.basic_user.empty() && !r.bearer_token_file.empty()) return wrong("basic-user beside bearer-token-file, expected one of them");
    if (r.cert_file.empty() != r.key_file.empty()) return wrong("cert-file and key-file belong together");
    return {};
  }

  std::string_view where_;
};

bool fits(const std::vector<std::string>& globs, std::string_view text) {
  return globs.empty() || std::any_of(globs.begin(), globs.end(), [&](const std::string& glob) { return jobs::glob_matches(glob, text); });
}

}  // namespace

std::string_view type_name(ReceiverType type) {
  constexpr std::string_view kNames[] = {"alertmanager", "webhook", "command"};
  return kNames[static_cast<std::size_t>(type)];
}

bool Route::takes(const findings::Record& record) const {
  return record.severity >= severity_min && (data_quality || !record.data_quality) && fits(kinds, record.kind) && fits(jobs, record.holder.job) &&
         fits(namespaces, record.holder.name_space) && fits(users, record.holder.user) && fits(teams, record.holder.team) && fits(hosts, record.host);
}

base::Result<std::vector<Receiver>> parse_receivers(const yaml::Value& list, std::string_view where) {
  const Reader reader(where);
  std::vector<Receiver> out;
  if (list.kind == yaml::Kind::kNull) return out;
  if (list.kind != yaml::Kind::kList) return reader.mistake(list.line, "found " + std::string(kind_name(list.kind)) + ", expected a list of receivers");
  std::set<std::string> names;
  for (const yaml::Value& entry : list.items) {
    if (out.size() == kReceiversMax) {
      return base::Error{base::ErrorCode::kLimit, reader.mistake(entry.line, "more than " + std::to_string(kReceiversMax) + " receivers").message};
    }
    FLOPSIGHT_ASSIGN_OR_RETURN(Receiver receiver, reader.receiver(entry));
    if (!names.insert(receiver.name).second) return reader.mistake(entry.line, receiver.name + ": a second receiver of this name");
    out.push_back(std::move(receiver));
  }
  return out;
}

const std::vector<ReceiverKey>& receiver_keys() {
  static const std::vector<ReceiverKey> kInfos = [] {
    std::vector<ReceiverKey> infos = {{"name", "up to 64 letters, digits, '-', '_', '.'", "", "stands in messages and metrics"},
                                      {"type", "alertmanager, webhook or command", "", "what it is"}};
    for (const Key& key : keys()) infos.push_back(key.info);
    return infos;
  }();
  return kInfos;
}

}  // namespace flopsight::notify
