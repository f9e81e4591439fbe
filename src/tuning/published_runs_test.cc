// Published training runs (tests/fixtures/flops/rows.csv) against what the model of a step predicts. One figure is fitted to half of them;
// settings that a source does not print follow from its software alone (software_of), for all its rows alike. The outcome is in docs/tune-accuracy.md
// (FLOPSIGHT_UPDATE_GOLDEN=1 rewrites it).
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <map>

#include "base/file.h"
#include "base/hash.h"
#include "base/text.h"
#include "flops/hf_config.h"
#include "flops/test_rows.h"
#include "tuning/memory.h"
#include "tuning/published_runs.h"
#include "tuning/step.h"

namespace flopsight::tuning {
namespace {

using flops::test::field;
using flops::test::Row;
using flops::test::rows;
using test::Errors;
using test::errors_of;
using test::line;

flops::Model model_of(const Row& row) {
  const std::string& kind = row.text("ffn_kind");
  std::string text;
  if (row.text("source_repo").starts_with("mosaicml")) {
    text = "{\"model_type\":\"mpt\"," + field("d_model", row.count("d_model")) + field("n_layers", row.count("n_layers")) + field("n_heads", row.count("n_heads")) +
           field("vocab_size", row.count("vocab")) + field("max_seq_len", row.count("seq_len")) + "\"no_bias\":false}";
  } else if (kind == "gelu") {
    text = "{\"model_type\":\"gpt2\"," + field("n_embd", row.count("d_model")) + field("n_layer", row.count("n_layers")) + field("n_head", row.count("n_heads")) +
           field("vocab_size", row.count("vocab")) + "\"n_positions\":2048}";
  } else {
    text = std::string("{\"model_type\":\"") + (kind == "swiglu" ? "llama" : "nemotron") + "\"," + field("hidden_size", row.count("d_model")) +
           field("num_hidden_layers", row.count("n_layers")) + field("num_attention_heads", row.count("n_heads")) +
           field("num_key_value_heads", row.count("n_kv_heads")) + field("intermediate_size", row.count("d_ff")) + field("vocab_size", row.count("vocab")) +
           "\"tie_word_embeddings\":false}";
  }
  return flops::read_hf_config(text).value();
}

// What the software of a source does where its table does not say: llm-foundry trains with PyTorch's operators, the flash kernel of the first
// generation in Triton and FSDP; NeMo with Transformer Engine's fused kernels, cuDNN's attention, a distributed optimizer and messages of tensor
// parallelism beside products; torchtitan with compiled kernels and FSDP.
void software_of(const Row& row, TrainSettings& s) {
  const std::string& source = row.text("source_repo");
  if (source.starts_with("mosaicml")) {
    s.kernels = Kernels::kEager;
    s.zero_stage = row.text("fsdp") == "SHARD_GRAD_OP" ? 2 : 3;
    s.recompute = row.text("act_ckpt") == "True" ? flops::Recompute::kFull : flops::Recompute::kNone;
  } else if (source.starts_with("NVIDIA")) {
    s.attention = AttentionKernel::kFlash3;
    s.overlap_tensor = true;
    s.layout.tensor = row.count_or_one("tp");
    s.layout.pipeline = row.count_or_one("pp");
    s.layout.virtual_stages = row.count_or_one("vp");
    s.layout.context = row.count_or_one("cp");
  } else {
    s.zero_stage = 3;
    s.recompute = row.text("act_ckpt") == "full" ? flops::Recompute::kFull : flops::Recompute::kNone;
  }
}

const char* device_of(const Row& row) {
  const std::string& gpu = row.text("gpu");
  if (gpu == "a100_40gb") return "A100-SXM4-40GB";
  if (gpu == "a100_80gb") return "A100-SXM4-80GB";
  if (gpu == "h100_80gb" || gpu == "DGX-H100" || gpu == "H100") return "H100-SXM5-80GB";
  if (gpu == "H200") return "H200";
  return gpu == "GB200" ? "GB200" : nullptr;
}

struct PublishedRun {
  const Row* row = nullptr;
  std::string left_out;  // why it is not scored
  double measured_seconds = 0;
  double predicted_seconds = 0;
  std::optional<bool> fits;

