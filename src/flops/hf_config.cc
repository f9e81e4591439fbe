#include "flops/hf_config.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "base/json.h"
#include "base/text.h"
#include "flops/family_internal.h"

namespace flopsight::flops {
namespace {

namespace json = base::json;

// Sorted by model_type.
constexpr std::array kFamilies = std::to_array<Family>({
    {"baichuan", read_baichuan, "Baichuan 1 and 2"},
    {"bart", read_bart, "BART: encoder and decoder"},
    {"bert", read_bert, "BERT, with the head of masked language modelling"},
    {"bloom", read_bloom, "BLOOM"},
    {"chatglm", read_chatglm, "ChatGLM2, ChatGLM3, GLM-4-9B"},
    {"clip_text_model", read_clip_text, "CLIP's text tower"},
    {"cohere", read_cohere, "Command-R, Aya"},
    {"cohere2", read_cohere2, "Command-R7B, Command A: windows in three of four blocks"},
    {"dbrx", read_dbrx, "DBRX: experts"},
    {"deepseek_v2", read_deepseek_v2, "DeepSeek-V2: latent attention, experts"},
    {"deepseek_v3", read_deepseek_v3, "DeepSeek-V3 and R1: latent attention, experts, multi-token prediction"},
    {"deepseek_v32", read_deepseek_v32, "DeepSeek-V3.2: the same with sparse attention (DSA)"},
    {"ernie4_5", read_ernie4_5, "ERNIE 4.5, dense"},
    {"exaone4", read_exaone4, "EXAONE 4: windows in three of four blocks"},
    {"falcon", read_falcon, "Falcon and Falcon 2"},
    {"falcon_h1", read_falcon_h1, "Falcon-H1: attention and Mamba-2 side by side"},
    {"falcon_mamba", read_mamba, "Falcon-Mamba"},
    {"gemma", read_gemma, "Gemma"},
    {"gemma2", read_gemma2, "Gemma 2: windows in every second block"},
    {"gemma3_text", read_gemma3, "Gemma 3: windows in five of six blocks"},
    {"gemma4_text", read_gemma4, "Gemma 4: windows, other heads in global blocks, dense layer beside the experts"},
    {"glm4", read_glm4, "GLM-4"},
    {"glm4_moe", read_glm4_moe, "GLM-4.5 to 4.7: experts, multi-token prediction"},
    {"glm4_moe_lite", read_deepseek_v3, "GLM-4.7-Flash: latent attention, experts"},
    {"glm_moe_dsa", read_glm_moe_dsa, "GLM-5: latent and sparse attention, experts"},
    {"gpt2", read_gpt2, "GPT-2 and GPT-3"},
    {"gpt_bigcode", read_gpt_bigcode, "StarCoder, SantaCoder: one head of keys"},
    {"gpt_neox", read_gpt_neox, "GPT-NeoX, Pythia"},
    {"gpt_oss", read_gpt_oss, "gpt-oss: experts, windows in every second block, sinks"},
    {"gptj", read_gptj, "GPT-J"},
    {"granite", read_granite, "Granite"},
    {"granitemoe", read_granite_moe, "Granite 3 with experts"},
    {"granitemoehybrid", read_granite_hybrid, "Granite 4: Mamba-2, attention, experts beside a shared layer"},
    {"internlm2", read_internlm2, "InternLM2 and 2.5"},
    {"internlm3", read_internlm3, "InternLM3"},
    {"jamba", read_jamba, "Jamba: Mamba-1, attention, experts"},
    {"kimi_k2", read_deepseek_v3, "Kimi K2: as DeepSeek-V3"},
    {"kimi_linear", read_kimi_linear, "Kimi Linear: Kimi delta attention, latent attention, experts"},
    {"llama", read_llama, "Llama 1 to 3 and what is built like them"},
    {"llama4_text", read_llama4, "Llama 4: chunked attention, experts beside a shared one"},
    {"mamba", read_mamba, "Mamba"},
    {"mamba2", read_mamba2, "Mamba-2"},
    {"minimax", read_minimax_01, "MiniMax-Text-01 and M1 in the library's own format"},
    {"minimax_m1", read_minimax_01, "MiniMax-M1: as MiniMax-Text-01"},
    {"minimax_m2", read_minimax_m2, "MiniMax-M2: experts"},
    {"minimax_text_01", read_minimax_01, "MiniMax-Text-01: lightning attention in seven of eight blocks, experts"},
    {"mistral", read_mistral, "Mistral: window in all blocks, if any"},
    {"mixtral", read_mixtral, "Mixtral: experts"},
    {"mpt", read_mpt, "MPT"},
    {"mt5", read_t5, "mT5: encoder and decoder"},
    {"nemotron", read_nemotron, "Nemotron-4, Minitron: LayerNorm, ungated feed-forward"},
    {"nemotron-nas", read_nemotron_nas, "Llama-Nemotron (DeciLM): every block of its own size"},
    {"nemotron_h", read_nemotron_h, "Nemotron-H, Nemotron Nano 2, Nemotron 3: Mamba-2, attention, (latent) experts"},
    {"olmo", read_olmo, "OLMo: norms without weights"},
    {"olmo2", read_olmo2, "OLMo 2"},
    {"olmo3", read_olmo2, "OLMo 3: windows by layer_types"},
    {"olmoe", read_olmoe, "OLMoE: experts"},
    {"opt", read_opt, "OPT"},
    {"phi", read_phi, "Phi-1, 1.5 and 2"},
    {"phi3", read_phi3, "Phi-3 and Phi-4"},
    {"phimoe", read_phimoe, "Phi-3.5-MoE: experts"},
    {"qwen", read_qwen, "Qwen (the first)"},
    {"qwen2", read_qwen2, "Qwen 2 and 2.5"},
    {"qwen2_5_vl_text", read_qwen2, "Qwen2.5-VL's language model"},
    {"qwen2_moe", read_qwen2_moe, "Qwen 2 MoE: experts and a gated shared one"},
    {"qwen2_vl_text", read_qwen2, "Qwen2-VL's language model"},
    {"qwen3", read_qwen3, "Qwen 3"},
    {"qwen3_5_moe_text", read_qwen3_next, "Qwen 3.5 MoE: gated delta-net, gated attention, experts"},
    {"qwen3_5_text", read_qwen3_next, "Qwen 3.5: gated delta-net, gated attention"},
    {"qwen3_moe", read_qwen3_moe, "Qwen 3 MoE: experts"},
    {"qwen3_next", read_qwen3_next, "Qwen3-Next: gated delta-net, gated attention, experts"},
    {"qwen3_vl_moe_text", read_qwen3_moe, "Qwen3-VL MoE's language model"},
    {"qwen3_vl_text", read_qwen3, "Qwen3-VL's language model"},
    {"roberta", read_bert, "RoBERTa, with the head of masked language modelling"},
    {"seed_oss", read_seed_oss, "Seed-OSS"},
    {"smollm3", read_smollm3, "SmolLM3"},
    {"stablelm", read_stablelm, "StableLM"},
    {"starcoder2", read_starcoder2, "StarCoder2: ungated feed-forward with biases"},
    {"t5", read_t5, "T5: encoder and decoder"},
    {"xlm-roberta", read_bert, "XLM-RoBERTa, with the head of masked language modelling"},
    {"zamba2", read_zamba2, "Zamba2: Mamba-2, and one transformer block that runs many times"},
});

// Of configurations with a language model and a tower. Their own keys otherwise name tokens only.
struct MultiModal {
  std::string_view model_type;
  std::string_view text_type;    // where text_config has no model_type, or there is no text_config
  std::string_view vision_type;  // where vision_config has no model_type
};
constexpr std::array kMultiModal = std::to_array<MultiModal>({
    {"clip", "clip_text_model", "clip_vision_model"},
    {"gemma3", "gemma3_text", "siglip_vision_model"},
    {"gemma4", "gemma4_text", "gemma4_vision"},
    {"kimi_k25", "kimi_k2", "moonvit"},
    {"llama4", "llama4_text", "llama4_vision_model"},
    {"mistral3", "mistral", "pixtral"},
    {"qwen2_5_vl", "qwen2_5_vl_text", "qwen2_5_vl"},
    {"qwen2_vl", "qwen2_vl_text", "qwen2_vl"},
    {"qwen3_5", "qwen3_5_text", "qwen3_5"},
    {"qwen3_5_moe", "qwen3_5_moe_text", "qwen3_5_moe"},
    {"qwen3_vl", "qwen3_vl_text", "qwen3_vl"},
    {"qwen3_vl_moe", "qwen3_vl_moe_text", "qwen3_vl_moe"},
});

// Towers on their own.
constexpr std::array<std::string_view, 3> kTowers = {"clip_vision_model", "siglip_vision_model", "vit"};

bool is_word(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_'; }

std::string type_of(const json::Value& object) {
  const json::Value* type = object.find("model_type");
  return type != nullptr && type->as_string() != nullptr ? *type->as_string() : "";
}

base::Error unknown_type(const std::string& where, const std::string& type) {
  if (type.empty()) return {base::ErrorCode::kInvalid, where + ": not there, expected the name of a model family"};
  const bool is_tower = where.starts_with("vision_config");
  return {base::ErrorCode::kUnsupported, where + " " + base::printable(type, 60) + " is not known; " +
                                             (is_tower ? "--ignore-key vision_config counts the text without its tower" : "docs/flops.md lists the families")};
}

// Sums in doubles first: hostile sizes do not fit 64 bits.
base::Status check_size(const Model& model) {
  double parameters = 0, flops = 0;
  const auto number = [](std::uint64_t n) { return static_cast<double>(n); };
  for (const Layer& layer : model.layers) {
    const double times = number(std::max(layer.stored, layer.executed));
    for (const Matmul& m : layer.matmuls) {
      parameters += times * number(m.in) * number(m.out) * number(std::max<std::uint64_t>(m.stored, m.active));
    }
    for (const Vector& v : layer.vectors) parameters += times * number(v.elements) * number(v.stored);
    if (layer.attention) flops += times * number(layer.attention->heads) * number(layer.attention->qk_dim + layer.attention->v_dim);
    if (layer.recurrence) {
      const RecurrentCore& core = *layer.recurrence;
      flops += times * (number(core.width) * number(core.state) + number(core.conv_channels) * number(core.conv_kernel) + number(core.chunk) * number(core.width));
    }
  }
  if (parameters <= std::ldexp(1.0, 53) && flops <= std::ldexp(1.0, 53)) return {};
  return base::Error{base::ErrorCode::kLimit, "the sizes make more than 2^53 parameters, which is no model"};
}

struct Parts {
  json::Object text;  // empty: a tower on its own
  std::string text_path;
  std::string text_type;
  const json::Object* vision = nullptr;
  std::string vision_path = "vision_config.";
  std::string vision_type;
  json::Object outer;  // keys of a multi-modal configuration that its tower reads
};

// What is said of the objects of one configuration together.
struct Findings {
  std::string unknown;   // keys, in the sentences of Keys::finish()
  std::string defaults;  // taken from the model's class
  std::vector<std::string> taken_as_off;
};

// A mistake ends the reading; keys that are not known are gathered, so that one message names all.
base::Status finish(Keys& keys, std::string_view model_type, Findings& findings) {
  const base::Status status = keys.finish(model_type);
  findings.taken_as_off.insert(findings.taken_as_off.end(), keys.taken_as_off().begin(), keys.taken_as_off().end());
  findings.defaults += (findings.defaults.empty() || keys.defaults_taken().empty() ? "" : ", ") + keys.defaults_taken();
  if (status.ok()) return {};
  if (status.error().code != base::ErrorCode::kUnsupported) return status;
  findings.unknown += (findings.unknown.empty() ? "" : "; ") + status.error().message;
  return {};
}

bool is_ignored(const ReadOptions& options, std::string_view key) {
  return std::find(options.ignored_keys.begin(), options.ignored_keys.end(), key) != options.ignored_keys.end();
}

// Without a text_config, the language model's keys are the configuration's own.
base::Status split_text(const json::Value& root, const MultiModal& multi, Keys& outer, Parts& parts, Findings& findings) {
  const json::Value* language = root.find("text_config");
  if (language == nullptr || language->as_object() == nullptr) {
    if (language != nullptr && !language->is_null()) outer.wrong("text_config", "an object with the language model");
    FLOPSIGHT_RETURN_IF_ERROR(outer.first_mistake());
    for (const auto& [key, value] : *root.as_object()) {
      if (key != "vision_config" && key != "text_config") parts.text.emplace_back(key, value);
    }
    parts.text_type = multi.text_type;
    return {};
  }
  FLOPSIGHT_RETURN_IF_ERROR(finish(outer, multi.model_type, findings));
  parts.text = *language->as_object();
  parts.text_path = "text_config.";
  const json::Value* tied = root.find("tie_word_embeddings");
  if (tied != nullptr && language->find("tie_word_embeddings") == nullptr) parts.text.emplace_back("tie_word_embeddings", *tied);  // the whole's holds
  parts.text_type = language->find("model_type") == nullptr ? std::string(multi.text_type) : type_of(*language);
  return {};
}

base::Result<Parts> parts_of_multi_modal(const json::Value& root, const MultiModal& multi, const ReadOptions& options, Findings& findings) {
  Parts parts;
  Keys outer(*root.as_object(), "");
  outer.ignore(options.ignored_keys);
  if (!is_ignored(options, "vision_config")) parts.vision = outer.object("vision_config");
  outer.known({"model_type", "text_config", "vision_config", "tie_word_embeddings", "vision_soft_tokens_per_image", "mm_tokens_per_image", "audio_config",
               "projection_dim", "logit_scale_init_value", "ignore_index", "use_unified_vision_chunk", "video_placeholder", "media_placeholder", "multimodal_projector_bias", "projector_hidden_act",
               "spatial_merge_size", "vision_feature_layer"});
  if (outer.has("audio_config") && !is_ignored(options, "audio_config")) outer.wrong("audio_config", "null: audio towers are not counted yet");
  FLOPSIGHT_RETURN_IF_ERROR(outer.first_mistake());
  FLOPSIGHT_RETURN_IF_ERROR(split_text(root, multi, outer, parts, findings));
  if (find_family(parts.text_type) == nullptr) return unknown_type("text_config.model_type", parts.text_type);
  parts.outer = *root.as_object();
  if (parts.vision != nullptr) {
    const json::Value* type = root.find("vision_config")->find("model_type");
    parts.vision_type = type == nullptr ? std::string(multi.vision_type) : type_of(*root.find("vision_config"));
  }
  return parts;
}

// The language model and the tower of a configuration.
base::Result<Parts> parts_of(const json::Value& root, const ReadOptions& options, Findings& findings) {
  const std::string type = type_of(root);
  const auto multi = std::find_if(kMultiModal.begin(), kMultiModal.end(), [&](const MultiModal& m) { return m.model_type == type; });
  if (multi != kMultiModal.end()) return parts_of_multi_modal(root, *multi, options, findings);
  Parts parts;
  if (std::find(kTowers.begin(), kTowers.end(), type) != kTowers.end()) {
    parts.vision = root.as_object();
    parts.vision_path = "";
    parts.vision_type = type;
    return parts;
  }
  if (find_family(type) == nullptr) return unknown_type("model_type", type);
  parts.text = *root.as_object();
  parts.text_type = type;
  return parts;
}

base::Status read_tower(const Parts& parts, const ReadOptions& options, Builder& builder, Findings& findings) {
  Keys keys(*parts.vision, parts.vision_path);
  keys.ignore(options.ignored_keys);
  keys.known({"model_type"});
  Keys outer(parts.outer, "");
  if (!read_vision(keys, outer, parts.vision_type, builder)) return unknown_type(parts.vision_path + "model_type", parts.vision_type);
  FLOPSIGHT_RETURN_IF_ERROR(outer.first_mistake());
  return finish(keys, parts.vision_type, findings);
}

}  // namespace

std::string without_infinities(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  bool in_string = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string) {
      out += c;
      if (c == '\\' && i + 1 < text.size()) out += text[++i];
      if (c == '"') in_string = false;
      continue;
    }
    in_string = c == '"';
    std::size_t length = 0;
    for (const std::string_view word : {std::string_view("-Infinity"), std::string_view("Infinity"), std::string_view("NaN")}) {
      if (length == 0 && text.substr(i).starts_with(word)) length = word.size();
    }
    const bool whole = length > 0 && (i == 0 || !is_word(text[i - 1])) && (i + length == text.size() || !is_word(text[i + length]));
    if (!whole) {
      out += c;
      continue;
    }
    out += '"' + std::string(text.substr(i, length)) + '"';
    i += length - 1;
  }
  return out;
}

