#pragma once
// Messages of a training step between GPUs, and what of them is hidden behind products. Seconds of one GPU in the mean. Threads: pure.

#include "flops/layer.h"
#include "tuning/fabric.h"
#include "tuning/settings.h"

namespace flopsight::tuning {

// Tokens of a micro-batch that a tensor-parallel group has.
double tokens_of(const TrainSettings& settings);
// How often a layer is executed, with as many prediction steps as are trained; nothing for towers, whose time is not predicted.
std::uint64_t times_of(const flops::Layer& layer, const flops::Model& model, const TrainSettings& settings);

// Exposed and hidden part of messages.
struct Overlapped {
  double exposed_seconds = 0;
  double hidden_seconds = 0;
};
// Of `all_seconds` that may go while `beside_seconds` of products run, but for `alone_seconds`.
struct Messages {
  double all_seconds = 0;
  double beside_seconds = 0;
  double alone_seconds = 0;
};
Overlapped overlap(const Messages& messages);

struct LayerMessages {  // of one micro-batch through the whole model, exposed
  double tensor_all_seconds = 0;  // before any overlap
  double tensor_seconds = 0;
  double context_seconds = 0;
  double expert_seconds = 0;
};
struct Beside {  // that messages may go with
  double products_seconds = 0;
  double attention_seconds = 0;
};
LayerMessages layer_messages(const flops::Model& model, const TrainSettings& settings, const Fabric& fabric, const Beside& beside);

// Gradients and weights between data-parallel GPUs, of a step.
Overlapped data_messages(const flops::Model& model, const TrainSettings& settings, const Fabric& fabric, double micro_batch_seconds);

// Between pipeline stages, of a step.
double pipeline_messages(const flops::Model& model, const TrainSettings& settings, const Fabric& fabric);

}  // namespace flopsight::tuning
