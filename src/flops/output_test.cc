// What comes behind the blocks, by the name of the class in `architectures`.
#include <gtest/gtest.h>

#include "flops/conventions.h"
#include "flops/count.h"
#include "flops/hf_config.h"
#include "flops/test_models.h"

namespace flopsight::flops {
namespace {

using test::config_text;
using test::config_with;

std::uint64_t parameters(const std::string& text) {
  const auto model = read_hf_config(text);
  EXPECT_TRUE(model.ok()) << model.error().message;
  return model.ok() ? count_parameters(*model).total : 0;
}

std::string refusal(const std::string& text) {
  const auto model = read_hf_config(text);
  return model.ok() ? "(read)" : model.error().message;
}

bool assumes(const Model& model, const std::string& part) {
  for (const std::string& line : model.assumptions) {
    if (line.find(part) != std::string::npos) return true;
  }
  return false;
}

const std::string kLlama = "made--Llama-3-8B", kMistral = "made--Mistral-7B-v0.1", kBert = "made--BERT-base", kV3 = "deepseek-ai--DeepSeek-V3";

const std::string kT5Xxl = R"({"model_type": "t5", "d_model": 4096, "d_ff": 10240, "d_kv": 64, "num_heads": 64, "num_layers": 24, "num_decoder_layers": 24,
    "feed_forward_proj": "gated-gelu", "is_encoder_decoder": true, "vocab_size": 32128, "tie_word_embeddings": false, "relative_attention_num_buckets": 32, )";

TEST(OutputLayer, a_reward_model_has_a_row_for_each_label_in_place_of_the_vocabulary) {
  const std::string one = config_with(kLlama, R"("architectures": ["LlamaForSequenceClassification"], "id2label": {"0": "LABEL_0"})");
  EXPECT_EQ(parameters(one), 7'504'928'768u);
  const Model model = read_hf_config(one).value();
  EXPECT_EQ(model.shape.head_size, 1u);
  EXPECT_TRUE(assumes(model, "LlamaForSequenceClassification: counted with a head of hidden_size x 1 (id2label) on every token, without one over the vocabulary"));
  const double head = 2.0 * 128256 * 4096;
  EXPECT_NEAR(forward_cost(read_hf_config(config_text(kLlama)).value(), test::tokens(4096)).total() - forward_cost(model, test::tokens(4096)).total(), head - 2 * 4096, 1);
}

TEST(OutputLayer, the_number_of_labels_is_said_or_that_of_the_class) {
  const std::string classify = R"("architectures": ["LlamaForSequenceClassification"])";
  EXPECT_EQ(parameters(config_with(kLlama, classify)), 7'504'928'768u + 4096);
  EXPECT_TRUE(assumes(read_hf_config(config_with(kLlama, classify)).value(), "class's default"));
  EXPECT_EQ(parameters(config_with(kLlama, classify + R"(, "num_labels": 5)")), 7'504'928'768u + 4 * 4096);
  EXPECT_EQ(parameters(config_with(kLlama, R"("architectures": ["LlamaForTokenClassification"], "num_labels": 1)")), 7'504'928'768u + 1);
  EXPECT_EQ(parameters(config_with(kLlama, R"("architectures": ["LlamaForQuestionAnswering"])")), 7'504'928'768u + 4096 + 2);
  EXPECT_NE(refusal(config_with(kLlama, classify + R"(, "num_labels": 0)")).find("num_labels: found 0, expected a whole number from 1"), std::string::npos)
      << refusal(config_with(kLlama, classify + R"(, "num_labels": 0)"));
}

TEST(OutputLayer, of_a_model_without_a_head_none_is_counted) {
  const std::string e5 = config_with(kMistral, R"("architectures": ["MistralModel"])");
  EXPECT_EQ(parameters(e5), 7'110'660'096u);
  const Model model = read_hf_config(e5).value();
  EXPECT_EQ(forward_cost(model, test::tokens(4096)).of(Part::kHead), 0);
  EXPECT_TRUE(assumes(model, "MistralModel: counted without a head; --ignore-key architectures counts the head over the vocabulary"));
  EXPECT_EQ(parameters(config_with("made--Qwen2.5-7B", R"("architectures": ["Qwen2ForRewardModel"])")),
            parameters(config_with("made--Qwen2.5-7B", R"("architectures": ["Qwen2Model"])")) + 3584 * 3584 + 3584 + 3584 + 1);
}

TEST(OutputLayer, a_tied_embedding_stays_where_the_head_that_it_was_is_not_there) {
  const Model model = read_hf_config(config_with("made--Qwen3-0.6B", R"("architectures": ["Qwen3Model"])")).value();
  EXPECT_FALSE(model.shape.tied);
  EXPECT_EQ(count_parameters(model).total, parameters(config_text("made--Qwen3-0.6B")));
  const Convention* of_blocks = nullptr;
  for (const Convention& c : conventions()) {
    if (c.name == "6n_non_embedding") of_blocks = &c;
  }
  ASSERT_NE(of_blocks, nullptr);
  EXPECT_EQ(convention_cost(*of_blocks, model, test::tokens(4096)).flops_train,
            convention_cost(*of_blocks, read_hf_config(config_text("made--Qwen3-0.6B")).value(), test::tokens(4096)).flops_train);
}

TEST(OutputLayer, an_encoder_alone_has_no_decoder) {
  EXPECT_EQ(parameters(kT5Xxl + R"("architectures": ["T5EncoderModel"]})"), 4'762'310'656u);
  EXPECT_EQ(parameters(kT5Xxl + R"("architectures": ["T5ForConditionalGeneration"]})"), 11'135'332'352u);
  const Model model = read_hf_config(kT5Xxl + R"("architectures": ["T5EncoderModel"]})").value();
  // Every token of the run is one of the encoder, and sees all others.
  EXPECT_NEAR(forward_cost(model, test::tokens(512)).of(Part::kAttentionCore), 24 * 4.0 * 512 * 4096, 1);
  EXPECT_FALSE(assumes(model, "of the target"));
  EXPECT_NE(refusal(kT5Xxl + R"("architectures": ["T5ForSequenceClassification"]})").find("T5ForSequenceClassification"), std::string::npos);
  EXPECT_NE(refusal(config_with("made--BART-base", R"("architectures": ["BartForCausalLM"])")).find("BartForCausalLM"), std::string::npos);
}

TEST(OutputLayer, bert_without_the_head_of_masked_language_modelling) {
  const std::uint64_t bare = 108'891'648;  // BertModel without its pooler
  EXPECT_EQ(parameters(config_with(kBert, R"("architectures": ["BertModel"])")), bare);
  EXPECT_EQ(parameters(config_with(kBert, R"("architectures": ["BertForSequenceClassification"])")), bare);
  EXPECT_EQ(parameters(config_with(kBert, R"("architectures": ["BertForTokenClassification"], "num_labels": 9)")), bare + 9 * 768 + 9);
  EXPECT_TRUE(assumes(read_hf_config(config_with(kBert, R"("architectures": ["BertForSequenceClassification"])")).value(), "runs once for a sequence"));
}

TEST(OutputLayer, what_predicts_no_tokens_has_no_modules_that_do) {
  const Model model = read_hf_config(config_with(kV3, R"("architectures": ["DeepseekV3Model"])")).value();
  EXPECT_EQ(model.prediction_steps, 0u);
  EXPECT_EQ(count_parameters(model).total, 671'026'419'200u - 129'280u * 7'168);
}

TEST(OutputLayer, a_class_that_is_not_known_is_refused_unless_it_is_ignored) {
  const std::string odd = config_with(kLlama, R"("architectures": ["LlamaForRewardModelWithGating"])");
  EXPECT_NE(refusal(odd).find("architectures: which head LlamaForRewardModelWithGating has is not known"), std::string::npos) << refusal(odd);
  EXPECT_EQ(count_parameters(read_hf_config(odd, {{"architectures"}}).value()).total, 8'030'261'248u);
  EXPECT_NE(refusal(config_with(kLlama, R"("architectures": ["LlamaModel", "LlamaForCausalLM"])")).find("different heads"), std::string::npos);
  EXPECT_NE(refusal(config_with(kLlama, R"("architectures": "LlamaModel")")).find("a list of texts"), std::string::npos);
  EXPECT_EQ(parameters(config_with(kLlama, R"("architectures": null)")), 8'030'261'248u);
  EXPECT_EQ(refusal(config_with("made--GLM-4-9B", R"("architectures": ["ChatGLMModel"])")), "(read)");
  EXPECT_EQ(parameters(config_with("made--GLM-4-9B", R"("architectures": ["ChatGLMModel"])")), parameters(config_text("made--GLM-4-9B")));
}

TEST(OutputLayer, keys_that_change_the_count_are_read_or_refused) {
  const std::string kGemma = R"({"model_type": "gemma3_text", "hidden_size": 768, "num_hidden_layers": 6, "num_attention_heads": 3, "num_key_value_heads": 1,
      "head_dim": 256, "intermediate_size": 1152, "vocab_size": 262144, "sliding_window": 512, "_sliding_window_pattern": 6, "use_bidirectional_attention": )";
  // Five blocks with windows of 256 to either side, and one that sees all 2048.
  const double each = 4.0 * 3 * 256;
  EXPECT_NEAR(forward_cost(read_hf_config(kGemma + "true}").value(), test::tokens(2048)).of(Part::kAttentionCore), each * (5 * 513 + 2048), 1);
  EXPECT_LT(forward_cost(read_hf_config(kGemma + "false}").value(), test::tokens(2048)).of(Part::kAttentionCore), each * (5 * 512 + 1025));
  EXPECT_NE(refusal(config_with(kLlama, R"("pruned_heads": {"0": [1, 2]})")).find("key pruned_heads is not known"), std::string::npos);
  EXPECT_EQ(refusal(config_with(kLlama, R"("pruned_heads": {}, "layerdrop": 0.0)")), "(read)");
  EXPECT_NE(refusal(config_with("made--OPT-125M", R"("layerdrop": 0.1)")).find("layerdrop"), std::string::npos);
  EXPECT_NE(refusal(config_with("made--BART-base", R"("decoder_layerdrop": 0.1)")).find("decoder_layerdrop"), std::string::npos);
  EXPECT_NE(refusal(config_with("made--MiniMax-M2", R"("sliding_window": 4096)")).find("sliding_window"), std::string::npos);
  EXPECT_NE(refusal(config_with("made--Nemotron-H-8B", R"("sliding_window": 4096)")).find("sliding_window"), std::string::npos);
  EXPECT_NE(refusal(config_with("made--MiniMax-Text-01", R"("sliding_window": 4096)")).find("sliding_window"), std::string::npos);
  EXPECT_NE(refusal(config_with("made--MPT-70B", R"("attn_config": {"prefix_lm": true})")).find("attn_config.prefix_lm"), std::string::npos);
  EXPECT_NE(refusal(config_with("made--T5-small", R"("is_gated_act": true)")).find("is_gated_act"), std::string::npos);
  EXPECT_NE(refusal(config_with("made--T5-small", R"("is_encoder_decoder": false)")).find("is_encoder_decoder"), std::string::npos);
  EXPECT_NE(refusal(config_with("made--StarCoder2-3B", R"("mlp_type": "gated")")).find("mlp_type"), std::string::npos);
  EXPECT_NE(refusal(config_with("made--Command-R7B", R"("layer_switch": 2)")).find("layer_switch"), std::string::npos);
  EXPECT_NE(refusal(config_with("made--Phi-3-mini", R"("img_processor": {"name": "clip"})")).find("img_processor"), std::string::npos);
}

}  // namespace
}  // namespace flopsight::flops
