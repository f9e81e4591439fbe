#pragma once
// The parts of the CUDA driver's and of cublasLt's binary interface that we call, in our own declarations, so that nothing of CUDA is
// needed to build or to start the program. Layouts are those of a 64-bit Linux.
//
// Source: cuda.h, cublasLt.h, cublas_api.h and library_types.h of CUDA 13.0. declarations_test.cc compares every value, size and
// function below with those headers wherever they are installed. The fake library of the tests is written against this file.

#include <cstddef>
#include <cstdint>

namespace flopsight::cuda::abi {

// CUresult and cublasStatus_t
inline constexpr int kSuccess = 0;
inline constexpr int kCudaOutOfMemory = 2;   // CUDA_ERROR_OUT_OF_MEMORY
inline constexpr int kCudaNoDevice = 100;    // CUDA_ERROR_NO_DEVICE
inline constexpr int kBlasInvalidValue = 7;   // CUBLAS_STATUS_INVALID_VALUE
inline constexpr int kBlasArchMismatch = 8;   // CUBLAS_STATUS_ARCH_MISMATCH
inline constexpr int kBlasNotSupported = 15;  // CUBLAS_STATUS_NOT_SUPPORTED

// CUdevice_attribute
inline constexpr int kMultiprocessorCount = 16;

// cudaDataType
inline constexpr int kReal32 = 0, kReal64 = 1, kReal16 = 2, kRealBf16 = 14, kRealE4m3 = 28, kRealE2m1 = 33;
// cublasComputeType_t
inline constexpr int kCompute32 = 68, kComputeTf32 = 77, kCompute64 = 70;
// cublasOperation_t
inline constexpr std::int32_t kNotTransposed = 0, kTransposed = 1;
// cublasLtMatmulDescAttributes_t
inline constexpr int kTransposeA = 3, kTransposeB = 4, kScalePointerA = 17, kScalePointerB = 18, kScaleModeA = 31, kScaleModeB = 32;
// cublasLtMatmulMatrixScale_t: one E4M3 factor for 16 elements of a row, as NVFP4 has
inline constexpr std::int32_t kScaleOf16 = 1;
// cublasLtMatmulPreferenceAttributes_t
inline constexpr int kWorkspaceBytesMax = 1;
// cublasLtMatmulAlgoConfigAttributes_t
inline constexpr int kAlgoId = 0, kAlgoTile = 1, kAlgoSplitK = 2, kAlgoStages = 6;

struct Uuid {  // CUuuid
  unsigned char bytes[16];
};
struct Algo {  // cublasLtMatmulAlgo_t
  std::uint64_t data[8];
};
struct Heuristic {  // cublasLtMatmulHeuristicResult_t
  Algo algo;
  std::size_t workspace_bytes;
  int state;  // cublasStatus_t
  float waves_total;
  int reserved[4];
};
static_assert(sizeof(Heuristic) == 96 && offsetof(Heuristic, state) == 72);

using Context = struct OpaqueContext*;
using Event = struct OpaqueEvent*;
using Stream = struct OpaqueStream*;
using Handle = struct OpaqueHandle*;          // cublasLtHandle_t
using MatmulDesc = struct OpaqueMatmulDesc*;  // cublasLtMatmulDesc_t
using Layout = struct OpaqueLayout*;          // cublasLtMatrixLayout_t
using Preference = struct OpaquePreference*;  // cublasLtMatmulPreference_t

}  // namespace flopsight::cuda::abi

