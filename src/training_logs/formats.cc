#include <algorithm>
#include <array>
#include <optional>
#include <utility>

#include "base/text.h"
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
    {"TFLOPs", kFlopsPerGpu, "TFLOP/s/GPU"},  // Megatron-DeepSpeed, per GPU by its source
    {"tokens per GPU", kTokensPerGpu, ""},
    {"tokens/s/GPU inst/harmonic mean", kTokensPerGpu, "tokens/s/GPU"},
    {"tokens per gpu per second (tgs)", kTokensPerGpu, "tokens/s/GPU"},  // Megatron-DeepSpeed of DeepSpeed
    {"samples per second", kSamples, "samples/s"},
    {"MFU", kMfu, ""},
    {"mfu", kMfu, ""},
    {"lm loss", kLoss, "number"},
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
    {"tokens_per_second_per_gpu", kTokensPerGpu, "tokens/s/GPU"},  // Axolotl
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
constexpr std::string_view kLitgptNote = "LitGPT writes its MFU to its logger (metrics.csv), not to the console";

constexpr Format kFormats[] = {
    {"nemo", {}, kNemoAny, kNemo},
    {"megatron-bridge", kBridgeAll, {}, kBridge, false, true, nullptr, "megatron"},
    {"megatron", kMegatronAll, {}, kMegatron},
    {"megatron-progress", kProgressAll, {}, kProgress, false, false, nullptr, "megatron"},
    {"nanotron", kNanotronAll, {}, kNanotron},
    {"torchtitan", kTorchtitanAll, {}, kTorchtitan},
    {"torchtune", kTorchtuneAll, {}, kTorchtune},
    {"verl", kVerlAll, kVerlAny, kVerl, false, false, nullptr, {}, false, kVerlNote},
    {"nanogpt", kNanogptAll, {}, kNanogpt},
    {"nanochat", kNanochatAll, {}, kNanochat},
    {"litgpt", kLitgptAll, {}, kLitgpt, false, false, litgpt_time, {}, false, kLitgptNote},
    {"maxtext", kMaxtextAll, {}, kMaxtext},
    {"hf-trainer", kHfAll, kHfAny, kHf, false, false, hf_trainer, {}, false, {}, true},
    {"deepspeed", kDeepspeedAll, {}, kDeepspeed, false, false, nullptr, {}, true},
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
};

bool word_character(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '/' || c == '-';
}

bool is_quote(char c) { return c == '\'' || c == '"'; }

std::string_view without_spaces(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t");
  return first == std::string_view::npos ? std::string_view() : text.substr(first);
}

// The unit behind a number: at once ("12.78s") or after one space ("528.1 TFLOP/s/GPU"), past a second figure ("633.7/630.1").
std::string_view unit_behind(std::string_view text) {
  if (!text.empty() && text.front() == '/') {
    const Printed average = read_number(text.substr(1));
    if (average.size > 0) text.remove_prefix(1 + average.size);
  }
  if (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  std::size_t size = 0;
  while (size < text.size() && size <= 40 && (word_character(text[size]) || text[size] == '%') && text[size] != '-') ++size;
  return text.substr(0, size);
}

// "5.66K" and "4.1M": what stands at once behind a number, alone, multiplies it.
double multiplier_behind(std::string_view text) {
  if (text.empty() || (text.size() > 1 && word_character(text[1]))) return 1;
  switch (text.front()) {
    case 'k':
    case 'K': return 1e3;
    case 'M': return 1e6;
    case 'B':
    case 'G': return 1e9;
    case 'T': return 1e12;
    default: return 1;
  }
}

// A number as Python shows those of its libraries: "np.float64(0.41)", "tensor(0.41)".
std::string_view without_wrapping(std::string_view number) {
  for (const std::string_view wrapping : {"np.float64(", "np.float32(", "tensor("}) {
    if (number.starts_with(wrapping)) return number.substr(wrapping.size());
  }
  return number;
}

bool take_number(const Field& field, std::string_view number, std::string_view in_brackets, Extract& out) {
  Printed printed = read_number(number);
  if (const double multiplier = multiplier_behind(number.substr(printed.size)); printed.value && multiplier > 1) {
    *printed.value *= multiplier;
    ++printed.size;
  }
  if (printed.size == 0) return false;
  const std::string_view digits = number.substr(0, printed.size);
  const auto commas = std::count(digits.begin(), digits.end(), ',');
  if (printed.value && out.decimal_comma && commas == 1 && digits.find('.') == std::string_view::npos) printed.value.reset();
  if (!printed.value) {
    out.decimal_comma |= commas > 0;
    ++out.unparsable;
    out.about = std::string(field.key);
    return true;
  }
  const Dimension dimension = dimension_of(field.meaning);
  std::optional<Unit> unit = parse_unit(unit_behind(number.substr(printed.size)));
  if (!unit || unit->dimension != dimension) unit = parse_unit(in_brackets);
  if (!unit || unit->dimension != dimension) unit = parse_unit(field.unit);
  if (!unit || unit->dimension != dimension) {
    ++out.unknown_unit;
    out.about = std::string(field.key);
    return true;
  }
  if (!put(out.step, field.meaning, *printed.value, *unit)) {
    ++out.unparsable;
    out.about = std::string(field.key);
  } else if (field.meaning != kStep && field.meaning != kLoss) {
    ++out.figures;
  }
  return true;
}

bool has(const Step& step, Meaning meaning) {
  switch (meaning) {
    case kStep: return step.step.has_value();
    case kLoss: return step.loss.has_value();
    case kMfu: return step.mfu_ratio.has_value();
    case kFlopsPerGpu: return step.flops_per_second_per_gpu.has_value();
    case kTokensPerGpu: return step.tokens_per_second_per_gpu.has_value();
    case kTokens: return step.tokens_per_second.has_value();
    case kSamples: return step.samples_per_second.has_value();
    case kStepTime:
    case kBatchRate: return step.step_seconds.has_value();
    case kPeak: return step.peak_flops_per_second.has_value();
  }
  return false;
}

}  // namespace

