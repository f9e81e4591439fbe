// The numbers of a widely read article on tuning (introl.com, "GPU performance tuning"), one by one: what is consistent with published figures
// and arithmetic is computed again here, what is not is contradicted, and what nobody can check is not used. docs/tune-claims.md is written from this
// table (FLOPSIGHT_UPDATE_GOLDEN=1), with the figures that these checks compute.
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <fstream>

#include "tuning/formulas.h"
#include "gemm/attainable.h"
#include "gemm/tile.h"
#include "gemm/tile_choice.h"
#include "tuning/test_cases.h"

namespace flopsight::tuning {
namespace {

using catalog::Precision;
using test::device;
using test::TestRun;

enum class Verdict { kHolds, kPartly, kContradicted, kUnverifiable };

struct Claim {
  int number;
  const char* text;
  Verdict verdict;
  const char* why;
  double (*computed)();  // nullptr: nothing to compute
  double low, high;      // where it has to lie: around the claim where it holds, away from it where it does not
};

double peak(const char* gpu, Precision precision) { return device(gpu).peak(precision)->value; }
double bandwidth(const char* gpu) { return device(gpu).memory_bandwidth->value; }

double fp8_gain() {
  TestRun run;
  run.settings.sequence_tokens = 8192;
  run.settings.zero_stage = 3;
  run.settings.attention = AttentionKernel::kFlash3;
  const double before = run.step().tokens_per_second;
  run.settings.precision = Precision::kFp8;
  return run.step().tokens_per_second / before;
}

double attention_gain_at_8k() {
  TestRun run;
  run.settings.sequence_tokens = 8192;
  const Step step = run.step();
  return amdahl_ratio(step.attention_seconds / step.step_seconds(), 1.75);
}

double batch_127_against_128() {
  const auto rate = [](std::uint64_t m) { return Rates::of(device("H100-SXM5-80GB"))->product(m, 8192, 8192, Precision::kBf16)->seconds / static_cast<double>(m); };
  return rate(128) / rate(127);
}

double accumulation_traffic() {
  TestRun run("made--Llama-3-70B", "A100-SXM4-80GB", "dgx-a100");
  run.settings.gpus = 64;
  run.settings.layout = {8, 1, 1, 1, 1, 8};
  run.settings.overlap_data = false;
  run.settings.global_batch = 8;
  const Step one = run.step();
  run.settings.global_batch = 64;
  const Step eight = run.step();
  return eight.breakdown.data_parallel_seconds / 8 / one.breakdown.data_parallel_seconds;
}

double exposed_with_overlap() {
  TestRun run("made--Llama-3-70B");
  run.settings.gpus = 64;
  run.settings.layout = {8, 1, 1, 1, 1, 8};
  run.settings.overlap_tensor = true;
  const Breakdown b = run.step().breakdown;
  return (b.tensor_parallel_seconds + b.data_parallel_seconds) / b.total_seconds();
}

double compiled_gain() {
  TestRun run;
  run.settings.zero_stage = 3;
  run.settings.recompute = flops::Recompute::kFull;
  run.settings.kernels = Kernels::kEager;
  const double before = run.step().tokens_per_second;
  run.settings.kernels = Kernels::kFused;
  return run.step().tokens_per_second / before;
}

double hierarchical_gain() {
  const Fabric fabric = *find_fabric("dgx-h100");
  // A ring over 64 GPUs where each has one network card to itself in turn, against a hierarchy.
  const Group flat{64, 1};
  return all_reduce_time(fabric, flat, units::Bytes(1e9), Algorithm::kRing).value / all_reduce_time(fabric, group_of(fabric, 64, 1), units::Bytes(1e9), Algorithm::kHierarchical).value;
}

double tree_against_ring() {
  const Fabric fabric = *find_fabric("dgx-h100");
  const Group group = group_of(fabric, 64, 1);
  return all_reduce_time(fabric, group, units::Bytes(1e3), Algorithm::kRing).value / all_reduce_time(fabric, group, units::Bytes(1e3), Algorithm::kTree).value;
}

double h100_memory_over_weights() { return *device_memory_bytes(device("H100-SXM5-80GB")) / (2 * 70.553706496e9); }
double mfu_of_70b(double tokens_per_second) { return 6 * 70e9 * tokens_per_second / peak("H100-SXM5-80GB", Precision::kBf16); }
double lost_gpu_hours() { return 8 * 8760 * (1 - 43.0 / 98); }

const Claim kClaims[] = {
    {1, "FP8 has twice the throughput of FP16", Verdict::kPartly, "of peaks; end to end a step gains", [] { return fp8_gain(); }, 1.15, 1.50},
    {2, "FP8 at equal accuracy", Verdict::kUnverifiable, "depends on the recipe: told as a price", nullptr, 0, 0},
    {3, "FlashAttention-3 is 1.5 to 2 times as fast", Verdict::kHolds, "the kernel, against the second generation", [] { return 0.61 / 0.35; }, 1.5, 2.0},
    {4, "vLLM and TensorRT-LLM are 3 to 5 times as fast", Verdict::kUnverifiable, "no baseline given", nullptr, 0, 0},
    {5, "torch.compile is on by default from PyTorch 2.4", Verdict::kContradicted, "it is called for; advised where kernels are eager: gain of a step", [] { return compiled_gain(); }, 1.01, 1.30},
    {6, "NeMo 2.0 is end to end", Verdict::kPartly, "end of life; nothing rests on it", nullptr, 0, 0},
    {7, "a tuned node reaches 98 % of theoretical FLOPS", Verdict::kContradicted, "the best product of an H100 is this share of the peak, and no run is above it",
     [] { return *gemm::attainable_ratio(device("H100-SXM5-80GB"), Precision::kBf16); }, 0.70, 0.85},
    {8, "43 % shows a poor system", Verdict::kContradicted, "published runs of Llama 3 405B and MPT-70B have 38 to 43 %; predicted MFU of a layout in use", [] {
       TestRun run("made--Llama-3-70B");
       run.settings.gpus = 64;
       run.settings.sequence_tokens = 8192;
       run.settings.layout = {4, 4, 5, 2, 1, 2};
       run.settings.global_batch = 128;
       return run.step().mfu_ratio; }, 0.35, 0.60},
    {9, "380,000 dollars lost a year and node", Verdict::kContradicted, "dollars a GPU-hour that it needs; the market is at 2 to 5", [] { return 380000 / lost_gpu_hours(); }, 9, 10.5},
    {10, "best MLPerf result 2.3 times the median", Verdict::kContradicted, "llama2_70b_lora v4.0 on 8 H100: 29.4 against 28.05 minutes", [] { return 29.4 / 28.05; }, 1.0, 1.1},
    {11, "60 % faster training, 40 % lower cost of tokens", Verdict::kUnverifiable, "60 % faster is 0.625 of the time, or 0.4: not said which", nullptr, 0, 0},
    {12, "less than 20 % of 1,200 pages of guides are used", Verdict::kUnverifiable, "no method", nullptr, 0, 0},
    {13, "H100 has 3.35 TB/s", Verdict::kHolds, "the SXM5; TB/s", [] { return bandwidth("H100-SXM5-80GB") / 1e12; }, 3.34, 3.36},
    {14, "H100: 1,979 TFLOPS, 591 to 1", Verdict::kPartly, "FP8 dense, FLOPs a byte; BF16 has 295", [] { return ridge_flops_per_byte(peak("H100-SXM5-80GB", Precision::kFp8), bandwidth("H100-SXM5-80GB")); }, 590, 592},
    {15, "models meet the memory wall before the compute limit", Verdict::kPartly, "decoding does; intensity of a product over 512 tokens against the ridge of 295", [] { return intensity_flops_per_byte(512, 8192, 8192, 2); }, 295, 470},
    {16, "70B in FP16 is 140 GB", Verdict::kHolds, "GB", [] { return 2 * 70.553706496; }, 139, 142},
    {17, "which fills one H100", Verdict::kContradicted, "memory of an H100 over these weights", [] { return h100_memory_over_weights(); }, 0.5, 0.65},
    {18, "95 % of bandwidth sequentially, 15 % at random", Verdict::kUnverifiable, "4 bytes of sectors of 32 would be 12.5 %", [] { return 4.0 / 32; }, 0.12, 0.13},
    {19, "access to the KV cache is irregular", Verdict::kPartly, "blocks are read in sequence", nullptr, 0, 0},
    {20, "row against column: 4 times", Verdict::kUnverifiable, "a sector over an element of 16 bits", [] { return 32.0 / 2; }, 16, 16},
    {21, "padding to 128 bytes: 72 to 91 %", Verdict::kUnverifiable, "five sectors instead of four", [] { return 5.0 / 4; }, 1.25, 1.25},
    {22, "FlashAttention cuts traffic 10 to 20 times", Verdict::kContradicted, "those are memory footprints; traffic of the paper's GPT-2: 40.3 to 4.4 GB", [] { return 40.3 / 4.4; }, 9, 9.5},
    {23, "four times the context", Verdict::kHolds, "GPT-2 from 1k to 4k", nullptr, 0, 0},
    {24, "2.4 times as fast for GPT-3-like models", Verdict::kContradicted, "that is the long-range arena; Llama-3-8B at 8k with attention 1.75 times as fast", [] { return attention_gain_at_8k(); }, 1.0, 1.2},
    {25, "batches in multiples of 16, for tiles of 16x16", Verdict::kContradicted, "instructions are m16n8k16 and m64nNk16, and the size is batch x sequence: alignment of 127 sequences of 4,096", [] { return std::fmod(127.0 * 4096, 4096); }, 0, 0},
    {26, "batch 127: 61 %, batch 128: 94 %", Verdict::kContradicted, "time a row, 128 over 127 rows of 8192 x 8192", [] { return batch_127_against_128(); }, 0.99, 1.0},
    {27, "2048 = 32 x 64 by accumulation", Verdict::kHolds, "with the loss over all tokens", [] { return 32.0 * 64; }, 2048, 2048},
    {28, "accumulation raises communication", Verdict::kContradicted, "messages a token with eight micro-batches over one", [] { return accumulation_traffic(); }, 0.12, 0.13},
    {29, "overlap hides latency completely", Verdict::kPartly, "share of a step that is left with all overlap", [] { return exposed_with_overlap(); }, 0.005, 0.2},
    {30, "packing gains 20 to 35 %", Verdict::kHolds, "for padding efficiencies of 83 to 74 %; 1/0.78", [] { return 1 / 0.78; }, 1.2, 1.35},
    {31, "FP16 is twice FP32", Verdict::kPartly, "twice TF32; over FP32 outside tensor cores", [] { return peak("H100-SXM5-80GB", Precision::kFp16) / peak("H100-SXM5-80GB", Precision::kFp32); }, 14, 15},
    {32, "H100 has 312 TFLOPS of FP32 on tensor cores", Verdict::kContradicted, "that is an A100 in BF16; TF32 of an H100 in TFLOPS", [] { return peak("H100-SXM5-80GB", Precision::kTf32) / 1e12; }, 490, 500},
    {33, "FP16 989 TFLOPS", Verdict::kHolds, "dense", [] { return peak("H100-SXM5-80GB", Precision::kFp16) / 1e12; }, 988, 990},
    {34, "an advantage of 3.2 times", Verdict::kContradicted, "FP16 over TF32", [] { return peak("H100-SXM5-80GB", Precision::kFp16) / peak("H100-SXM5-80GB", Precision::kTf32); }, 1.99, 2.01},
    {35, "half the memory", Verdict::kPartly, "of activations; states in bytes a parameter", [] { return state_bytes(TrainSettings{}).total_bytes(); }, 16, 16},
    {36, "FP16 reaches down to 5.96e-8", Verdict::kHolds, "subnormal; 2^-24", [] { return kFp16MinSubnormal / std::ldexp(1.0, -24); }, 1, 1},
    {37, "loss scale of 2^16", Verdict::kHolds, "above FP16's largest, so gradients above 1 overflow: ratio", [] { return 65536 / kFp16Max; }, 1.0, 1.001},
    {38, "a master copy adds 50 % of weight memory", Verdict::kPartly, "of FP32; of FP16 alone it adds", [] { return 4.0 / 2; }, 2, 2},
    {39, "an unfused norm moves five times as much", Verdict::kHolds, "eight passes over two, ten if each kernel reads and writes", [] { return 10.0 / 2; }, 4, 5},
    {40, "own kernels gain 30 to 50 %", Verdict::kUnverifiable, "to be measured", nullptr, 0, 0},
    {41, "compiling gains 20 to 40 %", Verdict::kPartly, "15.7 % measured by torchtitan; predicted", [] { return compiled_gain(); }, 1.02, 1.25},
    {42, "rings for bandwidth, trees for latency", Verdict::kHolds, "ring over tree, 1 kB on 64 GPUs", [] { return tree_against_ring(); }, 3, 10},
    {43, "NVLink 900 against PCIe 64 GB/s", Verdict::kPartly, "900 is both directions; like for like", [] { return find_fabric("dgx-h100")->node_rate / find_fabric("pcie-gen5")->node_rate; }, 7, 7.2},
    {44, "placement cuts communication 5 times", Verdict::kHolds, "in order of size: NVLink over one network card", [] { return find_fabric("dgx-h100")->node_rate / find_fabric("dgx-h100")->network_rate; }, 5, 9.1},
    {45, "hierarchical all-reduce", Verdict::kHolds, "over one network card at a time", [] { return hierarchical_gain(); }, 3, 8},
    {46, "top-k or INT8 cut traffic 100 to 1,000 times", Verdict::kContradicted, "INT8 over BF16; top-k of 0.1 to 1 % alone 50 to 500, before gathering", [] { return 2.0 / 1; }, 2, 4},
    {47, "85 to 95 % of theoretical on 10,000 GPUs", Verdict::kContradicted, "the best product alone", [] { return *gemm::attainable_ratio(device("H100-SXM5-80GB"), Precision::kBf16); }, 0.7, 0.85},
    {48, "deployment 40 % shorter", Verdict::kUnverifiable, "", nullptr, 0, 0},
    {49, "every token reads the whole KV cache", Verdict::kHolds, "with full attention: elements a token of Llama-3-8B that grow", [] { return static_cast<double>(flops::count_cache(test::model_of("made--Llama-3-8B")).elements_per_token_growing); }, 65536, 65536},
    {50, "paging: waste from 60 to under 5 %", Verdict::kHolds, "blocks of 16, mean of 500 tokens", [] { return paged_waste_ratio(500, 16); }, 0, 0.04},
    {51, "4 times the throughput by it", Verdict::kHolds, "2 to 4: memory that is used, 0.985 over 0.244", [] { return (1 - paged_waste_ratio(500, 16)) / (1 - reserved_waste_ratio(500, 2048)); }, 2, 4.1},
    {52, "INT8: half the memory", Verdict::kPartly, "accuracy depends on the task", [] { return 8.0 / 16; }, 0.5, 0.5},
    {53, "INT4: 4 times", Verdict::kPartly, "with scales of groups of 128", [] { return 16 / 4.16; }, 3.8, 3.9},
    {54, "continuous batching 2.5 times", Verdict::kPartly, "for exponential lengths and batches of 8", [] { return harmonic_total(8); }, 2.5, 2.9},
    {55, "case 1: 847 to 1,923 tokens/s", Verdict::kHolds, "in itself", [] { return 1923.0 / 847; }, 2.26, 2.28},
    {56, "70B at 1,923 tokens/s on an H100", Verdict::kContradicted, "share of the BF16 peak by 6N, above the best product (0.803)", [] { return mfu_of_70b(1923); }, 0.803, 0.83},
    {57, "240,000 dollars saved", Verdict::kContradicted, "dollars a GPU-hour of 10 days of 64 GPUs", [] { return 240000.0 / (10 * 24 * 64); }, 15, 16},
    {58, "84 B tokens of training", Verdict::kPartly, "tokens a parameter: continued training at most", [] { return 84e9 / 70e9; }, 1.1, 1.3},
    {59, "case 2: 820 to 2,140 tokens/s, 142 to 47 ms", Verdict::kHolds, "in itself: sequences in flight, by Little's law", [] { return 2140 * 0.047; }, 99, 102},
    {60, "case 2: 13B on 8 A100", Verdict::kPartly, "floor of a token on one A100 in ms: far below", [] { return 26e9 / bandwidth("A100-SXM4-80GB") * 1e3; }, 12.5, 13},
    {61, "0.73 to 0.28 dollars a million tokens", Verdict::kContradicted, "at 1.5 dollars a GPU-hour", [] { return usd_per_million_tokens(1.5, 8, 820); }, 4.0, 4.1},
    {62, "case 3: 43 to 71 % MFU", Verdict::kContradicted, "TFLOP/s of a GPU that it means; published mixtures of experts reach 338", [] { return 0.71 * peak("H100-SXM5-80GB", Precision::kBf16) / 1e12; }, 700, 705},
};

const char* verdict_text(Verdict verdict) {
  constexpr const char* kTexts[] = {"holds", "with a qualifier", "**contradicted**", "cannot be checked"};
  return kTexts[static_cast<int>(verdict)];
}

std::string number(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.4g", value);
  return text;
}

std::string page() {
  std::string out =
      "# Sixty-two claims about tuning\n\nThe figures of a widely read article ([introl.com](https://introl.com/blog/gpu-performance-tuning-maximizing-throughput-llm-training-inference)), each\n"
      "computed again or contradicted by a test (`src/tuning/claims_test.cc`, which writes this page). No advice rests on what is contradicted or cannot be checked.\n\n"
      "| # | claim | verdict | why | computed |\n| --- | --- | --- | --- | --- |\n";
  for (const Claim& c : kClaims) {
    out += "| " + std::to_string(c.number) + " | " + c.text + " | " + verdict_text(c.verdict) + " | " + c.why + " | " + (c.computed == nullptr ? "" : number(c.computed())) + " |\n";
  }
  return out;
}

TEST(Claims, each_is_reproduced_or_contradicted_by_its_figure) {
  int expected = 0;
  for (const Claim& c : kClaims) {
    EXPECT_EQ(c.number, ++expected);
    if (c.computed == nullptr) continue;
    const double value = c.computed();
    EXPECT_GE(value, c.low) << c.number << " " << c.text;
    EXPECT_LE(value, c.high) << c.number << " " << c.text;
  }
  EXPECT_EQ(expected, 62);
}

TEST(Claims, the_page_is_not_stale) {
  const std::string path = FLOPSIGHT_SOURCE_DIR "/docs/tune-claims.md";
  if (std::getenv("FLOPSIGHT_UPDATE_GOLDEN") != nullptr) std::ofstream(path) << page();
  EXPECT_EQ(base::read_file(path).value(), page());
}

TEST(Claims, products_of_127_and_128_rows_execute_the_same_tiles_and_129_twice_as_many) {
  const auto flops = [](std::uint64_t m) { return gemm::quantize({m, 8192, 8192, 1}, {128, 128, 64}, 132)->executed_flops; };
  EXPECT_EQ(flops(127), flops(128));
  EXPECT_EQ(flops(129), 2 * flops(128));
}

// Whatever the model, no prediction is above what the best product reaches.
TEST(Claims, no_predicted_run_is_above_the_best_product) {
  for (const char* model : {"made--Llama-3-8B", "made--Llama-2-13B", "made--GPT-3-175B", "mistralai--Mixtral-8x7B-v0.1"}) {
    for (const char* gpu : {"H100-SXM5-80GB", "A100-SXM4-80GB", "B200"}) {
      TestRun run(model, gpu);
      run.settings.micro_batch = 8;
      run.settings.attention = AttentionKernel::kFlash3;
      EXPECT_LT(run.step().mfu_ratio, *gemm::attainable_ratio(device(gpu), Precision::kBf16)) << model << " " << gpu;
    }
  }
}

// What rules say of figures that do not hold: 98 % is never a target, 43 % never an alarm, INT8 never a hundredth, 70B never in one H100.
TEST(Claims, no_advice_rests_on_what_is_contradicted) {
  TestRun one("made--Llama-3-70B");
  one.settings.gpus = one.settings.layout.data = 1;
  one.settings.global_batch = 1;
  EXPECT_EQ(one.memory().fits(), false);
  for (const char* model : {"made--Llama-3-8B", "made--Llama-3-70B", "made--GPT-2"}) {
    TestRun run(model);
    run.settings.kernels = Kernels::kEager;
    run.settings.zero_stage = 0;
    const Findings findings = run.advice();
    for (const Advice& a : findings.advice) {
      if (!a.tokens_per_second) continue;
      const double mfu = *a.tokens_per_second / 8 * flops::train_cost(run.model, run.settings.workload()).total() / peak("H100-SXM5-80GB", a.id == "precision" ? Precision::kFp8 : Precision::kBf16);
      EXPECT_LT(mfu, 0.803) << a.id;
      for (const char* figure : {"98 %", "100x", "1,000", "multiple of 16 sequences"}) EXPECT_EQ(a.why.find(figure), std::string::npos) << a.why;
    }
  }
}

}  // namespace
}  // namespace flopsight::tuning
