#pragma once
// What a GPU can reach, as the models of training and inference use it, with where each figure is from.
//
// Matrix products: gemm/attainable.h. Where nobody has published an attainable share for the GPU and format, the median of those that are
// published (0.78 of 16-bit, 0.73 of 8-bit peaks) is taken, and said so. Attention kernels, of the 16-bit peak: second generation 0.70
// forward and 0.60 backward on Ampere (arXiv 2307.08691: up to 0.73 and 0.63), 0.35 of Hopper's, the first half of that (ibid.: the second is twice as
// fast); third generation 0.61 forward and
// 0.53 backward on Hopper (arXiv 2407.08608: 1.5 to 2 times the second forward, 1.5 to 1.75 backward). Newer GPUs: as Hopper, an assumption.
// Threads: plain values.

#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "catalog/devices.h"
#include "tuning/settings.h"
#include "units/units.h"

namespace flopsight::tuning {

struct AttentionRate {
  double forward_ratio = 0;  // of the 16-bit dense peak
  double backward_ratio = 0;
};

class Rates {
 public:
  // `device` is borrowed. Errors: kUnsupported where the GPU's 16-bit peak, bandwidth or number of SMs is not known.
  static base::Result<Rates> of(const catalog::Device& device);

  const catalog::Device& device() const { return *device_; }
  double bandwidth_bytes_per_second() const;  // that kernels reach
  // Dense, by the catalogue. Errors: kUnsupported where the GPU has no peak for it.
  base::Result<double> peak_flops_per_second(catalog::Precision precision) const;
  // Share of it that products reach; `is_assumed` is set where it was not published.
  double attainable_ratio(catalog::Precision precision, bool* is_assumed = nullptr) const;
  AttentionRate attention(AttentionKernel kernel) const;
  // Why the GPU cannot run a kernel; empty where it can. The second generation is for Ampere and newer, the third for Hopper and newer; "flash1" stands for
  // whatever keeps no scores (xformers, PyTorch's memory-efficient kernels), which every GPU runs.
  std::string attention_unsupported(AttentionKernel kernel) const;
  // That a run is assumed to have where nothing is said: the second generation, or the first where the GPU has no second.
  AttentionKernel usual_attention() const;
  std::string usual_attention_text(bool is_wide) const;  // "FlashAttention-2"; `is_wide`: the run is in FP32 or TF32, which FlashAttention does not take
  // One product by the tile that the library is modelled to choose. Errors: as gemm::predicted_time().
  struct Product {
    double seconds = 0;
    double executed_flops = 0;
  };
  base::Result<Product> product(std::uint64_t m, std::uint64_t n, std::uint64_t k, catalog::Precision precision) const;
  // The 16-bit format that a GPU has: BF16, or FP16 where it has no BF16.
  catalog::Precision sixteen_bit() const { return sixteen_bit_; }
  // Of the data centre: workstation Blackwells have the tensor instructions of Ampere, and none of the third generation's kernels.
  bool is_hopper_or_newer() const;

 private:
  const catalog::Device* device_ = nullptr;
  catalog::Precision sixteen_bit_ = catalog::Precision::kBf16;
};

}  // namespace flopsight::tuning
