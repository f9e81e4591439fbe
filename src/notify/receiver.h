#pragma once
// Who is told of findings, and of which: the list `notify.receivers` of the configuration.
//
//   receivers:
//     - {name: alertmanager, type: alertmanager, url: "http://alertmanager:9093"}
//     - {name: chat, type: webhook, url-file: /etc/flopsight/chat.url, teams: [ml-*], reminder: 4h}
//     - {name: drain, type: command, command: [/usr/local/sbin/drain-node], kinds: [hang], hosts: ["gpu*"]}
//
// Errors: kInvalid with the line, kLimit past kReceiversMax. Files are named here, not read. Threads: values, pure functions.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/yaml.h"
#include "findings/record.h"
#include "units/units.h"

namespace flopsight::notify {

inline constexpr std::size_t kReceiversMax = 32;  // a thread each

enum class ReceiverType : std::uint8_t { kAlertmanager, kWebhook, kCommand };
std::string_view type_name(ReceiverType type);  // "alertmanager", "webhook", "command"

// Which findings; every list of globs that is not empty must have one that fits.
struct Route {
  detect::Severity severity_min = detect::Severity::kWarning;
  std::vector<std::string> kinds, jobs, namespaces, users, teams, hosts;
  bool data_quality = true;  // findings about the measurement too

  bool takes(const findings::Record& record) const;
  bool operator==(const Route&) const = default;
};

struct Receiver {
  std::string name;
  ReceiverType type = ReceiverType::kWebhook;
  Route route;

  std::string url;       // of alertmanager: its own address, or that of its API
  std::string url_file;  // instead, for a URL that is a secret
  std::vector<std::string> command;  // the program and its arguments; never a shell's line

  std::string bearer_token_file;
  std::string basic_user;
  std::string basic_password_file;
  std::string ca_file;
  std::string cert_file;
  std::string key_file;
  std::string server_name;
  bool insecure_skip_verify = false;
  std::vector<std::string> headers;                        // "Name: value"
  std::vector<std::pair<std::string, std::string>> labels;  // of every alert, beside those of the finding

  units::Seconds timeout{10};         // of one attempt; 60 s of a command
  units::Seconds resend{60};          // alertmanager: how often an open finding is sent again
  units::Seconds reminder{0};         // how often an open finding is told again; 0: never
  units::Seconds group_wait{5};       // what else comes in this time is told in the same message
  units::Seconds min_interval{300};   // between two messages about one finding, but for its end
  units::Seconds give_up{3600};       // how long a message that is refused is tried
  std::uint64_t per_hour = 60;        // messages; runs of a command: 20; 0: no limit
  std::uint64_t attempts = 3;         // of a command that fails

  bool is_alertmanager() const { return type == ReceiverType::kAlertmanager; }
  bool is_command() const { return type == ReceiverType::kCommand; }
  bool operator==(const Receiver&) const = default;
};

// `where` is the file's name, for "FILE:LINE: …".
base::Result<std::vector<Receiver>> parse_receivers(const base::yaml::Value& list, std::string_view where);

// Every key of a receiver, for documents: key, what is expected, meaning.
struct ReceiverKey {
  std::string_view key;
  std::string_view expected;
  std::string_view of;  // "alertmanager, webhook"; empty: of all
  std::string_view meaning;
};
const std::vector<ReceiverKey>& receiver_keys();

}  // namespace flopsight::notify
