#include "flops/hf_config.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>

#include "base/json.h"
#include "flops/conventions.h"
#include "flops/count.h"
#include "flops/test_models.h"

namespace flopsight::flops {
namespace {

namespace json = base::json;
using test::config_text;
using test::config_with;
using test::model_of;

// The configuration with one value replaced (JSON text), or added; "" removes the key. The key may be inside one object: "a.b".
std::string with(const std::string& name, const std::string& key, const std::string& value) {
  std::string text = config_text(name);
  if (const std::size_t at = text.find("Infinity"); at != std::string::npos) text.replace(at, 8, "1e300");
  const json::Value root = *json::parse(text);
  json::Object outer = *root.as_object();
  const auto dot = key.find('.');
  const auto set = [&](json::Object& object, const std::string& leaf) {
    std::erase_if(object, [&](const auto& member) { return member.first == leaf; });
    if (!value.empty()) object.emplace_back(leaf, *json::parse(value));
  };
  if (dot == std::string::npos) {
    set(outer, key);
  } else {
    for (auto& [member, inner] : outer) {
      if (member != key.substr(0, dot)) continue;
      json::Object object = *inner.as_object();
      set(object, key.substr(dot + 1));
      inner = object;
    }
  }
  return json::dump(outer, 0);
}

std::string refusal(const std::string& text, const ReadOptions& options = {}) {
  const auto model = read_hf_config(text, options);
  return model.ok() ? "(read)" : model.error().message;
}

const std::string kLlama = "meta-llama--Meta-Llama-3.1-8B", kV3 = "deepseek-ai--DeepSeek-V3", kOss = "openai--gpt-oss-20b",
                  kNemotron = "nvidia--NVIDIA-Nemotron-3-Super-120B-A12B-FP8", kVl = "Qwen--Qwen3-VL-8B-Instruct", kGemma = "google--gemma-4-26B-A4B";

TEST(HfConfig, every_fixture_is_read) {
  int read = 0;
  for (const auto& entry : std::filesystem::directory_iterator(FLOPSIGHT_SOURCE_DIR "/tests/fixtures/hf_configs")) {
    const auto model = read_hf_config(base::read_file(entry.path().string()).value());
    EXPECT_TRUE(model.ok()) << entry.path() << ": " << model.error().message;
    ++read;
  }
  EXPECT_GE(read, 60);
}

TEST(HfConfig, what_is_not_known_is_refused_by_name) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {with(kLlama, "model_type", "\"rwkv\""), "model_type rwkv is not known; docs/flops.md lists the families"},
      {with(kLlama, "model_type", ""), "model_type: not there, expected the name of a model family"},
      {with(kLlama, "model_type", "7"), "model_type: not there, expected the name of a model family"},
      {with(kLlama, "moe_latent_size", "1024"), "key moe_latent_size is not known for model_type llama and might change the count"},
      {with(kLlama, "sliding_window", "4096"), "key sliding_window is not known for model_type llama and might change the count"},
      {with(kLlama, "num_experts", "8"), "key num_experts is not known for model_type llama and might change the count"},
      {with(kLlama, "add_cross_attention", "true"), "key add_cross_attention is not known for model_type llama and might change the count"},
      {with(kVl, "text_config.index_topk", "64"), "key text_config.index_topk is not known for model_type qwen3_vl_text and might change the count"},
      {with(kVl, "vision_config.window_size", "64"), "key vision_config.window_size is not known for model_type qwen3_vl and might change the count"},
      {with(kVl, "vision_config.model_type", "\"resnet\""), "vision_config.model_type resnet is not known; --ignore-key vision_config counts the text without its tower"},
      {with(kVl, "text_config.model_type", "\"rwkv\""), "text_config.model_type rwkv is not known; docs/flops.md lists the families"},
      {with(kVl, "speech_config", "{}"), "key speech_config is not known for model_type qwen3_vl and might change the count"},
      {with(kGemma, "audio_config", "{}"), "audio_config: found object, expected null: audio towers are not counted yet"},
  };
  for (const auto& [text, said] : cases) EXPECT_EQ(refusal(text), said);
}

