// Our declarations of CUDA against NVIDIA's own headers, where they are installed: every value, every size, every function. What
// differs does not compile.

#include <gtest/gtest.h>

#include "cuda/abi.h"

#if __has_include(<cublasLt.h>) && __has_include(<cuda.h>)
#include <cublasLt.h>
#include <cuda.h>

#include <type_traits>

namespace flopsight::cuda {
namespace {

// The same number of parameters and, one by one, the same size, and pointers where there are pointers: what a call is made of.
template <typename Ours, typename Theirs>
constexpr bool passed_alike = sizeof(Ours) == sizeof(Theirs) && std::is_pointer_v<Ours> == std::is_pointer_v<Theirs>;
template <typename Ours, typename Theirs>
struct Alike : std::false_type {};
template <typename R1, typename R2, typename... Ours, typename... Theirs>
  requires(sizeof...(Ours) == sizeof...(Theirs))
struct Alike<R1 (*)(Ours...), R2 (*)(Theirs...)> : std::bool_constant<passed_alike<R1, R2> && (passed_alike<Ours, Theirs> && ...)> {};

#define FLOPSIGHT_CUDA_COMPARE(name, header_name, ...) \
  static_assert(Alike<int (*)(__VA_ARGS__), decltype(&::header_name)>::value, #name);
FLOPSIGHT_CUDA_FUNCTIONS(FLOPSIGHT_CUDA_COMPARE)
FLOPSIGHT_CUBLASLT_FUNCTIONS(FLOPSIGHT_CUDA_COMPARE)
#undef FLOPSIGHT_CUDA_COMPARE
static_assert(Alike<std::size_t (*)(), decltype(&::cublasLtGetVersion)>::value);

static_assert(sizeof(abi::Uuid) == sizeof(CUuuid) && sizeof(abi::Algo) == sizeof(cublasLtMatmulAlgo_t));
static_assert(sizeof(abi::Heuristic) == sizeof(cublasLtMatmulHeuristicResult_t));
static_assert(offsetof(abi::Heuristic, workspace_bytes) == offsetof(cublasLtMatmulHeuristicResult_t, workspaceSize));
static_assert(offsetof(abi::Heuristic, state) == offsetof(cublasLtMatmulHeuristicResult_t, state));

static_assert(abi::kCudaOutOfMemory == CUDA_ERROR_OUT_OF_MEMORY && abi::kCudaNoDevice == CUDA_ERROR_NO_DEVICE);
static_assert(abi::kBlasInvalidValue == CUBLAS_STATUS_INVALID_VALUE && abi::kBlasArchMismatch == CUBLAS_STATUS_ARCH_MISMATCH &&
              abi::kBlasNotSupported == CUBLAS_STATUS_NOT_SUPPORTED);
static_assert(abi::kMultiprocessorCount == CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
static_assert(abi::kReal32 == CUDA_R_32F && abi::kReal64 == CUDA_R_64F && abi::kReal16 == CUDA_R_16F && abi::kRealBf16 == CUDA_R_16BF &&
              abi::kRealE4m3 == CUDA_R_8F_E4M3);
static_assert(abi::kCompute32 == CUBLAS_COMPUTE_32F && abi::kComputeTf32 == CUBLAS_COMPUTE_32F_FAST_TF32 && abi::kCompute64 == CUBLAS_COMPUTE_64F);
static_assert(abi::kNotTransposed == CUBLAS_OP_N && abi::kTransposed == CUBLAS_OP_T);
static_assert(abi::kTransposeA == CUBLASLT_MATMUL_DESC_TRANSA && abi::kTransposeB == CUBLASLT_MATMUL_DESC_TRANSB &&
              abi::kScalePointerA == CUBLASLT_MATMUL_DESC_A_SCALE_POINTER && abi::kScalePointerB == CUBLASLT_MATMUL_DESC_B_SCALE_POINTER);
static_assert(abi::kWorkspaceBytesMax == CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES);
static_assert(abi::kAlgoId == CUBLASLT_ALGO_CONFIG_ID && abi::kAlgoTile == CUBLASLT_ALGO_CONFIG_TILE_ID &&
              abi::kAlgoSplitK == CUBLASLT_ALGO_CONFIG_SPLITK_NUM && abi::kAlgoStages == CUBLASLT_ALGO_CONFIG_STAGES_ID);
#if CUBLAS_VER_MAJOR >= 13
static_assert(abi::kRealE2m1 == CUDA_R_4F_E2M1);
static_assert(abi::kScaleModeA == CUBLASLT_MATMUL_DESC_A_SCALE_MODE && abi::kScaleModeB == CUBLASLT_MATMUL_DESC_B_SCALE_MODE &&
              abi::kScaleOf16 == CUBLASLT_MATMUL_MATRIX_SCALE_VEC16_UE4M3);
#endif

TEST(CudaDeclarations, are_those_of_the_installed_headers) { SUCCEED() << "compiled against cuBLAS " << CUBLAS_VERSION; }

}  // namespace
}  // namespace flopsight::cuda

#else

TEST(CudaDeclarations, are_those_of_the_installed_headers) { GTEST_SKIP() << "no CUDA headers on this machine: cuda.h and cublasLt.h"; }

#endif
