#include "tuning/memory.h"

#include <algorithm>
#include <cstdio>
#include <vector>

namespace flopsight::tuning {
namespace {

using flops::Extra;
using flops::Layer;
using flops::Matmul;
using flops::Operation;

constexpr double kGibibyte = 1073741824.0;
constexpr double kContextBytes = 1.4 * kGibibyte;
constexpr double kFragmentationRatio = 0.05;
constexpr double kEagerFactor = 28.0 / 17;
constexpr double kLogitBytes = 6;
constexpr double kScoreBytes = 5;  // of standard attention: scores, their softmax, a mask
constexpr double kScoreGradientBytes = 4;  // while a layer goes backward: of the softmax's output, and of its input

double number(std::uint64_t n) { return static_cast<double>(n); }

ParameterShare share_of(const Layer& layer, const Layout& layout) {
  ParameterShare out;
  const double tensor = number(layout.tensor), expert = number(layout.expert), expert_tensor = number(layout.expert_tensor_gpus());
  for (const Matmul& m : layer.matmuls) {
    const double all = number(m.in) * number(m.out) * number(m.stored);
    const double cut = m.split == flops::Split::kNone ? 1 : m.expert == flops::Expert::kRouted ? expert_tensor : tensor;
    if (m.expert == flops::Expert::kRouted) {
      out.routed_total += all / cut / expert;
    } else {
      out.dense_total += all / cut;
    }
  }
  for (const flops::Vector& v : layer.vectors) {
    const double cut = v.kind == Extra::kTokenEmbedding ? tensor : v.stored > 1 ? expert : 1;
    out.dense_total += number(v.elements) * number(v.stored) / cut;
  }
  return out;
}

void add(ParameterShare& to, const ParameterShare& share, double times) {
  to.dense_total += share.dense_total * times;
  to.routed_total += share.routed_total * times;
}

// Elements kept in 16 bits for a token: `shared` are divided by tensor parallelism only where sequences are, `split` always.
struct Kept {
  double shared = 0;
  double split = 0;
};

Kept kept_of(const Layer& layer) {
  Kept out;
  if (layer.matmuls.empty()) return out;
  out.shared = 2 * number(layer.matmuls.front().in);  // of the norm: what it reads and what it writes
  bool gated = false;
  for (const Matmul& m : layer.matmuls) gated = gated || m.operation == Operation::kGate;
  for (const Matmul& m : layer.matmuls) {
    const double active = number(m.active);
    switch (m.operation) {
      case Operation::kUp:
        out.split += active * number(m.out) * (gated ? 3 : 2);
        if (m.expert == flops::Expert::kRouted) out.shared += active * number(m.in);
        break;
      case Operation::kRecurrentIn: out.split += number(m.out); break;
      case Operation::kRecurrentOut: out.split += 2 * number(m.in); break;
      case Operation::kQueryDown:
      case Operation::kKeyValueDown: out.shared += number(m.out); break;
      case Operation::kOutputGate: out.split += number(m.out); break;
      default: break;
    }
  }
  if (layer.attention) {
    const flops::AttentionCore& core = *layer.attention;
    out.split += number(core.heads) * number(core.qk_dim + core.v_dim) + number(core.kv_heads) * number(core.qk_dim + core.v_dim);
  }
  return out;
}

bool is_block(const Layer& layer) {
  return layer.section != flops::Section::kVision && layer.section != flops::Section::kPrediction && layer.kind != flops::LayerKind::kEmbedding &&
         layer.kind != flops::LayerKind::kHead && layer.kind != flops::LayerKind::kNorm;
}

struct BlockActivations {
  double all_bytes = 0;   // of all blocks for a token
  double input_bytes = 0;  // of what full recomputation keeps of all blocks
  double blocks = 1;
};

BlockActivations block_activations(const flops::Model& model, const TrainSettings& s) {
  BlockActivations out;
  for (const Layer& layer : model.layers) {
    if (is_block(layer)) out.all_bytes += number(layer.executed) * activation_bytes_per_token(model, layer, s);
  }
  out.blocks = std::max(1.0, number(model.shape.blocks));
  out.input_bytes = out.blocks * 2 * number(model.shape.hidden_size) / (s.sequence_parallel ? number(s.layout.tensor) : 1);
  return out;
}

// Where a GPU stands in the pipeline.
struct Place {
  std::uint64_t stage = 0;
  double blocks_ratio = 1;  // of all blocks
  bool is_first = true;
  bool is_last = true;
};

double held_micro_batches(const TrainSettings& s, const Place& place) {
  const double p = number(s.layout.pipeline), v = number(s.layout.virtual_stages), r = number(place.stage);
  const double held = s.layout.pipeline == 1 ? 1 : v > 1 ? (2 * (p - r - 1) + (v - 1) * p + 1) / v : p - r;
  return std::min(held, std::max(1.0, number(s.accumulation())));
}

// Scores of one layer that are there for a token while it goes backward, whatever is kept of the others.
double live_score_bytes(const flops::Model& model, const TrainSettings& s) {
  if (s.attention != AttentionKernel::kStandard) return 0;
  std::uint64_t heads = 0;
  for (const Layer& layer : model.layers) {
    if (is_block(layer) && layer.attention) heads = std::max(heads, layer.attention->heads);
  }
  const double each = kScoreGradientBytes + (s.recompute == flops::Recompute::kNone ? 0 : kScoreBytes);
  return each * number(heads) * number(s.sequence_tokens) / number(s.layout.tensor);
}

double activations_of_stage(const flops::Model& model, const TrainSettings& s, const Place& place) {
  const double tokens = number(s.micro_batch) * number(s.sequence_tokens) / number(s.layout.context);
  const BlockActivations blocks = block_activations(model, s);
  const double kept = s.recompute == flops::Recompute::kFull ? blocks.input_bytes : blocks.all_bytes;
  double bytes = held_micro_batches(s, place) * tokens * kept * place.blocks_ratio;
  if (s.recompute == flops::Recompute::kFull) bytes += tokens * blocks.all_bytes / blocks.blocks;
  bytes += tokens * live_score_bytes(model, s);
  if (place.is_last) bytes += tokens * kLogitBytes * number(model.shape.head_size) / number(s.layout.tensor);
  return bytes;
}

std::string gibibytes(double bytes) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f", bytes / kGibibyte);
  return text;
}

Memory memory_of_stage(const flops::Model& model, const TrainSettings& s, const Place& place) {
  const StateBytes state = state_bytes(s);
  const StageParameters stage = stage_parameters(model, s.layout);
  ParameterShare here;
  add(here, stage.blocks, place.blocks_ratio / stage_ratios(model.shape.blocks, s.layout).largest_ratio);
  if (place.is_first) add(here, stage.embedding, 1);
  if (place.is_last) add(here, stage.head, 1);
  const double dense_over = number(s.layout.data * s.layout.context), routed_over = number(s.layout.expert_data());
  const auto divided = [&](double bytes, int from_stage) {
    return s.zero_stage >= from_stage ? bytes * (here.dense_total / dense_over + here.routed_total / routed_over) : bytes * here.total();
  };
  Memory out;
  out.weights_bytes = divided(state.weights_bytes, 3);
  if (s.zero_stage >= 3 && dense_over > 1) {
    const double blocks = std::max(1.0, number(model.shape.blocks) / number(s.layout.pipeline));
    out.weights_bytes += 2 * state.weights_bytes * stage.blocks.total() / blocks;
  }
  out.gradients_bytes = divided(state.gradients_bytes, 2);
  out.optimizer_bytes = divided(state.optimizer_bytes, 1);
  out.activations_bytes = activations_of_stage(model, s, place);
  reserve(out);
  return out;
}

}  // namespace

