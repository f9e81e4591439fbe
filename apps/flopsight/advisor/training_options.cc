#include <CLI/CLI.hpp>

#include <algorithm>
#include <set>

#include "base/text.h"
#include "advisor/tune_options.h"

namespace flopsight::app {
namespace {

using tuning::TrainSettings;

constexpr std::size_t kEnvironmentMax = 10'000;

std::string number(std::uint64_t n) { return std::to_string(n); }

std::optional<std::string> set_duration(const char* name, const std::string& text, std::optional<double>& seconds) {
  if (text.empty()) return std::nullopt;
  const auto duration = units::parse_duration(text);
  if (!duration || duration->value <= 0) return std::string(name) + " " + base::printable(text, 40) + ": expected a duration such as 30s or 1h";
  seconds = duration->value;
  return std::nullopt;
}

// A name out of a list; told as assumed where nothing was given.
template <typename Enum>
std::optional<std::string> set_choice(const char* name, const std::string& text, std::optional<Enum> (*parse)(std::string_view), const char* expected, Enum& into) {
  if (text.empty()) return std::nullopt;
  const auto parsed = parse(text);
  if (!parsed) return std::string(name) + " " + base::printable(text, 40) + ": expected " + expected;
  into = *parsed;
  return std::nullopt;
}

// As a shell has it: what is set again has the later value.
void keep_last_values(std::vector<std::string>& environment) {
  std::vector<std::string> kept;
  std::set<std::string> names;
  for (auto entry = environment.rbegin(); entry != environment.rend(); ++entry) {
    if (names.insert(entry->substr(0, entry->find('='))).second) kept.push_back(*entry);
  }
  std::reverse(kept.begin(), kept.end());
  environment = std::move(kept);
}

std::optional<std::string> set_kinds(TuneTrainArguments& a, const TuneTrainTexts& t) {
  TrainSettings& s = a.settings;
  if (!t.precision.empty()) {
    const auto precision = catalog::find_precision(t.precision);
    if (!precision || !tuning::is_training_precision(*precision)) return "--precision " + base::printable(t.precision, 40) + ": expected fp32, tf32, fp16, bf16, fp8 or fp4";
    s.precision = *precision;
  }
  const bool narrow = s.precision == catalog::Precision::kFp8 || s.precision == catalog::Precision::kFp4;
  if (t.narrow_weights && !narrow) return "--fp8-weights: needs --precision fp8 or fp4";
  if (auto mistake = set_choice("--recompute", t.recompute, &tuning::parse_recompute, "none, selective or full", s.recompute)) return mistake;
  if (auto mistake = set_choice("--optimizer", t.optimizer, &tuning::parse_optimizer, "adam, adam-bf16, adam8bit, sgd-momentum or sgd", s.optimizer)) return mistake;
  if (auto mistake = set_choice("--kernels", t.kernels, &tuning::parse_kernels, "eager or fused", s.kernels)) return mistake;
  if (auto mistake = set_choice("--attention", t.attention, &tuning::parse_attention_kernel, "standard, flash1, flash2 or flash3", s.attention)) return mistake;
  a.attention_given = !t.attention.empty();
  if (auto mistake = set_choice("--dispatch", t.dispatch, &tuning::parse_dispatch, "all-to-all or deepep", s.dispatch)) return mistake;
  if (t.overlap.empty()) return std::nullopt;
  s.overlap_data = s.overlap_tensor = s.overlap_expert = false;
  for (const std::string& word : base::split(t.overlap, ',')) {
    if (word == "data") s.overlap_data = true;
    else if (word == "tensor") s.overlap_tensor = true;
    else if (word == "expert") s.overlap_expert = true;
    else if (word != "none") return "--overlap " + base::printable(word, 40) + ": expected none, or of data, tensor and expert";
    else if (t.overlap != word) return "--overlap " + base::printable(t.overlap, 40) + ": none does not go with others";
  }
  return std::nullopt;
}

std::optional<std::string> set_layout(TuneTrainArguments& a, const TuneTrainTexts& t) {
  TrainSettings& s = a.settings;
  s.gpus = a.gpus;
  s.layout.tensor = t.tensor.value_or(1);
  s.layout.pipeline = t.pipeline.value_or(1);
  s.layout.virtual_stages = t.virtual_stages.value_or(1);
  s.layout.context = t.context.value_or(1);
  s.layout.expert = t.expert.value_or(1);
  s.layout.expert_tensor = t.expert_tensor;
  if (!t.dispatch.empty() && s.layout.expert == 1 && !t.expert_tensor) return "--dispatch " + t.dispatch + ": needs --ep, without which no tokens are sent to experts";
  const std::uint64_t each = s.layout.tensor * s.layout.pipeline * s.layout.context;
  if (!t.data && s.gpus % each != 0) {
    return "--tp " + number(s.layout.tensor) + " x --pp " + number(s.layout.pipeline) + " x --cp " + number(s.layout.context) + " = " + number(each) + " does not divide --gpus " + number(s.gpus);
  }
  s.layout.data = t.data.value_or(s.gpus / each);
  s.micro_batch = t.micro_batch.value_or(1);
  s.prediction_steps = t.prediction.value_or(0);
  s.zero_stage = t.zero.value_or(1);
  s.fp32_gradients = t.fp32_gradients;
  s.fp32_master = !t.no_master;
  s.narrow_weights = t.narrow_weights;
  s.sequence_parallel = !t.no_sequence_parallel;
  return std::nullopt;
}

// Flags of messages that the layout does not have. A search has other layouts, in which they count.
std::optional<std::string> check_messages(const TuneTrainArguments& a, const TuneTrainTexts& t) {
  if (a.search) return std::nullopt;
  const tuning::Layout& l = a.settings.layout;
  if (t.no_sequence_parallel && l.tensor == 1) return "--no-sequence-parallel: needs --tp over 1 or --search, without which nothing is divided";
  if (t.overlap.empty()) return std::nullopt;
  if (a.settings.overlap_tensor && l.tensor == 1) return "--overlap tensor: needs --tp over 1 or --search, without which there are no such messages";
  if (a.settings.overlap_expert && l.expert == 1 && !l.expert_tensor) return "--overlap expert: needs --ep or --search, without which there are no such messages";
  if (a.settings.overlap_data && l.data * l.context == 1) return "--overlap data: needs more than one data-parallel GPU or --search, without which there are no such messages";
  return std::nullopt;
}

// What is missing for anything to be said of checkpoints.
std::optional<std::string> check_checkpoints(const TuneTrainArguments& a) {
  const std::pair<const char*, bool> all[] = {
      {"--checkpoint-cost", a.checkpoint_seconds.has_value()}, {"--checkpoint-interval", a.checkpoint_interval_seconds.has_value()}, {"--mtbf", a.failure_seconds.has_value()}};
  std::string given, missing;
  for (const auto& [name, is_given] : all) {
    std::string& list = is_given ? given : missing;
    list += (list.empty() ? "" : ", ") + std::string(name);
  }
  if (a.restart_seconds) given += (given.empty() ? "" : ", ") + std::string("--restart-cost");
  if (given.empty() || missing.empty()) return std::nullopt;
  return given + ": needs " + missing + " as well, or nothing can be said of checkpoints";
}

void say_assumed(TuneTrainArguments& a, const TuneTrainTexts& t) {
  const auto say = [&](bool given, const std::string& text) {
    if (!given) a.assumed.push_back(text);
  };
  say(t.micro_batch.has_value(), "no --micro-batch: one sequence");
  say(!t.precision.empty(), "no --precision: BF16");
  say(!t.recompute.empty(), "no --recompute: nothing is computed again");
  say(!t.optimizer.empty(), "no --optimizer: Adam with two FP32 moments");
  say(t.zero.has_value(), "no --zero: the optimizer's state is divided over data-parallel GPUs (stage 1)");
  say(!t.kernels.empty(), "no --kernels: fused norms, activations, loss and optimizer");
  const bool wide = tuning::is_wide(a.settings.precision);
  say(!wide || a.settings.attention == tuning::AttentionKernel::kStandard, "FlashAttention takes 16-bit inputs: attention is timed in the run's format, at the share of its peak that FlashAttention reaches of the 16-bit one");
  say(!t.overlap.empty(), "no --overlap: gradients and weights go while products run, other messages do not");
  if (t.expert.value_or(1) > 1) {
    say(t.expert_tensor.has_value() || t.tensor.value_or(1) == 1, "no --etp: weights of experts are divided over the tensor-parallel GPUs as well");
    say(!t.dispatch.empty(), "no --dispatch: a token goes to each of its experts separately, by all-to-all");
  }
}

}  // namespace

void add_tune_train(CLI::App& app, TuneTrainArguments& a, TuneTrainTexts& t) {
  add_tune_common(app, a, t);
  app.add_option("--gpus", t.gpus, "how many GPUs");
  app.add_option("--seq-len", t.sequence, "tokens of a training sequence");
  app.add_option("--global-batch", t.global_batch, "sequences of an optimizer step");
  const auto degree = [&](const char* name, std::optional<std::uint64_t>& into, const char* what) {
    app.add_option(name, into, what)->check(CLI::Range(std::uint64_t{1}, tuning::kGpusMax))->group("Layout");
  };
  degree("--tp", t.tensor, "tensor-parallel GPUs (default: 1)");
  degree("--pp", t.pipeline, "pipeline stages (default: 1)");
  degree("--vp", t.virtual_stages, "interleaved parts of the model on each pipeline GPU (default: 1)");
  degree("--cp", t.context, "GPUs that a sequence is divided over (default: 1)");
  degree("--ep", t.expert, "GPUs that routed experts are divided over (default: 1)");
  degree("--etp", t.expert_tensor, "GPUs that the weights of each routed expert are divided over (default: as --tp)");
  degree("--dp", t.data, "data-parallel GPUs (default: what is left)");
  app.add_option("--micro-batch", t.micro_batch, "sequences that a GPU takes at once (default: 1)")->check(CLI::Range(std::uint64_t{1}, tuning::kBatchMax));
  app.add_option("--precision", t.precision, "fp32|tf32|fp16|bf16|fp8|fp4 of linear layers (default: bf16)");
  app.add_option("--recompute", t.recompute, "none|selective|full (default: none)");
  app.add_option("--optimizer", t.optimizer, "adam|adam-bf16|adam8bit|sgd-momentum|sgd (default: adam)");
  app.add_flag("--fp32-gradients", t.fp32_gradients, "gradients are added up in FP32");
  app.add_flag("--no-master-weights", t.no_master, "no FP32 copy of the weights");
  app.add_flag("--fp8-weights", t.narrow_weights, "with fp8 or fp4: no 16-bit weights beside");
  app.add_option("--zero", t.zero, "0|1|2|3: what data-parallel GPUs divide; 3 is FSDP (default: 1)")->check(CLI::Range(0, tuning::kZeroStageMax));
  app.add_option("--kernels", t.kernels, "eager|fused element-wise kernels (default: fused)");
  app.add_option("--attention", t.attention, "standard|flash1|flash2|flash3 (default: flash2, before Ampere flash1)");
  app.add_option("--overlap", t.overlap, "of data,tensor,expert: messages that go while products run; or none (default: data)");
  app.add_option("--dispatch", t.dispatch, "all-to-all|deepep: how tokens go to experts, once for each or once to each node (default: all-to-all)");
  app.add_flag("--no-sequence-parallel", t.no_sequence_parallel, "norms in full on every tensor-parallel GPU");
  app.add_option("--mtp", t.prediction, "multi-token prediction steps that are trained (default: 0)")->check(CLI::Range(std::uint64_t{0}, std::uint64_t{64}));
  app.add_flag("--search", a.search, "list the quickest layouts that fit");
  app.add_option("--store", a.store_path, "store folder that knows the job, with --job")->group("The job as measured");
  app.add_option("--job", a.job.job, "the job's id, as flopsight jobs lists it")->group("The job as measured");
  app.add_option("--start", t.job.start, "with --store: RFC 3339 with an offset, or Unix seconds")->group("The job as measured");
  app.add_option("--end", t.job.end, "exclusive; default: now")->group("The job as measured");
  app.add_option("--since", t.job.since, "length up to the end (default: 24h)")->group("The job as measured");
  app.add_option("--lengths", a.lengths_path, "CSV of document lengths (tokens,count), for packing")->group("The run");
  app.add_option("--checkpoint-cost", t.checkpoint, "how long training stands still for a checkpoint, e.g. 30s")->group("The run");
  app.add_option("--checkpoint-interval", t.interval, "time between checkpoints, e.g. 1h")->group("The run");
  app.add_option("--mtbf", t.failure, "mean time between failures of the whole job, e.g. 8h")->group("The run");
  app.add_option("--restart-cost", t.restart, "from a failure to training again, e.g. 10m")->group("The run");
  app.add_option("--env", a.environment, "NAME=value of the job's environment, for debug flags left on; may be repeated")->group("The run");
}

std::optional<std::string> set_tune_train(TuneTrainArguments& a, const TuneTrainTexts& t) {
  if (auto mistake = set_tune_common(a, t, t.gpus)) return mistake;
  if (!t.sequence) return "--seq-len: expected the tokens of a training sequence";
  if (!t.global_batch) return "--global-batch: expected the sequences of an optimizer step";
  a.settings.sequence_tokens = *t.sequence;
  a.settings.global_batch = *t.global_batch;
  if (auto mistake = set_kinds(a, t)) return mistake;
  if (auto mistake = set_layout(a, t)) return mistake;
  if (auto mistake = check_messages(a, t)) return mistake;
  if (auto mistake = set_duration("--checkpoint-cost", t.checkpoint, a.checkpoint_seconds)) return mistake;
  if (auto mistake = set_duration("--checkpoint-interval", t.interval, a.checkpoint_interval_seconds)) return mistake;
  if (auto mistake = set_duration("--mtbf", t.failure, a.failure_seconds)) return mistake;
  if (auto mistake = set_duration("--restart-cost", t.restart, a.restart_seconds)) return mistake;
  if (auto mistake = check_checkpoints(a)) return mistake;
  if (a.environment.size() > kEnvironmentMax) return "--env: more than " + std::to_string(kEnvironmentMax);
  for (const std::string& entry : a.environment) {
    if (entry.find('=') == std::string::npos || entry.starts_with('=')) return "--env " + base::printable(entry, 60) + ": expected NAME=value";
  }
  keep_last_values(a.environment);
  if (auto mistake = set_job_window("--", t.job, a.job)) return mistake;
  if (a.store_path.empty() != a.job.job.empty()) return "--store and --job go together";
  if (a.store_path.empty() && (a.job.start || a.job.end || a.job.since)) return "--start, --end and --since need --store";
  say_assumed(a, t);
  return std::nullopt;
}

}  // namespace flopsight::app