  double error() const { return predicted_seconds / measured_seconds - 1; }
};

PublishedRun predict(const Row& row, AttentionKernel foundry_attention = AttentionKernel::kFlash1) {
  PublishedRun out;
  out.row = &row;
  const auto left_out = [&](const char* why) {
    out.left_out = why;
    return out;
  };
  if (row.text("task") != "pretrain") return left_out("fine-tuning: lengths of documents are not printed");
  if (row.text("gpu").starts_with("TPU")) return left_out("no GPU");
  const catalog::Device* device = device_of(row) == nullptr ? nullptr : catalog::DeviceCatalog::builtin().find(device_of(row));
  if (device == nullptr) return left_out("a GPU that the catalogue does not have");
  if (row.count("n_layers") == 0 || row.count("d_ff") == 0 || row.count("seq_len") == 0 || row.count("micro_batch") == 0) return left_out("shape, sequence length or micro-batch is not printed");
  if (row.text("fsdp").empty() && row.count("tp") == 0 && !row.text("source_repo").starts_with("pytorch")) return left_out("the layout is not printed");
  TrainSettings s;
  s.gpus = row.count("n_gpus");
  s.sequence_tokens = row.count("seq_len");
  s.micro_batch = row.count("micro_batch");
  software_of(row, s);
  if (row.text("source_repo").starts_with("mosaicml")) s.attention = foundry_attention;
  const std::uint64_t each = s.layout.tensor * s.layout.pipeline * s.layout.context;
  if (s.gpus % each != 0) return left_out("the printed layout does not divide the GPUs");
  s.layout.data = s.gpus / each;
  s.global_batch = row.count("global_batch") > 0 ? row.count("global_batch") : s.micro_batch * s.layout.data;
  const std::string precision = base::to_lower(row.text("precision"));
  const bool narrow = precision.find("fp8") != std::string::npos || precision.find("float8") != std::string::npos;
  s.precision = narrow ? catalog::Precision::kFp8 : catalog::Precision::kBf16;
  if (row.number("tokens_per_s_per_gpu") == 0) return left_out("no tokens per second");
  out.measured_seconds = static_cast<double>(s.global_batch * s.sequence_tokens) / row.number("tokens_per_s_per_gpu") / static_cast<double>(s.gpus);
  const flops::Model model = model_of(row);
  const Rates rates = Rates::of(*device).value();
  const Fabric fabric = *reference_fabric(*device);
  StepModel steps(model, rates, fabric);
  const auto step = steps.predict(s);
  if (!step.ok()) {
    out.left_out = step.error().message;
    return out;
  }
  out.predicted_seconds = step->step_seconds();
  out.fits = train_memory(model, s, *device).fits();
  return out;
}

// Runs of one source, model and GPU are alike, so they are fitted to, or scored, together.
bool is_fitted_to(const Row& row) {
  return (base::hash128(row.text("source_repo") + "|" + row.text("model") + "|" + row.text("gpu")).high & 1) == 0;
}

const char* source_title(const Row& row) {
  const std::string& name = row.text("source_repo");
  return name.starts_with("mosaicml") ? "llm-foundry" : name.starts_with("NVIDIA/NeMo") ? "NeMo 24.07" : name.starts_with("NVIDIA") ? "dgxc-benchmarking" : "torchtitan";
}

struct Outcome {
  std::vector<double> fitted, scored;
  std::map<std::string, std::vector<double>> scored_by;  // source, GPU, precision
  std::map<std::string, int> left_out;
  int runs = 0, fit_in_memory = 0;
};

Outcome outcome(AttentionKernel foundry_attention = AttentionKernel::kFlash1) {
  Outcome out;
  for (const Row& row : rows()) {
    const PublishedRun run = predict(row, foundry_attention);
    if (!run.left_out.empty()) {
      ++out.left_out[run.left_out];
      continue;
    }
    ++out.runs;
    if (run.fits.value_or(false)) ++out.fit_in_memory;
    if (is_fitted_to(row)) {
      out.fitted.push_back(run.error());
      continue;
    }
    out.scored.push_back(run.error());
    out.scored_by[std::string(source_title(row)) + " | " + device_of(row) + " | " + row.text("precision")].push_back(run.error());
  }
  return out;
}

std::string page() {
  const Outcome all = outcome();
  std::string out =
      "# Predicted and measured step times\n\nWritten by a test from `tests/fixtures/flops/rows.csv`: published training measurements, each predicted from its printed shape, GPU, layout and\n"
      "batch. Settings that a source does not print follow from its software, for all its runs alike (`software_of` in\n"
      "`src/tuning/published_runs_test.cc`). One figure of the model is fitted to these, the sustained share of kernels' rates, to the half of the runs that a hash of source,\n"
      "model and GPU chooses; the other half scores. Error is predicted / measured step time - 1.\n\n"
      "| runs | number | median | median, absolute | 90th percentile, absolute |\n| --- | --- | --- | --- | --- |\n";
  out += line("**scored**", errors_of(all.scored)) + line("fitted to", errors_of(all.fitted));
  out += line("scored, with llm-foundry's attention of the second generation", errors_of(outcome(AttentionKernel::kFlash2).scored));
  out += "\nThe last line is how much hangs on one such setting: that the Triton kernel of these runs is of the first generation was assumed, and not read in its source, after their long sequences\n"
         "were seen to be predicted too fast.\n";
  out += "\nMemory: " + std::to_string(all.fit_in_memory) + " of the " + std::to_string(all.runs) + " runs, which all did fit, are predicted to.\n\nThe scored runs by source:\n\n"
         "| source | GPU | precision | number | median | median, absolute | 90th percentile, absolute |\n| --- | --- | --- | --- | --- | --- | --- |\n";
  for (const auto& [name, errors] : all.scored_by) out += line(name, errors_of(errors));
  out += "\nRows that are not predicted:\n\n| rows | why |\n| --- | --- |\n";
  for (const auto& [why, count] : all.left_out) out += "| " + std::to_string(count) + " | " + why + " |\n";
  return out + test::experts_section() + test::serving_section();
}

TEST(PublishedRuns, step_times_are_within_the_bars_where_nothing_was_fitted) {
  const Outcome all = outcome();
  const Errors scored = errors_of(all.scored);
  EXPECT_GE(scored.runs, 100u);
  EXPECT_LT(scored.median_absolute_ratio, 0.15);
  EXPECT_LT(scored.p90_absolute_ratio, 0.35);
  // The fitted figure is the one that its rule gives, to two digits.
  EXPECT_NEAR(errors_of(all.fitted).median_ratio, 0, 0.01);
}

TEST(PublishedRuns, what_ran_is_predicted_to_fit) {
  const Outcome all = outcome();
  EXPECT_GE(all.fit_in_memory, all.runs * 95 / 100);
}

TEST(PublishedRuns, the_page_is_not_stale) {
  const std::string path = FLOPSIGHT_SOURCE_DIR "/docs/tune-accuracy.md";
  if (std::getenv("FLOPSIGHT_UPDATE_GOLDEN") != nullptr) std::ofstream(path) << page();
  EXPECT_EQ(base::read_file(path).value(), page());
}

}  // namespace
}  // namespace flopsight::tuning
