#include "receivers/notify_options.h"

#include <CLI/CLI.hpp>

#include "base/text.h"
#include "findings/record.h"

namespace flopsight::app {

void add_notify(CLI::App& app, NotifyArguments& a, NotifyTexts& t) {
  app.require_subcommand(1, 1);
  CLI::App* test = app.add_subcommand("test", "send a finding that says that it is a test to the receivers of a configuration");
  test->add_option("--config", a.config_path, "YAML file of serve (docs/notifications.md)")->required();
  test->add_option("--receiver", a.receiver, "only this one; a command is run only when it is named here");
  test->add_option("--severity", t.severity, "of the test: info|warning|critical")->capture_default_str();
}

std::optional<std::string> set_notify(NotifyArguments& a, const NotifyTexts& t) {
  const auto severity = findings::parse_severity(t.severity);
  if (!severity) return "--severity " + base::printable(t.severity, 40) + ": expected info, warning or critical";
  a.severity = *severity;
  return std::nullopt;
}

}  // namespace flopsight::app
