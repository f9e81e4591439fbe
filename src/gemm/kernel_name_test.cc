#include "gemm/kernel_name.h"

#include <gtest/gtest.h>

namespace flopsight::gemm {
namespace {

using catalog::Precision;

struct Case {
  const char* name;
  const char* family;
  Tile tile;
  TileOrder order;
  std::optional<Precision> precision;
};

// Names as NVIDIA's forums, issue trackers and public profiles show them.
TEST(KernelName, says_its_tile) {
  const auto n = TileOrder::kFirstAlongN, m = TileOrder::kFirstAlongM, unknown = TileOrder::kUnknown;
  const Case cases[] = {
      {"ampere_h16816gemm_128x64_ldg8_stages_64x3_nn", "cublas", {128, 64, 64}, n, Precision::kFp16},
      {"ampere_fp16_s16816gemm_fp16_64x64_sliced1x2_ldg8_f2f_stages_64x6_tn", "cublas", {64, 64, 64}, n, Precision::kFp16},
      {"ampere_bf16_s16816gemm_bf16_256x128_ldg8_f2f_stages_32x3_nt", "cublas", {256, 128, 32}, n, Precision::kBf16},
      {"volta_fp16_s884gemm_fp16_128x128_ldg8_f2f_nn", "cublas", {128, 128, 0}, n, Precision::kFp16},
      {"turing_fp16_s1688gemm_fp16_128x128_ldg8_f2f_tn", "cublas", {128, 128, 0}, n, Precision::kFp16},
      {"void cutlass::Kernel<cutlass_80_tensorop_f16_s16816gemm_relu_f16_256x128_32x3_tn_align8>(cutlass_80_tensorop_f16_s16816gemm_relu_f16_256x128_32x3_tn_align8::Params)", "cutlass2",
       {256, 128, 32}, n, Precision::kFp16},
      {"void cutlass::Kernel<cutlass_80_tensorop_s1688gemm_64x64_16x10_nt_align4>(cutlass_80_ten", "cutlass2", {64, 64, 16}, n, Precision::kTf32},
      {"sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64_warpgroupsize1x1x1_execute_segment_k_off_kernel__5x_cublas", "xmma", {128, 128, 64}, n, Precision::kBf16},
      {"sm80_xmma_gemm_f16f16_f16f32_f32_nn_n_tilesize256x64x32_stage3_warpsize4x1x1_tensor16x8x16_kernel", "xmma", {256, 64, 32}, n, Precision::kFp16},
      {"cutlass3x_sm90_tensorop_s64x128x16gemm_bf16_bf16_f32_void_bf16_128x128x64_2x1x1_0_tnn_align8_warpspecialized_cooperative_epi_tma", "cutlass3", {128, 128, 64}, n, Precision::kBf16},
      {"void cutlass::device_kernel<cutlass::gemm::kernel::GemmUniversal<cute::tuple<int, int, int, int>, cutlass::gemm::collective::CollectiveMma<cutlass::gemm::"
       "MainloopSm90TmaGmmaWarpSpecializedFP8<5, cute::tuple<cute::C<2>, cute::C<1>, cute::C<1> >, cutlass::gemm::KernelTmaWarpSpecializedPingpong>, cute::tuple<cute::C<64>, "
       "cute::C<128>, cute::C<128> >, cutlass::float_e4m3_t>>>",
       "cutlass3", {64, 128, 128}, unknown, Precision::kFp8},
      {"nvjet_hsh_128x256_64x4_2x1_v_bz_coopA_TNN", "nvjet", {128, 256, 64}, m, Precision::kFp16},
      {"nvjet_tst_192x192_64x3_2x1_v_bz_coopB_NTN", "nvjet", {192, 192, 64}, m, Precision::kBf16},
      {"nvjet_tst_64x8_64x16_4x1_v_bz_TNT", "nvjet", {64, 8, 64}, n, Precision::kBf16},
      {"nvjet_sm100_tst_16x64_64x16_4x1_v_bz_TNN", "nvjet", {16, 64, 64}, m, Precision::kBf16},
      {"nvjet_sm103_hsh_64x8_64x16_1x1_h_bz_splitK_NNT", "nvjet", {64, 8, 64}, n, Precision::kFp16},
      {"nvjet_sm120_tst_mma_64x64x128_3_32x32x128_tmaAB_alignCD4_bz_TNNN", "nvjet", {64, 64, 128}, m, Precision::kBf16},
      {"bmm_Bfloat16_E2m1E2m1_Fp32_bA16_bB16_bC16_t128x8x256u2_s6_et128x8_m128x8x64_rM_TN", "trtllm", {128, 8, 256}, unknown, Precision::kFp4},
      {"Cijk_Alik_Bljk_SB_Bias_AS_SAV_UserArgs_MT64x16x32_MI16x16x1_SN_LDSB0", "tensile", {64, 16, 32}, n, std::nullopt},
  };
  for (const Case& c : cases) {
    const KernelName read = read_kernel_name(c.name);
    EXPECT_EQ(read.kind, KernelKind::kTensorGemm) << c.name;
    EXPECT_EQ(read.family, c.family) << c.name;
    ASSERT_TRUE(read.tile) << c.name;
    EXPECT_EQ(*read.tile, c.tile) << c.name << ": " << tile_text(*read.tile);
    EXPECT_EQ(read.order, c.order) << c.name;
    EXPECT_EQ(read.precision, c.precision) << c.name;
  }
  EXPECT_TRUE(read_kernel_name("nvjet_sm103_hsh_64x8_64x16_1x1_h_bz_splitK_NNT").split_k);
}

TEST(KernelName, what_uses_no_tensor_core_is_told_apart) {
  const std::pair<const char*, KernelKind> cases[] = {
      {"ampere_sgemm_128x64_nn", KernelKind::kCudaCoreGemm},
      {"void cutlass::Kernel<cutlass_80_simt_sgemm_128x64_8x5_nn_align1>(…)", KernelKind::kCudaCoreGemm},
      {"std::enable_if<!(false), void>::type internal::gemvx::kernel<int, int, float>", KernelKind::kCudaCoreGemm},
      {"void gemv2T_kernel_val<int, int, float>", KernelKind::kCudaCoreGemm},
      {"void gemmSN_TN_kernel<float, 128, 16>", KernelKind::kCudaCoreGemm},
      {"Cijk_Alik_Bljk_SB_MT64x64x8_SE_1LDSB0", KernelKind::kCudaCoreGemm},
      {"void splitKreduce_kernel<float, float>", KernelKind::kOther},
      {"ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)", KernelKind::kCommunication},
      {"void pytorch_flash::flash_fwd_kernel<Flash_fwd_kernel_traits<128, 128, 64, 4>>", KernelKind::kAttention},
      {"sm80_xmma_fprop_implicit_gemm_f16f16_tilesize128x128x32", KernelKind::kConvolution},
      {"triton_tem_fused_mm_5", KernelKind::kMaybeGemm},
      {"void deep_gemm::sm90_fp8_gemm_1d2d_impl<128u>", KernelKind::kMaybeGemm},
      {"void marlin::Marlin<256>", KernelKind::kMaybeGemm},
      {"void at::native::vectorized_elementwise_kernel<4, gemm>", KernelKind::kOther},
      {"void fbgemm_gpu::(anonymous namespace)::permute_2D_data_kernel<false>(int)", KernelKind::kOther},
      {"", KernelKind::kOther},
  };
  for (const auto& [name, kind] : cases) EXPECT_EQ(kernel_kind_name(read_kernel_name(name).kind), kernel_kind_name(kind)) << name;
}

TEST(KernelName, a_name_that_says_no_tile_has_none) {
  for (const char* name : {"nvjet_", "nvjet_hsh", "nvjet_hsh_0x128_64x4", "nvjet_hsh_99999x128", "ampere_fp16_s16816gemm_fp16_128_ldg8", "sm90_xmma_gemm_tilesize", "sm90_xmma_gemm_tilesize12x", "Cijk_MTx",
                           "CollectiveMma<tuple<", "CollectiveMma<cute::tuple<cute::C<2>, cute::C<1>, cute::C<1>>", "gemm_t", "gemm_12345678901234567890x1"}) {
    EXPECT_FALSE(read_kernel_name(name).tile) << name;
  }
}

TEST(KernelName, is_shown_without_its_arguments) {
  EXPECT_EQ(short_kernel_name("void cutlass::Kernel<cutlass_80_tensorop_s1688gemm_64x64_16x6_nn_align4>(x)"), "cutlass_80_tensorop_s1688gemm_64x64_16x6_nn_align4");
  EXPECT_EQ(short_kernel_name("void fbgemm_gpu::(anonymous namespace)::f<int>(int)"), "fbgemm_gpu::f");
  EXPECT_EQ(short_kernel_name("nvjet_hsh\x1b[31m"), "nvjet_hsh?[31m");
}

TEST(KernelName, tensile_says_how_many_ways_k_is_split) {
  const auto splits = [](const std::string& gsu) { return read_kernel_name("Cijk_Ailk_Bjlk_HHS_BH_MT128x128x32_MI32x32x8x1_SE_1LDSB0" + gsu + "_WG64_4_1"); };
  EXPECT_EQ(splits("_GSU4").splits, 4u);
  EXPECT_TRUE(splits("_GSU4").split_k);
  for (const char* none : {"_GSU1", "_GSU0", "_GSU", "_GSUx", "_GSU99999", ""}) {
    EXPECT_EQ(splits(none).splits, 1u) << none;
    EXPECT_FALSE(splits(none).split_k) << none;
  }
}

}  // namespace
}  // namespace flopsight::gemm
