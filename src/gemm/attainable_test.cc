#include "gemm/attainable.h"

#include <gtest/gtest.h>

namespace flopsight::gemm {
namespace {

using catalog::Precision;

const catalog::Device& device(const char* name) { return *catalog::DeviceCatalog::builtin().find(name); }

TEST(Attainable, a_large_product_reaches_the_published_share_of_the_peak) {
  const auto rate = predicted_rate({8448, 8192, 32768, 1}, {128, 256, 64}, 1, Precision::kBf16, device("NVIDIA H100 80GB HBM3"));
  ASSERT_TRUE(rate.ok());
  EXPECT_NEAR(rate->value / 1e12, 794.5, 4);
}

TEST(Attainable, a_thin_product_reads_its_weights_at_four_fifths_of_the_bandwidth) {
  const auto rate = predicted_rate({1, 16384, 16384, 1}, {8, 64, 64}, 1, Precision::kBf16, device("NVIDIA H100 80GB HBM3"));
  ASSERT_TRUE(rate.ok());
  const double seconds = 2.0 * 16384 * 16384 / rate->value;
  EXPECT_NEAR(seconds, 16384.0 * 16384 * 2 / (3.35e12 * 0.8) + 3e-6, 1e-6);
}

TEST(Attainable, nothing_is_predicted_without_a_published_share) {
  EXPECT_FALSE(attainable_ratio(device("NVIDIA L4"), Precision::kBf16));
  EXPECT_FALSE(attainable_ratio(device("NVIDIA B200"), Precision::kFp4));
  EXPECT_EQ(predicted_rate({64, 64, 64, 1}, {64, 64, 64}, 1, Precision::kBf16, device("NVIDIA L4")).error().code, base::ErrorCode::kUnsupported);
}

TEST(Attainable, rates_above_the_peak_are_impossible_and_not_in_the_errors) {
  const auto rates = read_measured_rates("m,n,k,precision,tflops\n4096,4096,4096,fp8,2595.7\n4096,4096,4096,bf16,700\n256,256,256,bf16,5\n");
  ASSERT_TRUE(rates.ok());
  const auto checks = check_rates(*rates, device("NVIDIA H100 80GB HBM3"));
  ASSERT_TRUE(checks.ok());
  EXPECT_TRUE((*checks)[0].impossible);
  EXPECT_FALSE((*checks)[1].impossible);
  EXPECT_EQ(rate_errors(*checks, 0)->rows, 2u);
  EXPECT_EQ(rate_errors(*checks, 1e10)->rows, 1u);
  EXPECT_FALSE(rate_errors(*checks, 1e15));
}

TEST(Attainable, mistakes_of_a_file_are_one_line) {
  const std::pair<const char*, const char*> cases[] = {
      {"m,n,k,tflops\n1,1,1,1\n", "line 1: no column precision"},
      {"m,n,k,precision,tflops\n", "no row"},
      {"m,n,k,precision,tflops\n0,1,1,bf16,1\n", "line 2, column m: \"0\""},
      {"m,n,k,precision,tflops\n1,1.5,1,bf16,1\n", "column n"},
      {"m,n,k,precision,tflops\n1,1,1,bf17,1\n", "column precision: \"bf17\""},
      {"m,n,k,precision,tflops\n1,1,1,bf16,-1\n", "column tflops"},
      {"m,n,k,batch,precision,tflops\n1,1,1,x,bf16,1\n", "column batch"},
  };
  for (const auto& [text, said] : cases) {
    const auto rates = read_measured_rates(text);
    ASSERT_FALSE(rates.ok()) << text;
    EXPECT_NE(rates.error().message.find(said), std::string::npos) << rates.error().message;
  }
  const auto rates = read_measured_rates("m,n,k,precision,tflops\n1,1,1,fp4,1\n");
  EXPECT_NE(check_rates(*rates, device("NVIDIA H100 80GB HBM3")).error().message.find("line 2: H100-SXM5-80GB has no known peak in fp4"), std::string::npos);
}

}  // namespace
}  // namespace flopsight::gemm
