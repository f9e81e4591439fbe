#include "training_logs/patterns.h"

#include <algorithm>

#include "base/regex.h"
#include "base/text.h"
#include "base/yaml.h"
#include "training_logs/patterns_internal.h"

namespace flopsight::training_logs {
namespace {

using base::Error;
using base::ErrorCode;
namespace yaml = base::yaml;

struct Captured {
  std::string name;
  std::optional<Meaning> meaning;  // nothing: time or rank
  Unit unit;
};

struct Pattern {
  std::string name;
  std::optional<base::Regex> regex;
  std::string contains;
  std::string time_format = "%Y-%m-%d %H:%M:%S";
  std::vector<std::optional<Captured>> groups;  // by number of the group, from 1
};

Error at_line(const yaml::Value& value, const std::string& what, ErrorCode code = ErrorCode::kInvalid) {
  return Error{code, "line " + std::to_string(std::max(value.line, 1)) + ": " + what};
}

base::Status read_groups(const yaml::Value& at, const yaml::Value* units, Pattern& pattern) {
  const std::vector<std::string>& names = pattern.regex->group_names();
  pattern.groups.resize(names.size());
  bool figure = false;
  for (std::size_t number = 1; number < names.size(); ++number) {
    const std::string& name = names[number];
    if (name.empty()) continue;
    const std::optional<Meaning> meaning = meaning_named(name);
    if (!meaning && name != "time" && name != "rank") {
      return at_line(at, "the group '" + base::printable(name, 40) + "' is not known, expected " + std::string(kMeaningNames));
    }
    Captured captured{name, meaning, {}};
    if (meaning && dimension_of(*meaning) != Dimension::kNumber) {
      figure = true;
      const yaml::Value* said = units == nullptr ? nullptr : units->find(name);
      const std::string expected = ", expected " + std::string(example_unit(*meaning));
      if (said == nullptr) return at_line(at, "no unit for the group '" + name + "' under units" + expected);
      const std::optional<Unit> unit = parse_unit(said->text);
      if (!unit || unit->dimension != dimension_of(*meaning)) {
        return at_line(*said, "'" + base::printable(said->text, 40) + "' is no unit of " + name + expected);
      }
      captured.unit = *unit;
    }
    pattern.groups[number] = captured;
  }
  if (!figure) return at_line(at, "the regex has no group with a figure, expected one of " + std::string(kMeaningNames));
  if (units == nullptr) return {};
  for (const yaml::Field& unit : units->fields) {
    if (!pattern.regex->group(unit.key)) {
      return at_line(unit.value, "a unit for '" + base::printable(unit.key, 40) + "', which is no group of the regex");
    }
  }
  return {};
}

base::Result<Pattern> read_pattern(const yaml::Value& entry) {
  if (entry.kind != yaml::Kind::kMap) return at_line(entry, "expected a mapping with name, regex and units");
  Pattern pattern;
  const yaml::Value* regex = nullptr;
  const yaml::Value* units = nullptr;
  for (const yaml::Field& field : entry.fields) {
    const bool map = field.key == "units";
    if (field.value.kind != (map ? yaml::Kind::kMap : yaml::Kind::kScalar)) {
      return at_line(field.value, field.key + ": expected " + (map ? "a mapping" : "a value"));
    }
    if (field.key == "name") {
      pattern.name = base::printable(field.value.text, 60);
    } else if (field.key == "regex") {
      regex = &field.value;
    } else if (field.key == "units") {
      units = &field.value;
    } else if (field.key == "contains") {
      pattern.contains = field.value.text;
    } else if (field.key == "time_format") {
      pattern.time_format = field.value.text;
    } else {
      return at_line(field.value, "the key '" + base::printable(field.key, 40) +
                                      "' is not known, expected name, regex, units, contains or time_format");
    }
  }
  if (pattern.name.empty()) return at_line(entry, "a pattern without a name");
  if (regex == nullptr || regex->text.empty()) return at_line(entry, "the pattern '" + pattern.name + "' has no regex");
  base::Result<base::Regex> parsed = base::Regex::parse(regex->text);
  if (!parsed.ok()) return at_line(*regex, "the regex of '" + pattern.name + "': " + parsed.error().message, parsed.error().code);
  pattern.regex.emplace(std::move(*parsed));
  FLOPSIGHT_RETURN_IF_ERROR(read_groups(*regex, units, pattern));
  return pattern;
}

}  // namespace

struct PatternFile::Data {
  std::vector<Pattern> patterns;
};

PatternFile::PatternFile(std::unique_ptr<const Data> data) : data_(std::move(data)) {}
PatternFile::PatternFile(PatternFile&&) noexcept = default;
PatternFile& PatternFile::operator=(PatternFile&&) noexcept = default;
PatternFile::~PatternFile() = default;

base::Result<PatternFile> PatternFile::parse(std::string_view text) {
  FLOPSIGHT_ASSIGN_OR_RETURN(const yaml::Value root, yaml::parse(text));
  const yaml::Value* list = root.find("patterns");
  if (root.kind != yaml::Kind::kMap || list == nullptr || list->kind != yaml::Kind::kList || list->items.empty()) {
    return at_line(root, "expected a list under the key patterns");
  }
  for (const yaml::Field& field : root.fields) {
    if (field.key != "patterns") {
      return at_line(field.value, "the key '" + base::printable(field.key, 40) + "' is not known, expected patterns");
    }
  }
  if (list->items.size() > patterns_max) {
    return at_line(*list, "more than " + std::to_string(patterns_max) + " patterns", ErrorCode::kLimit);
  }
  auto data = std::make_unique<Data>();
  for (const yaml::Value& entry : list->items) {
    FLOPSIGHT_ASSIGN_OR_RETURN(Pattern pattern, read_pattern(entry));
    data->patterns.push_back(std::move(pattern));
  }
  return PatternFile(std::move(data));
}

std::size_t PatternFile::size() const { return data_->patterns.size(); }
std::string_view PatternFile::name(std::size_t pattern) const { return data_->patterns[pattern].name; }

std::optional<PatternMatch> match(const PatternFile& patterns, std::string_view text) {
  std::vector<std::optional<std::string_view>> captured;
  for (std::size_t i = 0; i < patterns.size(); ++i) {
    const Pattern& pattern = patterns.data().patterns[i];
    if (!pattern.contains.empty() && text.find(pattern.contains) == std::string_view::npos) continue;
    if (!pattern.regex->found_in(text) || !pattern.regex->match(text, captured)) continue;
    PatternMatch found;
    found.pattern = i;
    for (std::size_t g = 1; g < pattern.groups.size() && g < captured.size(); ++g) {
      if (!pattern.groups[g] || !captured[g]) continue;
      const std::string_view printed = *captured[g];
      const Captured& what = *pattern.groups[g];
      if (what.name == "time") {
        found.time = read_time(printed, pattern.time_format);
        if (!found.time) {
          ++found.extract.unparsable;
          found.extract.about = "time";
        }
        continue;
      }
      const Printed number = read_number(printed);
      Step rank;
      const bool whole = number.value && number.size == printed.size();
      const bool is_rank = !what.meaning;
      const bool put_in = whole && (is_rank ? put(rank, Meaning::kStep, *number.value, Unit{})
                                            : put(found.extract.step, *what.meaning, *number.value, what.unit));
      if (!put_in) {
        ++found.extract.unparsable;
        found.extract.about = std::string(what.name);
      } else if (is_rank) {
        found.rank = rank.step;
      } else if (what.meaning != Meaning::kStep && what.meaning != Meaning::kLoss) {
        ++found.extract.figures;
      }
    }
    return found;
  }
  return std::nullopt;
}

}  // namespace flopsight::training_logs
