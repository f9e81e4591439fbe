// Published rates and latencies of serving (tests/fixtures/tuning/serving_runs.csv) against what the model of serving predicts. What a source does not print
// follows from its software alone. The outcome is a part of docs/tune-accuracy.md.
#include <gtest/gtest.h>

#include "flops/experts.h"
#include "tuning/published_runs.h"
#include "tuning/serving.h"
#include "tuning/test_cases.h"

namespace flopsight::tuning {
namespace {

using flops::test::Row;
using test::Errors;
using test::errors_of;
using test::line;

struct PublishedRun {
  const Row* row = nullptr;
  std::string left_out;
  double error_ratio = 0;  // predicted time / measured time - 1
};

ServeSettings settings_of(const Row& row) {
  ServeSettings s;
  s.gpus = row.count("n_gpus");
  s.tensor = row.count("tp");
  s.expert = row.count("ep");
  s.input_tokens = row.count("input_tokens");
  s.output_tokens = row.count("output_tokens");
  s.concurrency = row.count("concurrency");
  s.weights = *parse_weight_format(row.text("precision"));
  s.cache = *parse_cache_format(row.text("kv_precision"));
  s.continuous = row.text("batching") == "continuous";
  // TensorRT-LLM admits a request only with room to its end (GUARANTEED_NO_EVICT, its default).
  if (row.text("source") == "TensorRT-LLM") s.block_tokens = 0;
  return s;
}

PublishedRun predict(const Row& row) {
  PublishedRun out;
  out.row = &row;
  const ServeSettings s = settings_of(row);
  const catalog::Device& device = test::device(row.text("gpu"));
  const flops::Model model = test::model_of(row.text("config"));
  const Rates rates = Rates::of(device).value();
  const auto reference = reference_fabric(device);
  const Fabric fabric = s.gpus == 1 ? *find_fabric("single-gpu") : reference ? *reference : *find_fabric("pcie-gen4");
  const ServeModel serve(model, rates, fabric);
  const auto serving = serve.predict(s);
  if (!serving.ok()) {
    out.left_out = serving.error().message;
    return out;
  }
  if (!serving->memory.fits().value_or(true) || serving->batch_fitting_total < 1) {
    out.left_out = "does not fit";
    return out;
  }
  out.error_ratio = row.number("first_token_seconds") > 0 ? serving->first_token_seconds / row.number("first_token_seconds") - 1
                                                          : row.number("output_tokens_per_second") / serving->tokens_per_second - 1;
  return out;
}

struct Outcome {
  std::vector<double> all, dense, experts;
  std::map<std::string, std::vector<double>> by;  // source, GPU, what it is
  std::map<std::string, int> left_out;
};

Outcome outcome() {
  Outcome out;
  for (const Row& row : test::published_rows("serving_runs.csv")) {
    const PublishedRun run = predict(row);
    if (!run.left_out.empty()) {
      ++out.left_out[run.left_out];
      continue;
    }
    const bool experts = flops::routed_experts(test::model_of(row.text("config"))) > 0;
    out.all.push_back(run.error_ratio);
    (experts ? out.experts : out.dense).push_back(run.error_ratio);
    out.by[row.text("source") + " " + row.text("section") + " | " + row.text("gpu") + " " + row.text("precision") + " | " + (experts ? "experts" : "dense")].push_back(run.error_ratio);
  }
  return out;
}

}  // namespace

std::string test::serving_section() {
  const Outcome all = outcome();
  std::string out =
      "\n## Serving\n\nFrom `tests/fixtures/tuning/serving_runs.csv`: published rates under full load (TensorRT-LLM), times to the first token of one request, and rates of one request at a time\n"
      "(gpt-fast). Nothing is fitted to them. Error is predicted / measured time - 1, of a token or of the first token.\n\n"
      "| runs | number | median | median, absolute | 90th percentile, absolute |\n| --- | --- | --- | --- | --- |\n";
  out += line("**scored**", errors_of(all.all)) + line("dense models", errors_of(all.dense)) + line("mixtures of experts", errors_of(all.experts));
  out += "\nPrompts of 128 tokens of one request are predicted too fast: those measurements launch kernels from the host, which takes longer than is assumed here.\n"
         "\n| source | GPU, weights | kind | number | median | median, absolute | 90th percentile, absolute |\n| --- | --- | --- | --- | --- | --- | --- |\n";
  for (const auto& [name, errors] : all.by) out += line(name, errors_of(errors));
  if (!all.left_out.empty()) out += "\nRows that are not predicted:\n\n| rows | why |\n| --- | --- |\n";
  for (const auto& [why, count] : all.left_out) out += "| " + std::to_string(count) + " | " + why + " |\n";
  return out;
}

TEST(PublishedServing, rates_and_latencies_are_within_the_bars) {
  const Outcome all = outcome();
  const Errors dense = errors_of(all.dense), experts = errors_of(all.experts);
  EXPECT_GE(dense.runs, 200u);
  EXPECT_LT(dense.median_absolute_ratio, 0.15);
  EXPECT_LT(dense.p90_absolute_ratio, 0.35);
  EXPECT_GE(experts.runs, 80u);
  EXPECT_LT(experts.median_absolute_ratio, 0.30);
  EXPECT_LT(experts.p90_absolute_ratio, 0.50);
}

}  // namespace flopsight::tuning
