// The FLOPs that the READMEs of dgxc-benchmarking print for models and their parts (tests/fixtures/flops/dgxc_model_flops.csv), line by line.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>

#include "base/csv.h"
#include "base/text.h"
#include "flops/adapters.h"
#include "flops/conventions.h"
#include "flops/test_models.h"

namespace flopsight::flops {
namespace {

using test::model_of;
using test::tokens;

struct Line {
  std::string tag, path, text;
};

std::vector<Line> lines() {
  const auto table = base::parse_csv(base::read_file(FLOPSIGHT_SOURCE_DIR "/tests/fixtures/flops/dgxc_model_flops.csv").value());
  std::vector<Line> list;
  for (const base::CsvRow& row : table->rows) list.push_back({row.fields[0], row.fields[1], row.fields[2]});
  return list;
}

// The last number of a sentence such as "… = 659,545,915,392" or "… is 2.17E+16. Calculation …"; 0: none.
double figure(std::string text) {
  text = text.substr(0, text.find(". Calc"));
  std::erase(text, ',');
  double last = 0;
  std::string word;
  for (const char c : text + " ") {
    if ((c >= '0' && c <= '9') || c == '.' || c == 'e' || c == 'E' || c == '+') {
      word += c;
      continue;
    }
    while (!word.empty() && word.back() == '.') word.pop_back();
    std::erase(word, '+');
    if (const auto number = base::parse_number(word); number && *number > 1e6) last = *number;
    word.clear();
  }
  return last;
}

enum class Of { kTotal, kAttention, kMlp, kHead };

CountingRules full() { return *find_convention("megatron_before_2025_03")->rules({}); }
CountingRules half() { return *find_convention("megatron")->rules({}); }

double counted(const Model& model, std::uint64_t sequence_tokens, const CountingRules& rules, Of of) {
  const Cost cost = train_cost(model, tokens(sequence_tokens), rules);
  if (of == Of::kAttention) return cost.of(Part::kAttentionProjection) + cost.of(Part::kAttentionCore);
  if (of == Of::kMlp) return cost.of(Part::kFeedForward) + cost.of(Part::kRoutedExperts);
  if (of == Of::kHead) return cost.of(Part::kHead);
  return cost.total();
}

Model llama(std::uint64_t layers, std::uint64_t hidden, std::uint64_t heads, std::uint64_t kv_heads, std::uint64_t intermediate, std::uint64_t vocab, bool experts = false) {
  const auto field = [](const char* name, std::uint64_t value) { return std::string("\"") + name + "\":" + std::to_string(value) + ","; };
  return read_hf_config(std::string("{\"model_type\":\"") + (experts ? "mixtral" : "llama") + "\"," + field("num_hidden_layers", layers) + field("hidden_size", hidden) +
                        field("num_attention_heads", heads) + field("num_key_value_heads", kv_heads) + field("intermediate_size", intermediate) + field("vocab_size", vocab) +
                        (experts ? "\"num_local_experts\":8,\"num_experts_per_tok\":2," : "") + "\"tie_word_embeddings\":false}")
      .value();
}

// Training FLOPs of a token, or of a sample where `sample_tokens` is not 0.
struct Rule {
  const char* path;  // part of it
  const char* tag;   // its beginning
  const char* text;  // part of it
  Of of;
  std::uint64_t sample_tokens;
  std::function<double(Of)> count;
};

std::function<double(Of)> by(Model model, std::uint64_t sequence_tokens, CountingRules rules) {
  return [model = std::move(model), sequence_tokens, rules](Of of) { return counted(model, sequence_tokens, rules, of); };
}

std::function<double(Of)> gqa_ignored(const char* name) {
  CountingRules rules = full();
  rules.kv_heads_as_heads = true;
  return by(model_of(name), 4096, rules);
}

// Adapters on frozen weights; documents of some 2,048 tokens, or 128.
std::function<double(Of)> frozen(Model model, std::uint64_t sequence_tokens) {
  CountingRules rules = half();
  rules.frozen_as_trained = false;
  return [model = std::move(model), sequence_tokens, rules](Of of) {
    return counted(*with_adapters(model, {1, {"q"}}), sequence_tokens, rules, of);
  };
}

const std::vector<Rule>& rules() {
  static const auto l405 = by(llama(126, 16384, 128, 16, 53248, 128256), 8192, full());  // 16 groups of keys and values: the model has 8
  static const auto l70 = by(model_of("made--Llama-3-70B"), 8192, full());
  static const auto l8 = by(model_of("made--Llama-3-8B"), 8192, full());
  static const auto grok = by(llama(64, 6144, 48, 8, 32768, 128256, true), 8192, half());  // the vocabulary of Llama 3: the model has 131072
  static const auto gpt = by(model_of("made--GPT-3-175B"), 2048, full());
  static const auto gpt5 = by(read_hf_config(R"({"model_type":"gpt2","n_embd":4096,"n_layer":24,"n_head":32,"n_positions":2048,"vocab_size":51200})").value(), 2048, full());
  static const auto n15 = by(model_of("made--Nemotron-4-15B"), 4096, full());
  static const auto n340 = by(model_of("made--Nemotron-4-340B"), 4096, full());
  static const auto nh = by(model_of("nvidia--Nemotron-H-56B-Base-8K"), 8192, full());
  static const auto l2 = by(model_of("made--Llama-2-70B"), 4096, full());
  static const Model maverick = model_of("meta-llama--Llama-4-Maverick-17B-128E-Instruct");
  static const std::vector<Rule> kRules = {
      {"grok1", "", "attention flops", Of::kAttention, 0, grok},
      {"grok1", "", "embedding flops", Of::kHead, 0, grok},
      {"grok1", "", "model flops", Of::kTotal, 8192, grok},
      {"405b", "v24", "attention flops", Of::kAttention, 0, l405},
      {"405b", "v24", "embedding flops", Of::kHead, 0, l405},
      {"405b", "", "model flops", Of::kTotal, 8192, l405},
      {"llama3.1/README.md", "v25.05", "attention flops", Of::kAttention, 0, l405},
      {"llama3.1/README.md", "v25.05", "embedding flops", Of::kHead, 0, l405},
      {"llama3.1/README.md", "v25.05", "model flops", Of::kTotal, 8192, l405},
      {"llama3.1/README_70b", "", "attention flops", Of::kAttention, 0, l70},
      {"llama3.1/README_70b", "", "embedding flops", Of::kHead, 0, l70},
      {"llama3.1/README_70b", "", "model flops", Of::kTotal, 8192, l70},
      {"llama3.1/README", "", "attention flops", Of::kAttention, 0, l8},
      {"llama3.1/README", "", "embedding flops", Of::kHead, 0, l8},
      {"llama3.1/README", "", "mlp flops", Of::kMlp, 0, l8},
      {"llama3.1/README", "", "model flops", Of::kTotal, 8192, l8},
      {"maxtext", "v24", "attention flops", Of::kAttention, 0, l2},
      {"maxtext", "v24", "embedding flops", Of::kHead, 0, l2},
      {"maxtext", "v24", "model flops", Of::kTotal, 4096, l2},
      {"maxtext", "", "attention", Of::kAttention, 0, l70},
      {"maxtext", "", "model", Of::kTotal, 8192, l70},
      {"175b", "", "attention flops", Of::kAttention, 0, gpt},
      {"175b", "", "embedding flops", Of::kHead, 0, gpt},
      {"175b", "", "model flops", Of::kTotal, 2048, gpt},
      {"paxml/README_5b", "", "model flops", Of::kTotal, 2048, gpt5},
      {"nemotron/README_15b", "v24", "model flops", Of::kTotal, 4096, gqa_ignored("made--Nemotron-4-15B")},
      {"nemotron/README_340b", "v24", "model flops", Of::kTotal, 4096, gqa_ignored("made--Nemotron-4-340B")},
      {"nemotron/README.md", "v25.04,", "model flops", Of::kTotal, 4096, gqa_ignored("made--Nemotron-4-15B")},
      {"nemotron", "", "18432^2", Of::kAttention, 0, n340},
      {"nemotron", "", "256000 * 18432", Of::kHead, 0, n340},
      {"nemotron", "", "8.62124e15", Of::kTotal, 4096, n340},
      {"nemotron", "", "6144^2", Of::kAttention, 0, n15},
      {"nemotron", "", "256000 * 6144", Of::kHead, 0, n15},
      {"nemotron4", "", "mlp flops", Of::kMlp, 0, n15},
      {"nemotron", "", "ron4 15b", Of::kTotal, 4096, n15},
      {"nemotron4-15b", "", "model flops", Of::kTotal, 4096, n15},
      {"nemotron", "", "odel flops = 2.816e15", Of::kTotal, 8192, nh},
      {"nemotron-h", "", "model flops for Nemotron-H", Of::kTotal, 8192, nh},
      {"nemotron-h", "", "total_flops", Of::kTotal, 8192, nh},
      {"llama4/finetune", "", "model flops", Of::kTotal, 4096, by(maverick, 4096, half())},
      {"llama4", "", "8.92e14", Of::kTotal, 8192, by(maverick, 8192, half())},
      {"llama3/finetuning", "", "Model flops", Of::kTotal, 4096, by(model_of("made--Llama-3-70B"), 128, full())},
      {"ft_llama3", "", "Model flops", Of::kTotal, 4096, by(model_of("made--Llama-3-8B"), 128, full())},
      {"llama3/finetune/", "", "model flops", Of::kTotal, 2048, frozen(model_of("made--Llama-3-70B"), 2048)},
  };
  return kRules;
}

const Rule* rule_of(const Line& line) {
  for (const Rule& rule : rules()) {
    if (line.path.find(rule.path) != std::string::npos && (line.tag + ",").starts_with(rule.tag) && line.text.find(rule.text) != std::string::npos) return &rule;
  }
  return nullptr;
}

// What is no figure of a model, or contradicts itself.
const char* left_out(const Line& line) {
  const auto has = [&](const char* part) { return line.text.find(part) != std::string::npos; };
  if (has("achieved TFLOPS")) return "a rate";
  if (has("= 678,702,806,466,560")) return "contradicts the 8.92e14 of the same page: the shared expert is missing";
  if (has("attn_block_flops") || has("lm_head_flops") || has("mlp_block_flops") || has("mamba_block_flops")) return "multiply-adds of a forward pass, in the total below";
  return nullptr;
}

TEST(Dgxc, every_line_is_within_one_percent_or_says_why_not) {
  int compared = 0, left = 0;
  for (const Line& line : lines()) {
    if (left_out(line) != nullptr) {
      ++left;
      continue;
    }
    const Rule* rule = rule_of(line);
    if (rule == nullptr) {
      ADD_FAILURE() << "no rule for " << line.tag << " " << line.path << ": " << line.text;
      continue;
    }
    ++compared;
    const double ours = rule->count(rule->of) * static_cast<double>(rule->sample_tokens > 0 ? rule->sample_tokens : 1);
    EXPECT_NEAR(figure(line.text) / ours, 1, 0.01) << line.tag << " " << line.path << ": " << line.text << " " << figure(line.text) << " " << ours;
  }
  EXPECT_EQ(compared + left, 67);
  EXPECT_EQ(left, 6);
}

}  // namespace
}  // namespace flopsight::flops