TEST(HfConfig, of_a_tower_that_is_not_known_the_text_is_counted_where_it_is_left_out) {
  const std::string config = "{\"model_type\": \"mistral3\", \"image_token_index\": 10, \"multimodal_projector_bias\": false, \"projector_hidden_act\": \"gelu\", "
                             "\"spatial_merge_size\": 2, \"vision_feature_layer\": -1, \"text_config\": " + config_text("made--Mistral-Small-24B") +
                             ", \"vision_config\": {\"model_type\": \"resnet\", \"hidden_size\": 1024}}";
  EXPECT_EQ(refusal(config), "vision_config.model_type resnet is not known; --ignore-key vision_config counts the text without its tower");
  const auto text = read_hf_config(config, {{"vision_config"}});
  ASSERT_TRUE(text.ok()) << text.error().message;
  EXPECT_EQ(count_parameters(*text).total, 23'572'403'200U);
}

TEST(HfConfig, what_the_layernorm_families_cannot_count_is_refused_by_name) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {with("made--OPT-125M", "word_embed_proj_dim", "0"), "word_embed_proj_dim: found 0, expected a whole number from 1 to 16777216"},
      {with("made--OPT-125M", "layer_norm_elementwise_affine", "false"), "layer_norm_elementwise_affine: found false, expected true"},
      {with("made--Falcon-40B", "num_kv_heads", "7"), "num_kv_heads: found 7, expected a divisor of num_attention_heads 128"},
      {with("made--BERT-base", "position_embedding_type", "\"relative_key\""), "position_embedding_type: found \"relative_key\", expected absolute"},
      {with("made--Phi-2", "qk_layernorm", "true"), "qk_layernorm: found true, expected false"},
      {with("made--Qwen-7B", "intermediate_size", "22017"), "intermediate_size: found 22017, expected an even number"},
      {with("made--DBRX", "ffn_config", ""), "ffn_config: not there, expected an object with ffn_hidden_size, moe_num_experts and moe_top_k"},
      {with("made--DBRX", "ffn_config.moe_top_k", "17"), "ffn_config.moe_top_k: found 17, expected at most the number of experts, 16"},
      {with("made--ChatGLM3-6B", "pre_seq_len", "128"), "pre_seq_len: found 128, expected null: prefix tuning is not counted"},
  };
  for (const auto& [text, said] : cases) EXPECT_EQ(refusal(text), said);
}

TEST(HfConfig, what_later_families_cannot_count_is_refused_by_name) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {with("made--InternLM3-8B", "qkv_bias", "true"), "qkv_bias: found true, expected false"},
      {with("made--MiniMax-Text-01", "attn_type_list", "[0, 1]"), "attn_type_list: 2 entries, expected num_hidden_layers 80"},
      {with("made--MiniMax-Text-01", "shared_intermediate_size", "64"), "shared_intermediate_size: found 64, expected 0: no shared expert"},
      {with("made--MiniMax-Text-01", "num_experts_per_tok", "33"), "num_experts_per_tok: found 33, expected at most num_local_experts 32"},
      {with("made--EXAONE-4.0-32B", "layer_types", ""), "layer_types: not there, expected a list of the attention of each block, as there is a sliding_window"},
      {with("made--Falcon-H1-0.5B", "mamba_d_ssm", "1535"), "mamba_d_ssm: found 1535, expected mamba_n_heads * mamba_d_head 1536"},
      {with("made--Granite-4.0-H-Tiny", "layer_types", "[\"mamba\"]"), "layer_types: 1 entries, expected num_hidden_layers 40"},
      {with("made--Qwen2-VL-7B", "vision_config.hidden_size", "1280"), "vision_config.hidden_size: found 1280, expected hidden_size of the language model 3584"},
  };
  for (const auto& [text, said] : cases) EXPECT_EQ(refusal(text), said);
}

// The library's own format of MiniMax-01 says the same in words.
TEST(HfConfig, minimax_in_the_librarys_own_format_counts_the_same) {
  std::string types;
  for (int i = 1; i <= 80; ++i) types += std::string(i == 1 ? "" : ", ") + (i % 8 == 0 ? "\"full_attention\"" : "\"linear_attention\"");
  std::string text = with("made--MiniMax-Text-01", "attn_type_list", "");
  const auto model = read_hf_config(text.replace(text.find("minimax_text_01"), 15, "minimax").insert(1, "\"layer_types\": [" + types + "], \"block_size\": 256, "));
  ASSERT_TRUE(model.ok()) << model.error().message;
  EXPECT_EQ(count_parameters(*model).total, count_parameters(model_of("made--MiniMax-Text-01")).total);
}

