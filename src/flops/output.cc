// The head of the model by the name of its class: the rows of transformers' modeling files, by how the name ends.
#include <algorithm>
#include <array>
#include <cmath>

#include "base/json_mistake.h"
#include "base/text.h"
#include "flops/family_internal.h"

namespace flopsight::flops {
namespace {

namespace json = base::json;
using Kind = Output::Kind;

constexpr std::uint64_t kLabelsOfClass = 2;  // of transformers' PretrainedConfig, where nothing is said

struct Named {
  std::string_view end;
  Kind kind = Kind::kVocabulary;
  bool bias = false;
  std::uint64_t labels = 0;  // of the class, whatever the configuration says
  bool of_sequence = false;
};

// The first that fits: a longer one before those that end like it. ChatGLM's repositories name the class without the head beside weights that have it.
constexpr std::array kNamed = std::to_array<Named>({
    {"ChatGLMModel"},
    {"ForCausalLM"},
    {"ForConditionalGeneration"},
    {"ForMaskedLM"},
    {"ForPreTraining"},
    {"LMHeadModel"},
    {"ForSequenceClassification", Kind::kLabels, false, 0, true},
    {"ForTokenClassification", Kind::kLabels, true},
    {"ForQuestionAnswering", Kind::kLabels, true, 2},
    {"ForImageClassification"},  // a tower's, which reads its labels itself
    {"InternLM2ForRewardModel", Kind::kLabels, false, 1},
    {"Qwen2ForProcessRewardModel", Kind::kRewardLayers, true},
    {"Qwen2ForRewardModel", Kind::kRewardLayers, true, 1},
    {"EncoderModel", Kind::kEncoder},
    {"ModelWithProjection", Kind::kNone},  // CLIP's towers, which read it themselves
    {"Model", Kind::kNone},
});

const Named* named(std::string_view architecture) {
  if (architecture.ends_with("PreTrainedModel")) return nullptr;  // of no class in particular
  const auto found = std::find_if(kNamed.begin(), kNamed.end(), [&](const Named& n) { return architecture.ends_with(n.end); });
  return found == kNamed.end() ? nullptr : &*found;
}

base::Error not_known(const std::string& architecture) {
  return {base::ErrorCode::kUnsupported,
          "architectures: which head " + base::printable(architecture, 80) +
              " has is not known, expected a name that ends in ForCausalLM, ForMaskedLM, ForConditionalGeneration, ForSequenceClassification, ForTokenClassification, "
              "ForQuestionAnswering or Model; --ignore-key architectures counts the head that the family has"};
}

base::Status read_labels(const json::Value& config, const Named& n, Output& output) {
  output.labels = n.labels;
  output.labels_from = "of the class";
  if (n.labels > 0) return {};
  for (const char* key : {"num_labels", "_num_labels"}) {
    const json::Value* value = config.find(key);
    if (value == nullptr || value->is_null()) continue;
    const double* number = value->as_number();
    if (number == nullptr || !(*number >= 1) || *number > static_cast<double>(kSizeMax) || *number != std::floor(*number)) {
      return json::wrong(key, *value, "a whole number from 1 to " + std::to_string(kSizeMax));
    }
    output.labels = static_cast<std::uint64_t>(*number);
    output.labels_from = key;
    return {};
  }
  const json::Value* names = config.find("id2label");
  if (names == nullptr || names->is_null()) {
    output.labels = kLabelsOfClass;
    output.labels_from = "neither num_labels nor id2label is given, and so the model class's default";
    return {};
  }
  if (names->as_object() == nullptr || names->as_object()->empty()) return json::wrong("id2label", *names, "an object with the labels");
  output.labels = names->as_object()->size();
  output.labels_from = "id2label";
  return {};
}

}  // namespace

base::Result<Output> read_output(const json::Value& config) {
  Output output;
  const json::Value* list = config.find("architectures");
  if (list == nullptr || list->is_null()) return output;
  if (list->as_array() == nullptr) return json::wrong("architectures", *list, "a list of texts");
  const Named* first = nullptr;
  for (const json::Value& item : *list->as_array()) {
    if (item.as_string() == nullptr) return json::wrong("architectures", *list, "a list of texts");
    const Named* one = named(*item.as_string());
    if (one == nullptr) return not_known(*item.as_string());
    if (first != nullptr && first->kind != one->kind) {
      return base::Error{base::ErrorCode::kInvalid, "architectures: " + base::printable(output.architecture, 80) + " and " + base::printable(*item.as_string(), 80) +
                                                        " have different heads, expected one"};
    }
    if (first != nullptr) continue;
    first = one;
    output.architecture = *item.as_string();
  }
  if (first == nullptr) return output;
  output.kind = first->kind;
  output.bias = first->bias;
  output.of_sequence = first->of_sequence;
  if (output.kind == Kind::kLabels || output.kind == Kind::kRewardLayers) FLOPSIGHT_RETURN_IF_ERROR(read_labels(config, *first, output));
  return output;
}

void add_output(Builder& builder, std::uint64_t width, Norms norms, bool bias) {
  Shape& s = builder.model.shape;
  const Output& o = builder.output;
  if (o.kind == Kind::kVocabulary) {
    s.head_size = s.vocab_size;
    builder.add(head_layer(width, s.vocab_size, s.tied, norms, bias));
    return;
  }
  s.tied = false;  // there is no head that could be the embedding
  const std::string counted = "architectures names " + base::printable(o.architecture, 80) + ": counted ";
  const std::string instead = "; --ignore-key architectures counts the head over the vocabulary";
  if (o.kind == Kind::kNone || o.kind == Kind::kEncoder) {
    builder.assume(counted + (o.kind == Kind::kEncoder ? "as the encoder alone, " : "") + "without a head" + instead);
    if (norms.count * norms.vectors_each > 0) builder.add(norm_layer(norms));
    return;
  }
  if (o.of_sequence && builder.pools) {
    builder.assume(counted + "without its head, which runs once for a sequence" + instead);
    return;
  }
  const bool layers = o.kind == Kind::kRewardLayers;
  builder.assume(counted + "with a head of " + (layers ? "hidden_size x hidden_size and " : "") + "hidden_size x " + std::to_string(o.labels) + " (" + o.labels_from +
                 ") on every token, without one over the vocabulary" + instead);
  s.head_size = o.labels;
  if (layers) {
    Layer inner = head_layer(width, width, false, norms, o.bias);
    builder.add(inner);
    norms = {};
  }
  builder.add(head_layer(width, o.labels, false, norms, o.bias));
}

}  // namespace flopsight::flops
