#include "audit/told_model.h"

#include <cmath>

#include "audit/names.h"
#include "base/json.h"
#include "base/json_mistake.h"
#include "base/text.h"
#include "flops/adapters.h"
#include "flops/hf_config.h"

namespace flopsight::audit {
namespace {

using base::Error;
using base::ErrorCode;
using base::json::Value;
using base::json::wrong;

constexpr double kTokensMax = 4294967296.0;
constexpr double kStepsMax = 64;
constexpr double kRankMax = 65536;

base::Status whole_in(std::string_view key, const Value& value, double least, double most, std::optional<std::uint64_t>& out) {
  const double* number = value.as_number();
  if (number == nullptr || *number != std::floor(*number) || *number < least || *number > most) {
    return wrong(key, value, "a whole number from " + base::json::number_text(least) + " to " + base::json::number_text(most));
  }
  out = static_cast<std::uint64_t>(*number);
  return {};
}

struct Told {
  Run run;
  std::optional<std::uint64_t> adapter_rank;
  const Value* config = nullptr;
};

base::Status key_in(const std::string& key, const Value& value, Told& told) {
  if (value.is_null()) return {};
  if (key == "config") {
    told.config = &value;
    return value.as_object() != nullptr ? base::Status() : wrong(key, value, "the object of a config.json");
  }
  if (key == "seq_len") return whole_in(key, value, 1, kTokensMax, told.run.sequence_tokens);
  if (key == "document_tokens") return whole_in(key, value, 1, kTokensMax, told.run.document_tokens);
  if (key == "mtp") return whole_in(key, value, 0, kStepsMax, told.run.prediction_steps);
  if (key == "lora_rank") return whole_in(key, value, 1, kRankMax, told.adapter_rank);
  if (key == "training") return value.as_object() != nullptr ? base::Status() : wrong(key, value, "an object");
  const std::string text = value.as_string() != nullptr ? *value.as_string() : std::string();
  if (key == "precision") {
    told.run.precision = catalog::find_precision(text);
    return told.run.precision ? base::Status() : wrong(key, value, "bf16, fp16, fp8, fp4, tf32 or fp32");
  }
  if (key == "recompute") {
    told.run.recompute = parse_recompute(text);
    return told.run.recompute ? base::Status() : wrong(key, value, "none, selective or full");
  }
  return Error{ErrorCode::kInvalid, "\"" + base::printable(key, 40) + "\" is no key of a model, expected config, seq_len, document_tokens, precision, recompute, mtp, lora_rank or training"};
}

}  // namespace

base::Result<Run> parse_told_model(std::string_view json_text) {
  if (json_text.size() > kToldModelBytesMax) return Error{ErrorCode::kLimit, "a model of more than " + std::to_string(kToldModelBytesMax) + " bytes"};
  FLOPSIGHT_ASSIGN_OR_RETURN(const Value root, base::json::parse(flops::without_infinities(json_text)));
  if (root.as_object() == nullptr) return Error{ErrorCode::kInvalid, "expected an object, found " + std::string(root.kind())};
  Told told;
  for (const auto& [key, value] : *root.as_object()) FLOPSIGHT_RETURN_IF_ERROR(key_in(key, value, told));
  if (told.config == nullptr) return Error{ErrorCode::kInvalid, "config: not there, expected the object of a config.json"};
  FLOPSIGHT_ASSIGN_OR_RETURN(told.run.model, flops::read_hf_config(base::json::dump(*told.config, 0)).within("config"));
  if (told.run.prediction_steps.value_or(0) > 0 && told.run.model.prediction_steps == 0) {
    return Error{ErrorCode::kInvalid, "mtp: the configuration has no multi-token prediction layers"};
  }
  if (!told.adapter_rank) return std::move(told.run);
  FLOPSIGHT_ASSIGN_OR_RETURN(told.run.model, flops::with_adapters(told.run.model, {*told.adapter_rank, {"all"}}));
  told.run.has_adapters = true;
  return std::move(told.run);
}

}  // namespace flopsight::audit