const Family* find_family(std::string_view model_type) {
  const auto found = std::find_if(kFamilies.begin(), kFamilies.end(), [&](const Family& f) { return f.model_type == model_type; });
  return found == kFamilies.end() ? nullptr : &*found;
}

const std::vector<KnownFamily>& known_families() {
  static const std::vector<KnownFamily> kKnown = [] {
    std::vector<KnownFamily> list;
    for (const Family& family : kFamilies) list.push_back({family.model_type, family.note});
    return list;
  }();
  return kKnown;
}

base::Result<Model> read_hf_config(std::string_view text, const ReadOptions& options) {
  if (text.size() > kConfigBytesMax) {
    return base::Error{base::ErrorCode::kLimit, "longer than " + std::to_string(kConfigBytesMax >> 20) + " MiB, which is no config.json"};
  }
  FLOPSIGHT_ASSIGN_OR_RETURN(const json::Value root, json::parse(without_infinities(text)));
  if (root.as_object() == nullptr) return base::Error{base::ErrorCode::kInvalid, "a JSON " + std::string(root.kind()) + ", expected the object of a config.json"};
  Findings findings;
  FLOPSIGHT_ASSIGN_OR_RETURN(const Parts parts, parts_of(root, options, findings));
  Builder builder;
  builder.model.model_type = type_of(root);
  if (!is_ignored(options, "architectures")) {
    FLOPSIGHT_ASSIGN_OR_RETURN(builder.output, read_output(root));
  }
  if (!parts.text.empty()) {
    Keys keys(parts.text, parts.text_path);
    keys.ignore(options.ignored_keys);
    keys.known({"model_type"});
    find_family(parts.text_type)->read(keys, builder);
    FLOPSIGHT_RETURN_IF_ERROR(finish(keys, parts.text_type, findings));
  }
  if (parts.vision != nullptr) {
    FLOPSIGHT_RETURN_IF_ERROR(read_tower(parts, options, builder, findings));
  } else if (!parts.outer.empty()) {
    builder.assume("the vision tower is not described, and not counted");
  }
  if (!findings.unknown.empty()) return base::Error{base::ErrorCode::kUnsupported, findings.unknown};
  for (const std::string& key : options.ignored_keys) builder.assume("key " + base::printable(key, 80) + " is ignored, as asked");
  FLOPSIGHT_RETURN_IF_ERROR(check_size(builder.model));
  for (const std::string& key : findings.taken_as_off) builder.assume("key " + base::printable(key, 80) + " is not known and is false: nothing is counted for it");
  if (!findings.defaults.empty()) builder.assume("not given, and so the model class's defaults: " + findings.defaults);
  return std::move(builder.model);
}

}  // namespace flopsight::flops
