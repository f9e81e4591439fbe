#include "flops/config_keys_internal.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/json_mistake.h"
#include "base/text.h"

namespace flopsight::flops {
namespace {

namespace json = base::json;

constexpr std::array<std::string_view, 17> kHarmlessEndings = {
    "_token_id", "_token_ids", "_token_index", "_dropout", "_dropout_prob", "_eps", "_epsilon", "_coef", "_range", "_dtype",
    "_std", "_version", "_theta", "_temperature", "_softcapping", "_pdrop", "dropout_rate"};

constexpr std::array<std::string_view, 3> kHarmlessBeginnings = {"rope_", "router_aux_", "summary_"};

// Harmless as long as they are false.
constexpr std::array<std::string_view, 6> kHarmlessIfFalse = {"add_cross_attention", "is_encoder_decoder", "lm_head_bias",
                                                              "tie_encoder_decoder", "use_cross_attention", "use_mrope"};

// Whether a key that no family reads says with its value that nothing is left out or added: an empty table of pruned heads, no share of dropped layers.
bool says_nothing(std::string_view key, const json::Value& value) {
  if (key == "pruned_heads") return value.as_object() != nullptr && value.as_object()->empty();
  if (key == "layerdrop") return value.as_number() != nullptr && *value.as_number() == 0;
  return false;
}

// Words of keys (between underscores) of which false is a statement: what nearly all models have, or a negation.
constexpr std::array<std::string_view, 21> kUsualWords = {"bias", "biases", "causal", "disable", "disabled", "exclude", "gate",
                                                          "gated", "geglu", "glu", "ignore", "no", "norm", "shared",
                                                          "skip", "swiglu", "tie", "tied", "untie", "untied", "without"};

// Of keys that are not known, so many are named in a message.
constexpr std::size_t kUnknownNamedMax = 12;

std::string listed(const std::vector<std::string>& keys) {
  std::string list;
  const std::size_t named = std::min(keys.size(), kUnknownNamedMax);
  for (std::size_t i = 0; i < named; ++i) {
    const bool last = i + 1 == keys.size();
    list += (i == 0 ? "" : last ? " and " : ", ") + base::printable(keys[i], 80);
  }
  return named == keys.size() ? list : list + " and " + std::to_string(keys.size() - named) + " more";
}

// Of all families: how weights begin, what is dropped in training, which kernel or precision runs, how text is generated, names and labels.
// Sorted.
constexpr std::array kHarmless = std::to_array<std::string_view>({
    "_attn_implementation", "_attn_implementation_autoset", "_attn_implementation_internal", "_commit_hash",
    "_experts_implementation", "_flash_attn_2_enabled", "_from_model_config", "_moe_implementation", "_name_or_path",
    "_num_labels", "architectures", "attn_implementation", "attn_logit_softcapping", "author", "auto_map",
    "aux_loss_alpha", "bad_words_ids", "begin_suppress_tokens", "bf16", "cache_implementation",
    "chunk_size_feed_forward", "classifier_dropout", "compression_config", "decoder_start_token_id",
    "diversity_penalty", "do_lower_case", "do_sample", "dropout", "dtype", "early_stopping", "embd_pdrop",
    "encoder_no_repeat_ngram_size", "eos_token_id", "ep_size", "epsilon_cutoff", "eta_cutoff",
    "exponential_decay_length_penalty", "finetuning_task", "force_bos_token_to_be_generated", "forced_bos_token_id",
    "forced_eos_token_id", "fp16", "fp32", "fused_add_norm", "gradient_checkpointing", "gradient_checkpointing_kwargs",
    "guidance_scale", "hidden_dropout", "id2label", "init_device", "init_method", "initializer_factor",
    "initializer_range", "is_decoder", "is_llama_config", "label2id", "label_names", "layer_norm_eps",
    "layer_norm_epsilon", "length_penalty", "logit_scale", "loss_fn", "max_length", "max_new_tokens", "max_time",
    "min_length", "min_new_tokens", "min_p", "model_max_length", "model_name", "mscale", "n_group",
    "neftune_noise_alpha", "no_repeat_ngram_size", "norm_before_gate", "norm_eps", "norm_topk_prob", "num_beam_groups",
    "num_beams", "num_labels", "num_logits_to_keep", "num_return_sequences", "original_max_position_embeddings",
    "output_attentions", "output_hidden_states", "output_logits", "output_past", "output_router_logits",
    "output_scores", "pad_token", "partial_rotary_factor", "penalty_alpha", "prefix", "pretraining_tp", "problem_type",
    "quantization", "quantization_config", "query_pre_attn_scalar", "remove_invalid_values",
    "renormalize_logits", "repetition_penalty", "rescale_prenorm_residual", "residual_in_fp32", "return_dict",
    "return_dict_in_generate", "rms_norm_eps", "rotary_base", "rotary_dim", "rotary_emb_base", "rotary_pct", "rotary_scaling_factor",
    "routed_scaling_factor", "scale_attn_by_inverse_layer_idx", "scale_attn_weights", "scale_embedding",
    "scoring_func", "sep_token_id", "seq_aux", "stop_strings", "suppress_tokens", "task_specific_params",
    "temperature", "tf_legacy_loss", "time_step_floor", "time_step_init_scheme", "time_step_limit", "time_step_max",
    "time_step_min", "time_step_scale", "tokenizer_class", "tokenizer_type", "top_k", "top_p", "topk_group",
    "topk_method", "torch_compile", "torch_dtype", "torchscript", "transformers.js_config", "transformers_version",
    "typical_p", "unsloth_fixed", "use_associative_scan", "use_bfloat16", "use_cache", "use_falcon_mambapy",
    "use_flash_attention", "use_flash_attention_2", "use_flash_attention_3", "use_flash_attn", "use_mamba_kernels",
    "use_mambapy", "use_mem_eff_path", "use_reentrant_checkpointing", "use_return_dict", "xla_device",
});
static_assert(std::is_sorted(kHarmless.begin(), kHarmless.end()));

}  // namespace

bool harmless_key(std::string_view key) {
  if (std::binary_search(kHarmless.begin(), kHarmless.end(), key)) return true;
  return std::any_of(kHarmlessEndings.begin(), kHarmlessEndings.end(), [&](std::string_view end) { return key.ends_with(end); }) ||
         std::any_of(kHarmlessBeginnings.begin(), kHarmlessBeginnings.end(), [&](std::string_view begin) { return key.starts_with(begin); });
}

bool false_may_matter(std::string_view key) {
  for (std::size_t from = 0; from <= key.size();) {
    const std::size_t end = std::min(key.find('_', from), key.size());
    if (std::find(kUsualWords.begin(), kUsualWords.end(), key.substr(from, end - from)) != kUsualWords.end()) return true;
    from = end + 1;
  }
  return false;
}

const json::Value* Keys::find(std::string_view key) {
  seen_.emplace(key);
  for (const auto& [name, value] : object_) {
    if (name == key) return value.is_null() ? nullptr : &value;
  }
  return nullptr;
}

bool Keys::has(std::string_view key) { return find(key) != nullptr; }

std::string_view Keys::spelling(std::initializer_list<std::string_view> keys) {
  std::string_view found = *keys.begin();
  bool any = false;
  for (const std::string_view key : keys) {
    if (!has(key) || any) continue;
    found = key;
    any = true;
  }
  return found;
}

void Keys::fail(std::string message) {
  if (!error_) error_ = base::Error{base::ErrorCode::kInvalid, std::move(message)};
}

void Keys::wrong(std::string_view key, std::string_view expected) {
  if (error_) return;
  const json::Value* value = find(key);
  if (value == nullptr) {
    fail(path(key) + ": not there, expected " + std::string(expected));
  } else {
    error_ = json::wrong(path(key), *value, expected);
  }
}

std::uint64_t Keys::count_or(std::string_view key, std::uint64_t absent, std::uint64_t max, std::uint64_t min) {
  const json::Value* value = find(key);
  if (value == nullptr) return absent;
  const double* number = value->as_number();
  if (number == nullptr || !(*number >= static_cast<double>(min)) || *number > static_cast<double>(max) || *number != std::floor(*number)) {
    wrong(key, "a whole number from " + std::to_string(min) + " to " + std::to_string(max));
    return std::max<std::uint64_t>(min, 1);
  }
  return static_cast<std::uint64_t>(*number);
}

std::uint64_t Keys::count(std::string_view key, std::uint64_t max) {
  if (!has(key)) wrong(key, "a whole number from 1 to " + std::to_string(max));
  return count_or(key, 1, max);
}

std::uint64_t Keys::count_or_class(std::string_view key, std::uint64_t of_class, std::uint64_t max) {
  if (of_class == 0) return count(key, max);  // the class has none that could be meant
  if (!has(key)) defaults_taken_ += (defaults_taken_.empty() ? "" : ", ") + path(key) + " " + std::to_string(of_class);
  return count_or(key, of_class, max);
}

std::uint64_t Keys::count_or_auto(std::string_view key, std::uint64_t automatic) {
  const json::Value* value = find(key);
  const bool is_auto = value != nullptr && value->as_string() != nullptr && *value->as_string() == "auto";
  return is_auto ? automatic : count_or(key, automatic);
}

double Keys::number_or(std::string_view key, double absent, double min, double max) {
  const json::Value* value = find(key);
  if (value == nullptr) return absent;
  const double* number = value->as_number();
  if (number != nullptr && *number >= min && *number <= max) return *number;
  wrong(key, "a number from " + json::number_text(min) + " to " + json::number_text(max));
  return absent;
}

bool Keys::flag_or(std::string_view key, bool absent) {
  const json::Value* value = find(key);
  if (value == nullptr) return absent;
  if (value->as_bool() == nullptr) wrong(key, "true or false");
  return value->as_bool() != nullptr ? *value->as_bool() : absent;
}

std::string Keys::text_or(std::string_view key, std::string_view absent) {
  const json::Value* value = find(key);
  if (value == nullptr) return std::string(absent);
  if (value->as_string() == nullptr) wrong(key, "a text");
  return value->as_string() != nullptr ? *value->as_string() : std::string(absent);
}

std::string Keys::one_of(std::string_view key, std::string_view absent, std::initializer_list<std::string_view> choices) {
  const std::string found = text_or(key, absent);
  if (std::find(choices.begin(), choices.end(), found) != choices.end()) return found;
  std::string list;
  for (const std::string_view choice : choices) list += (list.empty() ? "" : " or ") + std::string(choice);
  wrong(key, list);
  return std::string(absent);
}

const json::Array* Keys::objects(std::string_view key, std::size_t count_max) {
  const json::Value* value = find(key);
  if (value == nullptr) return nullptr;
  if (value->as_array() == nullptr || value->as_array()->size() > count_max) {
    wrong(key, "a list of at most " + std::to_string(count_max));
    return nullptr;
  }
  return value->as_array();
}

std::vector<std::string> Keys::texts(std::string_view key, std::size_t count_max) {
  std::vector<std::string> list;
  const json::Array* array = objects(key, count_max);
  if (array == nullptr) return list;
  for (const json::Value& item : *array) {
    if (item.as_string() == nullptr) {
      wrong(key, "a list of texts");
      return {};
    }
    list.push_back(*item.as_string());
  }
  return list;
}

std::vector<std::uint64_t> Keys::counts(std::string_view key, std::size_t count_max) {
  std::vector<std::uint64_t> list;
  const json::Array* array = objects(key, count_max);
  if (array == nullptr) return list;
  for (const json::Value& item : *array) {
    const double* number = item.as_number();
    if (number == nullptr || !(*number >= 0) || *number > static_cast<double>(kSizeMax) || *number != std::floor(*number)) {
      wrong(key, "a list of whole numbers");
      return {};
    }
    list.push_back(static_cast<std::uint64_t>(*number));
  }
  return list;
}

const json::Object* Keys::object(std::string_view key) {
  const json::Value* value = find(key);
  if (value == nullptr) return nullptr;
  if (value->as_object() == nullptr) wrong(key, "an object");
  return value->as_object();
}

void Keys::known(std::initializer_list<std::string_view> keys) {
  for (const std::string_view key : keys) seen_.emplace(key);
}

void Keys::off(std::initializer_list<std::string_view> keys) {
  for (const std::string_view key : keys) {
    if (flag_or(key, false)) wrong(key, "false");
  }
}

void Keys::same(std::string_view spelling, std::string_view key, std::uint64_t value) {
  if (count_or(spelling, value) != value) wrong(spelling, path(key) + " " + std::to_string(value));
}

void Keys::ignore(const std::vector<std::string>& keys) {
  for (const std::string& key : keys) {
    if (key.starts_with(path_)) ignored_.emplace(key.substr(path_.size()));
  }
}

base::Status Keys::first_mistake() const { return error_ ? base::Status(*error_) : base::Status(); }

base::Status Keys::finish(std::string_view model_type) {
  if (error_) return *error_;
  for (const std::string& key : ignored_) {
    // A tower may be left out.
    if (seen_.contains(key) && key != "vision_config") return base::Error{base::ErrorCode::kInvalid, "key " + path(key) + " cannot be ignored: the count is made of it"};
  }
  for (const auto& [key, value] : object_) {
    if (value.is_null() || seen_.contains(key) || ignored_.contains(key) || harmless_key(key)) continue;
    if (says_nothing(key, value)) continue;
    const bool is_false = value.as_bool() != nullptr && !*value.as_bool();
    if (is_false && std::find(kHarmlessIfFalse.begin(), kHarmlessIfFalse.end(), key) != kHarmlessIfFalse.end()) continue;
    (is_false && !false_may_matter(key) ? taken_as_off_ : unknown_).push_back(path(key));
  }
  if (unknown_.empty()) return {};
  return base::Error{base::ErrorCode::kUnsupported, (unknown_.size() == 1 ? "key " + listed(unknown_) + " is" : "keys " + listed(unknown_) + " are") +
                                                        " not known for model_type " + std::string(model_type) + " and might change the count"};
}

void Keys::finish_part(Keys& part, std::string_view model_type) {
  const base::Status status = part.finish(model_type);
  if (!status.ok() && part.error_) fail(status.error().message);
  unknown_.insert(unknown_.end(), part.unknown_.begin(), part.unknown_.end());
  taken_as_off_.insert(taken_as_off_.end(), part.taken_as_off_.begin(), part.taken_as_off_.end());
}

}  // namespace flopsight::flops
