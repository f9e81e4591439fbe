#include "notify/words.h"

#include <algorithm>
#include <cstdio>
#include <utility>

#include "base/text.h"
#include "base/utf8.h"

namespace flopsight::notify {
namespace {

// Alerts of `flopsight rules` for the same matter (rules/alerting.cc), so that one route fits both.
constexpr std::pair<std::string_view, std::string_view> kRuleAlerts[] = {
    {"regression", "FlopsightJobOfuDropped"},        {"hang", "FlopsightGpuHung"},
    {"thermal", "FlopsightGpuClockThrottled"},       {"counter_dead", "FlopsightTensorCounterMissing"},
    {"unseen", "FlopsightExporterSilent"},
};

std::string two_digits(double value) {
  char text[64];
  std::snprintf(text, sizeof text, "%.2f", value);
  return text;
}

// Six digits tell what there is to see, and 0.30000000000000004 does not.
std::string figure(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.6g", value);
  return text;
}

}  // namespace

std::string clean(std::string_view text, std::size_t bytes_max) { return base::printable(base::as_utf8(text), bytes_max); }

std::string alert_name(std::string_view kind) {
  for (const auto& [known, name] : kRuleAlerts) {
    if (known == kind) return std::string(name);
  }
  std::string out = "Flopsight";
  bool is_start = true;
  for (const char c : kind) {
    const bool is_lower = c >= 'a' && c <= 'z';
    if (!is_lower && !(c >= 'A' && c <= 'Z') && !(c >= '0' && c <= '9')) {
      is_start = true;
      continue;
    }
    out += is_start && is_lower ? static_cast<char>(c - 'a' + 'A') : c;
    is_start = false;
  }
  return out;
}

std::string subject_of(const findings::Record& record) {
  std::string out;
  const samples::Holder& holder = record.holder;
  if (!holder.job.empty()) out = "job " + (holder.name_space.empty() ? "" : clean(holder.name_space) + "/") + clean(holder.job);
  if (!record.gpu.empty()) out += (out.empty() ? "GPU " : ", GPU ") + clean(record.gpu);
  if (!record.host.empty()) out += (out.empty() ? "host " : record.gpu.empty() ? ", host " : " of host ") + clean(record.host);
  return out.empty() ? "the fleet" : out;
}

std::string summary_of(const findings::Record& record) {
  return (record.simulated ? "SIMULATED: " : "") + clean(record.kind) + ": " + subject_of(record);
}

std::string cost_of(const findings::Record& record) {
  if (!record.cost) return "";
  std::string out = two_digits(record.cost->value) + " GPU-hours";
  if (record.cost_usd) out += ", $" + two_digits(record.cost_usd->value);
  return out + " since " + units::to_rfc3339(record.first);
}

std::string description_of(const findings::Record& record) {
  std::string out = clean(record.text, kTextBytesMax);
  if (record.simulated) out += "\nOf a SIMULATED fleet, which does not exist.";
  for (std::size_t i = 0; i < std::min(record.evidence.size(), kListedMax); ++i) {
    out += "\n" + clean(record.evidence[i].name) + " = " + figure(record.evidence[i].value);
  }
  for (std::size_t i = 0; i < std::min(record.suspects.size(), kListedMax); ++i) {
    const detect::Suspect& suspect = record.suspects[i];
    out += "\nsuspect: " + clean(suspect.text, kTextBytesMax);
    if (suspect.explained_ratio) out += " (" + figure(*suspect.explained_ratio * 100) + " % of it)";
  }
  return out;
}

}  // namespace flopsight::notify
