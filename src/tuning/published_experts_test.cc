// Published training runs of mixtures of experts, hybrids and Blackwell GPUs (tests/fixtures/tuning/expert_runs.csv) against what the model of a step predicts.
// Settings that a source does not print follow from its software alone, for all its rows alike. The outcome is a part of docs/tune-accuracy.md.
#include <gtest/gtest.h>

#include "base/hash.h"
#include "flops/hf_config.h"
#include "tuning/published_runs.h"
#include "tuning/search.h"
#include "tuning/test_cases.h"

namespace flopsight::tuning {
namespace {

using flops::test::field;
using flops::test::Row;
using test::Errors;
using test::errors_of;
using test::line;

flops::Model model_of(const Row& row) {
  if (row.text("config") != "grok-1") return test::model_of(row.text("config"));
  // Grok-1 as the source has it, with fewer layers on fewer GPUs: eight experts of three matrices, two for a token.
  return flops::read_hf_config("{\"model_type\":\"mixtral\"," + field("hidden_size", 6144) + field("num_hidden_layers", row.count("layers")) + field("num_attention_heads", 48) +
                               field("num_key_value_heads", 8) + field("intermediate_size", 32768) + field("vocab_size", 131072) + field("num_local_experts", 8) +
                               field("num_experts_per_tok", 2) + "\"tie_word_embeddings\":false}")
      .value();
}

TrainSettings settings_of(const Row& row) {
  TrainSettings s;
  s.gpus = row.count("n_gpus");
  s.sequence_tokens = row.count("seq_len");
  s.global_batch = row.count("global_batch");
  s.micro_batch = row.count("micro_batch");
  s.layout.tensor = row.count("tp");
  s.layout.pipeline = row.count("pp");
  s.layout.context = row.count("cp");
  s.layout.virtual_stages = row.count("vp");
  s.layout.expert = row.count("ep");
  if (row.count("etp") > 0 && row.count("etp") != s.layout.tensor) s.layout.expert_tensor = row.count("etp");
  s.layout.data = s.gpus / (s.layout.tensor * s.layout.pipeline * s.layout.context);
  s.zero_stage = static_cast<int>(row.count("zero"));
  s.precision = *catalog::find_precision(row.text("precision"));
  if (!row.text("recompute").empty()) s.recompute = *parse_recompute(row.text("recompute"));
  if (!row.text("dispatch").empty()) s.dispatch = *parse_dispatch(row.text("dispatch"));
  s.overlap_expert = row.text("overlap") == "expert";
  // All of these trainers use Transformer Engine: fused kernels, cuDNN's attention; Megatron's overlap tensor-parallel messages.
  s.attention = AttentionKernel::kFlash3;
  s.overlap_tensor = true;
  return s;
}

struct PublishedRun {
  const Row* row = nullptr;
  std::string left_out;
  double measured_seconds = 0;
  Step step;
  std::optional<bool> fits;

