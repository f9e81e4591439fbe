// JSON of POST /api/v1/jobs/ID/mfu. Whatever it is: a mistake is one line, and what is taken has a figure and is not used where it cannot be.

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "training_logs/told_steps.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace flopsight::training_logs;
  const auto told = parse_told_steps({reinterpret_cast<const char*>(data), size});
  if (!told.ok()) {
    const std::string& message = told.error().message;
    if (message.empty() || message.find('\n') != std::string::npos) __builtin_trap();
    return 0;
  }
  if (told->steps.empty() || !told->source.starts_with("api")) __builtin_trap();
  for (const Step& step : told->steps) {
    bool has_figure = false;
    for (const auto figure : kStepFigures) {
      has_figure = has_figure || (step.*figure).has_value();
      if (step.*figure && !(*(step.*figure) > 0) && !step.excluded) __builtin_trap();
    }
    if (!has_figure || (step.mfu_ratio && *step.mfu_ratio > 1 && !step.excluded)) __builtin_trap();
  }
  return 0;
}
