// How fast a log goes through the reader. The shapes: a log of a long run as clusters keep them, where most lines are of libraries
// (NCCL, data loaders, warnings, tracebacks) and say nothing, and one in forty is a step; and the worst, where every line is
// a step of some rank.

#include <benchmark/benchmark.h>

#include <string>

#include "training_logs/report.h"

namespace {

using namespace flopsight::training_logs;

constexpr std::size_t kPieceBytes = 1 << 20;

std::string noise(std::size_t i) {
  const std::string n = std::to_string(i);
  switch (i % 5) {
    case 0: return "node" + n + ":2231:3310 [3] NCCL INFO Channel 0" + n + "/0 : 12[c000] -> 20[c000] [receive] via NET/IB/3/GDRDMA\n";
    case 1: return "[rank3]: W0224 19:46:17.508000 140 torch/distributed/run.py:793] Setting OMP_NUM_THREADS to be 1 for each process\n";
    case 2: return "2026-02-24 19:46:17,508 - data - INFO - loaded shard " + n + " of corpus/part-000" + n + ".arrow in worker 7 without error\n";
    case 3: return "  File \"/opt/venv/lib/python3.12/site-packages/torch/utils/data/dataloader.py\", line " + n + ", in __next__\n";
    default: return "(min, max) time across ranks (ms): forward-backward ...: (4321.01, 4321.22) optimizer: (12.33, 12.40) " + n + "\n";
  }
}

std::string step(std::size_t i) {
  return " [2024-04-06 02:55:45] iteration " + std::to_string(i) + "/  100000 | consumed samples: " + std::to_string(i * 128) +
         " | elapsed time per iteration (ms): 5630.1 | throughput per GPU (TFLOP/s/GPU): 231.9 | learning rate: 4.000000E-07 | "
         "global batch size:   128 | lm loss: 2.021530E+00 | loss scale: 1.0 | grad norm: 6.895 | num zeros: 0.0 | number of "
         "skipped iterations:   0 | number of nan iterations:   0 |\n";
}

// `every`: one line in so many is a step.
std::string text_of(std::size_t bytes, std::size_t every) {
  std::string text;
  for (std::size_t i = 1; text.size() < bytes; ++i) text += i % every == 0 ? step(i / every) : noise(i);
  return text;
}

void read(benchmark::State& state, std::size_t every, std::size_t bytes) {
  const std::string text = text_of(64 << 20, every);
  std::uint64_t done = 0;
  for (auto _ : state) {
    Reader reader{Options{}};
    std::size_t steps = 0;
    for (std::size_t fed = 0; fed < bytes; fed += text.size()) {
      for (std::size_t at = 0; at < text.size(); at += kPieceBytes) {
        reader.feed(std::string_view(text).substr(at, kPieceBytes));
        for (const Taken& taken : reader.take()) steps += taken.steps.size();
      }
    }
    benchmark::DoNotOptimize(steps);
    done += (bytes + text.size() - 1) / text.size() * text.size();
  }
  state.SetBytesProcessed(static_cast<std::int64_t>(done));
}

void gigabyte_log(benchmark::State& state) { read(state, 40, 1 << 30); }
void every_line_a_step(benchmark::State& state) { read(state, 1, 64 << 20); }

BENCHMARK(gigabyte_log)->Unit(benchmark::kMillisecond);
BENCHMARK(every_line_a_step)->Unit(benchmark::kMillisecond);

}  // namespace
