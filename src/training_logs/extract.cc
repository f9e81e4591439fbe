#include <algorithm>
#include <optional>
#include <utility>

#include "base/text.h"
#include "training_logs/formats_internal.h"

namespace flopsight::training_logs {
namespace {

using enum Meaning;
using Place = Field::Place;

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

bool is_validation_word(std::string_view word) {
  constexpr std::string_view kWords[] = {"val", "valid", "validate", "validating", "validation", "eval", "evaluate", "evaluating", "evaluation"};
  const std::string lower = base::to_lower(word);
  return std::find(std::begin(kWords), std::end(kWords), lower) != std::end(kWords);
}

bool is_of_validation(const Format& format, std::string_view text) {
  for (const Field& field : format.fields) {
    if (field.meaning != kStep || field.place != Place::kAfter) continue;
    for (std::size_t at = find_word(text, field.key); at != std::string_view::npos; at = find_word(text, field.key, at + 1)) {
      const std::size_t number = text.find_first_not_of(" \t:=", at + field.key.size());
      if (number == std::string_view::npos || text[number] < '0' || text[number] > '9') continue;
      std::string_view before = text.substr(0, at);
      while (!before.empty() && std::string_view(" \t[]():|-").find(before.back()) != std::string_view::npos) before.remove_suffix(1);
      const auto letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); };
      std::size_t from = before.size();
      while (from > 0 && letter(before[from - 1])) --from;
      const bool is_word = from == 0 || (!word_character(before[from - 1]) && before[from - 1] != '.');
      if (is_word && is_validation_word(before.substr(from))) return true;
    }
  }
  return false;
}

bool matches(const Format& format, std::string_view text) {
  for (const std::string_view word : format.all) {
    if (find_word(text, word) == std::string_view::npos) return false;
  }
  for (const std::string_view word : format.any) {
    if (find_word(text, word) != std::string_view::npos) return true;
  }
  return format.any.empty() || (format.is_head != nullptr && format.is_head(text));
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
      if (field.meaning == kStep) continue;  // "elapsed time per iteration (ms): 1000" numbers no iteration
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

}  // namespace flopsight::training_logs