// Every function that is looked up, as X(name in the library, name in the headers, parameters…). All return an int, and all must be there.
#define FLOPSIGHT_CUDA_FUNCTIONS(X)                                                                \
  X(cuInit, cuInit, unsigned)                                                                      \
  X(cuDriverGetVersion, cuDriverGetVersion, int*)                                                  \
  X(cuDeviceGetCount, cuDeviceGetCount, int*)                                                      \
  X(cuDeviceGet, cuDeviceGet, int*, int)                                                           \
  X(cuDeviceGetName, cuDeviceGetName, char*, int, int)                                             \
  X(cuDeviceGetAttribute, cuDeviceGetAttribute, int*, int, int)                                    \
  X(cuDeviceGetUuid, cuDeviceGetUuid, abi::Uuid*, int)                                             \
  X(cuDevicePrimaryCtxRetain, cuDevicePrimaryCtxRetain, abi::Context*, int)                        \
  X(cuDevicePrimaryCtxRelease_v2, cuDevicePrimaryCtxRelease, int)                                  \
  X(cuCtxSetCurrent, cuCtxSetCurrent, abi::Context)                                                \
  X(cuMemAlloc_v2, cuMemAlloc, unsigned long long*, std::size_t)                                   \
  X(cuMemFree_v2, cuMemFree, unsigned long long)                                                   \
  X(cuMemcpyHtoD_v2, cuMemcpyHtoD, unsigned long long, const void*, std::size_t)                   \
  X(cuMemcpyDtoD_v2, cuMemcpyDtoD, unsigned long long, unsigned long long, std::size_t)            \
  X(cuEventCreate, cuEventCreate, abi::Event*, unsigned)                                           \
  X(cuEventDestroy_v2, cuEventDestroy, abi::Event)                                                 \
  X(cuEventRecord, cuEventRecord, abi::Event, abi::Stream)                                         \
  X(cuEventSynchronize, cuEventSynchronize, abi::Event)                                            \
  X(cuEventElapsedTime, cuEventElapsedTime, float*, abi::Event, abi::Event)                        \
  X(cuGetErrorString, cuGetErrorString, int, const char**)

#define FLOPSIGHT_CUBLASLT_FUNCTIONS(X)                                                                                       \
  X(cublasLtCreate, cublasLtCreate, abi::Handle*)                                                                             \
  X(cublasLtDestroy, cublasLtDestroy, abi::Handle)                                                                            \
  X(cublasLtMatmulDescCreate, cublasLtMatmulDescCreate, abi::MatmulDesc*, int, int)                                           \
  X(cublasLtMatmulDescDestroy, cublasLtMatmulDescDestroy, abi::MatmulDesc)                                                    \
  X(cublasLtMatmulDescSetAttribute, cublasLtMatmulDescSetAttribute, abi::MatmulDesc, int, const void*, std::size_t)           \
  X(cublasLtMatrixLayoutCreate, cublasLtMatrixLayoutCreate, abi::Layout*, int, std::uint64_t, std::uint64_t, std::int64_t)    \
  X(cublasLtMatrixLayoutDestroy, cublasLtMatrixLayoutDestroy, abi::Layout)                                                    \
  X(cublasLtMatmulPreferenceCreate, cublasLtMatmulPreferenceCreate, abi::Preference*)                                         \
  X(cublasLtMatmulPreferenceDestroy, cublasLtMatmulPreferenceDestroy, abi::Preference)                                        \
  X(cublasLtMatmulPreferenceSetAttribute, cublasLtMatmulPreferenceSetAttribute, abi::Preference, int, const void*, std::size_t) \
  X(cublasLtMatmulAlgoGetHeuristic, cublasLtMatmulAlgoGetHeuristic, abi::Handle, abi::MatmulDesc, abi::Layout, abi::Layout,   \
    abi::Layout, abi::Layout, abi::Preference, int, abi::Heuristic*, int*)                                                    \
  X(cublasLtMatmulAlgoConfigGetAttribute, cublasLtMatmulAlgoConfigGetAttribute, const abi::Algo*, int, void*, std::size_t,    \
    std::size_t*)                                                                                                             \
  X(cublasLtMatmul, cublasLtMatmul, abi::Handle, abi::MatmulDesc, const void*, const void*, abi::Layout, const void*,         \
    abi::Layout, const void*, const void*, abi::Layout, void*, abi::Layout, const abi::Algo*, void*, std::size_t, abi::Stream)
