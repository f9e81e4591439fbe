#include "views/phases_json.h"

#include "views/summary_internal.h"

namespace flopsight::views {
namespace {

using base::json::Array;
using base::json::Object;
using base::json::Value;

Object goodput_json(const analysis::Goodput& g) {
  return {{"goodput_ratio", g.goodput_ratio},
          {"ettr_ratio", g.ettr_ratio},
          {"gpu_seconds",
           Object{{"allocated", g.allocated_seconds},
                  {"productive", g.productive_seconds},
                  {"starting", g.starting_seconds},
                  {"checkpointing", g.checkpointing_seconds},
                  {"restarting", g.restarting_seconds},
                  {"stalled", g.stalled_seconds},
                  {"slowed", g.slowed_seconds},
                  {"ending", g.ending_seconds},
                  {"lost", g.lost_seconds},
                  {"unmeasured", g.unmeasured_seconds}}},
          {"lost_source", g.lost_source.empty() ? Value() : Value(std::string(g.lost_source))},
          {"lost_steps", g.lost_steps},
          {"failure_count", g.failure_count},
          {"failure_interval_seconds", g.failure_interval_wall_seconds},
          {"checkpoint_seconds", g.checkpoint_wall_seconds},
          {"checkpoint_interval_seconds", g.checkpoint_interval_wall_seconds},
          {"checkpoint_interval_young_seconds", g.young_interval_wall_seconds},
          {"checkpoint_interval_daly_seconds", g.daly_interval_wall_seconds}};
}

}  // namespace

std::string phases_json(const AnswerHead& head, const std::string& id, units::Seconds slot, const analysis::Phases& phases,
                        const analysis::Goodput& goodput, const std::vector<units::Instant>& precision_switches) {
  Array spans, failures, switches;
  for (const analysis::PhaseSpan& span : phases.spans) {
    spans.emplace_back(Object{{"phase", analysis::phase_name(span.phase)},
                              {"start", units::to_rfc3339(span.start)},
                              {"end", units::to_rfc3339(span.end)}});
  }
  for (const analysis::Phases::Failure& failure : phases.failures) {
    failures.emplace_back(Object{{"stopped", units::to_rfc3339(failure.stopped)}, {"training_again", units::to_rfc3339(failure.training_again)}});
  }
  for (const units::Instant time : precision_switches) switches.emplace_back(units::to_rfc3339(time));
  Object seconds;
  for (std::size_t i = 0; i < analysis::kPhaseCount; ++i) {
    const auto phase = static_cast<analysis::Phase>(i);
    seconds.emplace_back(analysis::phase_name(phase), phases.of(phase));
  }
  Object out;
  out.emplace_back("window", window_json(head.window));
  out.emplace_back("simulated", head.simulated);
  out.emplace_back("id", id);
  out.emplace_back("slot_seconds", slot.value);
  out.emplace_back("absent_reason", text_or_null(phases.absent_reason));
  out.emplace_back("phases", std::move(spans));
  out.emplace_back("gpu_seconds_by_phase", std::move(seconds));
  out.emplace_back("failures", std::move(failures));
  out.emplace_back("precision_switches", std::move(switches));
  out.emplace_back("goodput", phases.absent_reason.empty() ? Value(goodput_json(goodput)) : Value());
  out.emplace_back("quality", quality_json(head.quality));
  out.emplace_back("assumptions", Array{std::string(analysis::kPhaseRules)});
  return base::json::dump(out) + "\n";
}

}  // namespace flopsight::views
