#pragma once
// The options of `flopsight tune`: registered with the parser and checked, one line for each mistake. Opens no file.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tuning/serving.h"
#include "tuning/settings.h"
#include "units/time.h"
#include "advisor/measured_job.h"
#include "advisor/verify_answer.h"

namespace CLI {
class App;
}

namespace flopsight::app {

enum class TuneFormat { kTable, kJson, kHtml };

// What training and serving have in common.
struct TuneCommon {
  std::string config_path;
  std::string gpu;
  std::uint64_t gpus = 0;
  std::string fabric;
  std::optional<std::uint64_t> node_gpus;
  std::optional<double> node_bytes_per_second;
  std::optional<double> network_bytes_per_second;
  std::optional<double> usd_per_gpu_hour;
  std::vector<std::string> ignored_keys;
  std::string catalog_path;
  TuneFormat format = TuneFormat::kTable;
};

struct TuneTrainArguments : TuneCommon {
  tuning::TrainSettings settings;
  bool attention_given = false;  // if not, it is assumed once the GPU is known
  std::vector<std::string> assumed;  // of settings that were not given, in words
  bool search = false;
  std::string lengths_path;
  std::optional<double> checkpoint_seconds;
  std::optional<double> checkpoint_interval_seconds;
  std::optional<double> failure_seconds;
  std::optional<double> restart_seconds;
  std::vector<std::string> environment;
  std::string store_path;
  JobWindow job;
};

struct TuneServeArguments : TuneCommon {
  tuning::ServeSettings settings;
  bool attention_given = false;
  std::vector<std::string> assumed;
  std::string lengths_path;
};

struct TuneArguments {
  enum class Action { kTrain, kServe, kVerify };
  Action action = Action::kTrain;
  TuneTrainArguments train;
  TuneServeArguments serve;
  TuneVerifyArguments verify;
};

// As text; turned into settings after parsing.
struct TuneCommonTexts {
  std::string fabric, format = "table";
  std::optional<double> node_rate, network_rate, price;
};
struct TuneTrainTexts : TuneCommonTexts {
  std::optional<std::uint64_t> gpus, sequence, global_batch, micro_batch, tensor, pipeline, virtual_stages, data, expert, expert_tensor, context, prediction;
  std::optional<int> zero;
  std::string precision, recompute, optimizer, kernels, attention, overlap, dispatch, checkpoint, interval, failure, restart;
  JobWindowTexts job;
  bool fp32_gradients = false, no_master = false, narrow_weights = false, no_sequence_parallel = false;
};
struct TuneServeTexts : TuneCommonTexts {
  std::optional<std::uint64_t> gpus, input, output, concurrency, tensor, expert, redundant, block, tokens_max, chunk, drafted;
  std::optional<double> prefix, acceptance, draft_cost;
  std::string precision, cache, attention, batching, dispatch;
  bool no_graphs = false;
};
struct TuneTexts {
  TuneTrainTexts train;
  TuneServeTexts serve;
  TuneVerifyTexts verify;
};

void add_tune(CLI::App& app, TuneArguments& arguments, TuneTexts& texts);

// What is wrong, or nothing.
std::optional<std::string> set_tune(const CLI::App& app, TuneArguments& arguments, const TuneTexts& texts);

// Used by each action.
void add_tune_common(CLI::App& app, TuneCommon& arguments, TuneCommonTexts& texts);
std::optional<std::string> set_tune_common(TuneCommon& arguments, const TuneCommonTexts& texts, const std::optional<std::uint64_t>& gpus);
void add_tune_train(CLI::App& app, TuneTrainArguments& arguments, TuneTrainTexts& texts);
std::optional<std::string> set_tune_train(TuneTrainArguments& arguments, const TuneTrainTexts& texts);
void add_tune_serve(CLI::App& app, TuneServeArguments& arguments, TuneServeTexts& texts);
std::optional<std::string> set_tune_serve(TuneServeArguments& arguments, const TuneServeTexts& texts);

}  // namespace flopsight::app
