// Passes of element-wise kernels over memory, in 16-bit elements. Counted from the operators, read and written once each:
//
//                      fused forward / backward     one by one
//   norm + residual    4h / 5h                      11h / 15h   (a norm alone: eight passes instead of two)
//   gated activation   3f / 5f                      5f / 9f
//   ungated            2f / 3f                      2f / 3f
//   rotary             2(q+k) / 2(q+k)              4(q+k) / 4(q+k)
//   loss, a logit      12 bytes in all              28 bytes in all
//   experts            4 k h, each way: tokens to experts and back
//   FP8                4 bytes an input forward, 4 an output backward: the cast and its transpose
//   recurrence         8 widths forward, 16 backward (convolution, gates, scan)

#include <algorithm>

#include "tuning/step.h"

namespace flopsight::tuning {
namespace {

using flops::Operation;

double number(std::uint64_t n) { return static_cast<double>(n); }

void add_norm(double width, const TrainSettings& s, ElementwiseBytes& out) {
  const double cut = s.sequence_parallel ? number(s.layout.tensor) : 1;
  const bool fused = s.kernels == Kernels::kFused;
  out.forward_bytes += 2 * width / cut * (fused ? 4 : 11);
  out.backward_bytes += 2 * width / cut * (fused ? 5 : 15);
}

void add_feed_forward(const flops::Layer& layer, const TrainSettings& s, ElementwiseBytes& out) {
  bool gated = false;
  for (const flops::Matmul& m : layer.matmuls) gated = gated || m.operation == Operation::kGate;
  const bool fused = s.kernels == Kernels::kFused;
  for (const flops::Matmul& m : layer.matmuls) {
    if (m.operation != Operation::kUp) continue;
    const double width = 2 * number(m.active) * number(m.out) / number(s.layout.tensor);
    out.forward_bytes += width * (!gated ? 2 : fused ? 3 : 5);
    out.backward_bytes += width * (!gated ? 3 : fused ? 5 : 9);
    if (m.expert != flops::Expert::kRouted) continue;
    const double moved = 2 * number(m.active) * number(m.in) / (s.sequence_parallel ? number(s.layout.tensor) : 1);
    out.forward_bytes += 4 * moved;
    out.backward_bytes += 4 * moved;
  }
}

void add_mixing(const flops::Layer& layer, const TrainSettings& s, ElementwiseBytes& out) {
  const double tensor = number(s.layout.tensor);
  const double times = s.kernels == Kernels::kFused ? 2 : 4;
  if (layer.attention) {
    const flops::AttentionCore& core = *layer.attention;
    const double rotated = 2 * times * number((core.heads + core.kv_heads) * core.qk_dim) / tensor;
    out.forward_bytes += rotated;
    out.backward_bytes += rotated;
    if (s.attention == AttentionKernel::kStandard) {
      // Scores are written, masked, turned into weights and read: 4 N^2 elements forward and twice that backward, whatever the mask.
      const double scores = 2 * number(core.heads) * number(s.sequence_tokens) / tensor;
      out.forward_bytes += 4 * scores;
      out.backward_bytes += 8 * scores;
    }
  }
  if (layer.recurrence) {
    const double width = 2 * number(layer.recurrence->width) / tensor;
    out.forward_bytes += 8 * width;
    out.backward_bytes += 16 * width;
  }
}

void add_casts(const flops::Layer& layer, const TrainSettings& s, ElementwiseBytes& out) {
  if (s.precision != catalog::Precision::kFp8 && s.precision != catalog::Precision::kFp4) return;
  const double tensor = number(s.layout.tensor);
  double last_in = 0;
  for (const flops::Matmul& m : layer.matmuls) {
    const double active = number(m.active);
    const double in = active * number(m.in) / (m.split == flops::Split::kInputs ? tensor : 1);
    const double wide = active * number(m.out) / (m.split == flops::Split::kOutputs ? tensor : 1);
    if (in != last_in) out.forward_bytes += 4 * in;  // products of the same input share its cast
    last_in = in;
    out.backward_bytes += 4 * wide;
  }
}

}  // namespace

ElementwiseBytes elementwise_bytes(const flops::Layer& layer, const TrainSettings& s) {
  ElementwiseBytes out;
  const bool fused = s.kernels == Kernels::kFused;
  if (layer.matmuls.empty()) return out;  // a lookup, a norm: some per mille
  if (layer.kind == flops::LayerKind::kHead) {
    const double logits = number(layer.matmuls.front().out) / number(s.layout.tensor);
    out.forward_bytes = logits * (fused ? 6 : 14);
    out.backward_bytes = logits * (fused ? 6 : 14);
    out.launches_forward_total = out.launches_backward_total = 4;
    add_norm(number(layer.matmuls.front().in), s, out);
    return out;
  }
  add_norm(number(layer.matmuls.front().in), s, out);
  add_feed_forward(layer, s, out);
  add_mixing(layer, s, out);
  add_casts(layer, s, out);
  out.launches_forward_total = fused ? 4 : 12;
  out.launches_backward_total = fused ? 6 : 20;
  return out;
}

double elementwise_share_ratio(const flops::Layer& layer) {
  const bool routed = std::any_of(layer.matmuls.begin(), layer.matmuls.end(), [](const flops::Matmul& m) { return m.expert == flops::Expert::kRouted; });
  return routed ? kExpertPassesRatio : 1;
}

double optimizer_bytes_per_parameter(const TrainSettings& s) {
  // Read and write of the moments and the master copy, read of the gradient, write of the weight; one by one each value is moved three times as
  // often (assumed: a dozen kernels over lists of tensors).
  const double gradient = s.fp32_gradients ? 4 : 2;
  double state = 8;
  if (s.optimizer == Optimizer::kAdamBf16 || s.optimizer == Optimizer::kSgdMomentum) state = 4;
  if (s.optimizer == Optimizer::kAdam8Bit) state = 2;
  if (s.optimizer == Optimizer::kSgd) state = 0;
  const double bytes = 2 * state + (s.fp32_master ? 8 : 2) + 2 * gradient + 2;
  return s.kernels == Kernels::kFused ? bytes : 3 * bytes;
}

}  // namespace flopsight::tuning
