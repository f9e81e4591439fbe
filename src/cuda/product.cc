#include <algorithm>
#include <cmath>
#include <cstring>

#include "cuda/product_internal.h"
#include "gemm/tile.h"

namespace flopsight::cuda {
namespace {

using base::Error;
using base::ErrorCode;
using base::Status;
using catalog::Precision;

constexpr std::size_t kWorkspaceBytes = std::size_t{32} << 20;
constexpr std::size_t kPatternBytes = std::size_t{8} << 20;
constexpr std::uint8_t kOneE4m3 = 0x38;

const void* pointer(unsigned long long address) { return reinterpret_cast<const void*>(address); }

std::uint64_t next(std::uint64_t& state) {  // SplitMix64 (Steele, Lea, Flood 2014)
  std::uint64_t x = state += 0x9e3779b97f4a7c15ULL;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}

// Sign and mantissa at random, the exponent of values from 1/2 to 1.
template <typename T>
void fill_with(std::vector<std::uint8_t>& out, T exponent, T random_bits) {
  std::uint64_t state = 1;
  for (std::size_t at = 0; at + sizeof(T) <= out.size(); at += sizeof(T)) {
    const T value = static_cast<T>(exponent | (static_cast<T>(next(state)) & random_bits));
    std::memcpy(out.data() + at, &value, sizeof(T));
  }
}

}  // namespace

base::Result<Format> format_of(Precision precision) {
  using namespace abi;
  switch (precision) {
    case Precision::kFp64Tensor: return Format{kReal64, kReal64, kCompute64, kReal64, 8, 8};
    case Precision::kTf32: return Format{kReal32, kReal32, kComputeTf32, kReal32, 4, 4};
    case Precision::kFp16: return Format{kReal16, kReal16, kCompute32, kReal32, 2, 2};
    case Precision::kBf16: return Format{kRealBf16, kRealBf16, kCompute32, kReal32, 2, 2};
    case Precision::kFp8: return Format{kRealE4m3, kRealBf16, kCompute32, kReal32, 1, 2};
    case Precision::kFp4: return Format{kRealE2m1, kRealBf16, kCompute32, kReal32, 0.5, 2};
    default: return Error{ErrorCode::kUnsupported, "cublasLt is not asked for " + std::string(catalog::precision_name(precision)) + " here"};
  }
}

std::vector<std::uint8_t> random_values(Precision precision, std::size_t bytes) {
  std::vector<std::uint8_t> out(bytes);
  switch (precision) {
    case Precision::kFp64Tensor: fill_with<std::uint64_t>(out, 0x3FE0'0000'0000'0000, 0x800F'FFFF'FFFF'FFFF); break;
    case Precision::kTf32: fill_with<std::uint32_t>(out, 0x3F00'0000, 0x807F'FFFF); break;
    case Precision::kFp16: fill_with<std::uint16_t>(out, 0x3800, 0x83FF); break;
    case Precision::kBf16: fill_with<std::uint16_t>(out, 0x3F00, 0x807F); break;
    case Precision::kFp8: fill_with<std::uint8_t>(out, 0x30, 0x87); break;
    default: fill_with<std::uint8_t>(out, 0, 0xFF); break;  // E2M1 has no infinity: any four bits are a value
  }
  return out;
}

CublasLtRunner::Product::~Product() {
  if (preference != nullptr) f.cublasLtMatmulPreferenceDestroy(preference);
  for (const abi::Layout layout : {layout_a, layout_b, layout_d}) {
    if (layout != nullptr) f.cublasLtMatrixLayoutDestroy(layout);
  }
  if (description != nullptr) f.cublasLtMatmulDescDestroy(description);
  for (const Address address : memory) f.cuMemFree_v2(address);
}

Status CublasLtRunner::Product::blas(int code, const char* doing) const {
  if (code == abi::kSuccess) return {};
  const bool not_there = code == abi::kBlasNotSupported || code == abi::kBlasArchMismatch || code == abi::kBlasInvalidValue;
  return Error{not_there ? ErrorCode::kUnsupported : ErrorCode::kUnavailable, std::string("cublasLt, ") + doing + ": status " + std::to_string(code)};
}

Status CublasLtRunner::Product::allocate(double bytes, Address& out) {
  const auto size = static_cast<std::size_t>(std::ceil(bytes));
  const int code = f.cuMemAlloc_v2(&out, size);
  if (code == abi::kCudaOutOfMemory) return Error{ErrorCode::kUnsupported, "the GPU has no " + std::to_string(size >> 20) + " MiB left for it"};
  if (code != abi::kSuccess) return Error{ErrorCode::kUnavailable, "allocating memory: " + library.driver_error(code)};
  memory.push_back(out);
  return {};
}

Status CublasLtRunner::Product::fill(Address at, double bytes, const std::vector<std::uint8_t>& with) {
  const auto size = static_cast<std::size_t>(std::ceil(bytes));
  std::size_t done = std::min(size, with.size());
  int code = f.cuMemcpyHtoD_v2(at, with.data(), done);
  while (code == abi::kSuccess && done < size) {
    const std::size_t more = std::min(done, size - done);
    code = f.cuMemcpyDtoD_v2(at + done, at, more);
    done += more;
  }
  if (code != abi::kSuccess) return Error{ErrorCode::kUnavailable, "filling a matrix: " + library.driver_error(code)};
  return {};
}

template <typename T>
Status CublasLtRunner::Product::set(int attribute, T value, const char* doing) {
  return blas(f.cublasLtMatmulDescSetAttribute(description, attribute, &value, sizeof value), doing);
}

Status CublasLtRunner::Product::describe(const validation::Case& one, const Format& format) {
  FLOPSIGHT_RETURN_IF_ERROR(blas(f.cublasLtMatmulDescCreate(&description, format.compute, format.scale), "describing the product"));
  FLOPSIGHT_RETURN_IF_ERROR(set(abi::kTransposeA, abi::kTransposed, "transposing A"));
  FLOPSIGHT_RETURN_IF_ERROR(set(abi::kTransposeB, abi::kNotTransposed, "leaving B"));
  const auto [m, n, k, batch] = one.shape;
  static_cast<void>(batch);
  const auto layout = [&](abi::Layout& out, int type, std::uint64_t rows, std::uint64_t columns) {
    return blas(f.cublasLtMatrixLayoutCreate(&out, type, rows, columns, static_cast<std::int64_t>(rows)), "laying out a matrix");
  };
  FLOPSIGHT_RETURN_IF_ERROR(layout(layout_a, format.input, k, m));
  FLOPSIGHT_RETURN_IF_ERROR(layout(layout_b, format.input, k, n));
  return layout(layout_d, format.output, m, n);
}

// Factors lie in blocks of 128 rows and 4 of 16 elements (cuBLAS documentation, "1D block scaling factors layout"); all of them are 1.
Status CublasLtRunner::Product::scale_factors(const validation::Case& one) {
  const auto blocks = [&](std::uint64_t rows) {
    return static_cast<double>((rows + 127) / 128 * 128 * ((one.shape.k + 63) / 64 * 4));
  };
  const std::vector<std::uint8_t> ones(std::size_t{1} << 16, kOneE4m3);
  Address scales_a = 0, scales_b = 0;
  FLOPSIGHT_RETURN_IF_ERROR(allocate(blocks(one.shape.m), scales_a));
  FLOPSIGHT_RETURN_IF_ERROR(allocate(blocks(one.shape.n), scales_b));
  FLOPSIGHT_RETURN_IF_ERROR(fill(scales_a, blocks(one.shape.m), ones));
  FLOPSIGHT_RETURN_IF_ERROR(fill(scales_b, blocks(one.shape.n), ones));
  FLOPSIGHT_RETURN_IF_ERROR(set(abi::kScaleModeA, abi::kScaleOf16, "factors of A"));
  FLOPSIGHT_RETURN_IF_ERROR(set(abi::kScaleModeB, abi::kScaleOf16, "factors of B"));
  FLOPSIGHT_RETURN_IF_ERROR(set(abi::kScalePointerA, pointer(scales_a), "factors of A"));
  return set(abi::kScalePointerB, pointer(scales_b), "factors of B");
}

Status CublasLtRunner::Product::choose(abi::Handle handle, const validation::Case& one) {
  FLOPSIGHT_RETURN_IF_ERROR(blas(f.cublasLtMatmulPreferenceCreate(&preference), "choosing an algorithm"));
  const std::uint64_t bytes = kWorkspaceBytes;
  FLOPSIGHT_RETURN_IF_ERROR(
      blas(f.cublasLtMatmulPreferenceSetAttribute(preference, abi::kWorkspaceBytesMax, &bytes, sizeof bytes), "choosing an algorithm"));
  int found = 0;
  FLOPSIGHT_RETURN_IF_ERROR(blas(f.cublasLtMatmulAlgoGetHeuristic(handle, description, layout_a, layout_b, layout_d, layout_d, preference, 1, &chosen, &found),
                                 "choosing an algorithm"));
  if (found == 0 || chosen.state != abi::kSuccess) {
    return Error{ErrorCode::kUnsupported, "cublasLt has no algorithm for " + std::string(catalog::precision_name(one.precision)) + " of this size on this GPU"};
  }
  return {};
}

Status CublasLtRunner::Product::make(abi::Handle handle, const validation::Case& one) {
  FLOPSIGHT_ASSIGN_OR_RETURN(const Format format, format_of(one.precision));
  is_fp64 = format.scale == abi::kReal64;
  const auto m = static_cast<double>(one.shape.m), n = static_cast<double>(one.shape.n), k = static_cast<double>(one.shape.k);
  FLOPSIGHT_RETURN_IF_ERROR(describe(one, format));
  FLOPSIGHT_RETURN_IF_ERROR(allocate(m * k * format.input_bytes, a));
  FLOPSIGHT_RETURN_IF_ERROR(allocate(k * n * format.input_bytes, b));
  FLOPSIGHT_RETURN_IF_ERROR(allocate(m * n * format.output_bytes, d));
  FLOPSIGHT_RETURN_IF_ERROR(allocate(static_cast<double>(kWorkspaceBytes), workspace));
  const std::vector<std::uint8_t> values = random_values(one.precision, kPatternBytes);
  FLOPSIGHT_RETURN_IF_ERROR(fill(a, m * k * format.input_bytes, values));
  FLOPSIGHT_RETURN_IF_ERROR(fill(b, k * n * format.input_bytes, values));
  if (one.precision == Precision::kFp4) FLOPSIGHT_RETURN_IF_ERROR(scale_factors(one));
  return choose(handle, one);
}

Status CublasLtRunner::Product::launch(abi::Handle handle) const {
  const float one32 = 1, zero32 = 0;
  const double one64 = 1, zero64 = 0;
  const void* one = is_fp64 ? static_cast<const void*>(&one64) : &one32;
  const void* zero = is_fp64 ? static_cast<const void*>(&zero64) : &zero32;
  void* const out = const_cast<void*>(pointer(d));
  return blas(f.cublasLtMatmul(handle, description, one, pointer(a), layout_a, pointer(b), layout_b, zero, out, layout_d, out, layout_d, &chosen.algo,
                               const_cast<void*>(pointer(workspace)), kWorkspaceBytes, nullptr),
              "launching a product");
}

validation::Prepared CublasLtRunner::Product::prepared() const {
  const auto attribute = [&](int which) {
    std::uint32_t value = 0;
    std::size_t written = 0;
    return f.cublasLtMatmulAlgoConfigGetAttribute(&chosen.algo, which, &value, sizeof value, &written) == abi::kSuccess ? static_cast<int>(value) : 0;
  };
  validation::Prepared out;
  const int tile = attribute(abi::kAlgoTile), stages = attribute(abi::kAlgoStages), splits = attribute(abi::kAlgoSplitK);
  out.tile = gemm::tile_of_cublaslt_id(tile);
  if (out.tile) out.tile->k = gemm::tile_k_of_cublaslt_stages(stages).value_or(0);
  out.splits = static_cast<std::uint64_t>(std::max(1, splits));
  out.kernel = "cublaslt algorithm " + std::to_string(attribute(abi::kAlgoId)) + ", tile " + std::to_string(tile) + ", stages " + std::to_string(stages);
  return out;
}

}  // namespace flopsight::cuda
