#pragma once
// A figure of a line: what it means, and its number in the base unit of that meaning. Units are read here.

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string_view>

#include "training_logs/report.h"

namespace flopsight::training_logs {

enum class Meaning : std::uint8_t {
  kStep,
  kLoss,
  kMfu,
  kFlopsPerGpu,
  kTokensPerGpu,
  kTokens,
  kSamples,
  kStepTime,
  kBatchRate,  // batches per second: its inverse is the time of a step
  kPeak,
};

// What a unit text can stand for: "ms" is a time, "TFLOP/s/GPU" a rate of one device.
enum class Dimension : std::uint8_t { kNumber, kRatio, kTime, kFlopRate, kTokenRate, kSampleRate, kBatchRate };
struct Unit {
  Dimension dimension = Dimension::kNumber;
  double base_unit_scale = 1;  // of the unit, in the base unit
  bool inverse = false;        // "s/it" for "it/s"
  std::optional<bool> per_gpu; // said by the unit: "/GPU" or not at all
};

// "%", "ms", "TFLOP/s/GPU", "MODEL_TFLOP/s/GPU", "PFLOPS", "tokens/s/device", "it/s", …; nothing for what is no unit.
std::optional<Unit> parse_unit(std::string_view text);

// Meanings by the names that users write; "time" and "rank" are groups of patterns that are no figures.
std::optional<Meaning> meaning_named(std::string_view name);
inline constexpr std::string_view kMeaningNames =
    "step, rank, time, loss, mfu, flops_per_gpu, tokens_per_gpu, tokens, samples, step_time, batches or peak";
// What a unit of it looks like, for messages.
std::string_view example_unit(Meaning meaning);

// The dimension that a meaning needs.
Dimension dimension_of(Meaning meaning);

// Puts the number into the step. False when the unit does not fit the meaning.
bool put(Step& step, Meaning meaning, double value, const Unit& unit);

// Where the word stands, or npos. (The library's find tries every place of the first letter, which in prose is slow.)
inline std::size_t find_word(std::string_view text, std::string_view word, std::size_t from = 0) {
  if (from >= text.size()) return std::string_view::npos;
  const void* at = memmem(text.data() + from, text.size() - from, word.data(), word.size());
  return at == nullptr ? std::string_view::npos : static_cast<std::size_t>(static_cast<const char*>(at) - text.data());
}

// A number as programs print it: "10,050", "3.120e+14", "-100.00", "633.7" of "633.7/630.1". `size` is how many characters it takes;
// 0 when there is none. "nan", "inf", "None" and "N/A" are numbers that cannot be read: size without a value.
struct Printed {
  std::optional<double> value;
  std::size_t size = 0;
};
Printed read_number(std::string_view text);

}  // namespace flopsight::training_logs