TEST(HfConfig, the_first_t5_says_how_long_its_sequences_were) {
  EXPECT_EQ(model_of("made--T5-small").shape.positions_max, 512U);
  EXPECT_EQ(read_hf_config(with("made--T5-small", "n_positions", ""))->shape.positions_max, 0U);
}

TEST(HfConfig, all_keys_that_are_not_known_are_named_at_once) {
  EXPECT_EQ(refusal(config_with(kLlama, R"("index_topk": 8, "num_experts": 4, "house": {}, "own_null": null, "own_false": false)")),
            "keys index_topk, num_experts and house are not known for model_type llama and might change the count");
  // In each object of the configuration, and of the one within it.
  std::string text = with(kVl, "speech_config", "{}");
  text.replace(text.find("\"text_config\":{"), 15, "\"text_config\":{\"index_topk\": 8, ");
  text.replace(text.find("\"vision_config\":{"), 17, "\"vision_config\":{\"window_size\": 8, ");
  EXPECT_EQ(refusal(text), "key speech_config is not known for model_type qwen3_vl and might change the count; "
                           "key text_config.index_topk is not known for model_type qwen3_vl_text and might change the count; "
                           "key vision_config.window_size is not known for model_type qwen3_vl and might change the count");
  EXPECT_EQ(refusal(config_with("made--MPT-70B", R"("attn_config": {"attn_type": "grouped_query_attention", "kv_n_heads": 8, "gain": 2}, "house": 1)")),
            "keys attn_config.gain and house are not known for model_type mpt and might change the count");
  std::string members;
  for (int i = 10; i < 22; ++i) members += (i == 10 ? "\"k" : ", \"k") + std::to_string(i) + "\": 1";
  EXPECT_NE(refusal(config_with(kLlama, members)).find("k20 and k21 are not known"), std::string::npos);
  EXPECT_NE(refusal(config_with(kLlama, members + ", \"k22\": 1")).find("k20, k21 and 1 more are not known"), std::string::npos);
}

TEST(HfConfig, a_key_that_is_not_known_and_false_asks_for_nothing_and_is_told) {
  const auto model = read_hf_config(config_with(kLlama, R"("use_house_style": false, "own_null": null)"));
  ASSERT_TRUE(model.ok()) << model.error().message;
  EXPECT_EQ(model->layers, model_of(kLlama).layers);
  EXPECT_EQ(model->assumptions.back(), "key use_house_style is not known and is false: nothing is counted for it");
  EXPECT_EQ(refusal(with(kLlama, "use_house_style", "true")), "key use_house_style is not known for model_type llama and might change the count");
  // By their names, these say that something usual is not there.
  for (const char* key : {"gated_linear_unit", "no_bias", "is_causal", "untie_embeddings", "use_shared_expert", "disable_attention"}) {
    EXPECT_EQ(refusal(with(kLlama, key, "false")), "key " + std::string(key) + " is not known for model_type llama and might change the count");
  }
}

