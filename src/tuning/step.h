#pragma once
// How long a training step takes, and on what: a roofline for each matrix product with tile and wave effects, attention cores, memory-bound
// kernels, communication that nothing hides, the pipeline's bubble, launches.
//
//   micro-batch = (products + attention + element-wise + exposed tensor, context and expert messages of all layers) / p + the last stage's head
//   step        = (m + (p-1)/v) * micro-batch + exposed gradient and weight messages + optimizer + host
//
// m micro-batches, p stages (the fullest counts where blocks do not divide), v interleaved (Narayanan et al. 2021, arXiv 2104.04473); the bubble is what a GPU waits beside its mean work.
// Overlap: T = max(compute * (1 + c), communication) with c = 0.15 of the time that messages go (NCCL's kernels take about 15 % of the SMs:
// nccl issue 1432). Traffic: Rajbhandari et al. 2019 (ZeRO), Korthikanti et al. 2022 (sequence parallelism: four collectives forward and four
// backward a block). Element-wise passes are listed in step_passes.cc. Launching a kernel takes the host 6 us operator by operator and 4 us
// fused, assumed; it shows where the GPU is quicker.
// Units: seconds, FLOPs, of one GPU in the mean. Threads: StepModel keeps results of products and is not for several threads.

#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "base/result.h"
#include "flops/gemms.h"
#include "tuning/fabric.h"
#include "tuning/rates.h"
#include "tuning/settings.h"

namespace flopsight::tuning {

// What a kernel of a training run reaches of what it reaches alone: runs are warm, capped in power, and wait for one another. Fitted
// to the half of the published runs that a hash of source, model and GPU chooses, so that the median error there is zero
// (published_runs_test.cc); scored on the other half (docs/tune-accuracy.md).
inline constexpr double kSustainedRatio = 0.89;
// Of the bandwidth, what element-wise kernels of layers with routed experts reach: their rows lie scattered, are sorted, padded and copied, and those of an
// expert are few. Fitted in the same way, to half of the published runs with experts (published_experts_test.cc).
inline constexpr double kExpertPassesRatio = 0.25;

struct Breakdown {  // of a step; adds up to it
  double compute_seconds = 0;  // products and attention, with what is recomputed
  double memory_seconds = 0;   // element-wise kernels, casts, optimizer
  double tensor_parallel_seconds = 0;
  double context_parallel_seconds = 0;
  double expert_parallel_seconds = 0;
  double pipeline_bubble_seconds = 0;
  double pipeline_parallel_seconds = 0;  // messages between stages
  double data_parallel_seconds = 0;
  double host_seconds = 0;

  double total_seconds() const {
    return compute_seconds + memory_seconds + tensor_parallel_seconds + context_parallel_seconds + expert_parallel_seconds + pipeline_bubble_seconds +
           pipeline_parallel_seconds + data_parallel_seconds + host_seconds;
  }
};

struct Step {
  Breakdown breakdown;
  // Parts of compute and memory.
  double products_seconds = 0;            // all matrix products
  double products_narrow_seconds = 0;     // of them in FP8 or FP4
  double products_linear_seconds = 0;     // of them linear layers of blocks: what a narrower format would change
  double attention_seconds = 0;
  double recompute_seconds = 0;           // of products, attention and element-wise kernels
  double tile_lost_seconds = 0;           // of products: padding of tiles and empty waves
  double elementwise_seconds = 0;
  double optimizer_seconds = 0;
  double data_parallel_hidden_seconds = 0;  // messages that go while products run
  double tensor_parallel_all_seconds = 0;   // before any overlap
  double launches_total = 0;              // kernels of a step
  double model_flops_total = 0;           // of one GPU's share of a step, audit_causal
  double mfu_ratio = 0;                   // against the dense peak of the settings' precision
  double attainable_ofu_ratio = 0;        // executed FLOPs of each format over its peak
  double tokens_per_second = 0;

  double step_seconds() const { return breakdown.total_seconds(); }
};

class StepModel {
 public:
  // All are borrowed.
  StepModel(const flops::Model& model, const Rates& rates, const Fabric& fabric) : model_(model), rates_(rates), fabric_(fabric) {}

  // Errors: as check_settings(); sizes that tensor or expert parallelism does not divide; kUnsupported where the GPU does not have the format.
  base::Result<Step> predict(const TrainSettings& settings);
  const flops::Model& model() const { return model_; }
  const Rates& rates() const { return rates_; }
  const Fabric& fabric() const { return fabric_; }

 private:
  struct Products {  // of one micro-batch through the whole model
    double forward_seconds = 0;
    double all_seconds = 0;
    double linear_seconds = 0;
    double narrow_seconds = 0;
    double lost_seconds = 0;
    double peak_seconds = 0;  // executed FLOPs over the peak of their format
    double forward_peak_seconds = 0;
    double head_seconds = 0;
    double head_peak_seconds = 0;
    double launches_total = 0;
  };
  base::Result<Products> products(const TrainSettings& settings);

  const flops::Model& model_;
  const Rates& rates_;
  const Fabric& fabric_;
  std::map<std::tuple<std::uint64_t, std::uint64_t, std::uint64_t, std::uint64_t, int, std::uint64_t>, Products> products_;
  std::map<std::tuple<std::uint64_t, std::uint64_t, std::uint64_t, int>, Rates::Product> product_;
};

// Bytes that element-wise kernels move for a token and layer, forward and backward, on one GPU; head and loss included.
struct ElementwiseBytes {
  double forward_bytes = 0;
  double backward_bytes = 0;
  double launches_forward_total = 0;
  double launches_backward_total = 0;
};
ElementwiseBytes elementwise_bytes(const flops::Layer& layer, const TrainSettings& settings);
// Of the bandwidth that other kernels reach: kExpertPassesRatio with routed experts, else 1.
double elementwise_share_ratio(const flops::Layer& layer);
// Bytes of memory that an optimizer step moves for a parameter.
double optimizer_bytes_per_parameter(const TrainSettings& settings);

}  // namespace flopsight::tuning
