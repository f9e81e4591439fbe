// YAML of a site's models by names of jobs and, behind the first zero byte, a config.json that the rules name.

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "audit/model_rules.h"
#include "audit/told_model.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace flopsight::audit;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const std::size_t zero = bytes.find('\0');
  const auto rules = parse_model_rules(bytes.substr(0, zero));
  if (!rules.ok()) {
    if (rules.error().message.empty() || rules.error().message.find('\n') != std::string::npos) __builtin_trap();
    return 0;
  }
  for (const ModelRule& rule : *rules) {
    if (rule.match.empty() || rule.config_path.empty() || rule.line < 1) __builtin_trap();
    if (zero == std::string_view::npos) continue;
    const auto told = told_by_rule(rule, bytes.substr(zero + 1));
    // What a rule tells can be told again.
    if (told.ok() && !parse_told_model(*told).ok()) __builtin_trap();
  }
  return 0;
}