TEST(HfConfig, keys_of_published_configurations_are_known_as_what_they_are) {
  struct Case {
    std::string name, harmless, key, refused, said;
  };
  const std::string phi = "made--Phi-4", mamba = "made--Mamba-130M";
  const std::vector<Case> cases = {
      {"made--Qwen2.5-7B", R"("use_mrope": false)", "use_mrope", "true", "key use_mrope is not known for model_type qwen2 and might change the count"},
      {"made--Gemma-2-2B", R"("sliding_window": 4096, "sliding_window_size": 4096)", "sliding_window_size", "512", "sliding_window_size: found 512, expected sliding_window 4096"},
      {phi, R"("interpolate_factor": 1, "lm_head_bias": false, "mlp_bias": false, "full_attn_mod": 1)", "lm_head_bias", "true", "lm_head_bias: found true, expected false"},
      {phi, R"("full_attn_mod": 1)", "full_attn_mod", "2", "full_attn_mod: found 2, expected 1: full attention in every block"},
      {phi, R"("mlp_bias": null)", "mlp_bias", "true", "mlp_bias: found true, expected false"},
      {mamba, R"("fused_add_norm": true, "rms_norm": true, "ssm_cfg": {}, "pad_vocab_size_multiple": 8)", "pad_vocab_size_multiple", "7",
       "pad_vocab_size_multiple: found 7, expected a divisor of vocab_size 50280"},
      {mamba, R"("d_model": 768, "n_layer": 24, "d_inner": 1536)", "d_model", "1024", "d_model: found 1024, expected hidden_size 768"},
      {mamba, R"("n_layer": 24)", "n_layer", "48", "n_layer: found 48, expected num_hidden_layers 24"},
      {mamba, R"("d_inner": 1536)", "d_inner", "768", "d_inner: found 768, expected intermediate_size 1536"},
      {mamba, R"("ssm_cfg": null)", "ssm_cfg", "{\"d_state\": 64}", "ssm_cfg: found object, expected an empty object, as the sizes are the configuration's own keys"},
      {mamba, R"("rms_norm": true)", "rms_norm", "false", "rms_norm: found false, expected true"},
      {"made--StarCoder2-3B", R"("activation_function": "gelu_pytorch_tanh", "attention_softmax_in_fp32": true, "scale_attention_softmax_in_fp32": true)", "mlp_bias", "false",
       "key mlp_bias is not known for model_type starcoder2 and might change the count"},
      {kLlama, R"("is_llama_config": true, "rope_interleaved": false, "max_sequence_length": 2048, "activation": "swiglu", "min_length": 0)", "activation", "\"gelu\"",
       "activation: found \"gelu\", expected swiglu or silu"},
      {"Qwen--Qwen3-30B-A3B", R"("qkv_bias": false, "use_qk_norm": true, "shared_expert_intermediate_size": 0)", "qkv_bias", "true", "qkv_bias: found true, expected false"},
      {"made--Qwen3-0.6B", R"("qkv_bias": false, "use_qk_norm": true)", "use_qk_norm", "false", "use_qk_norm: found false, expected true"},
      {"made--Mamba-2-2.7B", R"("intermediate_size": 5120, "norm_before_gate": true, "time_step_init_scheme": "random", "time_step_scale": 1.0)", "intermediate_size", "2560",
       "intermediate_size: found 2560, expected expand * hidden_size 5120"},
      {"made--BART-base", R"("dropout": 0.1, "_num_labels": 3, "min_length": 56, "replacing_rate": 0)", "normalize_before", "true", "normalize_before: found true, expected false"},
      {"made--Zamba2-2.7B", R"("use_mamba_kernels": true)", "use_mem_eff", "true", "key use_mem_eff is not known for model_type zamba2 and might change the count"},
      {"made--Baichuan2-7B", R"("_from_model_config": true)", "qk_norm", "true", "key qk_norm is not known for model_type baichuan and might change the count"},
      {"made--Nemotron-4-15B", R"("kv_channels": 128)", "kv_channels", "64", "kv_channels: found 64, expected head_dim 128"},
      {"made--Falcon-7B", R"("ff_factor": 4)", "ff_factor", "8", "ff_factor: found 8, expected ffn_hidden_size / hidden_size 4"},
      {"made--ERNIE-4.5-0.3B", R"("compression_ratio": 1.0)", "compression_ratio", "2", "compression_ratio: found 2, expected 1"},
      {"made--GPT-2", R"("_num_labels": 1, "rotary_scaling_factor": 1.0, "loss_fn": "torch", "do_lower_case": true)", "n_head", "7", "n_head: found 7, expected a divisor of the width 768"},
      {"ai21labs--Jamba-v0.1", R"("mamba_inner_layernorms": true)", "mamba_inner_layernorms", "1", "mamba_inner_layernorms: found 1, expected true or false"},
  };
  for (const Case& c : cases) {
    const auto model = read_hf_config(config_with(c.name, c.harmless));
    ASSERT_TRUE(model.ok()) << c.name << ": " << model.error().message;
    EXPECT_EQ(model->layers, model_of(c.name).layers) << c.harmless;
    EXPECT_EQ(model->assumptions, model_of(c.name).assumptions) << c.harmless;
    EXPECT_EQ(refusal(with(c.name, c.key, c.refused)), c.said);
  }
  // Three vectors in each of 28 Mamba layers: of the rank 256 and twice of the state 16.
  const auto without = read_hf_config(with("ai21labs--Jamba-v0.1", "mamba_inner_layernorms", "false"));
  EXPECT_EQ(count_parameters(model_of("ai21labs--Jamba-v0.1")).total - count_parameters(without.value()).total, 28U * (256 + 2 * 16));
  // The other spelling alone says the window.
  json::Object gemma = *json::parse(with("made--Gemma-2-2B", "sliding_window", ""))->as_object();
  gemma.emplace_back("sliding_window_size", 512.0);
  EXPECT_EQ(read_hf_config(json::dump(gemma, 0)).value().layers, read_hf_config(with("made--Gemma-2-2B", "sliding_window", "512")).value().layers);
}

