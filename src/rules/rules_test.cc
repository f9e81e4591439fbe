#include "rules/rules.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/json.h"
#include "base/regex.h"
#include "base/yaml.h"

namespace flopsight::rules {
namespace {

Options all_models() {
  Options options;
  options.models = model_facts(catalog::DeviceCatalog::builtin(), {}, {}, {}).value();
  return options;
}

// The models whose pattern takes the whole name, as an engine anchors it.
std::vector<std::string> models_of(const std::vector<ModelFacts>& models, const std::string& name) {
  std::vector<std::string> out;
  for (const ModelFacts& model : models) {
    const auto expression = base::Regex::parse("^(?:" + model.pattern + ")$");
    EXPECT_TRUE(expression.ok()) << model.model;
    if (expression.ok() && expression->found_in(name)) out.push_back(model.model);
  }
  return out;
}

TEST(RulePatterns, a_name_matches_the_model_that_a_report_finds_and_no_other) {
  const auto models = all_models().models;
  std::vector<std::string> names = {"NVIDIA H100 80GB HBM3", "NVIDIA-H100-80GB-HBM3", "NVIDIA A100-SXM4-80GB", "NVIDIA A100 80GB PCIe", "Tesla T4",
                                    "NVIDIA GB200", "NVIDIA B200", "NVIDIA GB300", "NVIDIA H200", "NVIDIA L40S", "NVIDIA L40", "NVIDIA A100-SXM4-40GB MIG 1g.5gb"};
  for (const ModelFacts& model : models) names.push_back(model.model);
  for (const std::string& name : names) {
    const catalog::Device* device = catalog::DeviceCatalog::builtin().find(name);
    ASSERT_NE(device, nullptr) << name;
    EXPECT_EQ(models_of(models, name), std::vector<std::string>{device->model}) << name;
  }
}

TEST(RulePatterns, an_unknown_name_matches_no_model) {
  for (const char* name : {"", "NVIDIA", "NVIDIA X900", "NVIDIA H100", "GRID A100-10C", "NVIDIA GB2000", "XB200", "NVIDIA H100 80GB HBM3 Turbo", "H100 80GB HBM3\n"}) {
    EXPECT_EQ(catalog::DeviceCatalog::builtin().find(name) == nullptr, models_of(all_models().models, name).empty()) << name;
  }
}

TEST(Rules, the_same_options_give_the_same_sorted_models) {
  const Options options = all_models();
  EXPECT_TRUE(std::is_sorted(options.models.begin(), options.models.end(), [](const auto& a, const auto& b) { return a.model < b.model; }));
  EXPECT_EQ(prometheus_yaml(options), prometheus_yaml(all_models()));
}

TEST(Rules, a_clock_of_the_users_replaces_that_of_the_catalogue) {
  const auto models = model_facts(catalog::DeviceCatalog::builtin(), {}, {"NVIDIA H100 80GB HBM3", "X900"},
                                  {{"NVIDIA H100 80GB HBM3", units::Hertz(1.7e9)}, {"X900", units::Hertz(2e9)}});
  ASSERT_TRUE(models.ok());
  ASSERT_EQ(models->size(), 2u);
  EXPECT_EQ((*models)[0].model, "H100-SXM5-80GB");
  EXPECT_EQ((*models)[0].reference_clock, units::Hertz(1.7e9));
  EXPECT_EQ((*models)[1].model, "X900");
  EXPECT_EQ(models_of(*models, "NVIDIA X900"), std::vector<std::string>{"X900"});
}

TEST(Rules, a_model_that_is_not_known_is_refused) {
  const auto models = model_facts(catalog::DeviceCatalog::builtin(), {}, {"H999"}, {});
  ASSERT_FALSE(models.ok());
  EXPECT_NE(models.error().message.find("H999: not in the catalogue"), std::string::npos);
}

TEST(Rules, hostile_text_stays_inside_its_string) {
  Options options = all_models();
  options.models = model_facts(catalog::DeviceCatalog::builtin(), {}, {}, {{"a\"}) or vector(1) #\\", units::Hertz(2e9)}}).value();
  const auto yaml = base::yaml::parse(prometheus_yaml(options));
  ASSERT_TRUE(yaml.ok()) << yaml.error().message;
  EXPECT_EQ(yaml->find("groups")->items.size(), 2u);
  EXPECT_NE(prometheus_yaml(options).find(R"x(a\"\\}\\))x"), std::string::npos);
  EXPECT_FALSE(model_facts(catalog::DeviceCatalog::builtin(), {}, {}, {{"a\nb", units::Hertz(2e9)}}).ok());
}

TEST(Rules, only_names_of_labels_may_be_labels) {
  for (const char* name : {"", "a-b", "1a", "a\"", "a b", "é"}) EXPECT_FALSE(is_label_name(name)) << name;
  for (const char* name : {"UUID", "_a1", "label_team"}) EXPECT_TRUE(is_label_name(name)) << name;
  Options options = all_models();
  options.group_by = {"cluster}"};
  EXPECT_FALSE(check(options).ok());
  options.group_by = {"cluster"};
  EXPECT_TRUE(check(options).ok());
}

TEST(Rules, one_rule_has_one_name_and_set_of_labels) {
  std::vector<std::string> seen;
  for (const Rule& rule : recording_group(all_models()).rules) {
    std::string key = rule.name;
    for (const auto& [name, value] : rule.labels) key += "," + name + "=" + value;
    EXPECT_EQ(std::count(seen.begin(), seen.end(), key), 0) << key;
    seen.push_back(key);
  }
}

TEST(Rules, every_alert_says_how_much_and_has_a_severity) {
  for (const Rule& rule : alerting_group(all_models()).rules) {
    EXPECT_NE(rule.description.find("$value"), std::string::npos) << rule.name;
    EXPECT_EQ(rule.labels.front().first, "severity") << rule.name;
    EXPECT_GT(rule.pending.value, 0) << rule.name;
  }
}

TEST(Rules, a_dashboard_asks_only_for_series_that_are_recorded) {
  const auto dashboard = base::json::parse(grafana_dashboard(all_models()));
  ASSERT_TRUE(dashboard.ok());
  std::string names;
  for (const Rule& rule : recording_group(all_models()).rules) names += "|" + rule.name;
  const auto series = base::Regex::parse("(?:gpu|job|fleet):flopsight_[a-z_]+:[a-z0-9_]+");
  ASSERT_TRUE(series.ok());
  std::size_t asked = 0;
  for (const base::json::Value& panel : *dashboard->find("panels")->as_array()) {
    for (const base::json::Value& target : *panel.find("targets")->as_array()) {
      std::vector<std::optional<std::string_view>> groups;
      const std::string expression = *target.find("expr")->as_string();
      if (!series->match(expression, groups)) continue;
      ++asked;
      EXPECT_NE(("|" + names + "|").find("|" + std::string(*groups[0])), std::string::npos) << expression;
    }
  }
  EXPECT_GT(asked, 10u);
}

}  // namespace
}  // namespace flopsight::rules
