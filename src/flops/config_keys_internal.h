#pragma once
// Typed reading of one object of a config.json, for the family readers. The first mistake is kept and the readers go on with
// harmless values, so that they read straight down; finish() tells it, or all keys that nobody asked for and that are not known to
// leave the count alone.

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/result.h"

namespace flopsight::flops {

inline constexpr std::uint64_t kSizeMax = std::uint64_t{1} << 24;  // of a width, a vocabulary, a rank
inline constexpr std::uint64_t kBlocksMax = 10'000;
inline constexpr std::uint64_t kExpertsMax = std::uint64_t{1} << 16;

class Keys {
 public:
  // `path` goes before keys in messages: "text_config.". The object must outlive this.
  Keys(const base::json::Object& object, std::string path) : object_(object), path_(std::move(path)) {}

  // Whether the key is there and not null.
  bool has(std::string_view key);
  // The first of several spellings that is there; the first of all if none is.
  std::string_view spelling(std::initializer_list<std::string_view> keys);

  std::uint64_t count(std::string_view key, std::uint64_t max = kSizeMax);  // 1 or more; must be there
  std::uint64_t count_or(std::string_view key, std::uint64_t absent, std::uint64_t max = kSizeMax, std::uint64_t min = 1);
  // For keys that a configuration may leave out because they are as in the model's class; what is taken so is told.
  std::uint64_t count_or_class(std::string_view key, std::uint64_t of_class, std::uint64_t max = kSizeMax);
  const std::string& defaults_taken() const { return defaults_taken_; }  // "vocab_size 262208, head_dim 256"
  std::uint64_t count_or_auto(std::string_view key, std::uint64_t automatic);  // also where the key is not there
  double number_or(std::string_view key, double absent, double min, double max);
  bool flag_or(std::string_view key, bool absent);
  std::string text_or(std::string_view key, std::string_view absent);
  std::vector<std::string> texts(std::string_view key, std::size_t count_max);    // empty if not there
  std::vector<std::uint64_t> counts(std::string_view key, std::size_t count_max);  // empty if not there; each 0 or more
  const base::json::Array* objects(std::string_view key, std::size_t count_max);  // nullptr if not there
  const base::json::Object* object(std::string_view key);                         // nullptr if not there

  // The key is read: it says nothing that changes the count for this family.
  void known(std::initializer_list<std::string_view> keys);
  // Flags of what the family does not have: false, null or not there, else a mistake.
  void off(std::initializer_list<std::string_view> keys);
  // Another spelling of `key`, whose value is `value`: the same number, null or not there, else a mistake that names both.
  void same(std::string_view spelling, std::string_view key, std::uint64_t value);
  // One of these texts, or a mistake that lists them; `absent` if the key is not there.
  std::string one_of(std::string_view key, std::string_view absent, std::initializer_list<std::string_view> choices);

  // Says what is wrong with the value of `key`, unless something was wrong before.
  void wrong(std::string_view key, std::string_view expected);
  void fail(std::string message);  // without a key
  bool ok() const { return !error_; }
  std::string path(std::string_view key) const { return path_ + std::string(key); }

  void ignore(const std::vector<std::string>& keys);  // as full paths
  base::Status first_mistake() const;
  // kInvalid for a mistake, kUnsupported for the keys that are not known.
  base::Status finish(std::string_view model_type);
  // Finishes an object inside this one: its mistakes, keys that are not known and what was taken as off are this one's.
  void finish_part(Keys& part, std::string_view model_type);
  // After finish(): keys that nobody knows and that are false, which by the convention of such files asks for nothing.
  const std::vector<std::string>& taken_as_off() const { return taken_as_off_; }

 private:
  const base::json::Value* find(std::string_view key);

  const base::json::Object& object_;
  std::string path_;
  std::set<std::string, std::less<>> seen_;
  std::set<std::string, std::less<>> ignored_;
  std::optional<base::Error> error_;
  std::string defaults_taken_;
  std::vector<std::string> unknown_;
  std::vector<std::string> taken_as_off_;
};

// Keys that leave the count alone in every family: token ids, dropout, positions of rotary embeddings, number formats, …
bool harmless_key(std::string_view key);

// Whether false, as the value of a key that nobody knows, may say that something usual is not there: "gated_linear_unit", "no_bias",
// "causal". Of other keys false means that something unusual is not there.
bool false_may_matter(std::string_view key);

}  // namespace flopsight::flops