TEST(HfConfig, what_the_count_is_made_of_cannot_be_ignored) {
  for (const std::string key : {"hidden_size", "num_hidden_layers", "vocab_size"}) {
    const auto model = read_hf_config(with(kLlama, "house_style", "3"), {{"house_style", key}});
    ASSERT_FALSE(model.ok()) << key;
    EXPECT_EQ(model.error().message, "key " + key + " cannot be ignored: the count is made of it");
  }
}

TEST(HfConfig, the_user_may_say_that_a_key_does_not_matter) {
  const auto model = read_hf_config(with(kLlama, "house_style", "3"), {{"house_style"}});
  ASSERT_TRUE(model.ok());
  EXPECT_EQ(model->assumptions.back(), "key house_style is ignored, as asked");
  EXPECT_EQ(count_parameters(*model).total, 8030261248U);
  const auto text_only = read_hf_config(with(kVl, "vision_config.window_size", "64"), {{"vision_config"}});
  ASSERT_TRUE(text_only.ok());
  EXPECT_EQ(count_parameters(*text_only).total, 8190735360U);
}

TEST(HfConfig, keys_that_leave_the_count_alone_may_be_anything) {
  std::string text = with(kLlama, "attention_dropout", "0.5");
  for (const auto& [key, value] : {std::pair{"rope_scaling", "{\"factor\": 32}"}, {"eos_token_id", "[1, 2]"}, {"torch_dtype", "\"float8\""}, {"_name_or_path", "\"/x\""},
                                   {"quantization_config", "{\"bits\": 4}"}, {"num_beams", "4"}, {"auto_map", "{}"}, {"my_null", "null"}}) {
    json::Object object = *json::parse(text)->as_object();
    object.emplace_back(key, *json::parse(value));
    text = json::dump(object, 0);
  }
  const auto model = read_hf_config(text);
  ASSERT_TRUE(model.ok()) << model.error().message;
  EXPECT_EQ(model->layers, model_of(kLlama).layers);
}

TEST(HfConfig, values_that_cannot_be_are_one_clear_line) {
  const std::string whole = "expected a whole number from 1 to 16777216";
  const std::vector<std::pair<std::string, std::string>> cases = {
      {with(kLlama, "hidden_size", "0"), "hidden_size: found 0, " + whole},
      {with(kLlama, "hidden_size", "-4096"), "hidden_size: found -4096, " + whole},
      {with(kLlama, "hidden_size", "4096.5"), "hidden_size: found 4096.5, " + whole},
      {with(kLlama, "hidden_size", "\"4096\""), "hidden_size: found \"4096\", " + whole},
      {with(kLlama, "hidden_size", "1e300"), "hidden_size: found 1e+300, " + whole},
      {with(kLlama, "hidden_size", "16777217"), "hidden_size: found 16777217, " + whole},
      {with(kLlama, "hidden_size", "[4096]"), "hidden_size: found array, " + whole},
      {with(kLlama, "hidden_size", "true"), "hidden_size: found true, " + whole},
      {with(kLlama, "hidden_size", ""), "hidden_size: not there, " + whole},
      {with(kLlama, "hidden_size", "null"), "hidden_size: not there, " + whole},
      {with(kLlama, "num_hidden_layers", "10001"), "num_hidden_layers: found 10001, expected a whole number from 1 to 10000"},
      {with(kLlama, "num_key_value_heads", "5"), "num_key_value_heads: found 5, expected a divisor of num_attention_heads 32"},
      {with(kLlama, "num_attention_heads", "24"), "num_attention_heads: found 24, expected a divisor of hidden_size 4096, as there is no head_dim"},
      {with(kLlama, "tie_word_embeddings", "1"), "tie_word_embeddings: found 1, expected true or false"},
      {with(kV3, "num_experts_per_tok", "257"), "num_experts_per_tok: found 257, expected at most n_routed_experts 256"},
      {with(kV3, "kv_lora_rank", "null"), "kv_lora_rank: not there, " + whole},
      {with(kOss, "layer_types", "[\"full_attention\"]"), "layer_types: 1 entries, expected num_hidden_layers 24"},
      {with(kOss, "layer_types", ""), "layer_types: not there, expected a list of the attention of each block"},
      {with(kOss, "sliding_window", ""), "sliding_window: not there, expected a whole number, as layer_types names sliding_attention"},
      {with(kNemotron, "hybrid_override_pattern", "\"MEM*\""), "hybrid_override_pattern: 4 layers, expected num_hidden_layers 88"},
      {with(kNemotron, "num_hidden_layers", "87"), "hybrid_override_pattern: 88 layers, expected num_hidden_layers 87"},
      {with(kNemotron, "mtp_hybrid_override_pattern", "\"*X\""), "mtp_hybrid_override_pattern: found \"*X\", expected of M, *, - and E only"},
      {with(kVl, "text_config", "7"), "text_config: found 7, expected an object with the language model"},
      {with(kVl, "vision_config.out_hidden_size", "1"), "vision_config.out_hidden_size: found 1, expected hidden_size of the language model 4096"},
      {with(kGemma, "text_config.num_global_key_value_heads", "3"), "text_config.num_global_key_value_heads: found 3, expected a divisor of num_attention_heads 16"},
      {with("nvidia--Llama-3_3-Nemotron-Super-49B-v1", "block_configs", "[]"), "block_configs: expected a list of num_hidden_layers 80"},
      {with("made--Kimi-Linear-48B-A3B", "linear_attn_config.kda_layers", "[1]"),
       "linear_attn_config.kda_layers and full_attn_layers: expected every block from 1 to num_hidden_layers in one of them"},
      {"[1]", "a JSON array, expected the object of a config.json"},
      {"", "line 1, column 1"},
      {"{\"model_type\": \"llama\"", "line 1, column 23"},
  };
  for (const auto& [text, said] : cases) EXPECT_EQ(refusal(text).substr(0, said.size()), said) << text.substr(0, 60);
}

