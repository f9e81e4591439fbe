#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "validation/experiment.h"
#include "validation/simulated_gpu.h"
#include "validation/sweep.h"

namespace flopsight::validation {
namespace {

using catalog::Precision;

const catalog::Device& h100() { return *catalog::DeviceCatalog::builtin().find("NVIDIA H100 80GB HBM3"); }

const auto kGoOn = [](std::size_t) { return true; };

// The whole experiment on a simulated GPU, with the true OFU of each point.
Experiment simulate(const SweepOptions& sizes, const SimulatedOptions& how) {
  const auto cases = sweep(sizes, h100());
  EXPECT_TRUE(cases.ok());
  SimulatedGpu gpu(h100(), how);
  auto done = run_experiment(*cases, h100(), gpu, gpu, {}, kGoOn);
  EXPECT_TRUE(done.ok()) << (done.ok() ? "" : done.error().message);
  return std::move(done).value();
}

TEST(Sweep, has_every_tensor_format_of_the_gpu_and_sizes_that_are_no_multiples_of_a_tile) {
  const auto cases = sweep({}, h100());
  ASSERT_TRUE(cases.ok());
  std::set<Precision> precisions;
  std::size_t aligned = 0;
  for (const Case& one : *cases) {
    precisions.insert(one.precision);
    aligned += one.aligned;
    for (const std::uint64_t side : {one.shape.m, one.shape.n, one.shape.k}) {
      EXPECT_GE(side, 128U);
      EXPECT_LE(side, 16384U);
      EXPECT_TRUE(one.precision != Precision::kFp8 || side % 16 == 0);
    }
  }
  // Hopper has no FP4.
  EXPECT_EQ(precisions, (std::set<Precision>{Precision::kFp64Tensor, Precision::kTf32, Precision::kFp16, Precision::kBf16, Precision::kFp8}));
  EXPECT_EQ(aligned, 5U * 15);
  EXPECT_EQ(cases->size(), 5U * (15 + 12));
}

TEST(Sweep, says_what_cannot_be) {
  SweepOptions options;
  options.precisions = {Precision::kFp4};
  EXPECT_NE(sweep(options, h100()).error().message.find("no tensor peak for fp4"), std::string::npos);
  options = {};
  options.size_min = 300;
  options.size_max = 200;
  EXPECT_FALSE(sweep(options, h100()).ok());
  options = {};
  options.durations = {units::Seconds(0)};
  EXPECT_FALSE(sweep(options, h100()).ok());
}

TEST(Sweep, is_limited) {
  SweepOptions options;
  options.precisions = {Precision::kBf16};
  options.size_min = options.size_max = 128;
  options.unaligned_count = 9'999;
  EXPECT_EQ(sweep(options, h100())->size(), kCasesMax);
  options.unaligned_count = 10'000;
  EXPECT_EQ(sweep(options, h100()).error().code, base::ErrorCode::kLimit);
}

// MFU comes from time, OFU from counters: that they agree after correction is not put in anywhere.
TEST(Experiment, finds_the_truth_of_a_simulated_gpu) {
  SweepOptions sizes;
  sizes.durations = {units::Seconds(60)};
  const Experiment done = simulate(sizes, {});
  ASSERT_EQ(done.points.size(), 135U);
  for (const PrecisionRow& row : agreement_by_precision(done.points)) {
    EXPECT_LT(row.adjusted.error_mean_ratio, 0.003);
    EXPECT_EQ(row.adjusted.within_2_points_ratio, 1.0);
    EXPECT_LT(std::abs(row.adjusted.bias_ratio), 0.001);
    // Padding makes raw OFU read high.
    EXPECT_GT(row.ofu.bias_ratio, 0.003);
    EXPECT_GT(row.overhead_max_ratio, 1.3);
  }
}

TEST(Experiment, finds_the_planted_tile_and_clock) {
  const auto cases = sweep({}, h100());
  SimulatedOptions how;
  how.clock_jitter_hertz = 0;
  SimulatedGpu gpu(h100(), how);
  for (const Case& one : {cases->front(), cases->back()}) {
    const auto done = run_experiment({one}, h100(), gpu, gpu, {}, kGoOn);
    ASSERT_TRUE(done.ok());
    const Point& point = done->points.front();
    EXPECT_EQ("simulated_" + gemm::tile_text(point.tile), point.prepared.kernel);
    EXPECT_NEAR(point.counted.sm_clock_hertz_mean, gpu.true_clock_hertz_mean(), 1);
    EXPECT_NEAR(point.ofu_ratio, gpu.true_ofu_ratio(), 1e-9);
  }
}

TEST(Experiment, shows_what_a_modelled_tile_costs) {
  SweepOptions sizes;
  sizes.precisions = {Precision::kBf16};
  sizes.durations = {units::Seconds(60)};
  SimulatedOptions how;
  how.says_tile = false;
  const auto rows = agreement_by_precision(simulate(sizes, how).points);
  ASSERT_EQ(rows.size(), 1U);
  EXPECT_EQ(rows[0].tiles_modelled, rows[0].adjusted.points);
  how.says_tile = true;
  EXPECT_GT(rows[0].adjusted.error_max_ratio, 2 * agreement_by_precision(simulate(sizes, how).points)[0].adjusted.error_max_ratio);
}

TEST(Experiment, error_grows_with_the_interval_of_clock_readings) {
  SweepOptions sizes;
  sizes.precisions = {Precision::kBf16};
  sizes.size_min = 4096;
  sizes.durations = {units::Seconds(120)};
  SimulatedOptions how;
  const auto fine = agreement_by_precision(simulate(sizes, how).points);
  how.interval = units::Seconds(30);
  const auto coarse = agreement_by_precision(simulate(sizes, how).points);
  EXPECT_GT(coarse[0].adjusted.error_mean_ratio, 2 * fine[0].adjusted.error_mean_ratio);
}

TEST(Experiment, fp64_is_against_the_clock_of_its_own_peak) {
  EXPECT_EQ(reference_clock_of(h100(), Precision::kFp64Tensor)->value, 1980e6);
  EXPECT_EQ(reference_clock_of(h100(), Precision::kFp16)->value, 1830e6);
}

// A runner and counters by script.
class Scripted : public Runner, public CounterSource {
 public:
  base::Result<Prepared> prepare(const Case& one) override {
    if (one.shape.m == 256) return base::Error{base::ErrorCode::kUnsupported, "no algorithm"};
    if (one.shape.m == 512) return base::Error{base::ErrorCode::kUnavailable, "the GPU fell off the bus"};
    return Prepared{};
  }
  base::Status mark() override {
    elapsed_ = 0;
    return {};
  }
  base::Result<units::Seconds> run(std::uint64_t launches) override {
    launched_ += launches;
    return units::Seconds(elapsed_ += 1e-3 * static_cast<double>(launches));
  }
  base::Status start() override { return {}; }
  base::Status poll() override { return {}; }
  bool enough() const override { return readings_; }
  base::Result<Counted> stop() override { return Counted{0.5, 1.83e9, 0.5 * 1.83e9, 1}; }

