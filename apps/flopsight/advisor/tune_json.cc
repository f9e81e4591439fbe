#include "advisor/tune_answer.h"
#include "views/advice_json.h"

namespace flopsight::app {
namespace {

namespace json = base::json;

json::Object layout_json(const tuning::TrainSettings& s) {
  return {{"tp", s.layout.tensor},        {"pp", s.layout.pipeline}, {"vp", s.layout.virtual_stages}, {"cp", s.layout.context},
          {"ep", s.layout.expert},        {"etp", s.layout.expert_tensor_gpus()}, {"dp", s.layout.data},     {"micro_batch", s.micro_batch},  {"micro_batches", s.accumulation()},
          {"recompute", tuning::recompute_name(s.recompute)}, {"zero", s.zero_stage}};
}

json::Object settings_json(const TuneTrainAnswer& answer) {
  const tuning::TrainSettings& s = answer.settings;
  json::Object out = layout_json(s);
  out.insert(out.begin(), {{"gpu", answer.gpu}, {"gpus", s.gpus}, {"fabric", answer.fabric}, {"seq_len", s.sequence_tokens}, {"global_batch", s.global_batch},
                           {"precision", catalog::precision_name(s.precision)}, {"optimizer", tuning::optimizer_name(s.optimizer)},
                           {"kernels", tuning::kernels_name(s.kernels)}, {"attention", tuning::attention_kernel_name(s.attention)}, {"dispatch", tuning::dispatch_name(s.dispatch)}});
  return out;
}

json::Object step_json(const tuning::Step& step, std::uint64_t gpus) {
  return {{"step_seconds", step.step_seconds()},
          {"tokens_per_second", step.tokens_per_second},
          {"tokens_per_second_per_gpu", step.tokens_per_second / static_cast<double>(gpus)},
          {"mfu_ratio", step.mfu_ratio},
          {"attainable_ofu_ratio", step.attainable_ofu_ratio},
          {"breakdown_seconds", breakdown_json(step.breakdown)},
          {"detail_seconds", json::Object{{"products", step.products_seconds},
                                          {"attention", step.attention_seconds},
                                          {"recompute", step.recompute_seconds},
                                          {"tiles_and_waves", step.tile_lost_seconds},
                                          {"elementwise", step.elementwise_seconds},
                                          {"optimizer", step.optimizer_seconds},
                                          {"data_parallel_hidden", step.data_parallel_hidden_seconds}}}};
}

json::Value measured_json(const TuneTrainAnswer& answer) {
  if (!answer.measured) return {};
  const MeasuredJob& job = *answer.measured;
  const tuning::Measured& m = job.measured;
  const tuning::Comparison& c = *answer.comparison;
  json::Value calibration;
  if (c.calibration) {
    calibration = json::Object{{"busy_scale", c.calibration->busy_scale}, {"idle_scale", c.calibration->idle_scale}, {"idle_extra_seconds", c.calibration->idle_extra_seconds}};
  }
  return json::Object{{"job", job.job},
                      {"start", units::to_rfc3339(job.window.start)},
                      {"end", units::to_rfc3339(job.window.end)},
                      {"gpu_count", job.gpu_count},
                      {"coverage_ratio", job.coverage_ratio},
                      {"ofu_ratio", m.ofu_ratio},
                      {"tensor_active_ratio", m.tensor_active_ratio},
                      {"clock_loss_ratio", m.clock_loss_ratio},
                      {"tensor_idle_sm_busy_ratio", m.tensor_idle_sm_busy_ratio},
                      {"sm_idle_ratio", m.sm_idle_ratio},
                      {"mfu_ratio", m.mfu_ratio},
                      {"tokens_per_second", m.tokens_per_second},
                      {"step_seconds", c.step_seconds},
                      {"step_seconds_implied_by_ofu", c.is_step_implied},
                      {"out_of_line", c.out_of_line},
                      {"out_of_line_cause", c.out_of_line_cause},
                      {"parts", views::parts_json(c.parts)},
                      {"causes", views::parts_json(c.causes)},
                      {"calibration", std::move(calibration)}};
}

json::Array layouts_json(const TuneTrainAnswer& answer) {
  json::Array out;
  for (const tuning::Found& found : answer.layouts) {
    json::Object one = layout_json(found.settings);
    one.emplace_back("step_seconds", found.step.step_seconds());
    one.emplace_back("tokens_per_second", found.step.tokens_per_second);
    one.emplace_back("mfu_ratio", found.step.mfu_ratio);
    one.emplace_back("memory_bytes_per_gpu", found.memory.total_bytes());
    out.emplace_back(std::move(one));
  }
  return out;
}

}  // namespace

json::Object breakdown_json(const tuning::Breakdown& breakdown) {
  json::Object out;
  for (const BreakdownPart& part : breakdown_parts(breakdown)) out.emplace_back(part.key, part.seconds);
  return out;
}

json::Object memory_json(const tuning::Memory& m) {
  return {{"weights", m.weights_bytes},       {"gradients", m.gradients_bytes}, {"optimizer", m.optimizer_bytes}, {"activations", m.activations_bytes},
          {"kv_cache", m.kv_cache_bytes},     {"reserved", m.reserved_bytes},   {"total", m.total_bytes()},       {"capacity", m.capacity_bytes}};
}

std::string train_json(const TuneTrainAnswer& answer) {
  const std::string over = answer.memory.over();
  json::Object out{
      {"settings", settings_json(answer)},
      {"predicted", step_json(answer.step, answer.settings.gpus)},
      {"memory_bytes_per_gpu", memory_json(answer.memory)},
      {"fits", answer.memory.fits()},
      {"over", over.empty() ? json::Value() : json::Value(over)},
      {"measured", measured_json(answer)},
      {"advice", views::advice_json(answer.findings)},
      {"rejected", views::rejected_json(answer.findings)},
      {"assumptions", json::Array(answer.assumptions.begin(), answer.assumptions.end())},
  };
  if (answer.arguments.search) {
    out.emplace_back("layouts", layouts_json(answer));
    out.emplace_back("layouts_tried", answer.layouts_tried);
    out.emplace_back("layouts_fitting", answer.layouts_fitting);
  }
  return json::dump(out) + "\n";
}

}  // namespace flopsight::app
