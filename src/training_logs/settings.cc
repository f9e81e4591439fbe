#include <algorithm>
#include <iterator>

#include "base/text.h"
#include "training_logs/formats_internal.h"

namespace flopsight::training_logs {
namespace {

struct Name {
  std::string_view printed;
  std::string_view ours;
};

// Arguments as Megatron ("  seq_length ........ 8192") and DeepSpeed ("train_batch_size ...... 32") print them.
constexpr Name kArguments[] = {
    {"world_size", "world_size"},
    {"data_parallel_size", "data_parallel"},
    {"tensor_model_parallel_size", "tensor_parallel"},
    {"pipeline_model_parallel_size", "pipeline_parallel"},
    {"context_parallel_size", "context_parallel"},
    {"expert_model_parallel_size", "expert_parallel"},
    {"global_batch_size", "global_batch_size"},
    {"train_batch_size", "global_batch_size"},
    {"micro_batch_size", "micro_batch_size"},
    {"train_micro_batch_size_per_gpu", "micro_batch_size"},
    {"gradient_accumulation_steps", "gradient_accumulation"},
    {"seq_length", "sequence_length"},
    {"num_layers", "layers"},
    {"hidden_size", "hidden_size"},
    {"ffn_hidden_size", "ffn_hidden_size"},
    {"moe_ffn_hidden_size", "moe_ffn_hidden_size"},
    {"num_attention_heads", "attention_heads"},
    {"num_query_groups", "query_groups"},
    {"group_query_attention", "grouped_queries"},
    {"mtp_num_layers", "prediction_steps"},
    {"kv_channels", "head_size"},
    {"num_experts", "experts"},
    {"num_moe_experts", "experts"},
    {"moe_router_topk", "experts_per_token"},
    {"padded_vocab_size", "vocabulary_size"},
    {"recompute_granularity", "recompute"},
    {"bf16", "bf16"},
    {"fp16", "fp16"},
    {"fp8", "fp8"},
};

// "using world size: 8, data-parallel size: 8, context-parallel size: 1, tensor-model-parallel size: 1, …"
constexpr Name kWorld[] = {
    {"world size:", "world_size"},
    {"data-parallel size:", "data_parallel"},
    {"context-parallel size:", "context_parallel"},
    {"tensor-model-parallel size:", "tensor_parallel"},
    {"pipeline-model-parallel size:", "pipeline_parallel"},
};

// Beside the figures of a step.
constexpr Name kBeside[] = {
    {"global batch size:", "global_batch_size"},
    {"global_batch_size:", "global_batch_size"},
    {"tokens per iteration will be:", "tokens_per_step"},
    {"# GPUs:", "world_size"},
    {"Job ID:", "scheduler_job"},
};

std::string_view word_at(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return {};
  std::size_t end = text.find_first_of(" \t,|", first);
  // "491,520" is one number.
  while (end != std::string_view::npos && text[end] == ',' && end + 1 < text.size() && text[end + 1] >= '0' && text[end + 1] <= '9') {
    end = text.find_first_of(" \t,|", end + 1);
  }
  return text.substr(first, end - first);
}

bool dotted_argument(std::string_view text, Settings& settings) {
  const std::size_t dots = find_word(text, " ......");
  if (dots == std::string_view::npos) return false;
  const std::size_t from = text.find_last_of(" \t]:", dots == 0 ? 0 : dots - 1);
  const std::string_view name = text.substr(from == std::string_view::npos ? 0 : from + 1,
                                            from == std::string_view::npos ? dots : dots - from - 1);
  const std::size_t after = text.find_first_not_of('.', dots + 1);
  if (after == std::string_view::npos) return false;
  const std::string_view value = word_at(text.substr(after));
  for (const Name& argument : kArguments) {
    if (argument.printed != name || value.empty()) continue;
    set(settings, argument.ours, value);
    return true;
  }
  return false;
}

// What makes a run another one and not the same begun anew: its model, its sequences and how many GPUs it is on.
constexpr std::string_view kIdentity[] = {"world_size", "sequence_length", "layers", "hidden_size", "ffn_hidden_size",
                                          "moe_ffn_hidden_size", "attention_heads", "query_groups", "head_size", "experts"};

}  // namespace

std::string_view setting_of_another_run(const Settings& known, const Settings& printed) {
  for (const auto& [name, value] : printed) {
    const auto identity = std::find(std::begin(kIdentity), std::end(kIdentity), name);
    if (identity == std::end(kIdentity)) continue;
    for (const auto& [key, old] : known) {
      if (key == name && old != value) return *identity;
    }
  }
  return {};
}

bool is_of_another_run(const Settings& known, const Settings& printed) { return !setting_of_another_run(known, printed).empty(); }

void set(Settings& settings, std::string_view name, std::string_view value) {
  for (const auto& [key, unused] : settings) {
    if (key == name) return;
  }
  if (settings.size() < Limits::settings_max) settings.emplace_back(std::string(name), base::printable(value, 100));
}

std::optional<double> batch_beside(std::string_view text) {
  for (const std::string_view printed : {"global batch size:", "global_batch_size:"}) {
    const std::size_t at = find_word(text, printed);
    if (at == std::string_view::npos) continue;
    const Printed number = read_number(word_at(text.substr(at + printed.size())));
    if (number.value && *number.value >= 1 && *number.value <= 1e15) return number.value;
  }
  return std::nullopt;
}

bool read_settings(std::string_view text, Settings& settings,
                   std::optional<double>& peak_flops_per_second) {
  constexpr std::string_view kPeakUsed = "Peak FLOPS used for computing MFU:";
  constexpr std::string_view kUndefined = "Peak flops undefined for:";
  constexpr std::string_view kFallback = ", fallback to ";
  bool any = dotted_argument(text, settings);
  if (const std::size_t at = find_word(text, kPeakUsed); at != std::string_view::npos) {
    const std::string_view value = word_at(text.substr(at + kPeakUsed.size()));
    const Printed peak = read_number(value);
    if (peak.value && *peak.value > 0) {
      peak_flops_per_second = peak.value;  // FLOP/s by its source
      set(settings, "peak_flops_per_second", value);
      any = true;
    }
  }
  if (const std::size_t at = find_word(text, kUndefined); at != std::string_view::npos) {
    const std::string_view rest = text.substr(at + kUndefined.size());
    const std::size_t fallback = rest.find(kFallback);
    set(settings, "peak_undefined_for", base::trim(rest.substr(0, fallback)));
    if (fallback != std::string_view::npos) {
      set(settings, "peak_fallback", word_at(rest.substr(fallback + kFallback.size())));
    }
    any = true;
  }
  const auto named = [&](const auto& names) {
    for (const Name& name : names) {
      const std::size_t at = find_word(text, name.printed);
      if (at == std::string_view::npos) continue;
      const std::string_view value = word_at(text.substr(at + name.printed.size()));
      if (value.empty()) continue;
      std::string digits(value);
      std::erase(digits, ',');
      set(settings, name.ours, digits);
      any = true;
    }
  };
  if (find_word(text, "using world size:") != std::string_view::npos) named(kWorld);
  named(kBeside);
  return any;
}

}  // namespace flopsight::training_logs
