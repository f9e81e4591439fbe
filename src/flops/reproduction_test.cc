// Published training runs (tests/fixtures/flops/rows.csv): the FLOPs of a token that their TFLOP/s or MFU and their tokens/s imply, against
// the convention that the source counts in. The outcome of every row is written to docs/flops-reproduction.md
// (FLOPSIGHT_UPDATE_GOLDEN=1 rewrites it).
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <fstream>
#include <map>

#include "flops/adapters.h"
#include "flops/conventions.h"
#include "flops/test_models.h"
#include "flops/test_rows.h"

namespace flopsight::flops {
namespace {

using test::field;
using test::Row;
using test::rows;

constexpr double kTolerance = 0.01;

enum class Source { kFoundry, kNemo, kDgxc, kTorchtitan, kMaxtext };

Source source_of(const Row& row) {
  const std::string& name = row.text("source_repo");
  return name.starts_with("mosaicml")         ? Source::kFoundry
         : name.starts_with("NVIDIA/NeMo")    ? Source::kNemo
         : name.starts_with("NVIDIA/dgxc")    ? Source::kDgxc
         : name.starts_with("pytorch")        ? Source::kTorchtitan
                                              : Source::kMaxtext;
}

struct Shape5 {
  std::uint64_t layers, hidden, heads, kv_heads, intermediate, vocab;
  std::string kind;  // of the feed-forward layer, as the table has it
  std::uint64_t experts = 0, top_k = 0;
};

// What the table leaves out, from public configurations.
const std::map<std::string, Shape5> kShapes = {
    {"GPT3-5B", {24, 4096, 32, 32, 16384, 51200, "gelu"}},
    {"Paxml GPT5B FP8", {24, 4096, 32, 32, 16384, 51200, "gelu"}},
    {"Paxml GPT5B BF16", {24, 4096, 32, 32, 16384, 51200, "gelu"}},
    {"GPT3-20B", {44, 6144, 48, 48, 24576, 51200, "gelu"}},
    {"Nemotron-8B", {32, 4096, 32, 32, 16384, 256000, "squared_relu"}},
    {"Nemotron-22B", {40, 6144, 48, 48, 24576, 256000, "squared_relu"}},
    {"Mixtral 8X22B", {56, 6144, 48, 8, 16384, 32768, "swiglu", 8, 2}},
};

// Runs of fewer layers than the model has: by how many GPUs they ran on, which is what the implied FLOPs say.
std::uint64_t proxy_layers(const Row& row) {
  const std::uint64_t gpus = row.count("n_gpus");
  const std::string& release = row.text("source_ref");
  if (row.text("model") == "llama3.1-405b" && release == "v25.04" && gpus == 32) return 8;
  if (row.text("model") != "grok1-314b" || release.starts_with("v25.05")) return 0;
  return release == "v24.11.1" ? (gpus == 8 ? 2 : gpus == 64 ? 8 : 0) : gpus == 32 ? 4 : gpus == 256 ? 32 : 0;
}

Shape5 shape_of(const Row& row) {
  const auto known = kShapes.find(row.text("model"));
  if (known != kShapes.end()) return known->second;
  Shape5 s{row.count("n_layers"), row.count("d_model"), row.count("n_heads"), row.count("n_kv_heads"), row.count("d_ff"), row.count("vocab"),
           row.text("ffn_kind"), row.count("moe_experts"), row.count("moe_topk")};
  if (proxy_layers(row) > 0) s.layers = proxy_layers(row);
  // From 25.02 on these are Llama 3 70B, says the README.
  if (row.text("model") == "llama2-70b" && source_of(row) == Source::kDgxc && row.text("source_ref") != "v24.11.1") s.vocab = 128256;
  return s;
}

Model model_of_row(const Row& row) {
  const Shape5 s = shape_of(row);
  std::string text;
  if (source_of(row) == Source::kFoundry) {
    text = "{\"model_type\":\"mpt\"," + field("d_model", s.hidden) + field("n_layers", s.layers) + field("n_heads", s.heads) + field("vocab_size", s.vocab) +
           field("max_seq_len", row.count("seq_len")) + "\"no_bias\":false}";
  } else if (s.kind == "gelu") {
    text = "{\"model_type\":\"gpt2\"," + field("n_embd", s.hidden) + field("n_layer", s.layers) + field("n_head", s.heads) + field("vocab_size", s.vocab) +
           "\"n_positions\":2048}";
  } else {
    const char* type = s.experts > 0 ? "mixtral" : s.kind == "swiglu" ? "llama" : "nemotron";
    text = std::string("{\"model_type\":\"") + type + "\"," + field("hidden_size", s.hidden) + field("num_hidden_layers", s.layers) +
           field("num_attention_heads", s.heads) + field("num_key_value_heads", s.kv_heads) + field("intermediate_size", s.intermediate) +
           field("vocab_size", s.vocab);
    if (s.experts > 0) text += field("num_local_experts", s.experts) + field("num_experts_per_tok", s.top_k);
    text += "\"tie_word_embeddings\":false}";
  }
  return read_hf_config(text).value();
}

std::uint64_t sequence_of(const Row& row) {
  if (row.count("seq_len") > 0) return row.count("seq_len");
  const std::string& model = row.text("model");
  return row.text("task") != "pretrain" ? 4096 : model.starts_with("gpt3") ? 2048 : 8192;
}

// FLOPs of a token that the source's own figures make; 0 where it has none.
double implied(const Row& row) {
  double tokens = row.number("tokens_per_s_per_gpu");
  if (row.id() == 774 || row.id() == 783) {  // their tokens/s are not batch * sequence / step
    tokens = row.number("global_batch") * row.number("seq_len") / row.number("step_time_s") / row.number("n_gpus");
  }
  if (tokens == 0) return 0;
  const double mfu_rate = row.number("mfu_pct_reported") / 100 * row.number("gpu_peak_tflops_in_source");
  const double rate = row.number("tflops_per_gpu_reported") > 0 ? row.number("tflops_per_gpu_reported") : mfu_rate;
  return rate * 1e12 / tokens;
}

// Packed fine-tuning data: documents of about this many tokens (SQuAD).
Sequence packed(std::uint64_t tokens_total) {
  Sequence sequence;
  sequence.tokens = tokens_total;
  sequence.documents.assign(tokens_total / 128, 128);
  return sequence;
}

double nemo_of(const Row& row, const Model& model, bool grouped_queries) {
  CountingRules rules = *find_convention("nemo_before_2025_08")->rules(model);
  rules.kv_heads_as_heads = !grouped_queries;
  Workload workload;
  workload.sequence = row.text("task") == "pretrain" ? Sequence{sequence_of(row), {}, 0} : packed(sequence_of(row));
  if (row.text("task") != "lora") return train_cost(model, workload, rules).total();
  const Cost cost = train_cost(*with_adapters(model, {1, {"q"}}), workload, rules);
  return cost.total() - cost.of(Part::kAdapter);
}

struct Expected {
  double flops = 0;
  std::string convention;
  std::string remark;  // not empty: it needs one
};

Expected expected(const Row& row) {
  const Model model = model_of_row(row);
  const auto by = [&](const char* name, std::string remark = "") {
    return Expected{*convention_cost(*find_convention(name), model, test::tokens(sequence_of(row))).flops_train, name, std::move(remark)};
  };
  const std::string proxy = proxy_layers(row) > 0 ? "a run of " + std::to_string(proxy_layers(row)) + " layers" : "";
  switch (source_of(row)) {
    case Source::kFoundry: return by("llm_foundry");
    case Source::kMaxtext: return by("maxtext_before_2025_07");
    case Source::kTorchtitan: return by("torchtitan");
    case Source::kNemo:
    case Source::kDgxc: break;
  }
  if (row.text("model") == "grok1-314b") return by("megatron", proxy);
  const bool old_nemotron = row.text("model").starts_with("nemotron4") && row.text("source_ref") < std::string("v25.04");
  if (old_nemotron) return {nemo_of(row, model, false), "nemo_before_2025_08", "keys and values at full width (grouped queries ignored)"};
  const bool tuned = row.text("task") != "pretrain";
  return {nemo_of(row, model, true), "nemo_before_2025_08", tuned ? "packed documents of some 128 tokens" : proxy};
}

constexpr const char* kTwoLayers = "a run of 2 layers, 2 % low, of which 0.5 % are a vocabulary of 128256";
constexpr const char* kFourLayers = "a run of 4 layers, 1.9 % low, of which 0.3 % are a vocabulary of 128256";
const std::map<int, const char*> kNotReproduced = {
    {971, "its MFU is 38.55 %, but 123 tokens/s make 35.2 % of 918 TFLOP/s"},
    {974, "its MFU is 65.4 %, but 692 tokens/s make 67.0 % of 459 TFLOP/s"},
    {513, kTwoLayers}, {522, kTwoLayers}, {627, kFourLayers}, {636, kFourLayers}, {714, kFourLayers}, {723, kFourLayers},
    {834, "1.3 % low: the page rounds 2/3 of 1.84e14 for 4096 tokens down to two digits"}, {837, "1.1 % low, the same"},
};

enum class Outcome { kPlain, kWithRemark, kNoFigure, kNot };

struct Judged {
  Outcome outcome = Outcome::kPlain;
  double ratio = 0;  // published over counted
  Expected expected;
};

Judged judge(const Row& row) {
  Judged j;
  const double published = implied(row);
  if (published == 0) {
    j.outcome = Outcome::kNoFigure;
    return j;
  }
  j.expected = expected(row);
  j.ratio = published / j.expected.flops;
  const bool close = std::abs(j.ratio - 1) <= kTolerance;
  j.outcome = !close ? Outcome::kNot : j.expected.remark.empty() ? Outcome::kPlain : Outcome::kWithRemark;
  return j;
}

TEST(Reproduction, every_row_with_a_figure_but_the_known_ten_is_within_one_percent) {
  int with_figure = 0, reproduced = 0;
  for (const Row& row : rows()) {
    const Judged j = judge(row);
    if (j.outcome == Outcome::kNoFigure) continue;
    ++with_figure;
    reproduced += j.outcome == Outcome::kNot ? 0 : 1;
    EXPECT_EQ(j.outcome == Outcome::kNot, kNotReproduced.contains(row.id())) << row.id() << " " << row.text("model") << " " << j.ratio << " " << j.expected.convention;
  }
  EXPECT_EQ(with_figure, 379);
  EXPECT_EQ(reproduced, 369);
}

TEST(Reproduction, torchtitans_page_gives_a_range_for_its_rows) {
  // "33-39 % MFU" of 989 TFLOP/s for the BF16 rows of Llama 3.1 8B with FSDP.
  for (const Row& row : rows()) {
    if (source_of(row) != Source::kTorchtitan || row.text("source_section") != "Table 1/3 FSDP" || row.text("precision").starts_with("float8")) continue;
    const double mfu = expected(row).flops * row.number("tokens_per_s_per_gpu") / 989e12;
    EXPECT_GT(mfu, 0.325) << row.id();
    EXPECT_LT(mfu, 0.395) << row.id();
  }
}

TEST(Reproduction, parameters_of_the_rows) {
  for (const Row& row : rows()) {
    if (row.number("params_total") == 0 || proxy_layers(row) > 0 || shape_of(row).vocab != row.count("vocab")) continue;
    const Parameters p = count_parameters(model_of_row(row));
    EXPECT_EQ(static_cast<double>(p.total), row.number("params_total")) << row.id() << " " << row.text("model");
  }
}

std::string source_title(Source source) {
  constexpr const char* kTitles[] = {"llm-foundry, MPT", "NeMo 24.07", "dgxc-benchmarking", "torchtitan", "MaxText"};
  return kTitles[static_cast<int>(source)];
}

std::string page() {
  std::map<Source, std::array<int, 4>> counts;
  std::string list;
  char text[32];
  for (const Row& row : rows()) {
    const Judged j = judge(row);
    ++counts[source_of(row)][static_cast<std::size_t>(j.outcome)];
    if (j.outcome == Outcome::kPlain || j.outcome == Outcome::kNoFigure) continue;
    std::snprintf(text, sizeof text, "%.4f", j.ratio);
    list += "| " + std::to_string(row.id()) + " | " + row.text("source_ref") + " | " + row.text("model") + " " + row.text("task") + " | " + j.expected.convention +
            " | " + text + " | " + (j.outcome == Outcome::kNot ? std::string("**not**: ") + kNotReproduced.at(row.id()) : j.expected.remark) + " |\n";
  }
  std::string out =
      "# Published training runs, counted again\n\nWritten by a test from `tests/fixtures/flops/rows.csv`: 416 published measurements with model shape, tokens per second and\n"
      "TFLOP/s or MFU. The FLOPs of a token that a source's own figures imply are compared with what `flopsight flops` counts for the shape in the\n"
      "convention of that source; a row reproduces if they are within 1 %.\n\n"
      "| source | rows | reproduce as they are | with a remark | have no FLOPs figure | do not |\n| --- | --- | --- | --- | --- | --- |\n";
  std::array<int, 4> all{};
  const auto line = [&](const std::string& name, const std::array<int, 4>& c) {
    out += "| " + name + " | " + std::to_string(c[0] + c[1] + c[2] + c[3]) + " | " + std::to_string(c[0]) + " | " + std::to_string(c[1]) + " | " + std::to_string(c[2]) +
           " | " + std::to_string(c[3]) + " |\n";
  };
  for (const auto& [source, c] : counts) {
    line(source_title(source), c);
    for (std::size_t i = 0; i < all.size(); ++i) all[i] += c[i];
  }
  line("all", all);
  out += "\nRows without a figure have tokens per second only (torchtitan, whose page says 33-39 % for the first of them, which holds) or TFLOP/s only\n"
         "(MaxText on A3). Llama 3.1 405B of dgxc-benchmarking is 0.8 to 1.0 % above because that page counts 16 groups of keys and values where the model\n"
         "has 8. Rows with a remark, and rows that do not reproduce:\n\n| row | release | model | convention | published / counted | remark |\n| --- | --- | --- | --- | --- | --- |\n";
  return out + list;
}

TEST(Reproduction, the_page_is_not_stale) {
  const std::string path = FLOPSIGHT_SOURCE_DIR "/docs/flops-reproduction.md";
  if (std::getenv("FLOPSIGHT_UPDATE_GOLDEN") != nullptr) std::ofstream(path) << page();
  EXPECT_EQ(base::read_file(path).value(), page());
}

}  // namespace
}  // namespace flopsight::flops
