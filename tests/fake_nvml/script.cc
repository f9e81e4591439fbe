#include "script.h"

#include <algorithm>
#include <charconv>

#include "base/text.h"

namespace flopsight::fake_nvml {
namespace {

base::Error wrong(std::size_t line, const std::string& what) {
  return {base::ErrorCode::kInvalid, "line " + std::to_string(line) + ": " + what};
}

// One space between words.
std::string words_of(std::string_view text) {
  std::string out;
  for (const std::string& word : base::split(text, ' ')) {
    if (word.empty()) continue;
    if (!out.empty()) out += ' ';
    out += word;
  }
  return out;
}

}  // namespace

base::Result<Script> Script::parse(std::string_view text) {
  Script script;
  double now = 0;
  std::size_t number = 0;
  for (const std::string& whole : base::split(text, '\n')) {
    ++number;
    const std::string_view line = base::trim(std::string_view(whole).substr(0, whole.find('#')));
    if (line.empty()) continue;
    if (line.starts_with("at ")) {
      const auto seconds = base::parse_number(base::trim(line.substr(3)));
      if (!seconds || *seconds < now) return wrong(number, "expected \"at SECONDS\", not before the one above");
      now = *seconds;
      continue;
    }
    const std::size_t equals = line.find('=');
    const std::string fact = words_of(line.substr(0, equals));
    if (equals == std::string_view::npos || fact.empty()) return wrong(number, "expected \"FACT = VALUE\" or \"at SECONDS\"");
    script.facts_[fact].emplace_back(now, base::trim(line.substr(equals + 1)));
  }
  return script;
}

std::optional<std::string> Script::text(const std::string& fact, double seconds) const {
  const auto at = facts_.find(fact);
  if (at == facts_.end()) return std::nullopt;
  std::optional<std::string> out;
  for (const auto& [time, value] : at->second) {
    if (time > seconds) break;
    out = value;
  }
  if (out && *out == "-") out.reset();
  return out;
}

std::optional<double> Script::number(const std::string& fact, double seconds) const {
  const auto value = text(fact, seconds);
  return value ? base::parse_number(*value) : std::nullopt;
}

std::optional<double> Script::mean(const std::string& fact, double from_seconds, double to_seconds) const {
  if (from_seconds >= to_seconds) return number(fact, to_seconds);
  double sum = 0;
  double from = from_seconds;
  std::vector<std::pair<double, std::string>> changes = settings(fact, from_seconds, to_seconds);
  changes.emplace_back(to_seconds, "");
  for (const auto& [time, value] : changes) {
    if (time > from) {
      const auto before = number(fact, from);
      if (!before) return std::nullopt;
      sum += *before * (time - from);
    }
    from = time;
  }
  return sum / (to_seconds - from_seconds);
}

std::vector<std::pair<double, std::string>> Script::settings(const std::string& fact, double after_seconds, double until_seconds) const {
  std::vector<std::pair<double, std::string>> out;
  const auto at = facts_.find(fact);
  if (at == facts_.end()) return out;
  for (const auto& setting : at->second) {
    if (setting.first > after_seconds && setting.first <= until_seconds) out.push_back(setting);
  }
  return out;
}

std::vector<unsigned> Script::numbers_after(const std::string& before, double seconds) const {
  std::vector<unsigned> out;
  const std::string prefix = before + " ";
  for (auto at = facts_.lower_bound(prefix); at != facts_.end() && at->first.starts_with(prefix); ++at) {
    if (at->second.front().first > seconds) continue;
    unsigned number = 0;
    const char* const begin = at->first.data() + prefix.size();
    const auto [end, error] = std::from_chars(begin, at->first.data() + at->first.size(), number);
    if (error == std::errc() && end != begin) out.push_back(number);
  }
  std::sort(out.begin(), out.end());
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

}  // namespace flopsight::fake_nvml
