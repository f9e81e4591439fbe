// What no setting may bring about: more than the peak, or more useful FLOPs than are executed.

#include <gtest/gtest.h>

#include "tuning/serving.h"
#include "tuning/test_cases.h"

namespace flopsight::tuning {
namespace {

struct Served {
  explicit Served(const std::string& name, std::string_view gpu = "H200", std::string_view fabric_name = "dgx-h100")
      : model(test::model_of(name)), rates(Rates::of(test::device(gpu)).value()), fabric(*find_fabric(fabric_name)), serve(model, rates, fabric) {}

  flops::Model model;
  Rates rates;
  Fabric fabric;
  ServeModel serve;
  ServeSettings settings;
};

void expect_bounds(const Served& run, const std::string& name) {
  const auto v = run.serve.predict(run.settings);
  if (!v.ok()) return;  // the sizes do not go together
  const ServeSettings& s = run.settings;
  const std::string where = name + ", tp " + std::to_string(s.tensor) + ", ep " + std::to_string(s.expert) + ", " + std::to_string(s.concurrency) + " requests, " + std::to_string(s.input_tokens) +
                            " in, " + std::to_string(s.output_tokens) + " out, pieces of " + std::to_string(s.chunk_tokens) + ", " + std::string(weight_format_name(s.weights));
  EXPECT_GT(v->mfu_ratio, 0) << where;
  EXPECT_LE(v->mfu_ratio, 1) << where;
  EXPECT_LE(v->attainable_ofu_ratio, 1) << where;
  if (s.weights != WeightFormat::k16Bit) return;
  EXPECT_LE(v->mfu_ratio, v->attainable_ofu_ratio * 1.001) << where;
}

TEST(ServingBounds, nothing_is_above_the_peak_and_useful_work_is_executed) {
  for (const char* name : {"mistralai--Mixtral-8x7B-v0.1", "Qwen--Qwen3-30B-A3B", "deepseek-ai--DeepSeek-V3", "made--Llama-3-8B", "made--DBRX", "made--Gemma-2-2B"}) {
    Served run(name);
    run.settings.gpus = 8;
    for (const WeightFormat weights : {WeightFormat::k16Bit, WeightFormat::kFp8}) {
      for (const auto& [tensor, expert] : {std::pair{1u, 1u}, {1u, 8u}, {2u, 8u}, {8u, 1u}}) {
        for (const std::uint64_t concurrency : {1u, 3u, 64u, 512u, 8192u}) {
          for (const auto& [in, out, piece] : {std::tuple{4096u, 2u, 0u}, {4096u, 1u, 0u}, {128u, 1024u, 0u}, {2048u, 256u, 512u}}) {
            run.settings.weights = weights;
            run.settings.tensor = tensor;
            run.settings.expert = expert;
            run.settings.concurrency = concurrency;
            run.settings.input_tokens = in;
            run.settings.output_tokens = out;
            run.settings.chunk_tokens = piece;
            expect_bounds(run, name);
          }
        }
      }
    }
  }
}

// Each of eight groups sends its prompts to all experts, so that a GPU's own eighth of them sees eight times the tokens.
TEST(ServingBounds, experts_prefill_the_tokens_of_all_groups) {
  Served run("mistralai--Mixtral-8x7B-v0.1");
  run.settings.gpus = run.settings.expert = 8;
  run.settings.input_tokens = 4096;
  run.settings.output_tokens = 1;
  run.settings.concurrency = 1;
  const Serving one = run.serve.predict(run.settings).value();
  run.settings.concurrency = 8;
  const Serving all = run.serve.predict(run.settings).value();
  EXPECT_LT(all.request_rate_hertz, 4 * one.request_rate_hertz) << "one prompt alone has the experts of eight GPUs";
  EXPECT_GT(all.request_rate_hertz, one.request_rate_hertz);
}

TEST(ServingBounds, logits_of_a_prompt_are_those_of_its_last_token) {
  Served run("made--Gemma-2-2B");  // a tenth of the parameters and more is its head
  run.settings.input_tokens = 4096;
  run.settings.output_tokens = 1;
  const Serving v = run.serve.predict(run.settings).value();
  flops::Workload workload;
  workload.sequence.tokens = 4097;
  const flops::Cost cost = flops::forward_cost(run.model, workload);
  const double head = cost.of(flops::Part::kHead), peak = *run.rates.peak_flops_per_second(catalog::Precision::kBf16);
  EXPECT_GT(head, 0.1 * cost.total());
  EXPECT_NEAR(v.mfu_ratio, ((cost.total() - head) * 4096 + head) * v.request_rate_hertz / peak, 1e-12);
}

}  // namespace
}  // namespace flopsight::tuning
