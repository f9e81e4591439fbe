// The first byte says how the text is cut and which options hold; the rest is the log. Whatever it is: the steps do not depend on
// the cuts, counts add up, and figures are finite.

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "training_logs/report.h"

using flopsight::training_logs::Options;
using flopsight::training_logs::Reader;
using flopsight::training_logs::Reported;
using flopsight::training_logs::Step;

namespace {

void check(const Reported& reported) {
  if (reported.steps.size() + reported.steps_dropped != reported.steps_total) __builtin_trap();
  if (reported.lines_matched == 0 && !reported.steps.empty()) __builtin_trap();
  std::uint64_t used = 0;
  for (const Step& step : reported.steps) {
    used += step.excluded ? 0U : 1U;
    for (const auto& figure : {step.mfu_ratio, step.flops_per_second_per_gpu, step.tokens_per_second_per_gpu, step.step_seconds}) {
      if (figure && !(std::isfinite(*figure) && *figure > 0)) __builtin_trap();
    }
    if (step.source.offset_bytes > reported.bytes_total) __builtin_trap();
  }
  if (!reported.several_runs && used != reported.summary.steps_used) __builtin_trap();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  Options options;
  if ((data[0] & 1U) != 0) options.zone = flopsight::base::Zone::fixed(3600, "+01:00");
  const Reported whole = flopsight::training_logs::read_log(text, options);
  check(whole);
  Reader reader(options);
  std::size_t steps = 0;
  const std::size_t piece = 1 + data[0] / 2;
  for (std::size_t at = 0; at < text.size(); at += piece) {
    reader.feed(text.substr(at, piece));
    if (reader.resume_at().offset_bytes > at + piece) __builtin_trap();
    if ((data[0] & 2U) == 0) continue;
    for (const flopsight::training_logs::Taken& taken : reader.take()) steps += taken.steps.size();
  }
  const Reported pieces = reader.finish();
  // Steps that were taken are not there to be told apart from those of other runs at the end.
  bool of_one = !whole.several_runs && !pieces.several_runs;
  for (const std::string& note : whole.notes) of_one = of_one && !note.starts_with("also ");
  if (!of_one) return 0;
  if (pieces.steps_total != whole.steps_total || pieces.lines_total != whole.lines_total) __builtin_trap();
  if (steps + pieces.steps.size() != whole.steps.size()) __builtin_trap();
  return 0;
}
