#pragma once
// Settings of `flopsight findings list|show|ack|unack|resolve|silence`.

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "detect/finding.h"
#include "http_arguments.h"
#include "units/time.h"

namespace flopsight::app {

enum class FindingsFormat { kTable, kJson, kCsv };

struct FindingsArguments : HttpArguments {
  enum class Action { kList, kShow, kAcknowledge, kUnacknowledge, kResolve, kSilenceAdd, kSilenceList, kSilenceEnd };
  Action action = Action::kList;
  std::string store;   // a folder; empty: a server is asked
  std::string server;  // http:// or https://
  std::string id;      // of a finding or a silence
  std::string note, author;
  // Parameters of /api/v1/findings, as they were given: name and text.
  std::vector<std::pair<std::string, std::string>> filters;
  std::uint64_t limit = 100;
  std::optional<detect::Severity> fail_on;
  FindingsFormat format = FindingsFormat::kTable;
  // Of a silence.
  std::vector<std::string> matchers;
  units::Seconds length{0};
  std::string comment;
};

struct FindingsTexts : HttpTexts {
  std::string format = "table", state, kind, severity, job, host, gpu, user, team, start, end, since, fail_on, length;
};

void add_findings(CLI::App& app, FindingsArguments& a, FindingsTexts& t);
// What is wrong, in one line.
std::optional<std::string> set_findings(const CLI::App& app, FindingsArguments& a, const FindingsTexts& t);

}  // namespace flopsight::app
