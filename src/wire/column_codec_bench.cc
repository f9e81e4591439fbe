// A block of a GPU's day of rollups: 24 columns of 1,440 values (test_columns.h says which, and
// that they are made up: noise as counters have it, clocks, constants, sparse errors). Bytes a
// value, and GB/s of int64 in and out; beside it the same columns as scaled differences in varints
// with zstd around, which is the usual way. Of the 24, twelve say nearly nothing; `write_one` has
// the others one by one.
#include <benchmark/benchmark.h>

#include <cstdint>
#include <cstdlib>
#include <numeric>
#include <string>
#include <vector>

#include "wire/column_codec.h"
#include "wire/test_columns.h"
#include "wire/zstd.h"

namespace flopsight::wire {
namespace {

using Columns = std::vector<std::vector<std::int64_t>>;

Columns columns(std::size_t size) {
  Columns out;
  for (NamedColumn& column : rollup_columns(size)) out.push_back(std::move(column.values));
  return out;
}

std::string block_of(const Columns& all, int level) {
  ColumnWriter writer;
  for (const auto& column : all) writer.add(column);
  return writer.finish(level);
}

void report(benchmark::State& state, const Columns& all, std::size_t bytes) {
  const auto values = static_cast<std::int64_t>(all.size() * all[0].size());
  state.SetItemsProcessed(state.iterations() * values);
  state.SetBytesProcessed(state.iterations() * values *
                          static_cast<std::int64_t>(sizeof all[0][0]));
  state.counters["bytes_a_value"] = static_cast<double>(bytes) / static_cast<double>(values);
}

void write(benchmark::State& state) {
  const Columns all = columns(static_cast<std::size_t>(state.range(0)));
  std::string block;
  for (auto _ : state) {
    block = block_of(all, static_cast<int>(state.range(1)));
    benchmark::DoNotOptimize(block.data());
  }
  report(state, all, block.size());
}

void read(benchmark::State& state) {
  const Columns all = columns(static_cast<std::size_t>(state.range(0)));
  const std::string block = block_of(all, static_cast<int>(state.range(1)));
  for (auto _ : state) {
    auto read = read_columns(block);
    if (!read.ok()) std::abort();
    benchmark::DoNotOptimize(read->data());
  }
  report(state, all, block.size());
}

void varints_and_zstd(benchmark::State& state) {
  const Columns all = columns(static_cast<std::size_t>(state.range(0)));
  std::string packed;
  for (auto _ : state) {
    std::string bytes;
    for (const auto& column : all) {
      std::int64_t divisor = 0;
      for (const std::int64_t value : column) divisor = std::gcd(divisor, value - column[0]);
      if (divisor == 0) divisor = 1;
      std::uint64_t before = 0;
      for (const std::int64_t value : column) {
        const auto step = static_cast<std::uint64_t>((value - column[0]) / divisor);
        const std::uint64_t difference = step - before;
        before = step;
        std::uint64_t code = difference << 1U ^ (0 - (difference >> 63U));
        for (; code >= 0x80; code >>= 7U) bytes += static_cast<char>((code & 0x7F) | 0x80);
        bytes += static_cast<char>(code);
      }
    }
    packed = zstd_compress(bytes, static_cast<int>(state.range(1)));
    benchmark::DoNotOptimize(packed.data());
  }
  report(state, all, packed.size());
}

// One column at a time, for its size only.
void write_one(benchmark::State& state) {
  const NamedColumn column = rollup_columns(1'440)[static_cast<std::size_t>(state.range(0))];
  const Columns all = {column.values};
  std::string block;
  for (auto _ : state) block = block_of(all, 3);
  report(state, all, block.size());
  state.SetLabel(column.name);
}

BENCHMARK(write)->Args({60, 3})->Args({1'440, 3})->Args({1'440, 9})->Args({10'080, 3});
BENCHMARK(read)->Args({60, 3})->Args({1'440, 3})->Args({10'080, 3});
BENCHMARK(varints_and_zstd)->Args({60, 3})->Args({1'440, 3})->Args({1'440, 9})->Args({10'080, 3});
BENCHMARK(write_one)->DenseRange(0, 12)->Arg(18);

}  // namespace
}  // namespace flopsight::wire
