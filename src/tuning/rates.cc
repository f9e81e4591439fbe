#include "tuning/rates.h"

#include "gemm/attainable.h"
#include "gemm/tile_choice.h"

namespace flopsight::tuning {
namespace {

using catalog::Precision;

constexpr double kMedianShare16 = 0.78;
constexpr double kMedianShare8 = 0.73;

}  // namespace

base::Result<Rates> Rates::of(const catalog::Device& device) {
  Rates out;
  out.device_ = &device;
  if (!device.peak(Precision::kBf16) && device.peak(Precision::kFp16)) out.sixteen_bit_ = Precision::kFp16;
  const char* missing = !device.peak(out.sixteen_bit_) ? "dense 16-bit peak" : !device.memory_bandwidth ? "memory bandwidth" : !device.sm_count ? "number of SMs" : nullptr;
  if (missing != nullptr) return base::Error{base::ErrorCode::kUnsupported, device.model + ": the catalogue has no " + missing + " of it, so nothing can be predicted"};
  return out;
}

double Rates::bandwidth_bytes_per_second() const { return device_->memory_bandwidth->value * gemm::kBandwidthRatio; }

base::Result<double> Rates::peak_flops_per_second(Precision precision) const {
  const auto peak = device_->peak(precision);
  if (!peak) {
    std::string others;
    for (const Precision other : {Precision::kTf32, Precision::kFp16, Precision::kBf16, Precision::kFp8, Precision::kInt8, Precision::kFp4}) {
      if (device_->peak(other)) others += (others.empty() ? "" : ", ") + std::string(catalog::precision_name(other));
    }
    return base::Error{base::ErrorCode::kUnsupported, device_->model + " has no " + std::string(catalog::precision_name(precision)) + " peak in the catalogue, which has " + others};
  }
  return peak->value;
}

double Rates::attainable_ratio(Precision precision, bool* is_assumed) const {
  const auto published = gemm::attainable_ratio(*device_, precision);
  if (is_assumed != nullptr) *is_assumed = !published;
  if (published) return *published;
  return gemm::element_bytes(precision) < 2 ? kMedianShare8 : kMedianShare16;
}

AttentionRate Rates::attention(AttentionKernel kernel) const {
  const AttentionRate second = is_hopper_or_newer() ? AttentionRate{0.35, 0.35} : AttentionRate{0.70, 0.60};
  if (kernel == AttentionKernel::kFlash1) return {second.forward_ratio / 2, second.backward_ratio / 2};
  return kernel == AttentionKernel::kFlash3 && is_hopper_or_newer() ? AttentionRate{0.61, 0.53} : second;
}

std::string Rates::attention_unsupported(AttentionKernel kernel) const {
  // A row of a user may leave the architecture out; then nothing speaks against the second generation.
  const std::string& architecture = device_->architecture;
  const bool before_ampere = architecture == "Kepler" || architecture == "Maxwell" || architecture == "Pascal" || architecture == "Volta" || architecture == "Turing";
  const bool second = kernel == AttentionKernel::kFlash2 && before_ampere, third = kernel == AttentionKernel::kFlash3 && !is_hopper_or_newer();
  if (!second && !third) return {};
  return std::string(third ? "FlashAttention-3 needs a GPU from Hopper on, " : "FlashAttention-2 needs a GPU from Ampere on, ") + device_->model + " is " + (architecture.empty() ? "none" : architecture);
}

AttentionKernel Rates::usual_attention() const { return attention_unsupported(AttentionKernel::kFlash2).empty() ? AttentionKernel::kFlash2 : AttentionKernel::kFlash1; }

std::string Rates::usual_attention_text(bool is_wide) const {
  if (is_wide) return "a fused kernel that keeps no scores";
  const std::string why_not = attention_unsupported(AttentionKernel::kFlash2);
  return why_not.empty() ? "FlashAttention-2" : "memory-efficient attention, which keeps no scores and is as quick as FlashAttention of the first generation (" + why_not + ")";
}

base::Result<Rates::Product> Rates::product(std::uint64_t m, std::uint64_t n, std::uint64_t k, Precision precision) const {
  const gemm::Shape shape{m, n, k, 1};
  const gemm::ChosenTile chosen = gemm::choose_tile(shape, precision, *device_, device_->sm_count);
  FLOPSIGHT_ASSIGN_OR_RETURN(const units::Seconds time, gemm::predicted_time(shape, chosen.tile, chosen.splits, precision, *device_, attainable_ratio(precision)));
  FLOPSIGHT_ASSIGN_OR_RETURN(const gemm::Quantized quantized, gemm::quantize(shape, chosen.tile, device_->sm_count));
  return Product{time.value, quantized.executed_flops};
}

bool Rates::is_hopper_or_newer() const { return device_->architecture == "Hopper" || device_->architecture == "Blackwell" || device_->architecture == "Blackwell Ultra"; }

}  // namespace flopsight::tuning