TEST(HfConfig, sizes_that_multiply_beyond_reason_are_refused) {
  std::string text = with(kV3, "hidden_size", "16777216");
  const std::string size = "\"moe_intermediate_size\":2048";
  ASSERT_NE(text.find(size), std::string::npos);
  text.replace(text.find(size), size.size(), "\"moe_intermediate_size\":16777216");
  EXPECT_EQ(refusal(text), "the sizes make more than 2^53 parameters, which is no model");
  EXPECT_EQ(refusal(std::string(kConfigBytesMax + 1, ' ')), "longer than 4 MiB, which is no config.json");
  EXPECT_NE(refusal(std::string(kConfigBytesMax, ' ')), "longer than 4 MiB, which is no config.json");
}

TEST(HfConfig, pythons_infinities_are_read) {
  const Model plain = model_of(kLlama);
  for (const char* value : {"[0.0, Infinity]", "-Infinity", "NaN", "\"Infinity \\\" NaN\""}) {
    std::string text = config_text(kLlama);
    text.insert(text.find('{') + 1, "\"time_step_limit_range\": " + std::string(value) + ",");
    const auto model = read_hf_config(text);
    ASSERT_TRUE(model.ok()) << value << ": " << model.error().message;
    EXPECT_EQ(model->layers, plain.layers);
  }
  // A size that is none is not as if it were not there.
  for (const char* key : {"num_key_value_heads", "hidden_size"}) {
    std::string text = config_text(kLlama);
    const std::size_t at = text.find("\"" + std::string(key) + "\":");
    const std::size_t value = text.find_first_of("0123456789", at);
    text.replace(value, text.find_first_not_of("0123456789", value) - value, "NaN");
    EXPECT_NE(refusal(text).find(std::string(key) + ": found \"NaN\", expected a whole number"), std::string::npos) << refusal(text);
  }
  EXPECT_NE(refusal("{\"model_type\": Infinitys}").find("line 1"), std::string::npos);
}

