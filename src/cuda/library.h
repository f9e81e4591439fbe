#pragma once
// The CUDA driver and cublasLt, loaded at run time: their functions as members. A machine without them has none, and says so.
//
// Errors: kUnsupported where a library or a function of it cannot be loaded, naming what was tried. Threads: as the libraries.

#include <cstdint>
#include <memory>
#include <string>

#include "base/result.h"
#include "cuda/abi.h"

namespace flopsight::cuda {

struct LibraryPaths {
  std::string driver;    // empty: libcuda.so.1 of the system
  std::string cublaslt;  // empty: libcublasLt.so.13, .12, .11 or libcublasLt.so of the system
};

struct Functions {
#define FLOPSIGHT_CUDA_DECLARE(name, header_name, ...) int (*name)(__VA_ARGS__) = nullptr;
  FLOPSIGHT_CUDA_FUNCTIONS(FLOPSIGHT_CUDA_DECLARE)
  FLOPSIGHT_CUBLASLT_FUNCTIONS(FLOPSIGHT_CUDA_DECLARE)
#undef FLOPSIGHT_CUDA_DECLARE
  std::size_t (*cublasLtGetVersion)() = nullptr;
};

class Library {
 public:
  static base::Result<std::unique_ptr<Library>> load(const LibraryPaths& paths);
  ~Library();
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;

  const Functions& functions() const { return functions_; }
  // "out of memory (CUDA error 2)".
  std::string driver_error(int code) const;
  // 130100 as "13.1.0".
  std::string cublaslt_version() const;

 private:
  Library() = default;

  void* driver_ = nullptr;
  void* cublaslt_ = nullptr;
  Functions functions_;
};

}  // namespace flopsight::cuda
