#include "notify/messages.h"

#include <algorithm>
#include <iterator>

#include "base/json.h"
#include "findings/record_json.h"
#include "notify/alerts.h"
#include "notify/words.h"

namespace flopsight::notify {
namespace {

namespace json = base::json;
using json::Value;

void cut(std::string& text, std::size_t bytes_max = kNameBytesMax) { text = clean(text, bytes_max); }

// Made safe to be shown and of limited size; without its series, which the link shows.
findings::Record safe(const findings::Record& record) {
  findings::Record out = record;
  for (std::string* name : {&out.holder.job, &out.holder.name_space, &out.holder.user, &out.holder.team, &out.host, &out.gpu, &out.gpu_model, &out.kind,
                            &out.resolved_by, &out.acknowledged_by}) {
    cut(*name);
  }
  for (std::string* text : {&out.key, &out.job, &out.note, &out.text, &out.action}) cut(*text, kTextBytesMax);
  out.evidence.resize(std::min(out.evidence.size(), kListedMax));
  out.suspects.resize(std::min(out.suspects.size(), kListedMax));
  for (detect::Evidence& evidence : out.evidence) cut(evidence.name);
  for (detect::Suspect& suspect : out.suspects) cut(suspect.text, kTextBytesMax);
  out.series.clear();
  out.series_name.clear();
  return out;
}

json::Object finding_of(const Due& due, std::string_view external_url) {
  const std::string link = link_of(*due.record, external_url);
  json::Object out{{"transition", telling_name(due.telling)}, {"summary", summary_of(*due.record)}, {"link", link.empty() ? Value() : Value(link)}};
  json::Object record = findings::record_json(safe(*due.record));
  std::erase_if(record, [](const auto& member) { return member.first == "series"; });
  std::move(record.begin(), record.end(), std::back_inserter(out));
  return out;
}

std::string text_of(const Message& message) {
  std::string out = message.is_test ? "TEST, nothing happened\n" : "";
  for (const Due& due : message.due) out += line_of(due) + "\n";
  if (message.more > 0) out += "and " + std::to_string(message.more) + " more\n";
  return out;
}

}  // namespace

std::string line_of(const Due& due) {
  return std::string(telling_name(due.telling)) + ": " + summary_of(*due.record) + ": " + clean(due.record->text, kTextBytesMax);
}

std::string message_json(const Message& message) {
  json::Array findings;
  for (const Due& due : message.due) findings.emplace_back(finding_of(due, message.external_url));
  return json::dump(json::Object{{"version", kMessageVersion},
                                 {"receiver", message.receiver},
                                 {"sent", units::to_rfc3339(message.now)},
                                 {"external_url", message.external_url.empty() ? Value() : Value(message.external_url)},
                                 {"test", message.is_test},
                                 {"text", text_of(message)},
                                 {"findings", std::move(findings)},
                                 {"more", static_cast<std::uint64_t>(message.more)}},
                    0);
}

std::vector<std::pair<std::string, std::string>> command_environment(const Message& message) {
  std::vector<std::pair<std::string, std::string>> out = {{"FLOPSIGHT_VERSION", std::to_string(kMessageVersion)},
                                                          {"FLOPSIGHT_RECEIVER", clean(message.receiver)},
                                                          {"FLOPSIGHT_TEST", message.is_test ? "1" : "0"},
                                                          {"FLOPSIGHT_MORE", std::to_string(message.more)}};
  if (message.due.empty()) return out;
  const Due& due = message.due.front();
  const findings::Record& r = *due.record;
  const auto put = [&](std::string_view name, std::string_view value, std::size_t bytes_max = kNameBytesMax) {
    out.emplace_back("FLOPSIGHT_" + std::string(name), clean(value, bytes_max));
  };
  put("TRANSITION", telling_name(due.telling));
  put("ID", r.id);
  put("KIND", r.kind);
  put("SEVERITY", detect::severity_name(r.severity));
  put("JOB", r.holder.job);
  put("NAMESPACE", r.holder.name_space);
  put("USER", r.holder.user);
  put("TEAM", r.holder.team);
  put("HOST", r.host);
  put("GPU", r.gpu);
  put("FIRST", units::to_rfc3339(r.first));
  put("SUMMARY", summary_of(r), kTextBytesMax);
  put("TEXT", r.text, kTextBytesMax);
  put("ACTION", r.action, kTextBytesMax);
  put("LINK", link_of(r, message.external_url), kTextBytesMax);
  put("SIMULATED", r.simulated ? "1" : "0");
  return out;
}

}  // namespace flopsight::notify
