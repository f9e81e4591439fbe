#pragma once
// Columns as rollups have them, for tests and benchmarks: one GPU, a value a minute. Noise is
// autoregressive, as utilisation and power are; ratios are 16-bit integers.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace flopsight::wire {

class ColumnMaker {
 public:
  explicit ColumnMaker(std::size_t size) : size_(size) {}

  std::vector<std::int64_t> constant(std::int64_t value) {
    return std::vector<std::int64_t>(size_, value);
  }
  std::vector<std::int64_t> clock(std::int64_t step, std::int64_t jitter) {
    return each([&](std::size_t i) {
      return 1'700'000'000'000 + static_cast<std::int64_t>(i) * step + below(2 * jitter + 1) -
             jitter;
    });
  }
  std::vector<std::int64_t> noisy(double mean, double deviation, double memory, double max) {
    double value = 0;
    std::normal_distribution<double> gauss;
    return each([&](std::size_t) {
      value = memory * value + std::sqrt(1 - memory * memory) * deviation * gauss(random_);
      return static_cast<std::int64_t>(std::llround(std::clamp(mean + value, 0.0, max)));
    });
  }
  // A clock in kHz that wanders in steps of 15 MHz and stays at its top mostly.
  std::vector<std::int64_t> gpu_clock() {
    std::int64_t step = 132;
    return each([&](std::size_t) {
      if (below(100) < 15) step = std::clamp<std::int64_t>(step + below(3) - 1, 100, 132);
      return step * 15'000;
    });
  }
  std::vector<std::int64_t> one_of(std::vector<std::int64_t> values) {
    return each([&](std::size_t) {
      // The first in nine of ten cases.
      const std::int64_t others = static_cast<std::int64_t>(values.size()) - 1;
      return values[static_cast<std::size_t>(below(10) == 0 ? 1 + below(others) : 0)];
    });
  }
  // Zero but for one in a hundred.
  std::vector<std::int64_t> sparse() {
    return each([&](std::size_t) { return below(100) == 0 ? 1 + below(500) : 0; });
  }
  std::vector<std::int64_t> busy_and_idle() {
    const std::vector<std::int64_t> busy = noisy(52'000, 1'500, 0.6, 65'535);
    bool on = true;
    return each([&](std::size_t i) {
      if (below(50) == 0) on = !on;
      return on ? busy[i] : 0;
    });
  }
  std::vector<std::int64_t> counter(double mean, double deviation) {
    std::int64_t total = 123'456'789'012;
    const std::vector<std::int64_t> steps = noisy(mean, deviation, 0.7, 1e12);
    return each([&](std::size_t i) { return total += steps[i]; });
  }
  std::vector<std::int64_t> any() {
    return each([&](std::size_t) { return static_cast<std::int64_t>(random_()); });
  }

 private:
  std::int64_t below(std::int64_t end) {
    return static_cast<std::int64_t>(random_() % static_cast<std::uint64_t>(end));
  }
  template <typename Value>
  std::vector<std::int64_t> each(Value value) {
    std::vector<std::int64_t> out;
    for (std::size_t i = 0; i < size_; ++i) out.push_back(value(i));
    return out;
  }

  std::size_t size_;
  std::mt19937_64 random_{5};
};

struct NamedColumn {
  std::string name;
  std::vector<std::int64_t> values;
};

inline std::vector<NamedColumn> rollup_columns(std::size_t size) {
  ColumnMaker make(size);
  std::vector<NamedColumn> out = {{"clock", make.clock(60'000, 0)},
                                  {"clock_jitter", make.clock(15'000, 3)},
                                  {"elapsed", make.one_of({60'000, 59'985, 60'015})},
                                  {"sm_active", make.noisy(52'000, 1'500, 0.6, 65'535)},
                                  {"tensor_active", make.noisy(30'000, 3'000, 0.3, 65'535)},
                                  {"dram_active", make.noisy(22'000, 800, 0.8, 65'535)},
                                  {"busy_and_idle", make.busy_and_idle()},
                                  {"sm_clock", make.gpu_clock()},
                                  {"power_milliwatts", make.noisy(550'000, 8'000, 0.7, 700'000)},
                                  {"energy_millijoules", make.counter(33'000'000, 500'000)},
                                  {"utilisation", make.noisy(92, 6, 0.5, 100)},
                                  {"temperature", make.noisy(61, 2, 0.9, 100)}};
  for (std::int64_t i = 0; i < 6; ++i) out.push_back({"constant", make.constant(i * 1'000)});
  for (int i = 0; i < 6; ++i) out.push_back({"sparse", make.sparse()});
  return out;
}

}  // namespace flopsight::wire
