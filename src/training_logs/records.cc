// Lines inside the records of container runtimes and collectors of logs.
#include <algorithm>
#include <array>
#include <cmath>

#include "base/json.h"
#include "base/text.h"
#include "training_logs/line_internal.h"

namespace flopsight::training_logs {
namespace {

namespace json = base::json;

// Docker, Loki, VictoriaLogs, Google, journald, OpenTelemetry.
constexpr std::array<std::string_view, 8> kTextKeys = {"log", "message", "msg", "_msg", "textPayload", "MESSAGE", "line", "body"};
constexpr std::array<std::string_view, 8> kTimeKeys = {"time", "timestamp", "@timestamp", "ts", "_time", "eventTime", "__REALTIME_TIMESTAMP", "_SOURCE_REALTIME_TIMESTAMP"};
// What records, and lists of them, lie in: nothing else is looked into, as a trainer's own records have texts too.
constexpr std::array<std::string_view, 12> kWrappers = {"jsonPayload", "_source", "hits", "data", "result", "results", "values", "events", "entries", "records", "logs", "fields"};
constexpr int kDepthMost = 8;

// Seconds, milli-, micro- or nanoseconds since 1970, told apart by their size: all of these years are between 2001 and 2286.
std::optional<PrintedTime> time_of_number(double number) {
  if (!(number >= 1e9)) return std::nullopt;
  for (const double scale : {1e3, 1.0, 1e-3, 1e-6}) {
    if (number * scale < 1e13) return PrintedTime{static_cast<std::int64_t>(std::floor(number * scale)), 0};
  }
  return std::nullopt;
}

std::optional<PrintedTime> time_of(const json::Value& value) {
  if (value.as_number() != nullptr) return time_of_number(*value.as_number());
  const std::string* text = value.as_string();
  if (text == nullptr) return std::nullopt;
  std::size_t size = 0;
  if (const auto date = read_date(*text, size)) return date;
  const auto number = base::parse_number(*text);
  return number ? time_of_number(*number) : std::nullopt;
}

const std::string* text_of(const json::Value& object) {
  for (const std::string_view key : kTextKeys) {
    const json::Value* value = object.find(key);
    if (value != nullptr && value->as_string() != nullptr) return value->as_string();
  }
  return nullptr;
}

void collect(const json::Value& value, std::optional<PrintedTime> time, int depth, std::vector<Recorded>& out) {
  if (depth > kDepthMost) return;
  if (const json::Array* list = value.as_array()) {
    // Loki's values: ["1720692000000000000", "the line"].
    if (list->size() >= 2 && (*list)[0].as_string() != nullptr && (*list)[1].as_string() != nullptr) {
      const auto of_pair = base::parse_number(*(*list)[0].as_string());
      if (of_pair && *of_pair >= 1e17) {
        out.push_back({*(*list)[1].as_string(), time_of_number(*of_pair)});
        return;
      }
    }
    for (const json::Value& item : *list) collect(item, time, depth + 1, out);
    return;
  }
  if (value.as_object() == nullptr) return;
  for (const std::string_view key : kTimeKeys) {
    const json::Value* said = value.find(key);
    const std::optional<PrintedTime> own = said == nullptr ? std::nullopt : time_of(*said);
    if (!own) continue;
    time = own;
    break;
  }
  if (const std::string* text = text_of(value)) {
    out.push_back({*text, time});
    return;
  }
  for (const std::string_view key : kWrappers) {
    if (const json::Value* inner = value.find(key)) collect(*inner, time, depth + 1, out);
  }
}

// Of fluentd's "2025-03-01T10:00:00+00:00\ttag\t{…}" the date.
std::optional<PrintedTime> without_fluentd_head(std::string_view& raw) {
  const std::size_t at = raw.find("\t{");
  if (at == std::string_view::npos || !raw.ends_with('}')) return std::nullopt;
  std::size_t size = 0;
  const std::optional<PrintedTime> time = read_date(raw, size);
  if (time) raw.remove_prefix(at + 1);
  return time;
}

}  // namespace

std::vector<Recorded> recorded_lines(std::string_view raw) {
  raw = base::trim(raw);
  std::optional<PrintedTime> time = raw.starts_with('{') ? std::nullopt : without_fluentd_head(raw);
  std::string member;
  if (raw.starts_with('"')) {  // `"message": "…",` of a record over several lines
    if (raw.ends_with(',')) raw.remove_suffix(1);
    member = '{' + std::string(raw) + '}';
    raw = member;
  }
  if (raw.ends_with(',')) raw.remove_suffix(1);  // of a list with an item a line
  std::vector<Recorded> out;
  const bool is_json = (raw.starts_with('{') && raw.ends_with('}')) || (raw.starts_with('[') && raw.ends_with(']'));
  if (!is_json) return out;
  const auto record = json::parse(raw);
  if (record.ok()) collect(*record, time, 0, out);
  return out;
}

std::optional<RuntimeLine> runtime_line(std::string_view raw) {
  std::size_t size = 0;
  if (!read_date(raw, size)) return std::nullopt;
  const std::string_view rest = raw.substr(size);
  const bool is_out = rest.starts_with(" stdout "), is_error = rest.starts_with(" stderr ");
  if (!is_out && !is_error) return std::nullopt;
  const std::string_view tagged = rest.substr(8);
  if (tagged.size() < 2 || (tagged[0] != 'P' && tagged[0] != 'F') || tagged[1] != ' ') return std::nullopt;
  return RuntimeLine{is_error, tagged[0] == 'P', tagged.substr(2)};
}

}  // namespace flopsight::training_logs
