#include "base/json.h"
#include "flopcount/flops_answer.h"

namespace flopsight::app {
namespace {

namespace json = base::json;
using flops::Cost;
using flops::Part;

constexpr std::uint64_t kCacheElementBytes = 2;

json::Array conventions_json(const FlopsAnswer& answer) {
  json::Array list;
  for (const ConventionRow& row : answer.conventions) {
    json::Object out{
        {"name", row.convention->name},
        {"flops_per_token_forward", row.cost.flops_forward},
        {"flops_per_token_train", row.cost.flops_train},
        {"note", row.convention->counts},
        {"source", row.convention->source},
    };
    if (!row.cost.absent_reason.empty()) out.emplace_back("absent_reason", row.cost.absent_reason);
    list.emplace_back(std::move(out));
  }
  return list;
}

json::Array layers_json(const FlopsAnswer& answer) {
  json::Array list;
  for (const flops::Layer& layer : answer.model.layers) {
    const bool vision = layer.section == flops::Section::kVision;
    const double forward = layer_forward_flops(answer, layer);
    list.emplace_back(json::Object{
        {"kind", flops::layer_kind_name(layer.kind)},
        {"section", flops::section_name(layer.section)},
        {"count", layer.executed},
        {"stored", layer.stored},
        {"parameters", layer.stored * flops::layer_parameters(layer)},
        {"flops_per_token_forward", vision ? json::Value() : json::Value(forward)},
        {"flops_per_image_forward", vision ? json::Value(forward) : json::Value()},
    });
  }
  return list;
}

json::Object parts_json(const Cost& cost) {
  json::Object out;
  for (std::size_t i = 0; i < flops::kPartCount; ++i) {
    const Part part = static_cast<Part>(i);
    if (cost.of(part) > 0) out.emplace_back(std::string(flops::part_name(part)), cost.of(part));
  }
  return out;
}

json::Value vision_json(const FlopsAnswer& answer) {
  if (!answer.vision_forward_per_image) return {};
  const flops::VisionInput& image = *answer.model.vision;
  const double forward = answer.vision_forward_per_image->total();
  return json::Object{
      {"image", image.image},
      {"patches", image.patches},
      {"text_tokens_per_image", image.text_tokens},
      {"parameters", answer.parameters.vision},
      {"flops_per_image_forward", forward},
      {"flops_per_image_train", 3 * forward},
      {"flops_per_image_train_frozen", forward},
      {"flops_per_patch_forward", image.patches > 0 ? json::Value(forward / static_cast<double>(image.patches)) : json::Value()},
  };
}

std::string_view recompute_name(flops::Recompute recompute) {
  return recompute == flops::Recompute::kNone ? "none" : recompute == flops::Recompute::kFull ? "full" : "selective";
}

}  // namespace

std::string flops_json(const FlopsAnswer& answer) {
  const double executed = answer.executed.total(), train = answer.train.total();
  const json::Object out{
      {"model_type", answer.model.model_type},
      {"parameters_total", answer.parameters.total},
      {"parameters_active", answer.parameters.active},
      {"parameters_embedding", answer.parameters.embedding},
      {"parameters_text", answer.parameters.text()},
      {"parameters_vision", answer.parameters.vision},
      {"parameters_mtp", answer.parameters.prediction},
      {"matmul_weights_per_token", flops::matmul_weights_active(answer.model)},
      {"seq_len", answer.workload.sequence.tokens},
      {"mtp_steps", answer.workload.prediction_steps},
      {"mtp_steps_in_config", answer.model.prediction_steps},
      {"conventions", conventions_json(answer)},
      {"flops_per_token_forward_by_part", parts_json(answer.forward)},
      {"flops_per_token_train_by_part", parts_json(answer.train)},
      {"recompute", json::Object{{"kind", recompute_name(answer.recompute)},
                                 {"flops_per_token_executed", executed},
                                 {"executed_over_model_ratio", train > 0 ? json::Value(executed / train) : json::Value()}}},
      {"lora_parameters", answer.adapter_parameters > 0 ? json::Value(answer.adapter_parameters) : json::Value()},
      {"layers", layers_json(answer)},
      {"kv_cache_bytes_per_token", answer.cache.elements_per_token * kCacheElementBytes},
      {"kv_cache_bytes_per_token_beyond_windows", answer.cache.elements_per_token_growing * kCacheElementBytes},
      {"state_bytes_per_sequence", answer.cache.state_elements_per_sequence * kCacheElementBytes},
      {"vision", vision_json(answer)},
      {"assumptions", json::Array(answer.assumptions.begin(), answer.assumptions.end())},
  };
  return json::dump(out) + "\n";
}

}  // namespace flopsight::app
