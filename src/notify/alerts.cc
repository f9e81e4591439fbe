#include "notify/alerts.h"

#include <algorithm>

#include "base/json.h"
#include "notify/words.h"

namespace flopsight::notify {
namespace {

namespace json = base::json;

constexpr double kResendsUntilEnd = 4;  // Prometheus: 4 times the resend delay or the interval, whichever is longer

// An empty label is none.
void put(Labels& labels, std::string_view name, std::string_view value) {
  if (!value.empty()) labels.emplace_back(name, clean(value));
}

Labels annotations_of(const findings::Record& record) {
  Labels out;
  out.emplace_back("summary", summary_of(record));
  out.emplace_back("description", description_of(record));
  if (!record.action.empty()) out.emplace_back("action", clean(record.action, kTextBytesMax));
  if (const std::string cost = cost_of(record); !cost.empty()) out.emplace_back("cost", cost);
  if (!record.acknowledged_by.empty()) out.emplace_back("acknowledged_by", clean(record.acknowledged_by));
  if (!record.resolved_by.empty()) out.emplace_back("resolved_by", clean(record.resolved_by));
  if (!record.note.empty()) out.emplace_back("note", clean(record.note, kTextBytesMax));
  return out;
}

json::Object object_of(const Labels& labels) {
  json::Object out;
  for (const auto& [name, value] : labels) out.emplace_back(name, value);
  return out;
}

// Why an alert ends although its finding has not.
std::string_view withdrawn_reason(const findings::Record& record) {
  if (record.silenced) return "silenced in Flopsight; the finding is still open";
  if (record.state == findings::State::kAcknowledged) return "acknowledged in Flopsight; the finding is still open";
  return "changed, or no longer for this receiver; the finding is still open";
}

}  // namespace

std::string link_of(const findings::Record& record, std::string_view external_url) {
  while (external_url.ends_with('/')) external_url.remove_suffix(1);
  if (external_url.empty()) return "";
  return std::string(external_url) + (record.kind == kTestKind ? "/" : record.path());
}

Labels alert_labels(const findings::Record& record, const Receiver& receiver) {
  Labels labels;
  put(labels, "alertname", alert_name(record.kind));
  put(labels, "severity", detect::severity_name(record.severity));
  put(labels, "kind", record.kind);
  put(labels, "id", record.id);
  put(labels, "job", record.holder.job);
  put(labels, "namespace", record.holder.name_space);
  put(labels, "user", record.holder.user);
  put(labels, "team", record.holder.team);
  put(labels, "host", record.host);
  put(labels, "gpu", record.gpu);
  // dcgm-exporter's own label, so that its alerts and these fit together.
  if (record.gpu.starts_with("GPU-") || record.gpu.starts_with("MIG-")) put(labels, "UUID", record.gpu);
  if (record.data_quality) put(labels, "data_quality", "true");
  if (record.simulated) put(labels, "simulated", "true");
  for (const auto& own : receiver.labels) {
    const bool is_taken = std::any_of(labels.begin(), labels.end(), [&](const auto& label) { return label.first == own.first; });
    if (!is_taken) put(labels, own.first, own.second);
  }
  return labels;
}

Alert open_alert(const findings::Record& record, const Receiver& receiver, std::string_view external_url, units::Instant now) {
  return {alert_labels(record, receiver), annotations_of(record), std::min(record.first, now), now + units::Seconds(kResendsUntilEnd * receiver.resend.value),
          link_of(record, external_url)};
}

base::Result<Alert> ended_alert(const findings::Record& record, std::string_view labels, std::string_view external_url, units::Instant now) {
  FLOPSIGHT_ASSIGN_OR_RETURN(const json::Value parsed, json::parse(labels));
  const json::Object* object = parsed.as_object();
  if (object == nullptr) return base::Error{base::ErrorCode::kInvalid, "expected labels as an object"};
  Alert alert;
  for (const auto& [name, value] : *object) {
    if (value.as_string() == nullptr) return base::Error{base::ErrorCode::kInvalid, "expected labels as texts"};
    alert.labels.emplace_back(name, *value.as_string());
  }
  alert.annotations = annotations_of(record);
  if (record.is_open()) alert.annotations.emplace_back("withdrawn", withdrawn_reason(record));
  alert.starts = std::min(record.first, now);
  // Alertmanager takes an alert for resolved whose end is not in the future, and refuses one that ends before it starts.
  alert.ends = std::clamp(record.resolved.value_or(now), alert.starts, now);
  alert.link = link_of(record, external_url);
  return alert;
}

std::string labels_text(const Labels& labels) { return json::dump(object_of(labels), 0); }

std::string alerts_body(std::span<const Alert> alerts) {
  json::Array list;
  for (const Alert& alert : alerts) {
    json::Object out{{"labels", object_of(alert.labels)},
                     {"annotations", object_of(alert.annotations)},
                     {"startsAt", units::to_rfc3339(alert.starts)},
                     {"endsAt", units::to_rfc3339(alert.ends)}};
    if (!alert.link.empty()) out.emplace_back("generatorURL", alert.link);
    list.emplace_back(std::move(out));
  }
  return json::dump(list, 0);
}

}  // namespace flopsight::notify