  double error() const { return step.step_seconds() / measured_seconds - 1; }
};

PublishedRun predict(const Row& row) {
  PublishedRun out;
  out.row = &row;
  const TrainSettings s = settings_of(row);
  const catalog::Device& device = test::device(row.text("gpu"));
  const flops::Model model = model_of(row);
  const Rates rates = Rates::of(device).value();
  const Fabric fabric = *reference_fabric(device);
  StepModel steps(model, rates, fabric);
  const auto step = steps.predict(s);
  if (!step.ok()) {
    out.left_out = step.error().message;
    return out;
  }
  out.step = *step;
  out.measured_seconds = row.number("step_seconds") > 0 ? row.number("step_seconds")
                                                        : static_cast<double>(s.global_batch * s.sequence_tokens) / row.number("tokens_per_s_per_gpu") / static_cast<double>(s.gpus);
  out.fits = train_memory(model, s, device).fits();
  return out;
}

// Runs of one source, model and GPU are alike, so they are fitted to, or scored, together. Nothing is fitted to dense models here.
bool is_fitted_to(const Row& row) {
  return !row.text("config").starts_with("made--Llama") && (base::hash128(row.text("source") + "|" + row.text("config") + "|" + row.text("gpu")).high & 1) == 0;
}

const char* kind_of(const Row& row) {
  const std::string& config = row.text("config");
  if (config.starts_with("made--Llama")) return "dense";
  return config.find("Nemotron") != std::string::npos || config.find("Next") != std::string::npos ? "hybrid with experts" : "experts";
}

struct Outcome {
  std::vector<double> fitted, scored;
  std::map<std::string, std::vector<double>> scored_by;
  std::map<std::string, std::vector<double>> scored_kinds;
  std::map<std::string, int> left_out;
  int runs = 0, fit_in_memory = 0;
};

Outcome outcome() {
  Outcome out;
  for (const Row& row : test::published_rows("expert_runs.csv")) {
    const PublishedRun run = predict(row);
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
    const std::string kind = kind_of(row);
    if (kind != "dense") out.scored.push_back(run.error());
    out.scored_kinds[kind].push_back(run.error());
    out.scored_by[row.text("source") + " | " + row.text("gpu") + " | " + kind].push_back(run.error());
  }
  return out;
}

}  // namespace

std::string test::experts_section() {
  const Outcome all = outcome();
  std::string out =
      "\n## Mixtures of experts, hybrids, Blackwell\n\nFrom `tests/fixtures/tuning/expert_runs.csv` in the same way: settings that a source does not print follow from its software (`settings_of` in\n"
      "`src/tuning/published_experts_test.cc`). One more figure is fitted, the share of the bandwidth that kernels around routed experts reach, to the half of the runs with\n"
      "experts that a hash of source, model and GPU chooses. The sources balance the experts by force.\n\n"
      "| runs | number | median | median, absolute | 90th percentile, absolute |\n| --- | --- | --- | --- | --- |\n";
  out += line("**scored**, with experts", errors_of(all.scored)) + line("fitted to, with experts", errors_of(all.fitted));
  for (const auto& [kind, errors] : all.scored_kinds) out += line("scored, " + kind, errors_of(errors));
  out += "\nThe same model, GPU and layout became up to twice as fast between releases of one trainer (Qwen3-30B-A3B on GB200: 23,766 tokens a second and GPU in 25.11, 40,706 in 26.06), so that\n"
         "no prediction can be right for all of them. The worst are runs on servers with x86 processors without CUDA graphs, whose host is slower than their GPUs in a way that is not modelled.\n";
  out += "\nMemory: " + std::to_string(all.fit_in_memory) + " of the " + std::to_string(all.runs) + " runs are predicted to fit as they stand here; what their recipes recompute or offload is not printed.\n\n"
         "| source | GPU | kind | number | median | median, absolute | 90th percentile, absolute |\n| --- | --- | --- | --- | --- | --- | --- |\n";
  for (const auto& [name, errors] : all.scored_by) out += line(name, errors_of(errors));
  if (!all.left_out.empty()) out += "\nRows that are not predicted:\n\n| rows | why |\n| --- | --- |\n";
  for (const auto& [why, count] : all.left_out) out += "| " + std::to_string(count) + " | " + why + " |\n";
  return out;
}

TEST(PublishedExperts, step_times_of_runs_with_experts_are_within_the_bars_where_nothing_was_fitted) {
  const Outcome all = outcome();
  const Errors scored = errors_of(all.scored);
  EXPECT_GE(scored.runs, 40u);
  EXPECT_LT(scored.median_absolute_ratio, 0.25);
  EXPECT_LT(scored.p90_absolute_ratio, 0.45);
  // The fitted figure is the one that its rule gives, to two digits.
  EXPECT_NEAR(errors_of(all.fitted).median_ratio, 0, 0.02);
}

}  // namespace flopsight::tuning
