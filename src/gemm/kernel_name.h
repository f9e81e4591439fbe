#pragma once
// What the name of a GPU kernel says of its tile. NVIDIA calls these names internal, so reading them is best effort: a name that
// is not understood has no tile, and nothing is guessed.
//
//   family        example                                                                tile
//   cuBLAS        ampere_fp16_s16816gemm_fp16_128x64_ldg8_f2f_stages_64x3_nn             128x64, k 64
//   CUTLASS 2     cutlass_80_tensorop_s1688gemm_256x128_32x3_tn_align4                   256x128, k 32
//   xmma          sm90_xmma_gemm_bf16bf16_…_tilesize128x128x64_warpgroupsize1x1x1_…      128x128x64
//   CUTLASS 3     …_128x128x64_2x1x1_0_ntn_align8, or the template CollectiveMma<…>       128x128x64
//   nvjet         nvjet_hsh_128x256_64x4_2x1_v_bz_coopA_TNN                              128x256, k 64
//   trtllm-gen    bmm_Bfloat16_…_t128x8x128u2_s6_…                                       128x8x128
//   Tensile (AMD) Cijk_Alik_Bljk_SB_…_MT64x16x32_MI16x16x1_…                             64x16x32
//
// Libraries see a row-major product as its transpose, so that the first side of a tile lies along n of the framework's operator;
// with nvjet the last of the three layout letters says so (inferred from kernels of public profiles whose m is small). Sources: NVIDIA
// developer forums topics 297449 and 348958, NVIDIA/cutlass issues 286 and 1025 and its profiler's documentation. Threads: pure.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "catalog/devices.h"
#include "gemm/tile.h"

namespace flopsight::gemm {

enum class KernelKind : std::uint8_t {
  kTensorGemm,      // on tensor cores (matrix cores with AMD)
  kCudaCoreGemm,    // a matrix product outside of them: sgemm, gemv
  kMaybeGemm,       // the name speaks of a matrix product and says neither tile nor pipe: Triton, DeepGEMM, quantized kernels
  kAttention,       // fused attention
  kConvolution,
  kCommunication,
  kOther,
};
std::string_view kernel_kind_name(KernelKind kind);

enum class TileOrder : std::uint8_t { kFirstAlongN, kFirstAlongM, kUnknown };

struct KernelName {
  KernelKind kind = KernelKind::kOther;
  std::string_view family;    // "cublas", "cutlass2", "xmma", "cutlass3", "nvjet", "trtllm", "tensile"; empty where it has none
  std::optional<Tile> tile;   // m is the first number of the name
  TileOrder order = TileOrder::kUnknown;
  std::optional<catalog::Precision> precision;  // of the inputs
  bool split_k = false;  // the name says that k is split over CTAs
  std::uint64_t splits = 1;  // how many ways, where the name says that (Tensile's GSU)
};
KernelName read_kernel_name(std::string_view name);

// The name without template arguments and parameters: for showing.
std::string short_kernel_name(std::string_view name);

}  // namespace flopsight::gemm
