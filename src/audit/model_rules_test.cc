#include "audit/model_rules.h"

#include <gtest/gtest.h>

#include "audit/told_model.h"
#include "base/file.h"

namespace flopsight::audit {
namespace {

std::string wrong(std::string_view yaml) {
  const auto rules = parse_model_rules(yaml);
  return rules.ok() ? "" : rules.error().message;
}

std::string gpt2() { return base::read_file(FLOPSIGHT_SOURCE_DIR "/tests/fixtures/hf_configs/made--GPT-2_config.json").value(); }

TEST(ModelRules, a_rule_says_what_telling_the_model_of_each_job_would) {
  const auto rules = parse_model_rules("models:\n  - {match: 'gpt2-*', config: gpt2.json, seq_len: 1024, precision: bf16, recompute: full}\n");
  ASSERT_TRUE(rules.ok()) << rules.error().message;
  ASSERT_EQ(rules->size(), 1U);
  EXPECT_EQ(rules->front().match, "gpt2-*");
  EXPECT_EQ(rules->front().config_path, "gpt2.json");
  const auto told = told_by_rule(rules->front(), gpt2());
  ASSERT_TRUE(told.ok()) << told.error().message;
  const auto run = parse_told_model(*told);
  ASSERT_TRUE(run.ok());
  EXPECT_EQ(run->sequence_tokens, 1024U);
  EXPECT_EQ(run->precision, catalog::Precision::kBf16);
  EXPECT_EQ(run->recompute, flops::Recompute::kFull);
}

TEST(ModelRules, a_mistake_is_one_line_with_where_and_what) {
  EXPECT_EQ(wrong("models:\n  - {config: a.json}\n"), "line 2: a rule without match, expected a pattern for names of jobs such as llama3-*");
  EXPECT_EQ(wrong("models:\n  - {match: a}\n"), "line 2: a rule without config, expected the path of a config.json");
  EXPECT_EQ(wrong("models:\n  - {match: a, config: b,\n     seq_len: [1]}\n"), "line 3: seq_len: found a list, expected text or a number");
  EXPECT_EQ(wrong("models: a\n"), "line 1: expected a list under the key models, and no other key");
  EXPECT_EQ(wrong("models: []\nother: 1\n"), "line 1: expected a list under the key models, and no other key");
  EXPECT_EQ(wrong("models: [1]\n"), "line 1: found a value, expected a mapping with match and config");
  EXPECT_NE(wrong("models: [\n"), "");
}

TEST(ModelRules, a_setting_or_a_configuration_that_is_none_is_said_with_the_configuration) {
  const auto told = [](const std::string& settings, const std::string& config) {
    const auto rules = parse_model_rules("models:\n  - {match: a, config: c.json" + settings + "}\n");
    EXPECT_TRUE(rules.ok());
    const auto text = told_by_rule(rules->front(), config);
    return text.ok() ? "" : text.error().message;
  };
  EXPECT_EQ(told("", gpt2()), "");
  EXPECT_EQ(told(", seq_len: 0", gpt2()), "c.json: seq_len: found 0, expected a whole number from 1 to 4294967296");
  EXPECT_EQ(told(", seq-len: 8", gpt2()).substr(0, 42), "c.json: \"seq-len\" is no key of a model, ex");
  EXPECT_EQ(told("", "{\"model_type\": \"nobody\"}").substr(0, 8), "c.json: ");
  EXPECT_EQ(told("", "not JSON").substr(0, 8), "c.json: ");
}

TEST(ModelRules, there_may_be_a_thousand) {
  const auto file = [](std::size_t count) {
    std::string text = "models:\n";
    for (std::size_t i = 0; i < count; ++i) text += "  - {match: a, config: b}\n";
    return text;
  };
  EXPECT_EQ(wrong(file(kModelRulesMax)), "");
  EXPECT_EQ(wrong(file(kModelRulesMax + 1)), "line 2: more than 1000 rules");
}

}  // namespace
}  // namespace flopsight::audit
