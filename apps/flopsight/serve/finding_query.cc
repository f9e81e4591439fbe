#include "serve/finding_query.h"

#include "base/text.h"
#include "serve/parameters.h"

namespace flopsight::app {
namespace {

template <typename T, typename Parse>
base::Status read_words(std::optional<std::string_view> text, std::string_view name, std::string_view expected, Parse parse, std::vector<T>& out) {
  if (!text) return {};
  for (const std::string& word : base::split(*text, ',')) {
    const auto one = parse(word);
    if (!one) return wrong_parameter(name, word, expected);
    out.push_back(*one);
  }
  return {};
}

}  // namespace

base::Status read_finding_query(const std::function<std::optional<std::string_view>(std::string_view name)>& parameter, findings::Query& query) {
  const auto state = parameter("state");
  if (state != "all") {
    FLOPSIGHT_RETURN_IF_ERROR(read_words(state, "state", "open, acknowledged, resolved, or all", findings::parse_state, query.states));
    if (query.states.empty()) query.states = {findings::State::kOpen, findings::State::kAcknowledged};
  }
  const auto kind = [](const std::string& name) { return findings::find_kind(name) == nullptr ? std::nullopt : std::optional(name); };
  FLOPSIGHT_RETURN_IF_ERROR(read_words(parameter("kind"), "kind", "kinds of findings (docs/findings.md has all)", kind, query.kinds));
  FLOPSIGHT_RETURN_IF_ERROR(read_words(parameter("severity"), "severity", "info, warning or critical", findings::parse_severity, query.severities));
  for (const auto& [name, member] : {std::pair("job", &findings::Query::job), std::pair("host", &findings::Query::host), std::pair("gpu", &findings::Query::gpu),
                                     std::pair("user", &findings::Query::user), std::pair("team", &findings::Query::team)}) {
    query.*member = parameter(name).value_or("");
  }
  return {};
}

}  // namespace flopsight::app