StateBytes state_bytes(const TrainSettings& s) {
  const bool wide = is_wide(s.precision);
  const bool narrow = s.precision == catalog::Precision::kFp8 || s.precision == catalog::Precision::kFp4;
  StateBytes out;
  out.weights_bytes = wide ? 4 : narrow ? (s.narrow_weights ? 1 : 3) : 2;
  out.gradients_bytes = wide || s.fp32_gradients ? 4 : 2;
  switch (s.optimizer) {
    case Optimizer::kAdam: out.optimizer_bytes = 8; break;
    case Optimizer::kAdamBf16: out.optimizer_bytes = 4; break;
    case Optimizer::kAdam8Bit: out.optimizer_bytes = 2; break;
    case Optimizer::kSgdMomentum: out.optimizer_bytes = 4; break;
    case Optimizer::kSgd: break;
  }
  if (s.fp32_master && !wide) out.optimizer_bytes += 4;
  return out;
}

std::optional<bool> Memory::fits() const {
  if (!capacity_bytes) return std::nullopt;
  return total_bytes() <= *capacity_bytes;
}

std::string Memory::over() const {
  if (fits().value_or(true)) return {};
  std::string out = gibibytes(total_bytes()) + " GiB are needed, " + gibibytes(*capacity_bytes) + " GiB are there:";
  const std::pair<const char*, double> parts[] = {{"weights", weights_bytes}, {"gradients", gradients_bytes}, {"optimizer", optimizer_bytes},
                                                  {"activations", activations_bytes}, {"KV cache", kv_cache_bytes}, {"reserved", reserved_bytes}};
  const char* comma = " ";
  for (const auto& part : parts) {
    if (part.second <= 0) continue;
    out += std::string(comma) + part.first + " " + gibibytes(part.second);
    comma = ", ";
  }
  return out;
}

