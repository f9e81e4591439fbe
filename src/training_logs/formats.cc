#include <algorithm>
#include <string>

#include "training_logs/bars_internal.h"
#include "training_logs/formats_internal.h"

namespace flopsight::training_logs {
namespace {

using enum Meaning;
using Place = Field::Place;
using Words = std::string_view;

// Megatron-LM and what is made of it (Primus, Megatron-DeepSpeed, Megatron-Bridge, swiss-ai).
constexpr Words kMegatronAll[] = {"iteration", "elapsed time per iteration"};
constexpr Field kMegatron[] = {
    {"iteration", kStep, "number"},
    {"elapsed time per iteration", kStepTime, ""},
    // Primus prints both where "compute" is the time of kernels only: the wall clock's figure is the one meant here.
    {"throughput per GPU", kFlopsPerGpu, ""},
    {"compute per GPU", kFlopsPerGpu, ""},
    {"approx flops per GPU", kFlopsPerGpu, ""},  // GPT-NeoX
    {"TFLOPs", kFlopsPerGpu, "TFLOP/s/GPU"},  // Megatron-DeepSpeed, per GPU by its source
    {"tokens per GPU", kTokensPerGpu, ""},
    {"tokens/s/GPU inst/harmonic mean", kTokensPerGpu, "tokens/s/GPU"},
    {"tokens per gpu per second (tgs)", kTokensPerGpu, "tokens/s/GPU"},  // Megatron-DeepSpeed of DeepSpeed
    {"samples per second", kSamples, "samples/s"},
    {"samples/sec", kSamples, "samples/s"},  // GPT-NeoX
    {"MFU", kMfu, ""},
    {"mfu", kMfu, ""},
    {"lm loss", kLoss, "number"},
    {"lm_loss", kLoss, "number"},
};

constexpr Words kBridgeAll[] = {"Step Time", "GPU utilization"};
constexpr Field kBridge[] = {
    {"Step Time", kStepTime, ""},
    {"GPU utilization", kFlopsPerGpu, ""},  // a FLOP rate under a name that promises a share
    {"tok/s/gpu", kTokensPerGpu, "tokens/s/GPU", Place::kBefore},
};

constexpr Words kProgressAll[] = {"Job throughput:"};
constexpr Field kProgress[] = {
    {"Iteration", kStep, "number"},
    {"Job throughput", kFlopsPerGpu, ""},
};

constexpr Words kNemoAny[] = {"train_step_timing in s", "TFLOPS_per_GPU"};
constexpr Field kNemo[] = {
    {"global_step", kStep, "number"},
    {"iteration", kStep, "number"},
    {"train_step_timing in s", kStepTime, "s"},
    {"TFLOPS_per_GPU", kFlopsPerGpu, "TFLOP/s/GPU"},
    {"tokens_per_sec_per_gpu", kTokensPerGpu, "tokens/s/GPU"},
    {"reduced_train_loss", kLoss, "number"},
};

constexpr Words kTorchtitanAll[] = {"step:", "tps:"};
constexpr Field kTorchtitan[] = {
    {"step", kStep, "number"},
    {"loss", kLoss, "number"},
    {"tps", kTokensPerGpu, "tokens/s/GPU"},  // per device by its source
    {"tflops", kFlopsPerGpu, "TFLOP/s/GPU"},
    {"mfu", kMfu, ""},
};

constexpr Words kNanogptAll[] = {"iter ", "time ", "mfu "};
constexpr Field kNanogpt[] = {
    {"iter", kStep, "number"},
    {"loss", kLoss, "number"},
    {"time", kStepTime, ""},
    {"mfu", kMfu, ""},
};

constexpr Words kMaxtextAll[] = {"completed step:"};
constexpr Field kMaxtext[] = {
    {"completed step", kStep, "number"},
    {"seconds", kStepTime, "s"},
    {"TFLOP/s/device", kFlopsPerGpu, "TFLOP/s/device"},
    {"Tokens/s/device", kTokensPerGpu, "tokens/s/device"},
    {"loss", kLoss, "number"},
};

constexpr Words kDeepspeedAll[] = {"SamplesPerSec="};
constexpr Field kDeepspeed[] = {
    {"global_step", kStep, "number"},
    {", RunningAvgSamplesPerSec", kStep, "number", Place::kBefore},
    {", SamplesPerSec", kStep, "number", Place::kBefore},
    {"CurrSamplesPerSec", kSamples, "samples/s"},
    {"RunningAvgSamplesPerSec", kSamples, "samples/s"},
    {"SamplesPerSec", kSamples, "samples/s"},
};

// DeepSpeed's flops profiler, a table under "Profile Summary at step N". Forward or backward alone is no rate of a step.
constexpr Words kProfilerAny[] = {"Profile Summary at step", "fwd+bwd+step FLOPS per GPU", "fwd+bwd FLOPS per GPU",
                                  "iter latency:", "samples/second:"};
constexpr Field kProfiler[] = {
    {"Profile Summary at step", kStep, "number"},
    {"fwd+bwd+step FLOPS per GPU", kFlopsPerGpu, "", Place::kAfterLastColon},
    {"fwd+bwd FLOPS per GPU", kFlopsPerGpu, "", Place::kAfterLastColon},
    {"iter latency", kStepTime, ""},
    {"samples/second", kSamples, "samples/s"},
};

// llm-foundry and Composer on the console.
constexpr Words kComposerAny[] = {"[batch=", "Train throughput/", "Train loss/train/total"};
constexpr Field kComposer[] = {
    {"[batch", kStep, "number"},
    {"throughput/device/mfu", kMfu, "ratio"},
    {"throughput/device/flops_per_sec", kFlopsPerGpu, "FLOP/s"},
    {"throughput/device/tokens_per_sec", kTokensPerGpu, "tokens/s"},
    {"throughput/tokens_per_sec", kTokens, "tokens/s"},
    {"throughput/samples_per_sec", kSamples, "samples/s"},
    {"throughput/batches_per_sec", kBatchRate, "it/s"},
    {"loss/train/total", kLoss, "number"},
};

constexpr Words kLightningAll[] = {"Epoch "};
constexpr Words kLightningAny[] = {"it/s", "s/it"};
constexpr Field kLightning[] = {
    {"global_step", kStep, "number"},
};

// transformers.Trainer and what is made of it (TRL, Axolotl, ms-swift, LLaMA-Factory): a dictionary of Python as it prints itself; since
// version 5 with its numbers in quotes. It prints the loss as it goes, and the speed of the whole run at its end.
constexpr Words kHfAll[] = {"'epoch':"};
constexpr Words kHfAny[] = {"'loss':", "'train_loss':", "'train_runtime':"};
constexpr Field kHf[] = {
    {"global_step/max_steps", kStep, "number"},
    {"step", kStep, "number"},
    {"loss", kLoss, "number"},
    {"train_loss", kLoss, "number"},
    {"mfu", kMfu, ""},
    {"MFU", kMfu, ""},
    {"tokens_per_second_per_gpu", kTokensPerGpu, "tokens/s/GPU"},  // Axolotl, older and newer
    {"tokens/train_per_sec_per_gpu", kTokensPerGpu, "tokens/s/GPU"},
    {"train_tokens_per_second", kTokensPerGpu, "tokens/s/device"},  // per device by the Trainer's documentation
    {"train_speed(iter/s)", kBatchRate, "it/s"},                    // ms-swift
    {"train_speed(s/it)", kBatchRate, "s/it"},
    {"train_steps_per_second", kBatchRate, "it/s"},
    {"train_samples_per_second", kSamples, "samples/s"},
};

void hf_trainer(std::string_view text, Extract& extract) {
  extract.average = find_word(text, "'train_runtime'") != std::string_view::npos;
  extract.silent = "the Trainer prints its speed at the end of a run only (train_runtime), beside the loss nothing";
}

// OLMo-core and OLMo: a head line and the metrics below. MFU in percent, the others by their source.
constexpr Words kOlmoAny[] = {"[step=", "throughput/device/TPS=", "throughput/device/MFU=", "throughput/device/BPS=",
                              "throughput/device/TFLOPs_per_GPU=", "throughput/device/tokens_per_second=",
                              "throughput/device/batches_per_second=", "train/CE loss="};
constexpr Field kOlmo[] = {
    {"[step", kStep, "number"},
    {"throughput/device/MFU=", kMfu, "%"},
    {"throughput/device/TFLOPs_per_GPU=", kFlopsPerGpu, "TFLOP/s/GPU"},
    {"throughput/device/TPS=", kTokensPerGpu, "tokens/s/device"},
    {"throughput/device/tokens_per_second=", kTokensPerGpu, "tokens/s/device"},
    {"throughput/device/BPS=", kBatchRate, "it/s"},
    {"throughput/device/batches_per_second=", kBatchRate, "it/s"},
    {"train/CE loss=", kLoss, "number"},
};

constexpr Words kLitgptAll[] = {"iter ", "step ", "iter time:"};
constexpr Field kLitgpt[] = {
    {"step", kStep, "number"},
    {"loss train", kLoss, "number"},
};

// "iter 4 step 2 | … iter time: 595.27 ms (step)": an iter is a micro-batch, and its time that of a step where every one is a step.
void litgpt_time(std::string_view text, Extract& extract) {
  Extract micro_batches;
  (void)extract_field({"iter", kStep, "number"}, text, micro_batches);
  extract.silent = "LitGPT prints the time of micro-batches, of which several make a step";
  if (!extract.step.step || micro_batches.step.step != extract.step.step) return;
  (void)extract_field({"iter time", kStepTime, ""}, text, extract);
}

constexpr Words kTorchtuneAll[] = {"Step ", "tokens_per_second_per_gpu:"};
constexpr Field kTorchtune[] = {
    {"Step", kStep, "number"},
    {"loss", kLoss, "number"},
    {"tokens_per_second_per_gpu", kTokensPerGpu, "tokens/s/GPU"},
};

constexpr Words kVerlAll[] = {"step:", " - "};
constexpr Words kVerlAny[] = {"timing_s/", "perf/", "mfu/actor:"};
constexpr Field kVerl[] = {
    {"step", kStep, "number"},
    {"perf/mfu/actor", kMfu, "ratio"},
    {"mfu/actor", kMfu, "ratio"},
    {"perf/throughput", kTokensPerGpu, "tokens/s/GPU"},
    {"perf/time_per_step", kStepTime, "s"},
    {"timing_s/step", kStepTime, "s"},
    {"train/loss", kLoss, "number"},
};

constexpr Words kNanotronAll[] = {"iteration:", "tokens_per_sec_per_gpu:"};
constexpr Field kNanotron[] = {
    {"iteration", kStep, "number"},
    {"elapsed_time_per_iteration_ms", kStepTime, "ms"},
    {"time_per_iteration_ms", kStepTime, "ms"},
    {"model_tflops_per_gpu", kFlopsPerGpu, "TFLOP/s/GPU"},
    {"tokens_per_sec_per_gpu", kTokensPerGpu, "tokens/s/GPU"},
    {"tokens_per_sec", kTokens, "tokens/s"},
    {"lm_loss", kLoss, "number"},
};

// fms-fsdp, a line for each figure.
constexpr Words kFmsAny[] = {"current token per gpu per sec:", "current step time:"};
constexpr Field kFms[] = {
    {"step", kStep, "number"},
    {"current step time", kStepTime, "s"},
    {"current token per gpu per sec", kTokensPerGpu, "tokens/s/GPU"},
};

// "step: 100" and nothing else but what a launcher puts before it: too common a word for less.
bool fms_head(std::string_view text) {
  constexpr std::string_view kStepIs = "step: ";
  const std::size_t at = text.find(kStepIs);
  if (at == std::string_view::npos || (at > 0 && text.substr(0, at).find_first_not_of("[]: 0123456789rankdefult") != std::string_view::npos)) return false;
  const std::string_view number = text.substr(at + kStepIs.size());
  return !number.empty() && number.find_first_not_of("0123456789") == std::string_view::npos;
}

// DeepSpeed's pipeline engine.
constexpr Words kPipelineAll[] = {"iter time (s):", "samples/sec:"};
constexpr Field kPipeline[] = {
    {"steps", kStep, "number"},
    {"step", kStep, "number"},
    {"iter time", kStepTime, ""},
    {"samples/sec", kSamples, "samples/s"},
    {"loss", kLoss, "number"},
};

// InternEvo and InternLM; per GPU by their sources.
constexpr Words kInternAll[] = {"tflops=", "tgs (tokens/gpu/second)="};
constexpr Field kIntern[] = {
    {"step", kStep, "number"},
    {"tflops", kFlopsPerGpu, "TFLOP/s/GPU"},
    {"tgs (tokens/gpu/second)", kTokensPerGpu, "tokens/s/GPU"},
    {"loss", kLoss, "number"},
};

// The evaluator of ColossalAI's examples, an average over the steps so far.
constexpr Words kColossalAll[] = {"TFLOPS per GPU by Megatron:"};
constexpr Field kColossal[] = {
    {"TFLOPS per GPU by Megatron", kFlopsPerGpu, "TFLOP/s/GPU"},
    {"tokens_per_second_per_device", kTokensPerGpu, "tokens/s/GPU"},
    {"loss", kLoss, "number"},
};

// nanochat prints its MFU in percent, with or without the sign.
constexpr Words kNanochatAll[] = {"step ", "dt:", "tok/sec:"};
constexpr Field kNanochat[] = {
    {"step", kStep, "number"},
    {"loss", kLoss, "number"},
    {"dt", kStepTime, ""},
    {"tok/sec", kTokens, "tokens/s"},
    {"bf16_mfu", kMfu, "%"},
    {"mfu", kMfu, "%"},
};

constexpr std::string_view kVerlNote =
    "verl's MFU is that of the update of the actor alone, time and tokens are of the whole step, with generation";
constexpr std::string_view kColossalNote = "ColossalAI's rate is by Megatron's formula, with recomputation where it is on, averaged over the steps so far";
constexpr std::string_view kLitgptNote = "LitGPT writes its MFU to its logger (metrics.csv), not to the console";

constexpr Format kFormats[] = {
    {"nemo", {}, kNemoAny, kNemo},
    {"megatron-bridge", kBridgeAll, {}, kBridge, false, true, nullptr, "megatron"},
    {"megatron", kMegatronAll, {}, kMegatron},
    {"megatron-progress", kProgressAll, {}, kProgress, false, false, nullptr, "megatron"},
    {"nanotron", kNanotronAll, {}, kNanotron, false, false, nullptr, {}, false, {}, false, true},
    {"torchtitan", kTorchtitanAll, {}, kTorchtitan},
    {"torchtune", kTorchtuneAll, {}, kTorchtune},
    {"verl", kVerlAll, kVerlAny, kVerl, false, false, nullptr, {}, false, kVerlNote},
    {"nanogpt", kNanogptAll, {}, kNanogpt},
    {"nanochat", kNanochatAll, {}, kNanochat},
    {"litgpt", kLitgptAll, {}, kLitgpt, false, false, litgpt_time, {}, false, kLitgptNote},
    {"maxtext", kMaxtextAll, {}, kMaxtext},
    {"hf-trainer", kHfAll, kHfAny, kHf, false, false, hf_trainer, {}, false, {}, true},
    {"deepspeed", kDeepspeedAll, {}, kDeepspeed, false, false, nullptr, {}, true},
    {"deepspeed-pipeline", kPipelineAll, {}, kPipeline, false, false, nullptr, {}, true},
    {"internevo", kInternAll, {}, kIntern},
    {"colossalai", kColossalAll, {}, kColossal, false, false, nullptr, {}, false, kColossalNote},
    {"fms-fsdp", {}, kFmsAny, kFms, true, false, nullptr, {}, false, {}, false, false, fms_head},
    {"deepspeed-flops-profiler", {}, kProfilerAny, kProfiler, true, false, nullptr, {}, true},
    {"composer", {}, kComposerAny, kComposer, true},
    {"olmo-core", {}, kOlmoAny, kOlmo, true},
    {"lightning", kLightningAll, kLightningAny, kLightning, false, false, lightning_bar, {}, true},
};

constexpr Field kColumns[] = {
    {"step", kStep, "number"},
    {"global_step", kStep, "number"},
    {"device/mfu", kMfu, "ratio"},
    {"device/flops_per_sec", kFlopsPerGpu, "FLOP/s"},
    {"device/tokens_per_sec", kTokensPerGpu, "tokens/s"},
    {"device/batches_per_sec", kBatchRate, "it/s"},
    {"throughput/tokens_per_sec", kTokens, "tokens/s"},
    {"throughput/samples_per_sec", kSamples, "samples/s"},
    {"train_step_timing in s", kStepTime, "s"},
    {"TFLOPS_per_GPU", kFlopsPerGpu, "TFLOP/s/GPU"},
    {"tokens_per_sec_per_gpu", kTokensPerGpu, "tokens/s/GPU"},
};

// A line with none of these says nothing that is known here; the last row are words of lines that are not understood but might
// be what the user hopes for.
constexpr std::string_view kWords[] = {
    "elapsed time per iteration", "step time", "job throughput", "train_step_timing", "tflops_per_gpu", "tps:", "mfu",
    "completed step", "samplespersec=", "summary at step", "flops per gpu", "iter latency", "samples/second", "[batch=",
    "train throughput/", "loss/train/total", "it/s", "s/it", ":::mllog ", "peak flops", " ......", "using world size:",
    "# gpus:",
    "tflop", "flop/s", "flops", "tokens/s", "tok/s", "tokens_per_sec", "tokens per sec", "throughput", "samples/s",
    "samples_per_sec", "step_time", "sec/step", "s/step",
    // Of the Trainer, LitGPT, verl, OLMo, torchtune, nanochat and nanoGPT.
    "'epoch':", "iter time:", "timing_s/", "perf/", "[step=", "train/ce loss=", "tokens_per_second", "throughput/device/",
    "tok/sec:", "tokens per iteration will be:",
    // Of container runtimes: a line in parts.
    kPartWords[0], kPartWords[1],
    // Of fms-fsdp, DeepSpeed's pipeline engine and InternEvo.
    "current step time:", "current token per gpu per sec:", kStepWord, "iter time (s):", "tgs (tokens/gpu/second)=",
};

}  // namespace

std::span<const Format> formats() { return kFormats; }

std::span<const std::string_view> telling_words() { return kWords; }

bool known_format(std::string_view name) {
  for (const Format& format : kFormats) {
    if (format.name == name) return true;
  }
  return name == "mlperf" || name == "progress-bar";
}

std::string format_names() {
  std::string names;
  for (const Format& format : kFormats) names += std::string(format.name) + ", ";
  return names + "mlperf or progress-bar";
}

const Field* column_field(std::string_view name) {
  std::string_view prefix = name.substr(0, name.rfind('/') == std::string_view::npos ? 0 : name.rfind('/'));
  while (!prefix.empty()) {  // "val/device/tokens_per_sec" is no figure of training
    const std::size_t end = std::min(prefix.find_first_of("/_"), prefix.size());
    if (is_validation_word(prefix.substr(0, end))) return nullptr;
    prefix.remove_prefix(std::min(end + 1, prefix.size()));
  }
  for (const Field& field : kColumns) {
    const bool ends = name.size() >= field.key.size() && name.substr(name.size() - field.key.size()) == field.key;
    // "train/device/mfu" and "throughput/device/mfu" are "device/mfu"; "trainer/global_step" is the step.
    if (ends && (name.size() == field.key.size() || name[name.size() - field.key.size() - 1] == '/')) return &field;
  }
  return nullptr;
}

}  // namespace flopsight::training_logs