std::span<const Format> formats() { return kFormats; }

std::span<const std::string_view> telling_words() { return kWords; }

bool matches(const Format& format, std::string_view text) {
  for (const std::string_view word : format.all) {
    if (find_word(text, word) == std::string_view::npos) return false;
  }
  for (const std::string_view word : format.any) {
    if (find_word(text, word) != std::string_view::npos) return true;
  }
  return format.any.empty();
}

bool extract_field(const Field& field, std::string_view text, Extract& out) {
  for (std::size_t at = find_word(text, field.key); at != std::string_view::npos; at = find_word(text, field.key, at + 1)) {
    const std::size_t end = at + field.key.size();
    if (field.place == Field::Place::kBefore) {
      std::size_t to = at;
      while (to > 0 && text[to - 1] == ' ') --to;
      std::size_t from = to;
      while (from > 0 && ((text[from - 1] >= '0' && text[from - 1] <= '9') || text[from - 1] == '.')) --from;
      if (from < to && take_number(field, text.substr(from, to - from), {}, out)) return true;
      continue;
    }
    const bool begins = at == 0 || !word_character(text[at - 1]) || !word_character(field.key.front());
    const bool ends = end >= text.size() || !word_character(text[end]) || !word_character(field.key.back());
    if (!begins || !ends) continue;
    std::string_view rest = text.substr(end);
    if (field.place == Field::Place::kAfterLastColon) {
      const std::size_t colon = rest.rfind(':');
      if (colon == std::string_view::npos) continue;
      rest = rest.substr(colon);
    }
    rest = without_spaces(rest);
    std::string_view in_brackets;
    if (!rest.empty() && rest.front() == '(') {
      const std::size_t close = rest.find(')');
      if (close == std::string_view::npos) continue;
      in_brackets = rest.substr(1, close - 1);
      rest = without_spaces(rest.substr(close + 1));
    }
    // A dictionary has its keys in quotes, and some have their values in them.
    if (!rest.empty() && is_quote(rest.front()) && at > 0 && text[at - 1] == rest.front()) rest.remove_prefix(1);
    if (!rest.empty() && (rest.front() == ':' || rest.front() == '=')) rest = without_spaces(rest.substr(1));
    if (!rest.empty() && is_quote(rest.front())) rest.remove_prefix(1);
    if (take_number(field, without_wrapping(rest), in_brackets, out)) return true;
  }
  return false;
}

namespace {

// Two programs that write into one file may do so in the middle of each other's lines: "iteration 9/ 90 | elapsed iteration 9/ 90 | …". Where the
// number of a step stands twice, what is before the last is torn.
std::string_view last_record(const Format& format, std::string_view text) {
  if (format.fields.empty() || format.fields.front().meaning != kStep || format.fields.front().place != Place::kAfter) return text;
  const std::string_view key = format.fields.front().key;
  std::size_t last = std::string_view::npos;
  for (std::size_t at = find_word(text, key); at != std::string_view::npos; at = find_word(text, key, at + 1)) {
    if (at > 0 && word_character(text[at - 1])) continue;
    const std::size_t number = text.find_first_not_of(" \t:=", at + key.size());
    const bool is_number = number != std::string_view::npos && text[number] >= '0' && text[number] <= '9' && number > at + key.size();
    if (!is_number) continue;
    if (last != std::string_view::npos) return last_record(format, text.substr(at));
    last = at;
  }
  return text;
}

void extract_all(const Format& format, std::string_view text, Extract& out) {
  for (const Field& field : format.fields) {
    if (!has(out.step, field.meaning)) (void)extract_field(field, text, out);
  }
  if (format.more != nullptr) format.more(text, out);
}

// Anew where a figure turns out to have a decimal comma, as that is of the whole line.
void extract_line(const Format& format, std::string_view text, Extract& out) {
  extract_all(format, text, out);
  if (!out.decimal_comma) return;
  out = Extract();
  out.decimal_comma = true;
  extract_all(format, text, out);
}

}  // namespace

void extract(const Format& format, std::string_view text, Extract& out) {
  const std::string_view last = last_record(format, text);
  if (last.size() < text.size()) {
    Extract whole;
    extract_line(format, last, whole);
    if (whole.figures > 0) {
      out = std::move(whole);
      return;
    }
  }
  extract_line(format, text, out);
}

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
  for (const Field& field : kColumns) {
    const bool ends = name.size() >= field.key.size() && name.substr(name.size() - field.key.size()) == field.key;
    // "train/device/mfu" and "throughput/device/mfu" are "device/mfu"; "trainer/global_step" is the step.
    if (ends && (name.size() == field.key.size() || name[name.size() - field.key.size() - 1] == '/')) return &field;
  }
  return nullptr;
}

}  // namespace flopsight::training_logs
