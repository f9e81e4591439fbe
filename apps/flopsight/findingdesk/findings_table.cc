#include "findingdesk/findings_table.h"

#include <algorithm>

#include "base/csv.h"
#include "base/json.h"
#include "base/text.h"
#include "views/text_table.h"

namespace flopsight::app {
namespace {

using findings::Record;
using views::text_table::Column;
using views::text_table::kUnknownCell;
using views::text_table::short_name;

constexpr std::size_t kEvidenceTextBytes = 2'000;
constexpr std::size_t kChartPoints = 60;
constexpr std::size_t kNameWidth = 20;

std::string text(const std::string& value) { return value.empty() ? std::string(kUnknownCell) : short_name(value); }
std::string hours(const Record& record) { return record.cost ? views::text_table::number(record.cost->value, "%.1f") : std::string(kUnknownCell); }
std::string usd(const Record& record) { return record.cost_usd ? views::text_table::number(record.cost_usd->value, "%.0f") : std::string(kUnknownCell); }
std::string state(const Record& record) { return std::string(findings::state_name(record.state)) + (record.silenced ? ", silenced" : ""); }

std::string whom(const Record& record) {
  if (!record.gpu.empty()) return short_name(record.gpu) + (record.host.empty() ? "" : " on " + short_name(record.host));
  return record.host.empty() ? std::string(kUnknownCell) : short_name(record.host);
}

std::string matchers(const findings::Silence& silence) {
  std::string out;
  for (const findings::Matcher& matcher : silence.matchers) out += (out.empty() ? "" : " ") + matcher.name + "=" + matcher.pattern;
  return base::printable(out);
}

// Blocks of eight heights, from nothing to the highest.
std::string chart(const Record& record) {
  static constexpr const char* kBlocks[] = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
  const std::size_t first = record.series.size() - std::min(record.series.size(), kChartPoints);
  double highest = 0;
  for (std::size_t i = first; i < record.series.size(); ++i) highest = std::max(highest, record.series[i].value);
  std::string out;
  for (std::size_t i = first; i < record.series.size(); ++i) {
    const double part = highest > 0 ? std::max(0.0, record.series[i].value / highest) : 0;
    out += kBlocks[std::min<std::size_t>(7, static_cast<std::size_t>(part * 8))];
  }
  return out;
}

}  // namespace

std::string findings_table(std::span<const Record> records) {
  if (records.empty()) return "no findings\n";
  std::vector<Column> columns = {{"id", {}, true},       {"severity", {}, true}, {"kind", {}, true},  {"state", {}, true}, {"job", {}, true},
                                 {"where", {}, true},    {"user", {}, true},     {"since", {}, true}, {"GPU-h", {}, false}, {"USD", {}, false},
                                 {"what", {}, true}};
  for (const Record& record : records) {
    const std::string cells[] = {record.id,   std::string(detect::severity_name(record.severity)), record.kind, state(record), text(record.job), whom(record),
                                 text(record.holder.user), units::to_rfc3339(record.first), hours(record), usd(record), base::printable(record.text, 120)};
    for (std::size_t i = 0; i < columns.size(); ++i) columns[i].cells.push_back(cells[i]);
  }
  const bool is_simulated = std::any_of(records.begin(), records.end(), [](const Record& record) { return record.simulated; });
  views::text_table::drop_unknown(columns, 4);
  return views::text_table::render(columns, records.size()) + (is_simulated ? "\nSIMULATED: some of the fleet does not exist\n" : "");
}

std::string findings_csv(std::span<const Record> records) {
  std::string out =
      "id,kind,severity,state,silenced,data_quality,job,namespace,user,team,host,gpu,gpu_model,first,last,opened,resolved,acknowledged_by,cost_gpu_hours,"
      "cost_usd,text,simulated\n";
  const auto flag = [](bool is_so) { return std::string(is_so ? "true" : "false"); };
  for (const Record& record : records) {
    const auto cells = {base::csv_cell(record.id),
                        base::csv_cell(record.kind),
                        std::string(detect::severity_name(record.severity)),
                        std::string(findings::state_name(record.state)),
                        flag(record.silenced),
                        flag(record.data_quality),
                        base::csv_cell(record.job),
                        base::csv_cell(record.holder.name_space),
                        base::csv_cell(record.holder.user),
                        base::csv_cell(record.holder.team),
                        base::csv_cell(record.host),
                        base::csv_cell(record.gpu),
                        base::csv_cell(record.gpu_model),
                        units::to_rfc3339(record.first),
                        units::to_rfc3339(record.last),
                        units::to_rfc3339(record.opened),
                        record.resolved ? units::to_rfc3339(*record.resolved) : std::string(),
                        base::csv_cell(record.acknowledged_by),
                        record.cost ? base::json::number_text(record.cost->value) : std::string(),
                        record.cost_usd ? base::json::number_text(record.cost_usd->value) : std::string(),
                        base::csv_cell(record.text),
                        flag(record.simulated)};
    for (const std::string& cell : cells) out += (&cell == cells.begin() ? "" : ",") + cell;
    out += "\n";
  }
  return out;
}

std::string finding_text(const Record& record) {
  std::string out = record.kind + " (" + std::string(detect::severity_name(record.severity)) + "), " + state(record) + (record.simulated ? ", SIMULATED" : "") + "\n";
  out += "  " + base::printable(record.text, kEvidenceTextBytes) + "\n";
  const auto line = [&](std::string_view name, const std::string& value) {
    if (value.empty() || value == kUnknownCell) return;
    out += "  " + std::string(name) + std::string(name.size() < kNameWidth ? kNameWidth - name.size() : 1, ' ') + base::printable(value, kEvidenceTextBytes) + "\n";
  };
  line("to do", record.action);
  line("id", record.id);
  line("job", record.job);
  line("user", record.holder.user);
  line("team", record.holder.team);
  line("host", record.host);
  line("GPU", record.gpu);
  line("GPU model", record.gpu_model);
  line("first", units::to_rfc3339(record.first));
  line("last", units::to_rfc3339(record.last));
  line("opened", units::to_rfc3339(record.opened));
  if (record.resolved) line("resolved", units::to_rfc3339(*record.resolved) + (record.resolved_by.empty() ? ", it does not show any more" : " by " + record.resolved_by));
  if (record.acknowledged) line("acknowledged", units::to_rfc3339(*record.acknowledged) + " by " + record.acknowledged_by);
  line("note", record.note);
  if (record.flap_count > 0) line("came back", std::to_string(record.flap_count) + " times");
  if (record.cost) line("cost", hours(record) + " GPU-hours" + (record.cost_usd ? ", " + usd(record) + " USD" : ", no price for the GPU model"));
  if (record.data_quality) line("cost", "none: the time is unmeasured, which is no waste");
  for (const detect::Evidence& evidence : record.evidence) line(evidence.name, views::text_table::number(evidence.value, "%.10g"));
  for (const detect::Suspect& suspect : record.suspects) {
    line("suspect", (suspect.explained_ratio ? views::text_table::percent(*suspect.explained_ratio) + " of the drop: " : "at the same time: ") + suspect.text);
  }
  if (!record.series.empty()) {
    out += "  " + record.series_name + ", the last " + std::to_string(std::min(record.series.size(), kChartPoints)) + " minutes until " +
           units::to_rfc3339(record.series.back().time) + "\n  " + chart(record) + "\n";
  }
  return out;
}

std::string silences_table(std::span<const findings::Silence> silences) {
  if (silences.empty()) return "no silences\n";
  std::vector<Column> columns = {{"id", {}, true}, {"what", {}, true}, {"from", {}, true}, {"until", {}, true}, {"by", {}, true}, {"why", {}, true}};
  for (const findings::Silence& silence : silences) {
    const std::string cells[] = {silence.id, matchers(silence), units::to_rfc3339(silence.start), units::to_rfc3339(silence.end), text(silence.author),
                                 base::printable(silence.comment, 80)};
    for (std::size_t i = 0; i < columns.size(); ++i) columns[i].cells.push_back(cells[i]);
  }
  return views::text_table::render(columns, silences.size());
}

}  // namespace flopsight::app