TEST(HfConfig, spellings_and_defaults) {
  // Heads of keys that are not given are as many as of queries.
  const Model mha = read_hf_config(with(kLlama, "num_key_value_heads", "")).value();
  EXPECT_EQ(mha.shape.kv_heads, 32U);
  EXPECT_EQ(mha.assumptions.size(), 1U);
  // A tied head is stored once and executed all the same.
  const Model tied = read_hf_config(with(kLlama, "tie_word_embeddings", "true")).value();
  EXPECT_EQ(count_parameters(tied).total, 8030261248U - 128256U * 4096);
  EXPECT_EQ(forward_cost(tied, test::tokens(64)).total(), forward_cost(model_of(kLlama), test::tokens(64)).total());
  // The whole's tie_word_embeddings holds for the language model inside.
  EXPECT_EQ(count_parameters(read_hf_config(with(kVl, "tie_word_embeddings", "true")).value()).total, 8767123696U - 151936U * 4096);
  // Windows: off unless asked for.
  const std::string qwen = "made--Qwen2.5-7B";
  EXPECT_EQ(model_of(qwen).layers[1].kind, LayerKind::kAttention);
  json::Object windows = *json::parse(with(qwen, "use_sliding_window", "true"))->as_object();
  for (auto& [key, value] : windows) {
    if (key == "max_window_layers") value = 20;
  }
  const Model windowed = read_hf_config(json::dump(windows, 0)).value();
  const auto window_layers = std::count_if(windowed.layers.begin(), windowed.layers.end(), [](const Layer& l) { return l.kind == LayerKind::kWindowAttention && l.executed == 8; });
  EXPECT_EQ(window_layers, 1);
}

TEST(HfConfig, what_published_configurations_leave_out_is_taken_from_the_class_and_told) {
  std::string text = config_text("made--Gemma-3-4B");
  for (const char* line : {"    \"num_attention_heads\": 8,\n", "    \"num_key_value_heads\": 4,\n", "    \"head_dim\": 256,\n", "    \"vocab_size\": 262208,\n"}) {
    ASSERT_NE(text.find(line), std::string::npos) << line;
    text.erase(text.find(line), std::string_view(line).size());
  }
  const auto gemma = read_hf_config(text);
  ASSERT_TRUE(gemma.ok()) << gemma.error().message;
  EXPECT_EQ(count_parameters(*gemma).total, 4300079472U);
  EXPECT_EQ(gemma->assumptions.back(),
            "not given, and so the model class's defaults: text_config.num_attention_heads 8, text_config.vocab_size 262208, text_config.num_key_value_heads 4");
  const std::string vision = R"({"hidden_size": 1280, "in_chans": 3, "model_type": "qwen2_5_vl", "spatial_patch_size": 14, "tokens_per_second": 2})";
  const auto qwen = read_hf_config(with("made--Qwen2.5-VL-7B", "vision_config", vision));
  ASSERT_TRUE(qwen.ok()) << qwen.error().message;
  EXPECT_EQ(count_parameters(*qwen).total, 8292166656U);
}

TEST(HfConfig, indexers_that_are_shared_are_run_once) {
  std::string full = "[", shared = "[";
  for (int i = 0; i < 78; ++i) {
    full += i == 0 ? "\"full\"" : ", \"full\"";
    shared += i == 0 ? "\"full\"" : ", \"shared\"";
  }
  const std::string glm = "zai-org--GLM-5-FP8";
  const auto indexer = [&](const std::string& text) { return forward_cost(read_hf_config(text).value(), test::tokens(8192)).of(Part::kIndexer); };
  EXPECT_EQ(indexer(with(glm, "indexer_types", full + "]")), indexer(config_text(glm)));
  EXPECT_NEAR(indexer(with(glm, "indexer_types", shared + "]")) * 78, indexer(config_text(glm)), 1);
  EXPECT_EQ(refusal(with(glm, "indexer_types", "[\"full\"]")), "indexer_types: found array, expected full or shared for each of num_hidden_layers 78");
}

TEST(HfConfig, families_are_sorted_and_documented) {
  const auto& families = known_families();
  const std::string page = base::read_file(FLOPSIGHT_SOURCE_DIR "/docs/flops.md").value();
  for (std::size_t i = 0; i < families.size(); ++i) {
    EXPECT_TRUE(i == 0 || families[i - 1].model_type < families[i].model_type) << families[i].model_type;
    EXPECT_NE(page.find("`" + std::string(families[i].model_type) + "`"), std::string::npos) << families[i].model_type << " is not in docs/flops.md";
  }
  for (const Convention& convention : conventions()) {
    EXPECT_NE(page.find("`" + std::string(convention.name) + "`"), std::string::npos) << convention.name << " is not in docs/flops.md";
    EXPECT_NE(page.find(std::string(convention.source)), std::string::npos) << convention.source << " is not in docs/flops.md";
  }
}

}  // namespace
}  // namespace flopsight::flops
