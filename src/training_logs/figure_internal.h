#pragma once
// A figure of a line: what it means, and its number in the base unit of that meaning. Units are read here.

#include <cstdint>
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

// The dimension that a meaning needs.
Dimension dimension_of(Meaning meaning);

// Puts the number into the step. False when the unit does not fit the meaning.
bool put(Step& step, Meaning meaning, double value, const Unit& unit);

// A number as programs print it: "10,050", "3.120e+14", "-100.00", "633.7" of "633.7/630.1". `size` is how many characters it takes;
// 0 when there is none. "nan", "inf", "None" and "N/A" are numbers that cannot be read: size without a value.
struct Printed {
  std::optional<double> value;
  std::size_t size = 0;
};
Printed read_number(std::string_view text);

}  // namespace flopsight::training_logs
