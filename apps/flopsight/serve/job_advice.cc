#include "serve/job_advice.h"

#include <cstdio>

#include "audit/told_model.h"
#include "serve/job_models.h"
#include "tuning/fabric.h"
#include "tuning/told_training.h"

namespace flopsight::app {
namespace {

using views::AdviceOfJob;

// What a prediction is made of.
struct Ground {
  flops::Model model;
  const catalog::Device* device = nullptr;
  tuning::Fabric fabric;
  tuning::TrainSettings settings;
  bool attention_told = false;
};

void find_device(const AnswerSettings& settings, const analysis::JobAnswer& job, Ground& ground, AdviceOfJob& out) {
  if (job.models.size() != 1) {
    out.missing.emplace_back(job.models.empty() ? "a GPU: none of the job was seen" : "one GPU model: the job ran on several");
    return;
  }
  ground.device = settings.fleet.catalog->find(job.models.front());
  if (ground.device == nullptr) out.missing.push_back("a GPU of the catalogue: " + settings.fleet.catalog->not_found(job.models.front()));
}

void find_fabric_of(const tuning::ToldTraining& told, std::uint64_t gpus, Ground& ground, AdviceOfJob& out) {
  std::optional<tuning::Fabric> fabric;
  if (!told.fabric.empty()) {
    fabric = tuning::find_fabric(told.fabric);
  } else if (gpus == 1) {
    fabric = tuning::find_fabric("single-gpu");
  } else if ((fabric = tuning::reference_fabric(*ground.device))) {
    out.assumptions.push_back("fabric is not told: links of " + std::string(fabric->name) + " (" + std::string(fabric->what) + ")");
  }
  if (!fabric) {
    out.missing.push_back("training.fabric: " + ground.device->model + " has no reference system whose links could be assumed");
  } else if (gpus > fabric->node_gpus && fabric->network_rate.value <= 0) {
    out.missing.push_back("training.fabric: " + std::string(fabric->name) + " has no network for " + std::to_string(gpus) + " GPUs");
  } else {
    ground.fabric = *fabric;
  }
}

// What is told of the job, as far as a prediction needs it; a gap or a mistake is a line in out.missing.
void take_told(const std::string& told_text, const AnswerSettings& settings, const analysis::JobAnswer& job, Ground& ground, AdviceOfJob& out) {
  base::Result<audit::Run> run = audit::parse_told_model(told_text);
  const auto told = tuning::parse_told_training(told_text);
  if (!run.ok() || !told.ok()) {
    out.missing.push_back(run.ok() ? told.error().message : run.error().message);
    return;
  }
  if (run->has_adapters) out.missing.emplace_back("a run that trains its whole model: steps of adapters are not predicted");
  if (run->model.shape.blocks == 0 || run->model.shape.vocab_size == 0) out.missing.emplace_back("a language model: steps of others are not predicted");
  if (run->document_tokens) out.assumptions.emplace_back("document_tokens: sequences are predicted as one document each");
  for (std::string& key : told->missing()) out.missing.push_back(std::move(key));
  find_device(settings, job, ground, out);
  if (!job.summary.ofu_ratio) out.missing.push_back("an OFU: nothing of the job was measured in this time" + (job.absent_reason.empty() ? std::string() : " (" + job.absent_reason + ")"));
  if (!out.missing.empty()) return;
  const std::uint64_t gpus = job.summary.gpu_count;
  find_fabric_of(*told, gpus, ground, out);
  auto train = tuning::settings_of(*told, gpus, out.assumptions);
  if (!train.ok()) {
    out.missing.push_back(train.error().message);
    return;
  }
  ground.settings = *train;
  ground.attention_told = told->attention.has_value();
  ground.model = std::move(run->model);
  out.assumptions.insert(out.assumptions.begin(), ground.model.assumptions.begin(), ground.model.assumptions.end());
}

// That of the run where none is told; false where the GPU cannot run what is told.
bool choose_attention(const tuning::Rates& rates, Ground& ground, AdviceOfJob& out) {
  tuning::TrainSettings& s = ground.settings;
  if (!ground.attention_told) {
    s.attention = rates.usual_attention();
    out.assumptions.push_back("attention is not told: " + rates.usual_attention_text(tuning::is_wide(s.precision)));
    return true;
  }
  const std::string why = rates.attention_unsupported(s.attention);
  if (!why.empty()) out.missing.push_back("training.attention: " + why);
  return why.empty();
}

void advise(Ground& ground, const analysis::JobAnswer& job, const analysis::Prices& prices, AdviceOfJob& out) {
  const auto rates = tuning::Rates::of(*ground.device);
  if (!rates.ok()) {
    out.missing.push_back(rates.error().message);
    return;
  }
  if (!choose_attention(*rates, ground, out)) return;
  tuning::StepModel steps(ground.model, *rates, ground.fabric);
  tuning::TrainCase one;
  one.settings = ground.settings;
  auto step = steps.predict(one.settings);
  if (!step.ok()) {
    out.missing.push_back(step.error().message);
    return;
  }
  one.step = *step;
  one.memory = tuning::train_memory(ground.model, one.settings, *ground.device);
  if (std::string memory = tuning::assumed_memory_text(*ground.device); !memory.empty()) out.assumptions.push_back(std::move(memory));
  one.measured = measured_of(job);
  if (one.measured->tokens_per_second) *one.measured->tokens_per_second *= static_cast<double>(one.settings.gpus);
  out.comparison = tuning::compare(one.step, *one.measured);
  one.calibration = out.comparison.calibration;
  if (const auto price = prices.of(ground.device->model, ground.device->model, job.holder.team)) one.usd_per_gpu_hour = price->value;
  if (out.comparison.is_step_implied) out.assumptions.emplace_back("the job reports no tokens per second: its step time is implied by OFU, as if it executed the FLOPs that are predicted");
  if (!one.measured->sm_idle_ratio) out.assumptions.emplace_back("SM activity is not scraped: idle time is taken as predicted");
  say_rates(*rates, one.settings, out.assumptions);
  out.gpu = ground.device->model;
  out.fabric = std::string(ground.fabric.name) + ": " + std::string(ground.fabric.what);
  out.settings = one.settings;
  out.step = one.step;
  out.memory = one.memory;
  out.measured = *one.measured;
  out.findings = tuning::advise_training(steps, one);
}

}  // namespace

constexpr double kUnsplitMax = 0.01;  // of the allocated time

tuning::Measured measured_of(const analysis::JobAnswer& job) {
  // The waterfall's shares are of the allocated time; these are of what was measured.
  const analysis::Waterfall& f = job.waterfall;
  const double seen = 1 - f.unmeasured_ratio;
  const auto of_measured = [&](const std::optional<double>& share) { return share && seen > 0 ? std::optional<double>(*share / seen) : std::nullopt; };
  tuning::Measured m;
  m.ofu_ratio = job.summary.ofu_ratio;
  m.tensor_active_ratio = job.summary.tensor_active_ratio;
  m.clock_loss_ratio = job.summary.clock_loss_ratio;
  m.tensor_idle_sm_busy_ratio = of_measured(f.tensor_idle_sm_busy_ratio);
  m.sm_idle_ratio = of_measured(f.sm_idle_ratio);
  // Causes only where nearly all of the time has one.
  if (f.sm_busy && f.sm_busy->unsplit_ratio <= kUnsplitMax) {
    m.memory_bound_ratio = of_measured(f.sm_busy->memory_bound_ratio);
    m.other_kernels_ratio = of_measured(f.sm_busy->other_kernels_ratio);
  }
  if (f.sm_idle && f.sm_idle->unsplit_ratio <= kUnsplitMax) {
    m.waiting_ratio = of_measured(f.sm_idle->communication_ratio + f.sm_idle->stalled_ratio);
    m.host_ratio = of_measured(f.sm_idle->host_ratio + f.sm_idle->small_kernels_ratio);
  }
  if (job.reported) {
    m.mfu_ratio = job.reported->mfu_ratio;
    m.tokens_per_second = job.reported->tokens_per_second_per_gpu;
    if (!m.tokens_per_second) m.step_seconds = job.reported->step_seconds;
  }
  return m;
}

void say_rates(const tuning::Rates& rates, const tuning::TrainSettings& s, std::vector<std::string>& out) {
  char text[256];
  bool assumed = false;
  const double share = rates.attainable_ratio(s.precision, &assumed);
  std::snprintf(text, sizeof text, "products reach %.1f %% of the dense peak at best (%s), and %.0f %% of that in a run (fitted to published ones)", 100 * share,
                assumed ? "not published for this GPU and format: the median of those that are" : "published measurement", 100 * tuning::kSustainedRatio);
  out.emplace_back(text);
  if (s.precision == catalog::Precision::kFp32) out.emplace_back("FP32 products run outside of tensor pipes, so that OFU sees none of them");
  const tuning::AttentionRate attention = rates.attention(s.attention);
  if (s.attention != tuning::AttentionKernel::kStandard) {
    std::snprintf(text, sizeof text, "attention kernels reach %.0f %% of the 16-bit peak forward and %.0f %% backward", 100 * attention.forward_ratio, 100 * attention.backward_ratio);
    out.emplace_back(text);
  }
}

base::Result<AdviceOfJob> advise_job(JobService& jobs, const AnswerSettings& settings, const analysis::JobAnswer& job) {
  AdviceOfJob out;
  out.id = job.id;
  FLOPSIGHT_ASSIGN_OR_RETURN(const std::optional<JobModel> known, model_of(jobs, settings.models.get(), job));
  if (!known) {
    out.missing.emplace_back("config: the config.json of the model that it trains");
    for (std::string& key : tuning::ToldTraining().missing()) out.missing.push_back(std::move(key));
    return out;
  }
  out.model_from = known->from;
  Ground ground;
  take_told(known->told, settings, job, ground, out);
  if (out.missing.empty()) advise(ground, job, settings.prices, out);
  return out;
}

}  // namespace flopsight::app
