#include "tuning/gain_record.h"

#include <algorithm>
#include <cmath>

#include "base/json.h"
#include "base/median.h"
#include "base/text.h"

namespace flopsight::tuning {
namespace {

namespace json = base::json;
using base::Error;
using base::ErrorCode;

std::optional<std::string> text_of(const json::Value& value, std::string_view key) {
  const json::Value* found = value.find(key);
  if (found == nullptr || found->as_string() == nullptr) return std::nullopt;
  return *found->as_string();
}

base::Result<GainRecord> read_record(std::string_view line) {
  FLOPSIGHT_ASSIGN_OR_RETURN(const json::Value value, json::parse(line));
  const auto wrong = [](std::string_view key, std::string_view expected) { return Error{ErrorCode::kInvalid, std::string(key) + ": expected " + std::string(expected)}; };
  GainRecord out;
  const std::pair<std::string_view, std::string*> texts[] = {{"time", &out.time}, {"change", &out.change}, {"before", &out.before}, {"after", &out.after}};
  for (const auto& entry : texts) {
    auto found = text_of(value, entry.first);
    if (!found) return wrong(entry.first, "a text");
    *entry.second = std::move(*found);
  }
  const json::Value* obtained = value.find("obtained_gain_ratio");
  if (obtained == nullptr || obtained->as_number() == nullptr || !std::isfinite(*obtained->as_number()) || *obtained->as_number() < -1) return wrong("obtained_gain_ratio", "a number of -1 or more");
  out.obtained_gain_ratio = *obtained->as_number();
  const json::Value* predicted = value.find("predicted_gain_ratio");
  if (predicted != nullptr && !predicted->is_null()) {
    if (predicted->as_number() == nullptr || !std::isfinite(*predicted->as_number())) return wrong("predicted_gain_ratio", "a number or null");
    out.predicted_gain_ratio = *predicted->as_number();
  }
  const auto by = text_of(value, "by");
  if (!by || (*by != gain_by_name(GainBy::kTokens) && *by != gain_by_name(GainBy::kOfu))) return wrong("by", "tokens_per_second or ofu");
  out.by = *by == gain_by_name(GainBy::kOfu) ? GainBy::kOfu : GainBy::kTokens;
  return out;
}

// Of record_line(), however little of it was written.
bool begins_as_record(std::string_view line) {
  constexpr std::string_view kBegin = "{\"time\":";
  const std::size_t shared = std::min(line.size(), kBegin.size());
  return line.substr(0, shared) == kBegin.substr(0, shared);
}

}  // namespace

std::string_view gain_by_name(GainBy by) { return by == GainBy::kTokens ? "tokens_per_second" : "ofu"; }

std::string record_line(const GainRecord& r) {
  return json::dump(json::Object{{"time", r.time}, {"change", r.change}, {"before", r.before}, {"after", r.after}, {"predicted_gain_ratio", r.predicted_gain_ratio},
                                 {"obtained_gain_ratio", r.obtained_gain_ratio}, {"by", gain_by_name(r.by)}}, 0) + "\n";
}

base::Result<KeptRecords> read_records(std::string_view text) {
  KeptRecords out;
  if (text.size() > kRecordBytesMax) return Error{ErrorCode::kLimit, "more than " + std::to_string(kRecordBytesMax) + " bytes"};
  out.ends_in_line = text.empty() || text.back() == '\n';
  std::size_t number = 0;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    const std::string_view line = base::trim(text.substr(0, end));
    ++number;
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    if (line.empty()) continue;
    if (out.records.size() == kRecordsMax) return Error{ErrorCode::kLimit, "more than " + std::to_string(kRecordsMax) + " records"};
    auto record = read_record(line);
    if (record.ok()) {
      out.records.push_back(std::move(record).value());
      continue;
    }
    const std::string why = "line " + std::to_string(number) + ": " + record.error().message;
    if (!begins_as_record(line) && out.records.empty() && out.unread_total == 0) return Error{ErrorCode::kInvalid, why};
    if (out.unread_total++ == 0) out.first_unread = why;
  }
  return out;
}

RecordSummary summary_of(const std::vector<GainRecord>& records) {
  RecordSummary out;
  std::vector<double> errors, absolute;
  for (const GainRecord& r : records) {
    if (!r.predicted_gain_ratio) continue;
    errors.push_back(r.obtained_gain_ratio - *r.predicted_gain_ratio);
    absolute.push_back(std::abs(errors.back()));
    if (r.obtained_gain_ratio < 0 && *r.predicted_gain_ratio > 0) ++out.worse_total;
  }
  out.verified_total = errors.size();
  if (errors.empty()) return out;
  out.error_median_ratio = base::median(errors);
  out.error_absolute_median_ratio = base::median(absolute);
  return out;
}

}  // namespace flopsight::tuning
