// The runner through the fake library of tests/fake_cuda, loaded as the real ones are. The fake reads its script once, so each test that
// wants another one looks at a process of its own in tests/e2e; here are the defaults.

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <set>

#include "cuda/cublaslt_runner.h"
#include "cuda/product_internal.h"
#include "gemm/tile.h"

namespace flopsight::cuda {
namespace {

using catalog::Precision;

const LibraryPaths kFake{FLOPSIGHT_FAKE_CUDA_LIBRARY, FLOPSIGHT_FAKE_CUDA_LIBRARY};

validation::Case product(Precision precision, std::uint64_t m, std::uint64_t n, std::uint64_t k) { return {precision, {m, n, k}, units::Seconds(1), false}; }

TEST(Library, a_machine_without_cuda_says_so) {
  const auto opened = CublasLtRunner::open({"/nowhere/libcuda.so.1", ""}, 0);
  ASSERT_FALSE(opened.ok());
  EXPECT_EQ(opened.error().code, base::ErrorCode::kUnsupported);
  EXPECT_NE(opened.error().message.find("the CUDA driver cannot be loaded: /nowhere/libcuda.so.1"), std::string::npos);
}

TEST(Library, a_library_that_is_another_says_which_function_it_lacks) {
  const auto opened = CublasLtRunner::open({"libm.so.6", ""}, 0);
  ASSERT_FALSE(opened.ok());
  // The second one may be missing on this machine; then that is said.
  EXPECT_TRUE(opened.error().message.find("has no function cuInit") != std::string::npos ||
              opened.error().message.find("cublasLt cannot be loaded") != std::string::npos);
}

TEST(CublasLtRunner, says_which_gpu_it_is) {
  const auto runner = CublasLtRunner::open(kFake, 0);
  ASSERT_TRUE(runner.ok()) << runner.error().message;
  EXPECT_EQ((*runner)->gpu().name, "NVIDIA H100 80GB HBM3");
  EXPECT_EQ((*runner)->gpu().uuid, "GPU-00102030-4050-6070-8090-a0b0c0d0e0f0");
  EXPECT_EQ((*runner)->gpu().sm_count, 132);
  EXPECT_EQ((*runner)->gpu().cuda_version, "13.0");
  EXPECT_EQ((*runner)->gpu().cublaslt_version, "13.1.0");
  EXPECT_EQ(CublasLtRunner::open(kFake, 1).error().message, "--gpu-index 1: this machine has 1 GPUs, counted from 0");
}

TEST(CublasLtRunner, tells_tile_and_time_of_every_format) {
  const auto runner = CublasLtRunner::open(kFake, 0);
  ASSERT_TRUE(runner.ok());
  for (const Precision precision : validation::default_precisions()) {
    const auto prepared = (*runner)->prepare(product(precision, 1024, 2048, 4096));
    ASSERT_TRUE(prepared.ok()) << prepared.error().message;
    EXPECT_EQ(prepared->tile, (gemm::Tile{128, 256, 64}));  // ids 23 and 15
    EXPECT_EQ(prepared->kernel, "cublaslt algorithm 66, tile 23, stages 15");
    ASSERT_TRUE((*runner)->mark().ok());
    const auto once = (*runner)->run(1);
    const auto more = (*runner)->run(9);
    ASSERT_TRUE(once.ok() && more.ok());
    EXPECT_NEAR(once->value, 2.0 * 1024 * 2048 * 4096 / 6e14, 1e-9);
    EXPECT_NEAR(more->value / once->value, 10, 1e-4);  // since mark()
  }
}

TEST(CublasLtRunner, a_product_that_does_not_fit_is_unsupported_and_gives_its_memory_back) {
  const auto runner = CublasLtRunner::open(kFake, 0);
  ASSERT_TRUE(runner.ok());
  // 3 * 65536^2 doubles are 103 GB of the fake's 80.
  const auto prepared = (*runner)->prepare(product(Precision::kFp64Tensor, 65536, 65536, 65536));
  ASSERT_FALSE(prepared.ok());
  EXPECT_EQ(prepared.error().code, base::ErrorCode::kUnsupported);
  EXPECT_NE(prepared.error().message.find("MiB left"), std::string::npos);
  for (int i = 0; i < 3; ++i) EXPECT_TRUE((*runner)->prepare(product(Precision::kFp64Tensor, 40960, 40960, 40960)).ok());
}

TEST(CublasLtRunner, has_no_format_for_int8) {
  const auto runner = CublasLtRunner::open(kFake, 0);
  ASSERT_TRUE(runner.ok());
  EXPECT_EQ((*runner)->prepare(product(Precision::kInt8, 128, 128, 128)).error().code, base::ErrorCode::kUnsupported);
}

// The whole experiment, with counters that are right about the fake's time.
class Counters : public validation::CounterSource {
 public:
  base::Status start() override { return {}; }
  base::Status poll() override { return {}; }
  bool enough() const override { return true; }
  base::Result<validation::Counted> stop() override {
    const double ofu = 6e14 / 989.4e12;  // what the fake executes in a second, of the peak
    return validation::Counted{ofu * 1830 / 1500, 1500e6, ofu * 1830e6, 1};
  }
};

TEST(CublasLtRunner, an_experiment_on_it_finds_what_its_tiles_cost) {
  const auto runner = CublasLtRunner::open(kFake, 0);
  ASSERT_TRUE(runner.ok());
  const catalog::Device& h100 = *catalog::DeviceCatalog::builtin().find((*runner)->gpu().name);
  Counters counters;
  const auto done = validation::run_experiment({product(Precision::kBf16, 1025, 1025, 1025)}, h100, **runner, counters, {}, [](std::size_t) { return true; });
  ASSERT_TRUE(done.ok()) << done.error().message;
  const validation::Point& point = done->points.front();
  EXPECT_EQ(point.tile_source, validation::TileSource::kLibrary);
  EXPECT_NEAR(point.quantized.overhead_ratio(), 1.490, 0.001);  // ofu.md: 128x256 on 1025
  EXPECT_NEAR(point.error_adjusted_ratio(), 0, 1e-4);
  EXPECT_GT(point.error_ratio(), 0.19);
}

TEST(RandomValues, lie_between_a_half_and_one_with_either_sign) {
  const auto bytes = random_values(Precision::kTf32, 4096);
  std::set<bool> signs;
  for (std::size_t i = 0; i < bytes.size(); i += 4) {
    float value = 0;
    std::memcpy(&value, bytes.data() + i, 4);
    EXPECT_GE(std::abs(value), 0.5F);
    EXPECT_LT(std::abs(value), 1.0F);
    signs.insert(value < 0);
  }
  EXPECT_EQ(signs.size(), 2U);
  // FP8 E4M3: exponent 6 of bias 7, so none is NaN.
  for (const std::uint8_t byte : random_values(Precision::kFp8, 512)) EXPECT_EQ(byte & 0x78, 0x30);
}

}  // namespace
}  // namespace flopsight::cuda
