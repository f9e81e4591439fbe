#include "training_logs/log_sources.h"

#include <utility>

#include "base/text.h"
#include "base/yaml.h"

namespace flopsight::training_logs {
namespace {

namespace yaml = base::yaml;

constexpr std::pair<std::string_view, std::string LogSource::*> kKeys[] = {
    {"path", &LogSource::path},     {"job", &LogSource::job},   {"job-regex", &LogSource::job_regex},
    {"format", &LogSource::format}, {"zone", &LogSource::zone}, {"pattern-file", &LogSource::pattern_file},
};

base::Error mistake(int line, const std::string& what) {
  return {base::ErrorCode::kInvalid, "line " + std::to_string(line) + ": " + what};
}

base::Result<LogSource> source_of(const yaml::Value& entry) {
  if (entry.kind != yaml::Kind::kMap) return mistake(entry.line, "found " + std::string(kind_name(entry.kind)) + ", expected a mapping with path");
  LogSource source;
  source.line = entry.line;
  for (const yaml::Field& field : entry.fields) {
    bool known = false;
    for (const auto& [key, member] : kKeys) {
      if (field.key != key) continue;
      known = true;
      if (field.value.kind != yaml::Kind::kScalar || field.value.text.empty()) {
        return mistake(field.value.line, field.key + ": found " + std::string(kind_name(field.value.kind)) + ", expected text");
      }
      source.*member = field.value.text;
    }
    if (!known) {
      return mistake(field.value.line, base::printable(field.key, 60) + ": no such key, expected path, job, job-regex, format, zone or pattern-file");
    }
  }
  if (source.path.empty()) return mistake(entry.line, "a source without a path");
  if (!source.job.empty() && !source.job_regex.empty()) return mistake(entry.line, "both job and job-regex, expected one of them");
  return source;
}

}  // namespace

base::Result<std::vector<LogSource>> parse_log_sources(std::string_view text) {
  FLOPSIGHT_ASSIGN_OR_RETURN(const yaml::Value root, yaml::parse(text));
  const yaml::Value* list = root.find("training-logs");
  if (list == nullptr || list->kind != yaml::Kind::kList || root.fields.size() != 1) {
    return mistake(1, "expected a list under the key training-logs, and no other key");
  }
  if (list->items.size() > kLogSourcesMax) {
    return base::Error{base::ErrorCode::kLimit, "line " + std::to_string(list->line) + ": more than " + std::to_string(kLogSourcesMax) + " sources"};
  }
  std::vector<LogSource> sources;
  for (const yaml::Value& entry : list->items) {
    FLOPSIGHT_ASSIGN_OR_RETURN(LogSource source, source_of(entry));
    sources.push_back(std::move(source));
  }
  return sources;
}

}  // namespace flopsight::training_logs
