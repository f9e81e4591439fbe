// Published and independently computed figures: tests/fixtures/flops/flops-examples.csv, and parameter counts that makers publish.
#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "base/csv.h"
#include "base/text.h"
#include "flops/adapters.h"
#include "flops/conventions.h"
#include "flops/test_models.h"

namespace flopsight::flops {
namespace {

using test::model_of;
using test::tokens;

const std::map<std::string, std::string> kConfigs = {
    {"Llama-3-8B", "made--Llama-3-8B"},
    {"Llama-3-70B", "made--Llama-3-70B"},
    {"Mixtral-8x7B", "mistralai--Mixtral-8x7B-v0.1"},
    {"Qwen3-30B-A3B", "Qwen--Qwen3-30B-A3B"},
    {"DeepSeek-V3", "deepseek-ai--DeepSeek-V3"},
    {"DeepSeek-V3+MTP1", "deepseek-ai--DeepSeek-V3"},
    {"Nemotron-H-8B", "made--Nemotron-H-8B"},
    {"Nemotron-3-Nano-30B-A3B", "made--Nemotron-3-Nano-30B-A3B"},
    {"Nemotron-3-Super-120B-A12B", "nvidia--NVIDIA-Nemotron-3-Super-120B-A12B-FP8"},
    {"Qwen3-Next-80B-A3B", "made--Qwen3-Next-80B-A3B"},
    {"gpt-oss-120b", "made--gpt-oss-120b"},
    {"GPT-3-175B", "made--GPT-3-175B"},
    {"Jamba-v0.1", "ai21labs--Jamba-v0.1"},
    {"Mamba-2-2.7B", "made--Mamba-2-2.7B"},
    {"Nemotron-4-15B", "made--Nemotron-4-15B"},
    {"MPT-70B", "made--MPT-70B"},
};

const std::map<std::string, std::string> kConventions = {
    {"audit-causal", "audit_causal"},
    {"audit-full-attention", "audit_full_attention"},
    {"6N-active-params", "6n_active"},
    {"6N-total-params", "6n_total"},
    {"PaLM-appendix-B", "palm"},
    {"Megatron-LM-d98e8a6", "megatron"},
    {"torchtitan", "torchtitan"},
    {"HF-Trainer-total_flos", "hf_trainer"},
    {"LitGPT-full-finetune", "litgpt"},
    {"HFU-full-recompute", "hfu_full_recompute"},
    {"llm-foundry formula", "llm_foundry"},
    {"published llm-foundry (408 TFLOP/s at 1007 tok/s/GPU)", "llm_foundry"},
    {"published torchtitan PR 4300", "torchtitan"},
    {"published DGXC-benchmarking 2024 (full attention)", "audit_full_attention"},
    {"published Megatron-Bridge", "megatron"},
    {"published Megatron-Bridge (2 MTP steps)", "megatron"},
    {"published Megatron-Bridge 26.06+ (new formula)", "megatron_bridge"},
    {"published Megatron-Bridge SFT packed", "audit_causal"},
};

struct Example {
  std::string model, convention;
  std::uint64_t sequence_tokens = 0;
  double forward = 0, train = 0, parameters_total = 0, parameters_active = 0;
};

std::vector<Example> examples() {
  const auto text = base::read_file(FLOPSIGHT_SOURCE_DIR "/tests/fixtures/flops/flops-examples.csv");
  const auto table = base::parse_csv(text.ok() ? *text : "");
  EXPECT_TRUE(table.ok());
  std::vector<Example> list;
  const auto cell = [&](const base::CsvRow& row, const char* column) { return row.fields[static_cast<std::size_t>(table->column(column))]; };
  for (const base::CsvRow& row : table->rows) {
    const auto number = [&](const char* column) { return base::parse_number(cell(row, column)).value_or(0); };
    list.push_back({cell(row, "model"), cell(row, "convention"), static_cast<std::uint64_t>(number("seq_len")),
                    number("flops_per_token_forward"), number("flops_per_token_train"), number("params_total"), number("params_active")});
  }
  return list;
}

std::uint64_t prediction_steps(const Example& example) {
  if (example.convention.find("2 MTP") != std::string::npos) return 2;
  return example.model.find("+MTP1") != std::string::npos ? 1 : 0;
}

// What the example's convention makes of its model; nothing for the few that tests below say by name.
std::optional<ConventionCost> counted(const Example& example) {
  const auto convention = kConventions.find(example.convention);
  if (convention == kConventions.end()) return std::nullopt;
  return find_convention(convention->second)->cost(model_of(kConfigs.at(example.model)), tokens(example.sequence_tokens, prediction_steps(example)));
}

TEST(Examples, every_row_is_within_one_percent_and_computed_ones_within_a_few_parts_in_ten_thousand) {
  int compared = 0, left = 0;
  for (const Example& example : examples()) {
    const auto cost = counted(example);
    if (!cost) {
      ++left;
      continue;
    }
    ++compared;
    const bool published = example.convention.starts_with("published");
    const double tolerance = published ? 0.01 : 4e-4;
    const std::string name = example.model + " " + std::to_string(example.sequence_tokens) + " " + example.convention;
    EXPECT_NEAR(*cost->flops_train / example.train, 1, tolerance) << name;
    EXPECT_NEAR(*cost->flops_forward / example.forward, 1, tolerance) << name;
  }
  EXPECT_EQ(compared, 346);
  EXPECT_EQ(left, 9);  // mistakes, adapters and an old formula: the tests below
}

TEST(Examples, audit_conventions_are_exact) {
  for (const Example& example : examples()) {
    if (!example.convention.starts_with("audit-") && !example.convention.starts_with("HFU")) continue;
    const auto cost = counted(example);
    ASSERT_TRUE(cost);
    EXPECT_NEAR(*cost->flops_train / example.train, 1, 1e-11) << example.model << " " << example.sequence_tokens;
  }
}

TEST(Examples, parameters) {
  for (const Example& example : examples()) {
    if (example.parameters_total == 0) continue;
    const Parameters p = count_parameters(model_of(kConfigs.at(example.model)));
    const double beside = example.model == "DeepSeek-V3+MTP1" && example.parameters_active == 0 ? static_cast<double>(p.prediction) : 0;
    // The example of GPT-3 leaves positions and biases out; that of gpt-oss the biases of experts from the active ones.
    const double tolerance = example.model == "GPT-3-175B" ? 3e-4 : 1e-6;
    EXPECT_NEAR((static_cast<double>(p.total) + beside) / example.parameters_total, 1, tolerance) << example.model;
    if (example.parameters_active == 0) continue;
    EXPECT_NEAR(static_cast<double>(p.active) / example.parameters_active, 1, 3e-4) << example.model;
  }
}

TEST(Examples, adapters_on_frozen_weights) {
  for (const Example& example : examples()) {
    if (!example.convention.starts_with("LoRA-frozen-base")) continue;
    const auto trained = with_adapters(model_of(kConfigs.at(example.model)), {16, {"all"}});
    ASSERT_TRUE(trained.ok());
    const Cost cost = train_cost(*trained, tokens(example.sequence_tokens));
    EXPECT_NEAR(cost.total() - cost.of(Part::kAdapter), example.train, 1) << example.model;
    EXPECT_EQ(cost.of(Part::kAdapter), 6 * static_cast<double>(adapter_parameters(*trained)));
  }
  // "LoRA packed", 278.8 GFLOPs: documents of SQuAD, some 128 tokens, and the adapters of rank 16.
  Workload packed = tokens(4096);
  packed.sequence.documents.assign(32, 128);
  EXPECT_NEAR(train_cost(*with_adapters(model_of("made--Llama-3-70B"), {16, {"q", "k", "v", "o"}}), packed).total() / 278.8e9, 1, 0.01);
}

TEST(Examples, published_mistakes_are_reproduced_as_such) {
  CountingRules latent;
  latent.ignore_latent = true;
  CountingRules no_experts;
  no_experts.ignore_moe_layers = true;
  const Model super = model_of("nvidia--NVIDIA-Nemotron-3-Super-120B-A12B-FP8");
  const double right = train_cost(super, tokens(8192)).total();
  EXPECT_NEAR(train_cost(super, tokens(8192), latent).total() / right, 2.124, 5e-4);
  EXPECT_NEAR(train_cost(super, tokens(8192), no_experts).total() / right, 0.444, 5e-4);
  for (const Example& example : examples()) {
    if (example.convention == "published Megatron-Bridge 26.04 (old formula)") {
      // Gated experts counted as two matrices.
      const Model oss = model_of("made--gpt-oss-120b");
      CountingRules rules = *find_convention("megatron")->rules(oss);
      rules.matrices = MatrixRule::kTwo;
      EXPECT_NEAR(train_cost(oss, tokens(example.sequence_tokens), rules).total() / example.train, 1, 0.01);
    }
    if (example.convention == "BUG latent-dimension ignored") {
      EXPECT_NEAR(train_cost(super, tokens(example.sequence_tokens), latent).total() / example.train, 1, 1e-9);
    }
    if (example.convention.starts_with("BUG published torchtitan HF-backend")) {
      // Every expert's weights, and full attention with heads of hidden_size / heads.
      const Model qwen = model_of("Qwen--Qwen3-30B-A3B");
      CountingRules rules = *find_convention("audit_full_attention")->rules(qwen);
      rules.head_dim_from_hidden = true;
      const double attention = train_cost(qwen, tokens(8192), rules).of(Part::kAttentionCore);
      EXPECT_NEAR((6 * static_cast<double>(count_parameters(qwen).total) + attention) / example.train, 1, 1e-9);
    }
  }
}

struct Published {
  const char* config;
  double total, active, tolerance;
  const char* source;
};
const std::vector<Published> kPublished = {
    {"made--Llama-3-8B", 8030261248, 8030261248, 0, "model.safetensors.index of the model"},
    {"meta-llama--Meta-Llama-3.1-8B", 8030261248, 8030261248, 0, "model.safetensors.index of the model"},
    {"meta-llama--Meta-Llama-3.1-70B", 70553706496, 70553706496, 0, "model.safetensors.index of the model"},
    {"Qwen--Qwen3-VL-8B-Instruct", 8767123696, 8190735360, 0, "safetensors of the model: 8 767 123 696 with the tower"},
    {"Qwen--Qwen3-8B", 8190735360, 8190735360, 0, "safetensors of the model"},
    {"Qwen--Qwen3-30B-A3B", 30532122624, 3353032704, 0, "safetensors of the model"},
    {"mistralai--Mixtral-8x7B-v0.1", 46702792704, 12879925248, 0, "model.safetensors.index of the model"},
    {"openai--gpt-oss-20b", 20.91e9, 4.19e9, 1e-3, "arXiv 2508.10925: 20.91 B; active 3.61 B without both embeddings"},
    {"made--gpt-oss-120b", 116.83e9, 5.71e9, 1e-3, "arXiv 2508.10925: 116.83 B"},
    {"made--GPT-2", 124439808, 124439808, 0, "model.safetensors of the model"},
    {"made--GPT-NeoX-20B", 20554567680, 20554567680, 0, "arXiv 2204.06745, table 1: 20 554 567 680"},
    {"deepseek-ai--DeepSeek-V3", 671e9, 37e9, 0.02, "arXiv 2412.19437: 671 B, 37 B"},
    {"deepseek-ai--DeepSeek-V3.2", 671e9, 37e9, 0.04, "as DeepSeek-V3 and its indexers"},
    {"made--DeepSeek-V2", 236e9, 21e9, 0.02, "arXiv 2405.04434: 236 B, 21 B"},
    {"moonshotai--Kimi-K2-Instruct", 1.04e12, 32.6e9, 0.02, "arXiv 2507.20534: 1.04 T, 32.6 B"},
    {"made--Kimi-Linear-48B-A3B", 48e9, 3e9, 0.17, "arXiv 2510.26692: 48 B, 3 B without embeddings"},
    {"nvidia--Llama-3_3-Nemotron-Super-49B-v1", 49867145216, 49867145216, 0, "safetensors of the model: 49.9 B"},
    {"nvidia--NVIDIA-Nemotron-3-Super-120B-A12B-FP8", 120.6e9, 12.7e9, 0.01, "arXiv 2604.12374: 120.6 B, 12.7 B"},
    {"made--Nemotron-3-Nano-30B-A3B", 31.6e9, 3.6e9, 0.01, "model card: 31.6 B, 3.6 B with embeddings"},
    {"nvidia--Nemotron-H-56B-Base-8K", 56e9, 56e9, 0.01, "arXiv 2504.03624: 56 B"},
    {"ai21labs--Jamba-v0.1", 51570323328, 12110311296, 0, "model.safetensors.index of the model: 51.6 B; 12 B active"},
    {"google--gemma-4-26B-A4B", 25.8e9, 3.8e9, 0.01, "model card: 25.2 B without the tower's 0.55 B, 3.8 B active"},
    {"meta-llama--Llama-4-Scout-17B-16E-Instruct", 107.8e9, 17.2e9, 0.01, "model card: 109 B with the tower of 0.87 B, which this config leaves out; 17 B active"},
    {"Qwen--Qwen3.5-397B-A17B", 397e9, 17e9, 0.03, "model card: 397 B, 17 B"},
    {"made--OPT-125M", 125239296, 125239296, 0, "pytorch_model.bin of the model"},
    {"made--OPT-350M", 331196416, 331196416, 0, "pytorch_model.bin of the model"},
    {"made--BLOOM-560M", 559214592, 559214592, 0, "safetensors of the model"},
    {"made--BLOOM-176B", 176247271424, 176247271424, 0, "model card: 176 247 271 424"},
    {"made--ERNIE-4.5-0.3B", 360748032, 360748032, 0, "safetensors of the model"},
    {"made--EXAONE-4.0-32B", 32003216384, 32003216384, 0, "model card: 30.95 B without embeddings, 32 B"},
    {"made--Falcon-H1-0.5B", 521411104, 521411104, 0, "safetensors of the model"},
    {"made--Granite-3.0-1B-A400M", 1334628352, 4.3e8, 0.01, "safetensors of the model; 400 M active"},
    {"made--Granite-4.0-H-Tiny", 6939037248, 1.35e9, 0.15, "safetensors of the model; 1 B active"},
    {"made--Qwen2-VL-7B", 8291375616, 7615616512, 0, "safetensors of the model, with the tower"},
    {"made--Falcon-7B", 6921720704, 6921720704, 0, "safetensors of the model"},
    {"made--Falcon-40B", 41303293952, 41303293952, 0, "safetensors of the model"},
    {"made--Falcon-RW-1B", 1311625216, 1311625216, 0, "safetensors of the model"},
    {"made--BERT-base", 109514298, 109514298, 0, "BertForMaskedLM without pooler"},
    {"made--RoBERTa-base", 124697433, 124697433, 0, "RobertaForMaskedLM"},
    {"made--GPT-J-6B", 6050882784, 6050882784, 0, "model card: 6 050 882 784"},
    {"made--StarCoder-15B", 15517456384, 15517456384, 0, "safetensors of the model"},
    {"made--Phi-2", 2779683840, 2779683840, 0, "safetensors of the model"},
    {"made--StableLM-2-1.6B", 1644515328, 1644515328, 0, "model card: 1 644 515 328"},
    {"made--Command-R", 34980831232, 34980831232, 0, "safetensors of the model"},
    {"made--Command-R-plus", 103810674688, 103810674688, 0, "safetensors of the model"},
    {"made--Command-R7B", 8028033024, 8028033024, 0, "safetensors of the model"},
    {"made--InternLM2-7B", 7737708544, 7737708544, 0, "safetensors of the model"},
    {"made--InternLM3-8B", 8804241408, 8804241408, 0, "safetensors of the model: 8.8 B"},
    {"made--ChatGLM3-6B", 6243584000, 6243584000, 0, "safetensors of the model: 32 more, of the rotary table"},
    {"made--GLM-4-9B", 9399951360, 9399951360, 0, "safetensors of the model: 32 more, of the rotary table"},
    {"made--OLMo-1B", 1176764416, 1176764416, 0, "safetensors of the model"},
    {"made--OLMo-7B", 6888095744, 6888095744, 0, "safetensors of the model"},
    {"made--Qwen-7B", 7721324544, 7721324544, 0, "safetensors of the model"},
    {"made--Baichuan2-7B", 7505973248, 7505973248, 0, "sum of its matrices; model card: 7 B"},
    {"made--Mistral-Small-24B", 23572403200, 23572403200, 0, "safetensors of the model"},
    {"made--Mistral-Small-3.1-24B", 24011361280, 23572403200, 0, "safetensors of the model, with the tower"},
    {"made--DBRX", 131596523520, 36469708800, 0, "safetensors of the model; 36 B active"},
    {"made--Phi-3.5-MoE", 41873153344, 6640999744, 0, "safetensors of the model; 6.6 B active"},
    {"made--Llama-2-7B", 6738415616, 6738415616, 0, "model.safetensors.index of the model"},
    {"made--Llama-2-13B", 13015864320, 13015864320, 0, "model.safetensors.index of the model"},
    {"made--Llama-2-70B", 68976648192, 68976648192, 0, "model.safetensors.index of the model"},
    {"made--Llama-3.1-405B", 405853388800, 405853388800, 0, "model.safetensors.index of the model"},
    {"made--Mistral-7B-v0.1", 7241732096, 7241732096, 0, "model.safetensors.index of the model"},
    {"made--Qwen2.5-7B", 7615616512, 7615616512, 0, "model.safetensors.index of the model"},
    {"made--Qwen3-0.6B", 596049920, 596049920, 0, "safetensors of the model, head and embedding once"},
    {"made--Qwen3-235B-A22B", 235093634560, 22190763520, 0, "model.safetensors.index of the model"},
    {"made--Qwen3-Next-80B-A3B", 80e9, 3.9e9, 0.01, "model card: 80 B, 3 B without embeddings"},
    {"made--Qwen1.5-MoE-A2.7B", 14315784192, 2689173504, 0, "model.safetensors.index of the model; 2.7 B active"},
    {"made--Qwen2.5-VL-7B", 8292166656, 7615616512, 0, "model.safetensors.index of the model, with the tower"},
    {"made--Gemma-2B", 2506172416, 2506172416, 0, "safetensors of the model"},
    {"made--Gemma-2-2B", 2614341888, 2614341888, 0, "safetensors of the model"},
    {"made--Gemma-3-4B", 4300079472, 3880263168, 0, "safetensors of the model, with the tower"},
    {"made--Phi-3-mini", 3821079552, 3821079552, 0, "safetensors of the model"},
    {"made--Phi-4", 14659507200, 14659507200, 0, "safetensors of the model"},
    {"made--OLMo-2-7B", 7298617344, 7298617344, 0, "safetensors of the model"},
    {"made--OLMoE-1B-7B", 6919161856, 1282017280, 0, "safetensors of the model; 1.3 B active"},
    {"made--StarCoder2-3B", 3030371328, 3030371328, 0, "safetensors of the model"},
    {"made--SmolLM3-3B", 3075098624, 3075098624, 0, "safetensors of the model"},
    {"made--GLM-4-9B-0414", 9400279040, 9400279040, 0, "safetensors of the model"},
    {"zai-org--GLM-4.7-FP8", 355e9, 32e9, 0.06, "model card of GLM-4.5: 355 B, 32 B"},
    {"zai-org--GLM-5-FP8", 744e9, 40e9, 0.05, "model card: 744 B, 40 B"},
    {"made--MiniMax-M2", 229e9, 11e9, 0.01, "model card: 230 B; 10 B active without embeddings"},
    {"made--MiniMax-Text-01", 456089655296, 48403306496, 0, "safetensors of the model; arXiv 2501.08313: 456 B, 45.9 B active without embedding and head"},
    {"moonshotai--Kimi-K2.5", 1.03e12, 32.6e9, 0.02, "as Kimi K2 and a tower of 0.4 B"},
    {"made--DeepSeek-V2-Lite", 15706484224, 2661150208, 0, "safetensors of the model; arXiv 2405.04434: 15.7 B, 2.4 B without the embedding"},
    {"meta-llama--Llama-4-Maverick-17B-128E-Instruct", 401583781376, 17184691200, 0, "safetensors of the model, with the tower; 17 B active"},
    {"made--Nemotron-4-15B", 15.6e9, 15.6e9, 0.01, "arXiv 2402.16819: 15.6 B"},
    {"made--Nemotron-4-340B", 340e9, 340e9, 0.01, "arXiv 2406.11704: 340 B"},
    {"made--Nemotron-H-8B", 8.1e9, 8.1e9, 0.01, "safetensors of the model: 8.1 B"},
    {"made--Mamba-130M", 129135360, 129135360, 0, "safetensors of the model"},
    {"made--Mamba-2-2.7B", 2.7e9, 2.7e9, 0.01, "arXiv 2405.21060: 2.7 B"},
    {"made--Zamba2-2.7B", 2.66e9, 2.66e9, 0.01, "arXiv 2411.15242: 2.7 B"},
    {"made--T5-small", 60506624, 60506624, 0, "safetensors of the model"},
    {"made--BART-base", 139420416, 139420416, 0, "safetensors of the model"},
    {"made--CLIP-ViT-L-14-336", 427944193, 123650304, 1e-8, "safetensors of the model; the scale of the logits is one more"},
    {"made--ViT-B-16", 86567656, 0, 0, "safetensors of the model"},
    {"made--MPT-70B", 64862437376, 64862437376, 0, "llm-foundry, scripts/train/benchmarking"},
};

TEST(Parameters, of_published_models) {
  for (const Published& published : kPublished) {
    const Parameters p = count_parameters(model_of(published.config));
    const double total = static_cast<double>(p.total), active = static_cast<double>(p.active);
    EXPECT_LE(std::abs(total / published.total - 1), published.tolerance) << published.config << ": " << total << ", " << published.source;
    if (published.active == 0) continue;
    EXPECT_LE(std::abs(active / published.active - 1), published.tolerance) << published.config << ": " << active << ", " << published.source;
  }
}

}  // namespace
}  // namespace flopsight::flops
