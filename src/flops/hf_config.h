#pragma once
// A model from its Hugging Face config.json. Each family (model_type) has a reader that knows which keys decide the count; a
// model_type that is not known, and keys that nobody knows, are refused by name: a missed key is how other calculators come to
// count a hybrid as a transformer. Not so null, which is as if the key were not there, nor false where by its name it asks for
// nothing (an assumption says so). Keys that leave the count alone (token ids, dropout, rotary embeddings, number formats) are
// listed in config_keys.cc.
//
// A multi-modal configuration is one whose text_config is the language model and whose vision_config, if it is there, is the tower.
//
// Units: sizes in elements. Threads: pure.

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "flops/layer.h"

namespace flopsight::flops {

inline constexpr std::size_t kConfigBytesMax = std::size_t{4} << 20;

struct ReadOptions {
  std::vector<std::string> ignored_keys;  // the user says that these leave the count alone; as in messages: "text_config.x"
};

// Errors, one line with the key: kInvalid (no JSON, a value that cannot be, sizes that contradict each other), kUnsupported (a
// model_type or keys that are not known), kLimit (longer than kConfigBytesMax, more than 2^53 parameters).
// Infinity and NaN, which Python writes into JSON, are no size: a key that decides the count and has one is refused by its name.
base::Result<Model> read_hf_config(std::string_view text, const ReadOptions& options = {});

// Python's json module writes Infinity, -Infinity and NaN, which JSON does not have: the word as a text in their place, for who parses a text that holds a
// configuration. What is in strings stays.
std::string without_infinities(std::string_view text);

struct KnownFamily {
  std::string_view model_type;
  std::string_view note;
};
const std::vector<KnownFamily>& known_families();  // by name

}  // namespace flopsight::flops
