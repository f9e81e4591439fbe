#include <array>
#include <charconv>
#include <cmath>
#include <string>
#include <utility>

#include "base/text.h"
#include "training_logs/figure_internal.h"

namespace flopsight::training_logs {
namespace {

struct Known {
  std::string_view text;
  Unit unit;
};

constexpr Known kWhole[] = {
    {"%", {Dimension::kRatio, 0.01, false, {}}},
    {"percent", {Dimension::kRatio, 0.01, false, {}}},
    {"ratio", {Dimension::kRatio, 1, false, {}}},
    {"us", {Dimension::kTime, 1e-6, false, {}}},
    {"ms", {Dimension::kTime, 1e-3, false, {}}},
    {"msec", {Dimension::kTime, 1e-3, false, {}}},
    {"milliseconds", {Dimension::kTime, 1e-3, false, {}}},
    {"s", {Dimension::kTime, 1, false, {}}},
    {"sec", {Dimension::kTime, 1, false, {}}},
    {"secs", {Dimension::kTime, 1, false, {}}},
    {"second", {Dimension::kTime, 1, false, {}}},
    {"seconds", {Dimension::kTime, 1, false, {}}},
    {"min", {Dimension::kTime, 60, false, {}}},
    {"it/s", {Dimension::kBatchRate, 1, false, {}}},
    {"steps/s", {Dimension::kBatchRate, 1, false, {}}},
    {"s/it", {Dimension::kBatchRate, 1, true, {}}},
    {"s/step", {Dimension::kBatchRate, 1, true, {}}},
    {"number", {Dimension::kNumber, 1, false, {}}},
};

struct Rate {
  std::string_view text;
  Dimension dimension;
};
constexpr Rate kRates[] = {
    {"flop/s", Dimension::kFlopRate},     {"flops", Dimension::kFlopRate},
    {"flops/s", Dimension::kFlopRate},    {"flop/sec", Dimension::kFlopRate},
    {"flops/sec", Dimension::kFlopRate},  {"flops/second", Dimension::kFlopRate},
    {"tok/s", Dimension::kTokenRate},     {"token/s", Dimension::kTokenRate},
    {"tokens/s", Dimension::kTokenRate},  {"tok/sec", Dimension::kTokenRate},
    {"tokens/sec", Dimension::kTokenRate}, {"tokens/second", Dimension::kTokenRate},
    {"sample/s", Dimension::kSampleRate}, {"samples/s", Dimension::kSampleRate},
    {"samples/sec", Dimension::kSampleRate}, {"samples/second", Dimension::kSampleRate},
    {"seq/s", Dimension::kSampleRate},    {"sequences/s", Dimension::kSampleRate},
};

constexpr std::string_view kDevices[] = {"/gpu", "/device", "/chip", "/gcd"};

double prefix_scale(char c) {
  switch (c) {
    case 'k': return 1e3;
    case 'm': return 1e6;
    case 'g': return 1e9;
    case 't': return 1e12;
    case 'p': return 1e15;
    case 'e': return 1e18;
    default: return 0;
  }
}

bool digit(char c) { return c >= '0' && c <= '9'; }

// The size of a number whose thousands have dots, "3.800,5" or "1.234.567", at the start of the text; 0 where there is none. (Of
// "3.800" alone nobody can tell, and it is what it is in English.)
std::size_t dotted_thousands(std::string_view text) {
  std::size_t at = 0, groups = 0, run = 0;
  while (at < text.size() && digit(text[at])) ++at;
  if (at == 0 || at > 3) return 0;
  for (; at + 3 < text.size() && text[at] == '.' && digit(text[at + 1]) && digit(text[at + 2]) && digit(text[at + 3]); ++groups) at += 4;
  if (groups == 0 || (at < text.size() && digit(text[at]))) return 0;
  if (at < text.size() && text[at] == ',') {
    while (at + 1 + run < text.size() && digit(text[at + 1 + run])) ++run;
  }
  if (run > 0) return at + 1 + run;
  return groups > 1 ? at : 0;
}

}  // namespace

std::optional<Unit> parse_unit(std::string_view text) {
  if (text.empty() || text.size() > 40) return std::nullopt;
  const std::string lower = base::to_lower(base::trim(text));
  for (const Known& known : kWhole) {
    if (known.text == lower) return known.unit;
  }
  std::string_view rest = lower;
  if (rest.substr(0, 6) == "model_") rest.remove_prefix(6);
  std::optional<bool> per_gpu;
  for (const std::string_view device : kDevices) {
    if (rest.size() > device.size() && rest.substr(rest.size() - device.size()) == device) {
      rest.remove_suffix(device.size());
      per_gpu = true;
      break;
    }
  }
  for (const Rate& rate : kRates) {
    if (rest == rate.text) return Unit{rate.dimension, 1, false, per_gpu};
    if (rest.size() == rate.text.size() + 1 && rest.substr(1) == rate.text && prefix_scale(rest.front()) > 0) {
      return Unit{rate.dimension, prefix_scale(rest.front()), false, per_gpu};
    }
  }
  return std::nullopt;
}

std::optional<Meaning> meaning_named(std::string_view name) {
  constexpr std::pair<std::string_view, Meaning> kNames[] = {
      {"step", Meaning::kStep},
      {"loss", Meaning::kLoss},
      {"mfu", Meaning::kMfu},
      {"flops_per_gpu", Meaning::kFlopsPerGpu},
      {"tokens_per_gpu", Meaning::kTokensPerGpu},
      {"tokens", Meaning::kTokens},
      {"samples", Meaning::kSamples},
      {"step_time", Meaning::kStepTime},
      {"batches", Meaning::kBatchRate},
      {"peak", Meaning::kPeak},
  };
  for (const auto& [known, meaning] : kNames) {
    if (known == name) return meaning;
  }
  return std::nullopt;
}

std::string_view example_unit(Meaning meaning) {
  switch (dimension_of(meaning)) {
    case Dimension::kRatio: return "\"%\" or ratio";
    case Dimension::kTime: return "s or ms";
    case Dimension::kFlopRate: return "FLOP/s or TFLOP/s";
    case Dimension::kTokenRate: return "tokens/s";
    case Dimension::kSampleRate: return "samples/s";
    case Dimension::kBatchRate: return "it/s or s/it";
    case Dimension::kNumber: break;
  }
  return "number";
}

Dimension dimension_of(Meaning meaning) {
  switch (meaning) {
    case Meaning::kMfu: return Dimension::kRatio;
    case Meaning::kFlopsPerGpu:
    case Meaning::kPeak: return Dimension::kFlopRate;
    case Meaning::kTokensPerGpu:
    case Meaning::kTokens: return Dimension::kTokenRate;
    case Meaning::kSamples: return Dimension::kSampleRate;
    case Meaning::kStepTime: return Dimension::kTime;
    case Meaning::kBatchRate: return Dimension::kBatchRate;
    case Meaning::kStep:
    case Meaning::kLoss: break;
  }
  return Dimension::kNumber;
}

bool put(Step& step, Meaning meaning, double value, const Unit& unit) {
  if (unit.dimension != dimension_of(meaning)) return false;
  const double scaled = value * unit.base_unit_scale;
  switch (meaning) {
    case Meaning::kStep:
      // What does not fit is no number of a step; a conversion out of range would be undefined.
      if (!(scaled >= 0 && scaled <= 9e15)) return false;
      step.step = static_cast<std::int64_t>(scaled);
      break;
    case Meaning::kLoss: step.loss = Loss{scaled}; break;
    case Meaning::kMfu: step.mfu_ratio = scaled; break;
    case Meaning::kFlopsPerGpu: step.flops_per_second_per_gpu = scaled; break;
    case Meaning::kTokensPerGpu: step.tokens_per_second_per_gpu = scaled; break;
    case Meaning::kTokens: step.tokens_per_second = scaled; break;
    case Meaning::kSamples: step.samples_per_second = scaled; break;
    case Meaning::kStepTime: step.step_seconds = scaled; break;
    case Meaning::kBatchRate:
      if (!unit.inverse && !(scaled > 0)) return false;
      step.step_seconds = unit.inverse ? scaled : 1 / scaled;
      break;
    case Meaning::kPeak: step.peak_flops_per_second = scaled; break;
  }
  return true;
}

Printed read_number(std::string_view text) {
  for (const std::string_view word : {"nan", "inf", "none", "null", "n/a"}) {
    const bool minus = !text.empty() && text.front() == '-';
    const std::string_view from = minus ? text.substr(1) : text;
    if (from.size() >= word.size() && base::to_lower(from.substr(0, word.size())) == word) {
      return {std::nullopt, word.size() + (minus ? 1 : 0)};
    }
  }
  std::array<char, 64> plain{};
  std::size_t size = 0;
  std::size_t at = 0;
  const auto keep = [&] { plain[size++] = text[at++]; };
  if (at < text.size() && text[at] == '+') ++at;
  if (at < text.size() && text[at] == '-') keep();
  const std::size_t first = at;
  if (const std::size_t dotted = dotted_thousands(text.substr(at)); dotted > 0) return {std::nullopt, at + dotted};
  std::size_t group = 0;
  while (at < text.size() && size < 40) {
    // A comma belongs to the number where exactly three digits follow it.
    const bool comma = text[at] == ',' && group > 0 && group <= 3 && at + 3 < text.size() && digit(text[at + 1]) &&
                       digit(text[at + 2]) && digit(text[at + 3]) && (at + 4 >= text.size() || !digit(text[at + 4]));
    if (comma) {
      ++at;
      group = 0;
    } else if (digit(text[at])) {
      keep();
      ++group;
    } else {
      break;
    }
  }
  const bool whole = at > first;
  // "314,71": somebody's decimal comma, of which the part before it is no figure.
  if (whole && at + 1 < text.size() && text[at] == ',' && digit(text[at + 1])) {
    while (at < text.size() && (digit(text[at]) || text[at] == ',')) ++at;
    return {std::nullopt, at};
  }
  if (at < text.size() && text[at] == '.' && (whole || (at + 1 < text.size() && digit(text[at + 1])))) {
    keep();
    while (at < text.size() && digit(text[at]) && size < 58) keep();
    while (at < text.size() && digit(text[at])) ++at;
  }
  if (size == 0 || !(whole || size > 1)) return {};
  if (at < text.size() && (text[at] == 'e' || text[at] == 'E')) {
    const std::size_t sign = at + 1 < text.size() && (text[at + 1] == '+' || text[at + 1] == '-') ? 1 : 0;
    std::size_t end = at + 1 + sign;
    while (end < text.size() && digit(text[end]) && end < at + 5) ++end;
    if (end > at + 1 + sign) {
      plain[size++] = 'e';
      if (sign != 0 && text[at + 1] == '-') plain[size++] = '-';
      for (std::size_t i = at + 1 + sign; i < end; ++i) plain[size++] = text[i];
      at = end;
    }
  }
  return {base::parse_number(std::string_view(plain.data(), size)), at};
}

}  // namespace flopsight::training_logs
