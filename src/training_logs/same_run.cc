#include <string>

#include "training_logs/formats_internal.h"
#include "training_logs/runs_internal.h"

namespace flopsight::training_logs {
namespace {

// The framework that trains; empty for what prints beside one and for what a user's patterns find: he says what they are.
std::string_view framework_of(const std::string& format_name) {
  for (const Format& format : formats()) {
    if (format.name == format_name) return format.beside ? std::string_view() : !format.series.empty() ? format.series : format.name;
  }
  return {};
}

}  // namespace

std::string why_different_runs(const Reported& one, const Reported& other) {
  const std::string_view a = framework_of(one.format), b = framework_of(other.format);
  if (!a.empty() && !b.empty() && a != b) return "the frameworks are " + std::string(a) + " and " + std::string(b);
  if (const std::string_view name = setting_of_another_run(one.settings, other.settings); !name.empty()) {
    return std::string(name) + " is " + *one.setting(name) + " and " + *other.setting(name);
  }
  const bool begin_alike = !one.steps.empty() && !other.steps.empty() && one.steps.front().step && one.steps.front().step == other.steps.front().step;
  if (begin_alike && has_another_speed(one.steps, other.steps)) return "both begin with the same step, at speeds more than a fifth apart";
  return {};
}

}  // namespace flopsight::training_logs
