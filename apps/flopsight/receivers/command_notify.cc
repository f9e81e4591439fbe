#include "receivers/command_notify.h"

#include <algorithm>
#include <csignal>
#include <ostream>

#include "base/text.h"
#include "notify/messages.h"
#include "notify/words.h"
#include "serve/notify_channel.h"
#include "serve/serve_config.h"
#include "error_line.h"

namespace flopsight::app {
namespace {

findings::Record test_finding(const NotifyArguments& arguments, units::Instant now) {
  findings::Record record;
  record.key = notify::kTestKind;
  record.id = findings::record_id(record.key, now);
  record.kind = notify::kTestKind;
  record.severity = arguments.severity;
  record.first = record.last = record.opened = record.changed = now;
  record.text = "This is a test of notifications: nothing happened";
  record.action = "Nothing is to be done";
  return record;
}

base::Result<ServeConfig> settings_of(const NotifyArguments& arguments) {
  FLOPSIGHT_ASSIGN_OR_RETURN(ServeConfig config, read_config(arguments.config_path, {}));
  FLOPSIGHT_RETURN_IF_ERROR(check_config(config));
  const auto wrong = [&](const std::string& what) { return base::Error{base::ErrorCode::kNotFound, arguments.config_path + ": notify.receivers: " + what}; };
  if (config.notify_receivers.empty()) return wrong("none, expected a list (docs/notifications.md)");
  if (arguments.receiver.empty()) return config;
  std::erase_if(config.notify_receivers, [&](const notify::Receiver& receiver) { return receiver.name != arguments.receiver; });
  if (config.notify_receivers.empty()) return wrong("no receiver is called " + base::printable(arguments.receiver, 64));
  return config;
}

}  // namespace

int run_notify(const NotifyArguments& arguments, const Env& env) {
  std::signal(SIGPIPE, SIG_IGN);
  const base::Result<ServeConfig> config = settings_of(arguments);
  if (!config.ok()) return fail(env, "notify", config.error());
  const findings::Record record = test_finding(arguments, env.now());
  const notify::Due due[] = {{&record, notify::Telling::kOpened}};
  bool is_failed = false;
  for (const notify::Receiver& receiver : config->notify_receivers) {
    env.out << receiver.name << " (" << type_name(receiver.type) << "): " << std::flush;
    if (receiver.is_command() && arguments.receiver.empty()) {
      env.out << "not run; --receiver " << receiver.name << " runs it\n";
      continue;
    }
    const SendOutcome outcome = NotifyChannel(receiver).send({receiver.name, config->notify_external_url, env.now(), due, 0, true}, {});
    const bool is_taken = outcome.kind == SendOutcome::Kind::kTaken;
    env.out << (is_taken ? "taken" : "failed: " + base::printable(outcome.why, 1'000)) << "\n";
    is_failed |= !is_taken;
  }
  return is_failed ? kExitFailure : kExitDone;
}

}  // namespace flopsight::app
