#pragma once
// Runs matrix products on a GPU through cublasLt: the Runner of an experiment where there is a GPU.
//
// A is transposed and B is not, as a linear layer of PyTorch has them and as 8-bit formats need. Inputs are random values between 1/2 and 1
// of either sign (zeros draw less power, and so run at another clock); results are FP64, FP32 (of TF32), FP16, or BF16 (of BF16, FP8, FP4).
// The algorithm is the first that cublasLt's heuristic gives, with 32 MiB of workspace; its tile is what the algorithm says of itself.
// FP4 is NVFP4: E2M1 with one E4M3 factor for 16 elements, here all 1.
//
// Errors: kUnsupported for what the GPU, its memory or the library cannot do; kUnavailable where the GPU fails while it runs.
// Units: seconds by the GPU's own events. Threads: one.

#include <cstdint>
#include <memory>
#include <string>

#include "cuda/library.h"
#include "validation/experiment.h"

namespace flopsight::cuda {

struct GpuFacts {
  std::string name;  // "NVIDIA H100 80GB HBM3"
  std::string uuid;  // "GPU-…"
  int sm_count = 0;
  std::string cuda_version;      // that the driver supports, "13.0"
  std::string cublaslt_version;  // "13.1.0"
};

class CublasLtRunner final : public validation::Runner {
 public:
  // The GPU as CUDA numbers it.
  static base::Result<std::unique_ptr<CublasLtRunner>> open(const LibraryPaths& paths, int index);
  ~CublasLtRunner() override;

  const GpuFacts& gpu() const { return gpu_; }

  base::Result<validation::Prepared> prepare(const validation::Case& one) override;
  base::Status mark() override;
  base::Result<units::Seconds> run(std::uint64_t launches) override;

 private:
  struct Product;  // descriptors and memory of the case at hand

  explicit CublasLtRunner(std::unique_ptr<Library> library);
  base::Status start(int index);
  base::Status check(int code, const char* doing) const;

  std::unique_ptr<Library> library_;
  GpuFacts gpu_;
  int device_ = -1;  // retained
  abi::Handle handle_ = nullptr;
  abi::Event first_ = nullptr;
  abi::Event last_ = nullptr;
  std::unique_ptr<Product> product_;
};

}  // namespace flopsight::cuda
