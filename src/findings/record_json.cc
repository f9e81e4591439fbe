#include "findings/record_json.h"

#include <cmath>

#include "findings/json_fields_internal.h"

namespace flopsight::findings {
namespace {

using base::Result;
using base::Status;
using base::json::Array;
using base::json::Object;
using base::json::Value;
using base::json::wrong;

constexpr std::size_t kItemsMax = 10'000;  // of a list

constexpr detect::SuspectKind kSuspectKinds[] = {detect::SuspectKind::kLabelChange, detect::SuspectKind::kSlowGpu,      detect::SuspectKind::kClock,
                                                 detect::SuspectKind::kHostOrInput, detect::SuspectKind::kCommunication, detect::SuspectKind::kKernels};

constexpr std::pair<std::string_view, std::string Record::*> kTexts[] = {
    {"id", &Record::id},           {"key", &Record::key},         {"kind", &Record::kind},
    {"job", &Record::job},         {"host", &Record::host},       {"gpu", &Record::gpu},
    {"gpu_model", &Record::gpu_model}, {"resolved_by", &Record::resolved_by}, {"acknowledged_by", &Record::acknowledged_by},
    {"note", &Record::note},       {"text", &Record::text},       {"action", &Record::action}};
constexpr std::pair<std::string_view, std::string samples::Holder::*> kHolderTexts[] = {{"job_name", &samples::Holder::job},
                                                                                         {"namespace", &samples::Holder::name_space},
                                                                                         {"user", &samples::Holder::user},
                                                                                         {"team", &samples::Holder::team}};
constexpr std::pair<std::string_view, units::Instant Record::*> kTimes[] = {
    {"first", &Record::first}, {"last", &Record::last}, {"opened", &Record::opened}, {"changed", &Record::changed}};

Value series_json(const Record& record) {
  if (record.series.empty()) return {};
  Array times, values;
  for (const detect::EvidencePoint& point : record.series) {
    times.emplace_back(units::to_rfc3339(point.time));
    values.emplace_back(point.value);
  }
  return Object{{"name", record.series_name}, {"time", std::move(times)}, {"value", std::move(values)}};
}

Array suspects_json(const Record& record) {
  Array out;
  for (const detect::Suspect& suspect : record.suspects) {
    out.emplace_back(Object{{"kind", detect::suspect_name(suspect.kind)}, {"explained_ratio", suspect.explained_ratio}, {"text", suspect.text}});
  }
  return out;
}

// Why a cost is not there.
Value absent_cost(const Record& record) {
  if (record.cost) return {};
  return record.data_quality ? "the time is unmeasured, which is no waste" : "cannot be told for this";
}

Result<const Array*> list_in(const Value& object, std::string_view key) {
  static const Array kNone;
  const Value* value = object.find(key);
  if (value == nullptr || value->is_null()) return &kNone;
  if (value->as_array() == nullptr || value->as_array()->size() > kItemsMax) return wrong(key, *value, "a list");
  return value->as_array();
}

Status read_series(const Value& object, Record& out) {
  const Value* series = object.find("series");
  if (series == nullptr || series->is_null()) return {};
  FLOPSIGHT_RETURN_IF_ERROR(read_text(*series, "name", out.series_name));
  FLOPSIGHT_ASSIGN_OR_RETURN(const Array* times, list_in(*series, "time"));
  FLOPSIGHT_ASSIGN_OR_RETURN(const Array* values, list_in(*series, "value"));
  if (times->size() != values->size()) return wrong("series", *series, "as many times as values");
  for (std::size_t i = 0; i < times->size(); ++i) {
    const auto time = (*times)[i].as_string() != nullptr ? units::parse_instant(*(*times)[i].as_string()) : std::nullopt;
    if (!time) return wrong("series.time", (*times)[i], "RFC 3339");
    if ((*values)[i].as_number() == nullptr) return wrong("series.value", (*values)[i], "a number");
    out.series.push_back({*time, *(*values)[i].as_number()});
  }
  return {};
}

Status read_evidence(const Value& object, Record& out) {
  FLOPSIGHT_ASSIGN_OR_RETURN(const Array* evidence, list_in(object, "evidence"));
  for (const Value& item : *evidence) {
    detect::Evidence one;
    std::optional<double> value;
    FLOPSIGHT_RETURN_IF_ERROR(read_text(item, "name", one.name));
    FLOPSIGHT_RETURN_IF_ERROR(read_number(item, "value", value));
    if (!value) return wrong("evidence.value", item, "a number");
    one.value = *value;
    out.evidence.push_back(std::move(one));
  }
  FLOPSIGHT_ASSIGN_OR_RETURN(const Array* suspects, list_in(object, "suspects"));
  for (const Value& item : *suspects) {
    detect::Suspect one;
    std::string kind;
    FLOPSIGHT_RETURN_IF_ERROR(read_text(item, "kind", kind));
    bool is_known = false;
    for (const detect::SuspectKind known : kSuspectKinds) {
      if (detect::suspect_name(known) != kind) continue;
      one.kind = known;
      is_known = true;
    }
    if (!is_known) return wrong("suspects.kind", Value(kind), "a kind of suspect");
    FLOPSIGHT_RETURN_IF_ERROR(read_text(item, "text", one.text));
    FLOPSIGHT_RETURN_IF_ERROR(read_number(item, "explained_ratio", one.explained_ratio));
    out.suspects.push_back(std::move(one));
  }
  return {};
}

Status read_names(const Value& value, Record& out) {
  for (const auto& [key, member] : kTexts) FLOPSIGHT_RETURN_IF_ERROR(read_text(value, key, out.*member));
  for (const auto& [key, member] : kHolderTexts) FLOPSIGHT_RETURN_IF_ERROR(read_text(value, key, out.holder.*member));
  if (out.id.size() != 16 || out.id.find_first_not_of("0123456789abcdef") != std::string::npos) {
    return wrong("id", Value(out.id), "16 hexadecimal digits");
  }
  if (find_kind(out.kind) == nullptr) return wrong("kind", Value(out.kind), "a kind of finding");
  std::string severity, state;
  FLOPSIGHT_RETURN_IF_ERROR(read_text(value, "severity", severity));
  FLOPSIGHT_RETURN_IF_ERROR(read_text(value, "state", state));
  if (!parse_severity(severity)) return wrong("severity", Value(severity), "info, warning or critical");
  if (!parse_state(state)) return wrong("state", Value(state), "open, acknowledged or resolved");
  out.severity = *parse_severity(severity);
  out.state = *parse_state(state);
  return {};
}

}  // namespace

Object record_json(const Record& record, bool whole) {
  const auto hours = record.cost ? std::optional(record.cost->value) : std::nullopt;
  const auto usd = record.cost_usd ? std::optional(record.cost_usd->value) : std::nullopt;
  Object out{{"id", record.id},
             {"key", record.key},
             {"kind", record.kind},
             {"severity", detect::severity_name(record.severity)},
             {"state", state_name(record.state)},
             {"silenced", record.silenced},
             {"data_quality", record.data_quality},
             {"job", text_or_null(record.job)},
             {"job_name", text_or_null(record.holder.job)},
             {"namespace", text_or_null(record.holder.name_space)},
             {"user", text_or_null(record.holder.user)},
             {"team", text_or_null(record.holder.team)},
             {"host", text_or_null(record.host)},
             {"gpu", text_or_null(record.gpu)},
             {"gpu_model", text_or_null(record.gpu_model)},
             {"first", units::to_rfc3339(record.first)},
             {"last", units::to_rfc3339(record.last)},
             {"opened", units::to_rfc3339(record.opened)},
             {"changed", units::to_rfc3339(record.changed)},
             {"resolved", time_or_null(record.resolved)},
             {"resolved_by", text_or_null(record.resolved_by)},
             {"acknowledged", time_or_null(record.acknowledged)},
             {"acknowledged_by", text_or_null(record.acknowledged_by)},
             {"note", text_or_null(record.note)},
             {"flap_count", static_cast<std::uint64_t>(record.flap_count)},
             {"text", record.text},
             {"action", record.action},
             {"cost_gpu_hours", hours},
             {"cost_usd", usd},
             {"cost_absent_reason", absent_cost(record)},
             {"cost_usd_absent_reason", record.cost && !record.cost_usd ? Value("no price for the GPU model") : Value()},
             {"simulated", record.simulated},
             {"path", record.path()}};
  if (!whole) return out;
  Array evidence;
  for (const detect::Evidence& one : record.evidence) evidence.emplace_back(Object{{"name", one.name}, {"value", one.value}});
  out.emplace_back("evidence", std::move(evidence));
  out.emplace_back("series", series_json(record));
  out.emplace_back("suspects", suspects_json(record));
  return out;
}

Result<Record> record_from_json(const Value& value) {
  if (value.as_object() == nullptr) return wrong("finding", value, "an object");
  Record out;
  FLOPSIGHT_RETURN_IF_ERROR(read_names(value, out));
  for (const auto& [key, flag] : {std::pair("silenced", &Record::silenced), std::pair("data_quality", &Record::data_quality),
                                  std::pair("simulated", &Record::simulated)}) {
    FLOPSIGHT_RETURN_IF_ERROR(read_flag(value, key, out.*flag));
  }
  for (const auto& [key, member] : kTimes) FLOPSIGHT_RETURN_IF_ERROR(read_time(value, key, out.*member));
  FLOPSIGHT_RETURN_IF_ERROR(read_time(value, "resolved", out.resolved));
  FLOPSIGHT_RETURN_IF_ERROR(read_time(value, "acknowledged", out.acknowledged));
  std::optional<double> flaps, hours, usd;
  FLOPSIGHT_RETURN_IF_ERROR(read_number(value, "flap_count", flaps));
  FLOPSIGHT_RETURN_IF_ERROR(read_number(value, "cost_gpu_hours", hours));
  FLOPSIGHT_RETURN_IF_ERROR(read_number(value, "cost_usd", usd));
  if (flaps && (*flaps < 0 || *flaps > 4e9 || *flaps != std::floor(*flaps))) return wrong("flap_count", Value(*flaps), "a whole number");
  out.flap_count = static_cast<std::uint32_t>(flaps.value_or(0));
  if (hours) out.cost = units::GpuHours(*hours);
  if (usd) out.cost_usd = units::Usd(*usd);
  FLOPSIGHT_RETURN_IF_ERROR(read_series(value, out));
  FLOPSIGHT_RETURN_IF_ERROR(read_evidence(value, out));
  return out;
}

}  // namespace flopsight::findings
