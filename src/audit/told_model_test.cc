#include "audit/told_model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "flops/test_models.h"

namespace flopsight::audit {
namespace {

using testing::HasSubstr;

// Its configuration has an Infinity, as Python writes it.
std::string told(const std::string& settings) {
  return "{\"config\": " + flops::test::config_text("nvidia--NVIDIA-Nemotron-3-Super-120B-A12B-FP8") + settings + "}";
}

TEST(ToldModel, mistakes_are_told_by_key) {
  const std::pair<std::string, std::string> cases[] = {
      {"[]", "expected an object, found array"},
      {"{", "line 1"},
      {"{}", "config: not there"},
      {R"({"config": 7})", "config: found 7, expected the object of a config.json"},
      {R"({"config": {"model_type": "mystery"}})", "config: model_type mystery is not known"},
      {told(R"(, "seq_len": 0)"), "seq_len: found 0, expected a whole number from 1"},
      {told(R"(, "precision": "half")"), "precision: found \"half\", expected bf16"},
      {told(R"(, "recompute": true)"), "recompute: found true, expected none, selective or full"},
      {told(R"(, "layers": 3)"), "\"layers\" is no key of a model"},
  };
  for (const auto& [text, said] : cases) {
    const auto run = parse_told_model(text);
    ASSERT_FALSE(run.ok()) << said;
    EXPECT_THAT(run.error().message, HasSubstr(said));
  }
  EXPECT_TRUE(parse_told_model(told(R"(, "mtp": 1, "lora_rank": 8, "document_tokens": 512)"))->has_adapters);
  const std::string padding(kToldModelBytesMax, ' ');
  EXPECT_EQ(parse_told_model(told("") + padding).error().code, base::ErrorCode::kLimit);
}

}  // namespace
}  // namespace flopsight::audit
