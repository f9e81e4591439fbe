#include <algorithm>
#include <array>

#include "flops/experts.h"
#include "tuning/serving.h"

namespace flopsight::tuning {
namespace {

using base::Error;
using base::ErrorCode;

constexpr std::array<std::string_view, 6> kWeights = {"bf16", "fp8", "int8", "int8-weights", "int4-weights", "fp4"};
constexpr std::array<double, 6> kWeightBytes = {2, 1, 1, 1, 4.16 / 8, 0.5};
constexpr std::array<std::string_view, 3> kCaches = {"bf16", "fp8", "fp4"};

}  // namespace

std::string_view weight_format_name(WeightFormat format) { return kWeights[static_cast<std::size_t>(format)]; }
std::optional<WeightFormat> parse_weight_format(std::string_view text) {
  const auto found = std::find(kWeights.begin(), kWeights.end(), text == "fp16" ? "bf16" : text);
  if (found == kWeights.end()) return std::nullopt;
  return static_cast<WeightFormat>(found - kWeights.begin());
}
double weight_bytes(WeightFormat format) { return kWeightBytes[static_cast<std::size_t>(format)]; }
std::string_view cache_format_name(CacheFormat format) { return kCaches[static_cast<std::size_t>(format)]; }
std::optional<CacheFormat> parse_cache_format(std::string_view text) {
  if (text == "bf16" || text == "fp16") return CacheFormat::k16Bit;
  if (text == "fp8" || text == "int8") return CacheFormat::k8Bit;
  if (text == "fp4" || text == "int4") return CacheFormat::k4Bit;
  return std::nullopt;
}
double cache_bytes(CacheFormat format) { return format == CacheFormat::k16Bit ? 2 : format == CacheFormat::k8Bit ? 1 : 0.5; }

namespace {

base::Status check_experts(const flops::Model& model, const ServeSettings& s) {
  const std::uint64_t experts = flops::routed_experts(model);
  const auto wrong = [](const char* option, std::uint64_t value, const std::string& what) { return Error{ErrorCode::kInvalid, option + std::to_string(value) + ": " + what}; };
  if (s.redundant_experts > 0 && s.expert <= 1) return wrong("--redundant-experts ", s.redundant_experts, "needs --ep");
  if (s.expert <= 1) return {};
  if (experts == 0) return wrong("--ep ", s.expert, "the model has no routed experts");
  if (s.redundant_experts > experts) return wrong("--redundant-experts ", s.redundant_experts, "expected 0 to the model's " + std::to_string(experts));
  const std::uint64_t all = experts + s.redundant_experts;
  if (all % s.expert == 0) return {};
  return wrong("--ep ", s.expert, "the model's " + std::to_string(experts) + " experts" + (s.redundant_experts > 0 ? " and " + std::to_string(s.redundant_experts) + " more" : "") + " cannot be divided by it" +
                                    (s.redundant_experts > 0 ? "" : "; --redundant-experts " + std::to_string(s.expert - experts % s.expert) + " would fill them up"));
}

// What reads all of its tokens at once generates none one by one, and an encoder runs once for many steps.
base::Status check_decoder(const flops::Model& model) {
  for (const flops::Layer& layer : model.layers) {
    const bool other = layer.attention && (layer.attention->mask == flops::Mask::kBidirectional || layer.attention->mask == flops::Mask::kSource);
    if (layer.section == flops::Section::kEncoder || (layer.section == flops::Section::kText && other)) {
      return Error{ErrorCode::kUnsupported, "a model of type " + model.model_type + " is or has an encoder: serving is predicted for decoders, which generate token by token"};
    }
  }
  return {};
}

}  // namespace

base::Status check_serve_settings(const flops::Model& model, const ServeSettings& s) {
  FLOPSIGHT_RETURN_IF_ERROR(check_decoder(model));
  const auto wrong = [](std::string message) { return Error{ErrorCode::kInvalid, std::move(message)}; };
  const auto text = [](std::uint64_t n) { return std::to_string(n); };
  for (const std::uint64_t degree : {s.gpus, s.tensor, s.expert}) {
    if (degree == 0 || degree > kGpusMax) return wrong("a number of GPUs of " + text(degree) + ": expected 1 to " + text(kGpusMax));
  }
  if (s.gpus % s.replica_gpus() != 0) return wrong("--gpus " + text(s.gpus) + " cannot be divided by the " + text(s.replica_gpus()) + " GPUs of a replica (--tp, --ep)");
  if (s.expert > s.tensor && s.expert % s.tensor != 0) return wrong("--ep " + text(s.expert) + " cannot be divided by --tp " + text(s.tensor));
  if (model.shape.heads > 0 && model.shape.heads % s.tensor != 0) return wrong("--tp " + text(s.tensor) + ": the model's " + text(model.shape.heads) + " attention heads cannot be divided by it");
  FLOPSIGHT_RETURN_IF_ERROR(check_experts(model, s));
  if (s.input_tokens == 0 || s.input_tokens > kSequenceTokensMax) return wrong("--input-tokens " + text(s.input_tokens) + ": expected 1 to " + text(kSequenceTokensMax));
  if (s.output_tokens == 0 || s.output_tokens > kSequenceTokensMax) return wrong("--output-tokens " + text(s.output_tokens) + ": expected 1 to " + text(kSequenceTokensMax));
  if (s.concurrency == 0 || s.concurrency > kConcurrencyMax) return wrong("--concurrency " + text(s.concurrency) + ": expected 1 to " + text(kConcurrencyMax));
  if (s.tokens_max > 0 && s.tokens_max < s.input_tokens + s.output_tokens) {
    return wrong("--max-tokens " + text(s.tokens_max) + ": less than the " + text(s.input_tokens + s.output_tokens) + " of --input-tokens and --output-tokens");
  }
  return {};
}

}  // namespace flopsight::tuning