  bool readings_ = true;
  std::uint64_t launched_ = 0;

 private:
  double elapsed_ = 0;
};

std::vector<Case> square(std::uint64_t size) { return {{Precision::kBf16, {size, size, size}, units::Seconds(3), true}}; }

TEST(Experiment, computes_what_its_header_says) {
  Scripted scripted;
  const auto done = run_experiment(square(384), h100(), scripted, scripted, {}, kGoOn);
  ASSERT_TRUE(done.ok());
  const Point& point = done->points.front();
  EXPECT_NEAR(point.elapsed.value, 1e-3 * static_cast<double>(point.launches), 1e-9);
  EXPECT_NEAR(point.mfu_ratio, 2.0 * 384 * 384 * 384 / (1e-3 * 989.4e12), 1e-6);
  EXPECT_DOUBLE_EQ(point.ofu_ratio, 0.5);
  EXPECT_DOUBLE_EQ(point.ofu_adjusted_ratio(), 0.5 / point.quantized.overhead_ratio());
}

TEST(Experiment, leaves_out_and_says_what_a_gpu_cannot_do_and_ends_where_it_is_lost) {
  Scripted scripted;
  const auto done = run_experiment(square(256), h100(), scripted, scripted, {}, kGoOn);
  ASSERT_TRUE(done.ok());
  EXPECT_TRUE(done->points.empty());
  EXPECT_EQ(done->left_out.front().reason, "no algorithm");
  EXPECT_EQ(run_experiment(square(512), h100(), scripted, scripted, {}, kGoOn).error().message, "the GPU fell off the bus");
}

TEST(Experiment, counters_that_never_say_enough_end_after_an_hour_of_products) {
  Scripted scripted;
  scripted.readings_ = false;
  EXPECT_EQ(run_experiment(square(384), h100(), scripted, scripted, {}, kGoOn).error().code, base::ErrorCode::kUnavailable);
}

}  // namespace
}  // namespace flopsight::validation
