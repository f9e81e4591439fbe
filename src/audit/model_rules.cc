#include "audit/model_rules.h"

#include <utility>

#include "audit/told_model.h"
#include "base/text.h"
#include "base/yaml.h"
#include "flops/hf_config.h"

namespace flopsight::audit {
namespace {

namespace yaml = base::yaml;
using base::json::Value;

base::Error mistake(int line, const std::string& what) { return {base::ErrorCode::kInvalid, "line " + std::to_string(line) + ": " + what}; }

// A number where it is one and not in quotes; what is allowed is told_model's to say.
Value setting_of(const yaml::Value& value) {
  if (value.kind == yaml::Kind::kNull) return {};
  if (const auto number = value.quoted ? std::nullopt : base::parse_number(value.text)) return *number;
  return value.text;
}

base::Result<ModelRule> rule_of(const yaml::Value& entry) {
  if (entry.kind != yaml::Kind::kMap) return mistake(entry.line, "found " + std::string(kind_name(entry.kind)) + ", expected a mapping with match and config");
  ModelRule rule;
  rule.line = entry.line;
  for (const auto& [key, value] : entry.fields) {
    if (value.kind != yaml::Kind::kScalar && value.kind != yaml::Kind::kNull) {
      return mistake(value.line, base::printable(key, 60) + ": found " + std::string(kind_name(value.kind)) + ", expected text or a number");
    }
    if (key == "match") {
      rule.match = value.text;
    } else if (key == "config") {
      rule.config_path = value.text;
    } else {
      rule.settings.emplace_back(key, setting_of(value));
    }
  }
  if (rule.match.empty()) return mistake(entry.line, "a rule without match, expected a pattern for names of jobs such as llama3-*");
  if (rule.config_path.empty()) return mistake(entry.line, "a rule without config, expected the path of a config.json");
  return rule;
}

}  // namespace

base::Result<std::vector<ModelRule>> parse_model_rules(std::string_view text) {
  FLOPSIGHT_ASSIGN_OR_RETURN(const yaml::Value root, yaml::parse(text));
  const yaml::Value* list = root.find("models");
  if (list == nullptr || list->kind != yaml::Kind::kList || root.fields.size() != 1) return mistake(1, "expected a list under the key models, and no other key");
  if (list->items.size() > kModelRulesMax) {
    return base::Error{base::ErrorCode::kLimit, "line " + std::to_string(list->line) + ": more than " + std::to_string(kModelRulesMax) + " rules"};
  }
  std::vector<ModelRule> rules;
  for (const yaml::Value& entry : list->items) {
    FLOPSIGHT_ASSIGN_OR_RETURN(ModelRule rule, rule_of(entry));
    rules.push_back(std::move(rule));
  }
  return rules;
}

base::Result<std::string> told_by_rule(const ModelRule& rule, std::string_view config_json) {
  FLOPSIGHT_ASSIGN_OR_RETURN(Value config, base::json::parse(flops::without_infinities(config_json)).within(rule.config_path));
  base::json::Object told = rule.settings;
  told.insert(told.begin(), {"config", std::move(config)});
  std::string text = base::json::dump(told, 0);
  FLOPSIGHT_ASSIGN_OR_RETURN(const Run run, parse_told_model(text).within(rule.config_path));
  (void)run;
  return text;
}

}  // namespace flopsight::audit
