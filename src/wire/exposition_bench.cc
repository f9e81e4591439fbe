// Ingest of a dcgm-exporter scrape: 8 GPUs, 25 metrics with HELP and TYPE lines, and label blocks
// as long as in the capture of eight H100 (tests/fixtures/dcgm_exporter/aicr-h100-eks.prom): eleven
// labels on a GPU that a pod holds, seven on the others. Values are printed as that exporter does:
// integers, and doubles with six decimals. Warm is the daily case, one Parser per target over
// changing values; cold is a Parser that sees its first text. Bounds in the same run: the same
// bytes copied, and their newlines found. The sink adds up values, so that nothing can be left out.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "wire/exposition.h"

namespace flopsight::wire {
namespace {

constexpr int kGpus = 8;
constexpr const char* kMetrics[] = {"DCGM_FI_DEV_SM_CLOCK",
                                    "DCGM_FI_DEV_MEM_CLOCK",
                                    "DCGM_FI_DEV_MEMORY_TEMP",
                                    "DCGM_FI_DEV_GPU_TEMP",
                                    "DCGM_FI_DEV_POWER_USAGE",
                                    "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION",
                                    "DCGM_FI_DEV_PCIE_REPLAY_COUNTER",
                                    "DCGM_FI_DEV_GPU_UTIL",
                                    "DCGM_FI_DEV_MEM_COPY_UTIL",
                                    "DCGM_FI_DEV_ENC_UTIL",
                                    "DCGM_FI_DEV_DEC_UTIL",
                                    "DCGM_FI_DEV_XID_ERRORS",
                                    "DCGM_FI_DEV_FB_FREE",
                                    "DCGM_FI_DEV_FB_USED",
                                    "DCGM_FI_DEV_FB_RESERVED",
                                    "DCGM_FI_DEV_UNCORRECTABLE_REMAPPED_ROWS",
                                    "DCGM_FI_DEV_CORRECTABLE_REMAPPED_ROWS",
                                    "DCGM_FI_DEV_ROW_REMAP_FAILURE",
                                    "DCGM_FI_DEV_NVLINK_BANDWIDTH_TOTAL",
                                    "DCGM_FI_DEV_VGPU_LICENSE_STATUS",
                                    "DCGM_FI_PROF_GR_ENGINE_ACTIVE",
                                    "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE",
                                    "DCGM_FI_PROF_DRAM_ACTIVE",
                                    "DCGM_FI_PROF_PCIE_TX_BYTES",
                                    "DCGM_FI_PROF_PCIE_RX_BYTES"};

std::string label_block(int gpu) {
  char text[512];
  const auto number = static_cast<unsigned>(gpu);
  std::snprintf(text, sizeof text,
                "{gpu=\"%u\",UUID=\"GPU-c4529c8d-69c4-b61d-e0bc-7b246009600%u\","
                "pci_bus_id=\"00000000:%u3:00.0\",device=\"nvidia%u\","
                "modelName=\"NVIDIA H100 80GB HBM3\",Hostname=\"gpu-node-1\","
                "DCGM_FI_DRIVER_VERSION=\"580.105.08\"%s}",
                number, number, number, number,
                gpu % 2 == 0 ? ",container=\"main\",namespace=\"dynamo-workload\","
                               "pod=\"vllm-agg-0-vllmdecodeworker-s65j5\",pod_uid=\"\""
                             : "");
  return text;
}

std::string value_text(int metric, int gpu, int scrape) {
  const auto mix = static_cast<unsigned>(metric * 7919 + gpu * 104729 + scrape * 1299709);
  char text[64];
  if (metric == 4 || metric >= 20) {
    const double scale = metric == 4 ? 700.0 : metric >= 23 ? 2e9 : 1.0;
    std::snprintf(text, sizeof text, "%.6f", scale * (mix % 10007) / 10007.0);
  } else if (metric == 5) {
    std::snprintf(text, sizeof text, "%u%06u", 129931U + mix % 1000, mix % 1'000'000);
  } else {
    std::snprintf(text, sizeof text, "%u", mix % (metric < 2 ? 1980 : 100));
  }
  return text;
}

std::string scrape_text(int scrape) {
  std::string text;
  for (int metric = 0; metric < static_cast<int>(std::size(kMetrics)); ++metric) {
    const std::string name = kMetrics[metric];
    text += "# HELP " + name + " Ratio of time or amount as this exporter words it (in %).\n";
    text += "# TYPE " + name + (metric == 5 ? " counter\n" : " gauge\n");
    for (int gpu = 0; gpu < kGpus; ++gpu) {
      text += name + label_block(gpu) + " " + value_text(metric, gpu, scrape) + "\n";
    }
  }
  return text;
}

const std::vector<std::string>& scrapes() {
  static const std::vector<std::string> texts = [] {
    std::vector<std::string> made;
    for (int i = 0; i < 16; ++i) made.push_back(scrape_text(i));
    return made;
  }();
  return texts;
}

struct Sum : ExpositionSink {
  void sample(const ExpositionSample& sample) override { sum += sample.value + sample.labels->id; }
  void malformed(const ExpositionError&) override { ++malformed_count; }
  double sum = 0;
  std::size_t malformed_count = 0;
};

std::size_t count_newlines(const std::string& text) {
  std::size_t lines = 0;
  const char* at = text.data();
  const char* const end = at + text.size();
  while (const void* found = std::memchr(at, '\n', static_cast<std::size_t>(end - at))) {
    at = static_cast<const char*>(found) + 1;
    ++lines;
  }
  return lines;
}

// How long 2,000 scrapes take to have their newlines found: no parser of lines can be faster. Taken
// anew beside each measurement, because the speed of a shared machine drifts.
double bound_bytes_per_second() {
  double bytes = 0;
  const auto start = std::chrono::steady_clock::now();
  for (std::size_t i = 0; i < 2'000; ++i) {
    const std::string& text = scrapes()[i % scrapes().size()];
    std::size_t lines = count_newlines(text);
    benchmark::DoNotOptimize(lines);
    bytes += static_cast<double>(text.size());
  }
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  return bytes / seconds.count();
}

// Runs over(text) for one text after another, and counts their bytes; `of_bound` is the speed as a
// share of the bound.
template <typename Over>
void over_texts(benchmark::State& state, const std::vector<std::string>& texts, Over over) {
  const double bound = bound_bytes_per_second();
  std::size_t next = 0;
  std::int64_t bytes = 0;
  const auto start = std::chrono::steady_clock::now();
  for (auto _ : state) {
    const std::string& text = texts[next++ % texts.size()];
    over(text);
    bytes += static_cast<std::int64_t>(text.size());
  }
  state.SetBytesProcessed(bytes);
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  state.counters["of_bound"] = static_cast<double>(bytes) / seconds.count() / bound;
}

template <typename Over>
void over_scrapes(benchmark::State& state, Over over) {
  over_texts(state, scrapes(), over);
}

void parse_and_check(benchmark::State& state, ExpositionParser& parser, const std::string& text) {
  Sum sum;
  const ExpositionTotals totals = parser.parse(text, sum);
  if (totals.samples != std::size(kMetrics) * kGpus || totals.malformed != 0) {
    state.SkipWithError("the scrape was not read whole");
  }
  benchmark::DoNotOptimize(sum.sum);
}

void warm_parser(benchmark::State& state) {
  ExpositionParser parser;
  over_scrapes(state, [&](const std::string& text) { parse_and_check(state, parser, text); });
}
BENCHMARK(warm_parser);

void cold_parser(benchmark::State& state) {
  over_scrapes(state, [&](const std::string& text) {
    ExpositionParser parser;
    parse_and_check(state, parser, text);
  });
}
BENCHMARK(cold_parser);

// The lines of each metric in another order each time, so that guessing the next block from the
// last one nearly always fails and the hash has to find it.
void warm_parser_shuffled(benchmark::State& state) {
  std::mt19937 random(3);
  std::vector<std::string> texts;
  for (const std::string& text : scrapes()) {
    std::vector<std::string> lines;
    for (std::size_t at = 0; at < text.size();) {
      const std::size_t newline = text.find('\n', at);
      lines.push_back(text.substr(at, newline + 1 - at));
      at = newline + 1;
    }
    constexpr std::size_t kLinesPerMetric = 2 + kGpus;
    std::string shuffled;
    for (std::size_t first = 0; first < lines.size(); first += kLinesPerMetric) {
      const auto begin = lines.begin() + static_cast<std::ptrdiff_t>(first);
      std::shuffle(begin + 2, begin + kLinesPerMetric, random);
    }
    for (const std::string& line : lines) shuffled += line;
    texts.push_back(shuffled);
  }
  ExpositionParser parser;
  over_texts(state, texts, [&](const std::string& text) { parse_and_check(state, parser, text); });
}
BENCHMARK(warm_parser_shuffled);

// Every block parsed by the grammar: what a text without a repeated block would cost.
void parser_without_memory(benchmark::State& state) {
  ExpositionParser parser({.label_sets_max = 0});
  over_scrapes(state, [&](const std::string& text) { parse_and_check(state, parser, text); });
}
BENCHMARK(parser_without_memory);

void bound_count_newlines(benchmark::State& state) {
  over_scrapes(state, [](const std::string& text) {
    std::size_t lines = count_newlines(text);
    benchmark::DoNotOptimize(lines);
  });
}
BENCHMARK(bound_count_newlines);

void bound_copy(benchmark::State& state) {
  std::string copy(scrapes()[0].size() * 2, '\0');
  over_scrapes(state, [&](const std::string& text) {
    std::memcpy(copy.data(), text.data(), text.size());
    benchmark::DoNotOptimize(copy.data());
    benchmark::ClobberMemory();
  });
}
BENCHMARK(bound_copy);

}  // namespace
}  // namespace flopsight::wire