std::string assumed_memory_text(const catalog::Device& device) {
  const std::vector<int>& sizes = device.memory_gigabytes;
  if (sizes.size() < 2) return {};
  std::string all;
  for (const int gigabytes : sizes) all += (all.empty() ? "" : " or ") + std::to_string(gigabytes);
  return device.model + " has " + all + " GB, and the name does not say which: " + std::to_string(*std::min_element(sizes.begin(), sizes.end())) + " GB";
}

std::optional<double> device_memory_bytes(const catalog::Device& device) {
  if (device.memory_gigabytes.empty()) return std::nullopt;
  return *std::min_element(device.memory_gigabytes.begin(), device.memory_gigabytes.end()) * kGibibyte;
}

void reserve(Memory& memory) {
  const double used = memory.total_bytes() - memory.reserved_bytes;
  memory.reserved_bytes = kContextBytes + kFragmentationRatio * used;
}

StageParameters stage_parameters(const flops::Model& model, const Layout& layout) {
  StageParameters out;
  for (const Layer& layer : model.layers) {
    const ParameterShare share = share_of(layer, layout);
    const double stored = number(layer.stored);
    if (is_block(layer)) {
      add(out.blocks, share, stored * stage_ratios(model.shape.blocks, layout).largest_ratio);
    } else if (layer.kind == flops::LayerKind::kEmbedding || layer.section == flops::Section::kVision) {
      add(out.embedding, share, stored);
    } else {
      add(out.head, share, stored);
    }
  }
  return out;
}

double activation_bytes_per_token(const flops::Model& model, const Layer& layer, const TrainSettings& s) {
  const Kept kept = kept_of(layer);
  const double tensor = number(s.layout.tensor);
  double bytes = 2 * (kept.shared / (s.sequence_parallel ? tensor : 1) + kept.split / tensor);
  if (s.kernels == Kernels::kEager && model.shape.gated) bytes *= kEagerFactor;
  if (layer.attention && s.attention == AttentionKernel::kStandard && s.recompute == flops::Recompute::kNone) {
    bytes += kScoreBytes * number(layer.attention->heads) * number(s.sequence_tokens) / tensor;
  }
  return bytes;
}

Memory train_memory(const flops::Model& model, const TrainSettings& s, const catalog::Device& device) {
  const StageRatios ratios = stage_ratios(model.shape.blocks, s.layout);
  const std::uint64_t pipeline = s.layout.pipeline;
  std::vector<Place> places = {{0, ratios.first_ratio, true, pipeline == 1}};
  if (pipeline > 1) places.push_back({pipeline - 1, ratios.last_ratio, false, true});
  if (pipeline > 2) places.push_back({1, ratios.largest_ratio, false, false});
  Memory fullest;
  for (const Place& place : places) {
    const Memory memory = memory_of_stage(model, s, place);
    if (memory.total_bytes() > fullest.total_bytes()) fullest = memory;
  }
  fullest.capacity_bytes = device_memory_bytes(device);
  return fullest;
}

}  // namespace flopsight::tuning
