#include "views/advice_json.h"

#include "views/summary_internal.h"

namespace flopsight::views {
namespace {

using base::json::Array;
using base::json::Object;
using base::json::Value;

Object settings_json(const AdviceOfJob& advice) {
  const tuning::TrainSettings& s = advice.settings;
  return {{"gpu", advice.gpu},
          {"gpus", s.gpus},
          {"fabric", advice.fabric},
          {"layout", tuning::layout_text(s.layout)},
          {"seq_len", s.sequence_tokens},
          {"global_batch", s.global_batch},
          {"micro_batch", s.micro_batch},
          {"zero", s.zero_stage},
          {"precision", catalog::precision_name(s.precision)},
          {"recompute", tuning::recompute_name(s.recompute)},
          {"optimizer", tuning::optimizer_name(s.optimizer)},
          {"kernels", tuning::kernels_name(s.kernels)},
          {"attention", tuning::attention_kernel_name(s.attention)}};
}

Object predicted_json(const AdviceOfJob& advice) {
  return {{"step_seconds", advice.step.step_seconds()},
          {"tokens_per_second_per_gpu", advice.step.tokens_per_second / static_cast<double>(advice.settings.gpus)},
          {"mfu_ratio", advice.step.mfu_ratio},
          {"attainable_ofu_ratio", advice.step.attainable_ofu_ratio},
          {"memory_bytes_per_gpu", advice.memory.total_bytes()},
          {"fits", advice.memory.fits()}};
}

Object measured_json(const AdviceOfJob& advice) {
  const tuning::Comparison& c = advice.comparison;
  return {{"ofu_ratio", advice.measured.ofu_ratio},
          {"mfu_ratio", advice.measured.mfu_ratio},
          {"step_seconds", c.step_seconds},
          {"step_seconds_implied_by_ofu", c.is_step_implied},
          {"out_of_line", c.out_of_line},
          {"out_of_line_cause", c.out_of_line_cause},
          {"parts", parts_json(c.parts)},
          {"causes", parts_json(c.causes)}};
}

}  // namespace

Array advice_json(const tuning::Findings& findings) {
  Array out;
  for (const tuning::Advice& a : findings.advice) {
    out.emplace_back(Object{
        {"id", a.id},
        {"change", a.change},
        {"predicted", Object{{"tokens_per_second", a.tokens_per_second}, {"step_seconds", a.step_seconds}}},
        {"gain_ratio", a.gain_ratio},
        {"usd_saved_per_day", a.usd_saved_per_day},
        {"confidence", tuning::confidence_name(a.confidence)},
        {"why", a.why},
        {"price", text_or_null(a.price)},
        {"source", a.source},
    });
  }
  return out;
}

Array rejected_json(const tuning::Findings& findings) {
  Array out;
  for (const tuning::Rejected& r : findings.rejected) out.emplace_back(Object{{"id", r.id}, {"change", r.change}, {"why", r.why}});
  return out;
}

Array parts_json(const std::vector<tuning::PartCompared>& parts) {
  Array out;
  for (const tuning::PartCompared& part : parts) {
    out.emplace_back(Object{{"part", part.part},
                            {"what", part.name},
                            {"predicted_ratio", part.predicted_ratio},
                            {"measured_ratio", part.measured_ratio},
                            {"difference_ratio", part.difference_ratio()}});
  }
  return out;
}

std::string job_advice_json(const AnswerHead& head, const AdviceOfJob& advice) {
  const bool is_known = advice.missing.empty();
  Object out;
  out.emplace_back("window", window_json(head.window));
  out.emplace_back("simulated", head.simulated);
  out.emplace_back("id", advice.id);
  out.emplace_back("missing", strings(advice.missing));
  out.emplace_back("model_from", text_or_null(advice.model_from));
  out.emplace_back("settings", is_known ? Value(settings_json(advice)) : Value());
  out.emplace_back("predicted", is_known ? Value(predicted_json(advice)) : Value());
  out.emplace_back("measured", is_known ? Value(measured_json(advice)) : Value());
  out.emplace_back("advice", advice_json(advice.findings));
  out.emplace_back("rejected", rejected_json(advice.findings));
  out.emplace_back("quality", quality_json(head.quality));
  out.emplace_back("assumptions", strings(advice.assumptions));
  return base::json::dump(out) + "\n";
}

}  // namespace flopsight::views
