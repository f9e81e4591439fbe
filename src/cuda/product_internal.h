#pragma once
// One matrix product on the GPU: its memory, its descriptors and the algorithm that cublasLt chose.

#include <cstdint>
#include <vector>

#include "cuda/cublaslt_runner.h"

namespace flopsight::cuda {

// How cublasLt is told of a precision.
struct Format {
  int input = 0;    // cudaDataType
  int output = 0;
  int compute = 0;  // cublasComputeType_t
  int scale = 0;    // type of alpha and beta
  double input_bytes = 0;
  double output_bytes = 0;
};
base::Result<Format> format_of(catalog::Precision precision);

// So many bytes of random values of the format; repeated to fill a matrix.
std::vector<std::uint8_t> random_values(catalog::Precision precision, std::size_t bytes);

struct CublasLtRunner::Product {
  explicit Product(const Library& from) : library(from), f(from.functions()) {}
  ~Product();

  base::Status make(abi::Handle handle, const validation::Case& one);
  base::Status launch(abi::Handle handle) const;
  validation::Prepared prepared() const;

 private:
  using Address = unsigned long long;
  base::Status allocate(double bytes, Address& out);
  base::Status fill(Address at, double bytes, const std::vector<std::uint8_t>& with);
  base::Status describe(const validation::Case& one, const Format& format);
  base::Status scale_factors(const validation::Case& one);
  base::Status choose(abi::Handle handle, const validation::Case& one);
  base::Status blas(int code, const char* doing) const;
  template <typename T>
  base::Status set(int attribute, T value, const char* doing);

  const Library& library;
  const Functions& f;
  std::vector<Address> memory;
  Address a = 0, b = 0, d = 0, workspace = 0;
  abi::MatmulDesc description = nullptr;
  abi::Layout layout_a = nullptr, layout_b = nullptr, layout_d = nullptr;
  abi::Preference preference = nullptr;
  abi::Heuristic chosen{};
  bool is_fp64 = false;
};

}  // namespace flopsight::cuda
