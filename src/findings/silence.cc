#include "findings/silence.h"

#include <algorithm>
#include <array>
#include <cstdio>

#include "base/hash.h"
#include "base/text.h"
#include "findings/act.h"
#include "findings/json_fields_internal.h"
#include "jobs/label_rules.h"

namespace flopsight::findings {
namespace {

using base::Error;
using base::ErrorCode;
using base::Result;
using base::Status;
using base::json::Array;
using base::json::Object;
using base::json::Value;
using base::json::wrong;

constexpr std::array<std::string_view, 10> kNames = {"id", "kind", "severity", "job", "namespace", "user", "team", "host", "gpu", "model"};
constexpr const char* kNamesText = "id, kind, severity, job, namespace, user, team, host, gpu or model";

Error mistake(const std::string& what) { return {ErrorCode::kInvalid, what}; }

std::string_view property(const Record& record, std::string_view name) {
  if (name == "id") return record.id;
  if (name == "kind") return record.kind;
  if (name == "severity") return detect::severity_name(record.severity);
  if (name == "job") return record.job;
  if (name == "namespace") return record.holder.name_space;
  if (name == "user") return record.holder.user;
  if (name == "team") return record.holder.team;
  if (name == "host") return record.host;
  if (name == "gpu") return record.gpu;
  return name == "model" ? std::string_view(record.gpu_model) : std::string_view();
}

bool matches(const Matcher& matcher, const Record& record) {
  const std::string_view value = property(record, matcher.name);
  if (!value.empty() && jobs::glob_matches(matcher.pattern, value)) return true;
  // A job also by its bare name.
  return matcher.name == "job" && !record.holder.job.empty() && jobs::glob_matches(matcher.pattern, record.holder.job);
}

Result<Matcher> checked(Matcher matcher) {
  if (std::find(kNames.begin(), kNames.end(), matcher.name) == kNames.end()) {
    return mistake("matchers: found \"" + base::printable(matcher.name, 40) + "\", expected " + kNamesText);
  }
  if (matcher.pattern.empty()) return mistake("matchers: " + matcher.name + " has no pattern; '*' matches any");
  if (matcher.pattern.size() > kPatternBytesMax) {
    return Error{ErrorCode::kLimit, "matchers: a pattern of " + matcher.name + " is longer than " + std::to_string(kPatternBytesMax) + " bytes"};
  }
  if (matcher.name == "kind" && matcher.pattern.find('*') == std::string::npos && find_kind(matcher.pattern) == nullptr) {
    return mistake("matchers: found \"" + base::printable(matcher.pattern, 40) + "\", expected a kind of finding (docs/findings.md has all)");
  }
  if (matcher.name == "severity" && matcher.pattern.find('*') == std::string::npos && !parse_severity(matcher.pattern)) {
    return mistake("matchers: found \"" + base::printable(matcher.pattern, 40) + "\", expected info, warning or critical");
  }
  return matcher;
}

Status read_matchers(const Value& object, std::vector<Matcher>& out) {
  const Value* value = object.find("matchers");
  if (value == nullptr || value->as_array() == nullptr || value->as_array()->empty()) {
    return wrong("matchers", value == nullptr ? Value() : *value, "a list such as [\"job=train*\"]");
  }
  if (value->as_array()->size() > kMatchersMax) return Error{ErrorCode::kLimit, "matchers: more than " + std::to_string(kMatchersMax)};
  for (const Value& item : *value->as_array()) {
    if (item.as_string() != nullptr) {
      FLOPSIGHT_ASSIGN_OR_RETURN(Matcher matcher, parse_matcher(*item.as_string()));
      out.push_back(std::move(matcher));
      continue;
    }
    if (item.as_object() == nullptr) return wrong("matchers", item, "\"name=pattern\"");
    Matcher matcher;
    FLOPSIGHT_RETURN_IF_ERROR(read_text(item, "name", matcher.name));
    FLOPSIGHT_RETURN_IF_ERROR(read_text(item, "pattern", matcher.pattern));
    FLOPSIGHT_ASSIGN_OR_RETURN(matcher, checked(std::move(matcher)));
    out.push_back(std::move(matcher));
  }
  return {};
}

Status read_end(const Value& object, Silence& silence) {
  std::optional<units::Instant> end;
  std::optional<double> seconds;
  FLOPSIGHT_RETURN_IF_ERROR(read_time(object, "end", end));
  FLOPSIGHT_RETURN_IF_ERROR(read_number(object, "duration_seconds", seconds));
  if (end.has_value() == seconds.has_value()) return mistake("end: expected either end or duration_seconds");
  // Before it becomes a time: that of a huge number is none.
  constexpr double kSecondsMax = kSilenceDaysMax * 86'400;
  if (seconds && (!(*seconds > 0) || *seconds > kSecondsMax)) {
    return mistake("duration_seconds: found " + base::json::number_text(*seconds) + ", expected up to " + base::json::number_text(kSilenceDaysMax) + " days");
  }
  silence.end = end ? *end : silence.start + units::Seconds(*seconds);
  if (silence.end <= silence.start) return mistake("end: found " + units::to_rfc3339(silence.end) + ", expected a time after the start");
  if ((silence.end - silence.start).value > kSecondsMax) {
    return mistake("end: found " + units::to_rfc3339(silence.end) + ", expected at most " + base::json::number_text(kSilenceDaysMax) + " days after the start");
  }
  return {};
}

}  // namespace

bool matches(const Silence& silence, const Record& record) {
  return std::all_of(silence.matchers.begin(), silence.matchers.end(), [&](const Matcher& matcher) { return matches(matcher, record); });
}

Result<Matcher> parse_matcher(std::string_view text) {
  const std::size_t equals = text.find('=');
  if (equals == std::string_view::npos) return mistake("matchers: found \"" + base::printable(text, 80) + "\", expected name=pattern, such as job=train*");
  return checked({std::string(text.substr(0, equals)), std::string(text.substr(equals + 1))});
}

Result<Silence> silence_from_told(std::string_view text, std::string_view author, units::Instant now) {
  FLOPSIGHT_ASSIGN_OR_RETURN(const Value value, base::json::parse(text));
  if (value.as_object() == nullptr) return mistake("expected an object with matchers, end or duration_seconds, comment");
  for (const auto& [key, unused] : *value.as_object()) {
    static_cast<void>(unused);
    if (key != "matchers" && key != "start" && key != "end" && key != "duration_seconds" && key != "comment" && key != "author") {
      return mistake("\"" + base::printable(key, 40) + "\" is no key of a silence, expected matchers, start, end, duration_seconds, comment or author");
    }
  }
  Silence out;
  FLOPSIGHT_RETURN_IF_ERROR(read_matchers(value, out.matchers));
  std::optional<units::Instant> start;
  FLOPSIGHT_RETURN_IF_ERROR(read_time(value, "start", start));
  out.start = start.value_or(now);
  FLOPSIGHT_RETURN_IF_ERROR(read_end(value, out));
  if (out.end <= now) return mistake("end: found " + units::to_rfc3339(out.end) + ", expected a time that is not over");
  FLOPSIGHT_RETURN_IF_ERROR(read_text(value, "comment", out.comment));
  if (out.comment.empty()) return mistake("comment: missing, expected why");
  if (out.comment.size() > kCommentBytesMax) return Error{ErrorCode::kLimit, "comment: longer than " + std::to_string(kCommentBytesMax) + " bytes"};
  FLOPSIGHT_RETURN_IF_ERROR(read_text(value, "author", out.author));
  if (out.author.size() > kAuthorBytesMax) return Error{ErrorCode::kLimit, "author: longer than " + std::to_string(kAuthorBytesMax) + " bytes"};
  if (!author.empty()) out.author = author;
  if (out.author.empty()) out.author = kNobodyKnown;
  out.created = now;
  const std::uint64_t bits = base::hash128(base::json::dump(silence_json(out), 0)).high;
  char id[17];
  std::snprintf(id, sizeof id, "%016llx", static_cast<unsigned long long>(bits));
  out.id = id;
  return out;
}

Object silence_json(const Silence& silence) {
  Array matchers;
  for (const Matcher& matcher : silence.matchers) matchers.emplace_back(Object{{"name", matcher.name}, {"pattern", matcher.pattern}});
  return {{"id", silence.id},
          {"matchers", std::move(matchers)},
          {"start", units::to_rfc3339(silence.start)},
          {"end", units::to_rfc3339(silence.end)},
          {"author", text_or_null(silence.author)},
          {"comment", silence.comment},
          {"created", units::to_rfc3339(silence.created)}};
}

Result<Silence> silence_from_json(const Value& value) {
  Silence out;
  FLOPSIGHT_RETURN_IF_ERROR(read_text(value, "id", out.id));
  FLOPSIGHT_RETURN_IF_ERROR(read_matchers(value, out.matchers));
  FLOPSIGHT_RETURN_IF_ERROR(read_time(value, "start", out.start));
  FLOPSIGHT_RETURN_IF_ERROR(read_time(value, "end", out.end));
  FLOPSIGHT_RETURN_IF_ERROR(read_text(value, "author", out.author));
  FLOPSIGHT_RETURN_IF_ERROR(read_text(value, "comment", out.comment));
  FLOPSIGHT_RETURN_IF_ERROR(read_time(value, "created", out.created));
  return out;
}

}  // namespace flopsight::findings
