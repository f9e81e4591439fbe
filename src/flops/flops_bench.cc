// One configuration read and counted in every convention: what `flopsight flops --convention all` does but for starting. The fixtures
// are the longest ones (a block of its own for each of 80 layers; vision; latent attention) and a plain one.
#include <benchmark/benchmark.h>

#include <string>

#include "base/file.h"
#include "flops/conventions.h"
#include "flops/hf_config.h"

namespace {

namespace flops = flopsight::flops;

void count_configuration(benchmark::State& state, const std::string& name) {
  const auto text = flopsight::base::read_file(FLOPSIGHT_SOURCE_DIR "/tests/fixtures/hf_configs/" + name + "_config.json");
  if (!text.ok()) {
    state.SkipWithError("the fixture is not there");
    return;
  }
  flops::Workload workload;
  workload.sequence.tokens = 8192;
  for (auto _ : state) {
    const auto model = flops::read_hf_config(*text);
    double sum = 0;
    for (const flops::Convention& convention : flops::conventions()) {
      sum += flops::convention_cost(convention, *model, workload).flops_train.value_or(0);
    }
    benchmark::DoNotOptimize(sum);
  }
}

BENCHMARK_CAPTURE(count_configuration, llama_8b, std::string("meta-llama--Meta-Llama-3.1-8B"))->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(count_configuration, decilm_49b, std::string("nvidia--Llama-3_3-Nemotron-Super-49B-v1"))->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(count_configuration, deepseek_v32, std::string("deepseek-ai--DeepSeek-V3.2"))->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(count_configuration, qwen35_397b, std::string("Qwen--Qwen3.5-397B-A17B"))->Unit(benchmark::kMillisecond);

}  // namespace
