#include "flops/gemms.h"

#include <algorithm>
#include <array>
#include <string>

namespace flopsight::flops {
namespace {

constexpr std::uint64_t kTokensMax = std::uint64_t{1} << 31;
constexpr std::uint64_t kDegreeMax = 65536;

// Weights that trainers keep as one: those of the same input in the same group are put side by side.
int fuse_group(const Layer& layer, const Matmul& m) {
  if (layer.kind == LayerKind::kCrossAttention && m.operation == Operation::kQuery) return 0;  // keys and values are of the other sequence
  switch (m.operation) {
    case Operation::kQuery:
    case Operation::kOutputGate:
    case Operation::kKey:
    case Operation::kValue: return 1;
    case Operation::kGate:
    case Operation::kUp: return 2;
    case Operation::kQueryDown:
    case Operation::kKeyValueDown: return 3;
    default: return 0;
  }
}

base::Error not_divisible(const Layer& layer, const Matmul& m, std::string_view what, std::uint64_t size, std::uint64_t degree) {
  return {base::ErrorCode::kInvalid, std::string(layer_kind_name(layer.kind)) + ": " + std::string(what) + " " + std::to_string(size) + " of " +
                                         std::string(operation_name(m.operation)) + " cannot be divided by " + std::to_string(degree)};
}

// The part of a weight that one GPU has, and how often it is multiplied with how many tokens.
struct Share {
  Matmul weight;  // with the sizes of the part
  std::uint64_t tokens = 0;
  std::uint64_t copies = 1;
  std::vector<Operation> operations;
  bool replicated = false;
};

// Heads are whole: a GPU has some of them, or, where there are fewer than GPUs, one of the keys and values that others have too.
base::Status cut_outputs(const Layer& layer, Share& share, std::uint64_t degree) {
  Matmul& m = share.weight;
  const bool kv = m.operation == Operation::kKey || m.operation == Operation::kValue;
  if (kv && layer.attention && layer.attention->kv_heads < degree) {
    const std::uint64_t heads = layer.attention->kv_heads;
    if (degree % heads != 0) return not_divisible(layer, m, "heads", heads, degree);
    m.out /= heads;
    return {};
  }
  const bool heads = (kv || m.operation == Operation::kQuery) && layer.attention;
  if (heads && (kv ? layer.attention->kv_heads : layer.attention->heads) % degree != 0) {
    return not_divisible(layer, m, "heads", kv ? layer.attention->kv_heads : layer.attention->heads, degree);
  }
  if (m.out % degree != 0) return not_divisible(layer, m, "width", m.out, degree);
  m.out /= degree;
  return {};
}

base::Result<Share> share_of(const Layer& layer, const Matmul& m, const GemmOptions& options) {
  Share share{m, options.tokens, 1, {m.operation}, m.split == Split::kNone && options.tensor_parallel > 1};
  const std::uint64_t expert_tensor = options.expert_tensor_parallel.value_or(options.tensor_parallel);
  const std::uint64_t tensor = m.expert == Expert::kRouted ? expert_tensor : options.tensor_parallel;
  if (m.split == Split::kOutputs) FLOPSIGHT_RETURN_IF_ERROR(cut_outputs(layer, share, tensor));
  if (m.split == Split::kInputs) {
    if (m.in % tensor != 0) return not_divisible(layer, m, "width", m.in, tensor);
    share.weight.in = m.in / tensor;
  }
  if (m.expert == Expert::kRouted) {
    if (m.stored % options.expert_parallel != 0) return not_divisible(layer, m, "experts", m.stored, options.expert_parallel);
    // Each of the expert-parallel GPUs sends its tokens, so that an expert gets those of all. GPUs of a tensor-parallel group have the same tokens: what
    // experts are not cut over of it has its part of them.
    const std::uint64_t sent = options.tokens * options.expert_parallel * m.active, to = m.stored * (options.tensor_parallel / expert_tensor);
    share.tokens = (sent + to - 1) / to;
    share.copies = m.stored / options.expert_parallel;
  }
  return share;
}

base::Result<std::vector<Share>> shares_of(const Layer& layer, const GemmOptions& options) {
  std::vector<Share> list;
  for (const Matmul& m : layer.matmuls) {
    FLOPSIGHT_ASSIGN_OR_RETURN(Share share, share_of(layer, m, options));
    const auto same = std::find_if(list.begin(), list.end(), [&](const Share& other) {
      const Matmul& w = other.weight;
      return options.fuse && fuse_group(layer, m) != 0 && fuse_group(layer, w) == fuse_group(layer, m) && w.in == share.weight.in && w.expert == m.expert &&
             w.active == m.active && w.training == m.training && w.split == m.split;
    });
    if (same == list.end()) {
      list.push_back(std::move(share));
    } else {
      same->weight.out += share.weight.out;
      same->operations.push_back(m.operation);
    }
  }
  return list;
}

std::uint64_t times_of(const Layer& layer, const Model& model, const GemmOptions& options) {
  if (layer.section == Section::kPrediction) {
    return model.prediction_steps == 0 ? 0 : layer.executed * options.prediction_steps / model.prediction_steps;
  }
  return layer.section == Section::kVision ? 0 : layer.executed;
}

void add(std::vector<Gemm>& list, Gemm gemm) {
  const auto same = std::find_if(list.begin(), list.end(), [&](const Gemm& g) {
    return g.m == gemm.m && g.n == gemm.n && g.k == gemm.k && g.pass == gemm.pass && g.layer == gemm.layer && g.section == gemm.section &&
           g.operations == gemm.operations && g.expert == gemm.expert;
  });
  if (same == list.end()) {
    list.push_back(std::move(gemm));
  } else {
    same->count += gemm.count;
  }
}

}  // namespace

std::string_view pass_name(Pass pass) {
  return pass == Pass::kForward ? "forward" : pass == Pass::kInputGradient ? "input_gradient" : "weight_gradient";
}

std::string_view operation_name(Operation operation) {
  constexpr std::array<std::string_view, 31> kNames = {
      "query", "key", "value", "output_gate", "attention_output", "query_down", "query_up", "key_value_down", "key_value_up", "index_query",
      "index_key", "index_weights", "gate", "up", "down", "router", "shared_gate", "latent_down", "latent_up", "recurrent_in",
      "recurrent_out", "recurrent_step", "recurrent_gate", "lm_head", "mtp_projection", "linear", "patch", "projector", "adapter_down",
      "adapter_up", ""};
  return kNames[static_cast<std::size_t>(operation)];
}

base::Result<std::vector<Gemm>> gemms_of(const Model& model, const GemmOptions& options) {
  if (options.tokens == 0 || options.tokens > kTokensMax) {
    return base::Error{base::ErrorCode::kInvalid, "tokens of a micro-batch: " + std::to_string(options.tokens) + ", expected 1 to " + std::to_string(kTokensMax)};
  }
  for (const std::uint64_t degree : {options.tensor_parallel, options.expert_parallel, options.expert_tensor_parallel.value_or(1)}) {
    if (degree == 0 || degree > kDegreeMax) {
      return base::Error{base::ErrorCode::kInvalid, "a parallel degree of " + std::to_string(degree) + ", expected 1 to " + std::to_string(kDegreeMax)};
    }
  }
  if (options.tensor_parallel % options.expert_tensor_parallel.value_or(1) != 0) {
    return base::Error{base::ErrorCode::kInvalid, "experts cut over " + std::to_string(*options.expert_tensor_parallel) + " GPUs, expected a divisor of the " + std::to_string(options.tensor_parallel) +
                                                      " of tensor parallelism"};
  }
  std::vector<Gemm> list;
  for (const Layer& layer : model.layers) {
    const std::uint64_t times = times_of(layer, model, options);
    if (times == 0) continue;
    FLOPSIGHT_ASSIGN_OR_RETURN(const std::vector<Share> shares, shares_of(layer, options));
    for (const Share& share : shares) {
      const Matmul& w = share.weight;
      Gemm gemm{share.tokens, w.out, w.in, times * share.copies, Pass::kForward, layer.kind, layer.section, share.operations, w.expert, share.replicated};
      add(list, gemm);
      if (!options.backward || w.training == Training::kNoGradient) continue;
      gemm.pass = Pass::kInputGradient;
      std::swap(gemm.n, gemm.k);
      add(list, gemm);
      if (w.training != Training::kTrained) continue;
      gemm.pass = Pass::kWeightGradient;
      gemm.m = w.in;
      gemm.n = w.out;
      gemm.k = share.tokens;
      add(list, gemm);
    }
  }
  return list;
}

}  // namespace flopsight::flops
