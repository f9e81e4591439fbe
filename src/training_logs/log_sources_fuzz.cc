// YAML of sources of training logs and, behind the first zero byte, of metrics that trainers export.

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "training_logs/exported_metrics.h"
#include "training_logs/log_sources.h"

namespace {

template <typename Result>
void check_error(const Result& result) {
  if (result.ok()) return;
  const std::string& message = result.error().message;
  if (message.empty() || message.find('\n') != std::string::npos) __builtin_trap();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace flopsight::training_logs;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const std::size_t zero = bytes.find('\0');
  const auto sources = parse_log_sources(bytes.substr(0, zero));
  check_error(sources);
  if (sources.ok()) {
    for (const LogSource& source : *sources) {
      if (source.path.empty() || source.line < 1 || (!source.job.empty() && !source.job_regex.empty())) __builtin_trap();
    }
  }
  if (zero == std::string_view::npos) return 0;
  const auto metrics = ExportedMetrics::parse(bytes.substr(zero + 1));
  check_error(metrics);
  if (!metrics.ok()) return 0;
  for (const auto& metric : metrics->named("mfu")) {
    const auto step = metrics->read(metric.name, 40, {1'790'000'000'000});
    if (!metrics->known(metric.name) || !(metric.base_unit_scale > 0) || (step && !step->mfu_ratio && !step->flops_per_second_per_gpu && !step->loss &&
        !step->tokens_per_second_per_gpu && !step->tokens_per_second && !step->samples_per_second && !step->step_seconds && !step->step && !step->peak_flops_per_second)) {
      __builtin_trap();
    }
  }
  return 0;
}
