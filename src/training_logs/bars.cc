#include "training_logs/bars_internal.h"

#include <algorithm>

#include "base/text.h"

namespace flopsight::training_logs {
namespace {

constexpr std::string_view kRichBar = "━";
constexpr std::string_view kRates[] = {"it/s", "s/it", "step/s", "steps/s", "s/step"};

bool digit(char c) { return c >= '0' && c <= '9'; }

std::string_view trim_right(std::string_view text) {
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

std::optional<std::int64_t> whole(std::string_view text) {
  if (text.empty() || text.size() > 15) return std::nullopt;
  std::int64_t value = 0;
  for (const char c : text) {
    if (!digit(c)) return std::nullopt;
    value = value * 10 + (c - '0');
  }
  return value;
}

// "120/1000" at the end of the text.
bool counts_before(std::string_view text, Bar& bar) {
  text = trim_right(text);
  std::size_t from = text.size();
  while (from > 0 && (digit(text[from - 1]) || text[from - 1] == '/')) --from;
  const std::string_view counts = text.substr(from);
  const std::size_t slash = counts.find('/');
  if (slash == std::string_view::npos) return false;
  const auto done = whole(counts.substr(0, slash));
  bar.total = whole(counts.substr(slash + 1));
  bar.done = done.value_or(0);
  return done && bar.total;
}

// "4.35it/s" and "1.20s/it" somewhere in the text.
std::optional<double> seconds_each(std::string_view text) {
  for (const std::string_view rate : kRates) {
    for (std::size_t at = text.find(rate); at != std::string_view::npos; at = text.find(rate, at + 1)) {
      std::size_t from = at;
      while (from > 0 && (digit(text[from - 1]) || text[from - 1] == '.')) --from;
      const Printed number = read_number(text.substr(from, at - from));
      if (!number.value || number.size != at - from || !(*number.value > 0)) continue;
      return rate.front() == 's' && rate[1] == '/' ? *number.value : 1 / *number.value;
    }
  }
  return std::nullopt;
}

// What stands before the bar, without what launchers put there. tqdm ends a description with a colon.
std::string_view description_of(std::string_view before) {
  before = trim_right(before);
  const std::size_t bracket = before.rfind(']');
  const std::size_t tag = before.rfind("<std");
  const std::size_t from = tag != std::string_view::npos ? before.size() : bracket == std::string_view::npos ? 0 : bracket + 1;
  before = base::trim(before.substr(from));
  if (before.starts_with(':')) before = base::trim(before.substr(1));  // "[rank0]: "
  if (!before.ends_with(':')) return {};
  while (before.ends_with(':') || before.ends_with(' ')) before.remove_suffix(1);
  const std::size_t label = before.find(": ");  // of srun: "12: Train"
  if (label != std::string_view::npos && whole(base::trim(before.substr(0, label)))) before = base::trim(before.substr(label + 1));
  return whole(before) ? std::string_view() : before;  // "12:" alone is a label too
}

std::optional<Bar> tqdm_bar(std::string_view text) {
  const std::size_t percent = text.rfind("%|");  // the last one: a bar may be drawn anew behind its own past
  const std::size_t open = percent == std::string_view::npos ? percent : text.find(" [", percent);
  if (open == std::string_view::npos) return std::nullopt;
  Bar bar;
  const std::size_t close = text.rfind('|', open);
  if (close == percent + 1 || !counts_before(text.substr(close + 1, open - close - 1), bar)) return std::nullopt;
  std::size_t begin = percent;
  while (begin > 0 && digit(text[begin - 1])) --begin;
  bar.description = description_of(text.substr(0, begin));
  bar.seconds_each = seconds_each(text.substr(open));
  return bar;
}

std::optional<Bar> rich_bar(std::string_view text) {
  const std::size_t line = text.find(kRichBar);
  const std::size_t line_end = text.rfind(kRichBar);
  if (line == std::string_view::npos) return std::nullopt;
  Bar bar;
  const std::string_view behind = text.substr(line_end + kRichBar.size());
  const std::size_t slash = behind.find('/');
  const std::size_t counts_end = slash == std::string_view::npos ? slash : behind.find(' ', slash);
  if (!counts_before(behind.substr(0, counts_end), bar)) return std::nullopt;
  bar.description = trim_right(text.substr(0, line));
  bar.seconds_each = seconds_each(behind);
  return bar;
}

bool is_of_validation(std::string_view description) {
  for (const std::string& word : base::split(base::to_lower(description), ' ')) {
    if (is_validation_word(word.substr(0, word.find_first_of(":_(")))) return true;
  }
  return false;
}

bool is_training(std::string_view description) {
  if (is_of_validation(description)) return false;
  const std::string lower = base::to_lower(description);
  // "1|52|Loss: 2.31" is torchtune's.
  return lower.starts_with("train") || lower.starts_with("steps") || (digit(lower.empty() ? ' ' : lower.front()) && lower.find("|loss: ") != std::string::npos);
}

}  // namespace

std::optional<Bar> read_bar(std::string_view text) {
  // Nearly all lines that come here are none.
  if (find_word(text, "%|") == std::string_view::npos && find_word(text, kRichBar) == std::string_view::npos) return std::nullopt;
  const std::optional<Bar> bar = tqdm_bar(text);
  return bar ? bar : rich_bar(text);
}

std::optional<Extract> Bars::take(std::string_view text, bool all) {
  const std::optional<Bar> bar = read_bar(text);
  if (!bar) return std::nullopt;
  if (bar->description.empty()) {
    last_total_ = bar->total;
    if (!all && (!training_total_ || bar->total != training_total_)) return std::nullopt;
  } else if (!is_training(bar->description)) {
    return std::nullopt;
  }
  Extract extract;
  extract.step.step = bar->done;
  if (bar->seconds_each) {
    extract.step.step_seconds = bar->seconds_each;
    ++extract.figures;
  }
  return extract;
}

void lightning_bar(std::string_view text, Extract& extract) {
  const std::size_t epoch_at = text.find("Epoch ");
  if (epoch_at == std::string_view::npos) return;
  const std::optional<Bar> bar = read_bar(text.substr(epoch_at));
  if (!bar) return;
  extract.validation = is_of_validation(bar->description);
  if (bar->seconds_each) {
    extract.step.step_seconds = bar->seconds_each;
    ++extract.figures;
  }
  if (extract.step.step) return;
  const std::string_view number = text.substr(epoch_at + 6);
  const auto epoch = whole(number.substr(0, static_cast<std::size_t>(std::find_if_not(number.begin(), number.end(), digit) - number.begin())));
  if (epoch) (void)put(extract.step, Meaning::kStep, static_cast<double>(*epoch) * static_cast<double>(*bar->total) + static_cast<double>(bar->done), Unit{});
}

}  // namespace flopsight::training_logs
