#include "mfuaudit/audit_case.h"

#include <algorithm>
#include <cmath>
#include <span>

#include "analysis/reported.h"
#include "audit/names.h"
#include "base/text.h"
#include "flopcount/model_file.h"
#include "flops/adapters.h"
#include "flops/experts.h"
#include "jobbook/open_jobs.h"
#include "logs/command_logs.h"
#include "parse_file.h"
#include "serve/job_answers.h"
#include "serve/job_audit.h"
#include "training_logs/merge_steps.h"

namespace flopsight::app {
namespace {

using base::Error;
using base::ErrorCode;
using base::Status;
using training_logs::Reported;
using training_logs::Step;

constexpr std::size_t kLabelsShown = 12;

struct Rates {
  std::optional<double> tokens_per_second;
  std::optional<double> samples_per_second;
  std::optional<double> sequences_per_second;  // of steps that print their own batch and time
  std::optional<std::uint64_t> batch_of_most;  // of them
  std::optional<double> tokens_per_step;
};

std::optional<std::uint64_t> setting(const Reported& log, std::string_view name) {
  const std::string* text = log.setting(name);
  const auto number = text == nullptr ? std::nullopt : base::parse_number(*text);
  if (!number || !(*number >= 1) || *number > 1e15) return std::nullopt;
  return static_cast<std::uint64_t>(*number);
}

// The option's value, else the log's.
void take(const char* what, const std::optional<std::uint64_t>& option, const std::optional<std::uint64_t>& logged, AuditCase& out,
          std::optional<std::uint64_t>& into) {
  into = option ? option : logged;
  if (option && logged && *option != *logged) {
    out.assumptions.push_back(std::string(what) + ": the log prints " + std::to_string(*logged) + ", " + std::to_string(*option) + " was given and is taken");
  }
}

std::optional<catalog::Precision> logged_precision(const Reported& log) {
  const auto says = [&](std::string_view name) {
    const std::string* text = log.setting(name);
    return text != nullptr && *text != "False" && *text != "None" && *text != "0";
  };
  if (says("fp4")) return catalog::Precision::kFp4;
  if (says("fp8")) return catalog::Precision::kFp8;
  if (says("bf16")) return catalog::Precision::kBf16;
  if (says("fp16")) return catalog::Precision::kFp16;
  return std::nullopt;
}

// Of steps that print their batch the one that most of them have; nothing where none has.
std::optional<std::uint64_t> batch_of_most(const std::vector<Step>& steps) {
  std::vector<double> batches;
  for (const Step& step : steps) {
    if (!step.excluded && step.batch_samples) batches.push_back(*step.batch_samples);
  }
  if (batches.empty()) return std::nullopt;
  std::sort(batches.begin(), batches.end());
  const double middle = batches[batches.size() / 2];
  const auto same = static_cast<std::size_t>(std::count(batches.begin(), batches.end(), middle));
  if (same * 2 <= batches.size() || middle != std::floor(middle)) return std::nullopt;
  return static_cast<std::uint64_t>(middle);
}

void take_settings(const AuditArguments& a, const Reported& log, const Rates& rates, AuditCase& out, std::optional<std::uint64_t>& global_batch) {
  audit::Run& run = out.run;
  take("sequence length", a.sequence_tokens, setting(log, "sequence_length"), out, run.sequence_tokens);
  take("global batch", a.global_batch, rates.sequences_per_second ? rates.batch_of_most : setting(log, "global_batch_size"), out, global_batch);
  take("GPUs", a.gpus, setting(log, "world_size"), out, run.layout.gpus);
  take("tensor parallelism", a.tensor_parallel, setting(log, "tensor_parallel"), out, run.layout.tensor_parallel);
  take("pipeline parallelism", a.pipeline_parallel, setting(log, "pipeline_parallel"), out, run.layout.pipeline_parallel);
  take("context parallelism", a.context_parallel, setting(log, "context_parallel"), out, run.layout.context_parallel);
  take("expert parallelism", a.expert_parallel, setting(log, "expert_parallel"), out, run.layout.expert_parallel);
  take("gradient accumulation", a.gradient_accumulation, setting(log, "gradient_accumulation"), out, run.layout.gradient_accumulation);
  const auto micro = setting(log, "micro_batch_size"), data = setting(log, "data_parallel");
  if (!run.layout.gradient_accumulation && global_batch && micro && data && *global_batch % (*micro * *data) == 0) {
    run.layout.gradient_accumulation = *global_batch / (*micro * *data);
  }
  run.precision = a.precision ? a.precision : logged_precision(log);
  if (a.precision && logged_precision(log) && *a.precision != *logged_precision(log)) {
    out.assumptions.push_back("precision: the log says " + std::string(catalog::precision_name(*logged_precision(log))) + ", " +
                              std::string(catalog::precision_name(*a.precision)) + " was given and is taken");
  }
  run.recompute = a.recompute;
  if (const std::string* printed = log.setting("recompute"); !run.recompute && printed != nullptr) run.recompute = audit::parse_recompute(*printed);
}

// How many steps of multi-token prediction the log says are trained; Megatron prints None for none.
std::optional<std::uint64_t> logged_prediction_steps(const Reported& log) {
  const std::string* text = log.setting("prediction_steps");
  if (text == nullptr) return std::nullopt;
  return *text == "None" || *text == "0" ? 0 : setting(log, "prediction_steps");
}

void take_prediction_steps(const AuditArguments& a, const Reported& log, AuditCase& out) {
  take("multi-token prediction steps", a.prediction_steps, logged_prediction_steps(log), out, out.run.prediction_steps);
  if (out.run.model.prediction_steps > 0 || out.run.prediction_steps.value_or(0) == 0) return;
  out.run.contradictions.push_back("a configuration of the model that the log is of: the log prints " + std::to_string(*out.run.prediction_steps) +
                                   " steps of multi-token prediction, the configuration has none");
}

// Of as many keys and values as the log prints. Megatron prints a number also where it uses none, which group_query_attention says.
std::optional<std::uint64_t> logged_kv_heads(const Reported& log) {
  const std::string* grouped = log.setting("grouped_queries");
  return setting(log, grouped != nullptr && *grouped == "False" ? "attention_heads" : "query_groups");
}

bool has_latent_attention(const flops::Model& model) {
  return std::any_of(model.layers.begin(), model.layers.end(), [](const flops::Layer& layer) { return layer.attention && layer.attention->latent_dim > 0; });
}

// A log of another model than the configuration makes every comparison wrong.
void check_model(const Reported& log, AuditCase& out) {
  const flops::Shape& shape = out.run.model.shape;
  const auto check_value = [&](const std::optional<std::uint64_t>& printed, const char* what, std::uint64_t ours) {
    if (!printed || ours == 0 || *printed == ours) return;
    out.run.contradictions.push_back("a configuration of the model that the log is of: the log prints " + std::to_string(*printed) + " " + what +
                                     ", the configuration has " + std::to_string(ours));
  };
  const auto check = [&](std::string_view name, const char* what, std::uint64_t ours) { check_value(setting(log, name), what, ours); };
  check("layers", "layers", shape.blocks);
  check("hidden_size", "hidden_size", shape.hidden_size);
  check("attention_heads", "attention heads", shape.heads);
  const std::uint64_t experts = flops::routed_experts(out.run.model);
  check("experts", "experts", experts);
  // Some print one where there are none.
  if (experts == 0 && setting(log, "experts").value_or(0) > 1) {
    out.run.contradictions.push_back("a configuration of the model that the log is of: the log prints " + std::to_string(*setting(log, "experts")) + " experts, the configuration has none");
  }
  // Megatron prints a top-k also of a model without experts.
  if (setting(log, "experts")) check("experts_per_token", "experts of a token", flops::routed_experts_of_token(out.run.model));
  if (!has_latent_attention(out.run.model)) check_value(logged_kv_heads(log), "heads of keys and values", shape.kv_heads);
}

// One run of a document with several.
Status choose_run(const AuditArguments& a, const std::string& path, Reported& log) {
  if (!log.several_runs && a.run_label.empty()) return {};
  if (!log.several_runs && std::all_of(log.steps.begin(), log.steps.end(), [](const Step& step) { return step.label.empty(); })) {
    return Error{ErrorCode::kInvalid, base::printable(path) + ": --run " + base::printable(a.run_label, 60) + " was given, and it has one run, without a label; expected no --run"};
  }
  std::vector<Step> chosen;
  std::string labels;
  std::size_t shown = 0;
  for (const Step& step : log.steps) {
    const std::vector<std::string> words = base::split(step.label, ' ');
    bool all = true;
    for (const std::string& word : base::split(a.run_label, ' ')) all = all && std::find(words.begin(), words.end(), word) != words.end();
    if (!a.run_label.empty() && (all || step.label == a.run_label)) chosen.push_back(step);
    if (shown++ < kLabelsShown) labels += (labels.empty() ? "" : ", ") + step.label;
  }
  if (chosen.size() == 1) {
    // "pretrain H100 bf16"
    const std::string& label = chosen.front().label;
    if (const auto precision = catalog::find_precision(label.substr(label.find_last_of(' ') + 1))) {
      log.settings.emplace_back(std::string(catalog::precision_name(*precision)), "True");
    }
    for (training_logs::LoggedRun& run : log.runs) {
      if (run.label != label) continue;
      log.settings = std::move(run.settings);
      log.summary.steps_used = run.steps_used;
    }
    log.summary.tokens_per_second = chosen.front().tokens_per_second;
    log.summary.samples_per_second = chosen.front().samples_per_second;
    log.summary.implied_peak_printed = chosen.front().peak_flops_per_second.has_value();
    log.summary.implied_peak_flops_per_second = chosen.front().peak_flops_per_second;
    log.steps = std::move(chosen);
    log.several_runs = false;
    return {};
  }
  const std::string asked = a.run_label.empty() ? "has several runs, choose one with --run" : "--run " + base::printable(a.run_label, 60) + " fits " + std::to_string(chosen.size()) + " runs, expected one";
  return Error{ErrorCode::kInvalid, base::printable(path) + ": " + asked + ": " + base::printable(labels, 600)};
}

constexpr std::size_t kDriftStepsMin = 10;

// The median rate of the last fifth of the steps over that of the first fifth.
std::optional<double> drift_of(std::vector<Step> steps) {
  std::erase_if(steps, [](const Step& step) { return step.excluded.has_value(); });
  if (steps.size() < kDriftStepsMin) return std::nullopt;
  const std::span<const Step> all(steps);
  const std::size_t part = steps.size() / 5;
  const analysis::Reported first = analysis::reported_of("", "", all.first(part)), last = analysis::reported_of("", "", all.last(part));
  const auto& before = first.mfu_ratio ? first.mfu_ratio : first.flops_per_second_per_gpu;
  const auto& after = first.mfu_ratio ? last.mfu_ratio : last.flops_per_second_per_gpu;
  if (!before || !after || *before <= 0 || *after <= 0) return std::nullopt;
  return *after / *before;
}

// When the steps that count were: from the first to the last that has a time.
void widen(const std::vector<Step>& steps, std::optional<units::Window>& window) {
  for (const Step& step : steps) {
    if (step.excluded || !step.time) continue;
    if (!window) window = {*step.time, *step.time};
    window->start = std::min(window->start, *step.time);
    window->end = std::max(window->end, *step.time);
  }
}

// Medians over the logs of two runs would be of none, in whichever order they are named.
Status check_one_run(const AuditArguments& a, const std::vector<Reported>& before, const Reported& log) {
  for (std::size_t i = 0; i < before.size(); ++i) {
    const std::string why = training_logs::why_different_runs(before[i], log);
    if (why.empty()) continue;
    return Error{ErrorCode::kInvalid, "--log " + base::printable(a.logs[i]) + " and --log " + base::printable(a.logs[before.size()]) +
                                          " are of different runs: " + why + "; expected logs of one run"};
  }
  return {};
}

// All logs are of one job: their steps together.
Status read_logs(const AuditArguments& a, AuditCase& out, Reported& settings, Rates& rates) {
  LogsArguments how;
  how.patterns_path = a.patterns_path;
  how.log_format = a.log_format;
  how.zone = a.zone;
  FLOPSIGHT_ASSIGN_OR_RETURN(const training_logs::Options options, log_options(how));
  std::vector<std::vector<Step>> tellers;  // ranks that print the same steps, or one part of the run after the other
  bool is_of_a_phase = false;
  std::uint64_t steps_of_runs = 0;
  std::vector<Reported> before;
  for (const std::string& path : a.logs) {
    FLOPSIGHT_ASSIGN_OR_RETURN(Reported log, read_log_file(path, options));
    if (log.lines_matched == 0) {
      return Error{ErrorCode::kInvalid, base::printable(path) + ": nothing matched in " + std::to_string(log.lines_total) + " lines" +
                                            (log.nearest_miss ? "; nearest: line " + std::to_string(log.nearest_miss->line) + ", " + log.nearest_miss->why : "")};
    }
    FLOPSIGHT_RETURN_IF_ERROR(choose_run(a, path, log));
    FLOPSIGHT_RETURN_IF_ERROR(check_one_run(a, before, log));
    tellers.push_back(log.steps);
    is_of_a_phase |= log.format == "verl";
    if (!log.runs.empty()) steps_of_runs += log.summary.steps_used;
    if (const auto tokens = setting(log, "tokens_per_step")) rates.tokens_per_step = static_cast<double>(*tokens);
    settings.settings.insert(settings.settings.end(), log.settings.begin(), log.settings.end());
    if (!rates.tokens_per_second) rates.tokens_per_second = log.summary.tokens_per_second;
    if (!rates.samples_per_second) rates.samples_per_second = log.summary.samples_per_second;
    if (log.summary.implied_peak_printed && !out.claim.peak_flops_per_second) out.claim.peak_flops_per_second = log.summary.implied_peak_flops_per_second;
    before.push_back(std::move(log));
  }
  std::vector<Step> steps = training_logs::merge_tellers(std::move(tellers));
  if (analysis::all_above_peak(steps)) {
    std::erase_if(steps, [](const Step& step) { return step.excluded != training_logs::Exclusion::kAbovePeak; });
    for (Step& step : steps) step.excluded.reset();
    out.assumptions.push_back("all steps of the log are above the peak: taken as what it claims, and not as steps that were timed before their work was done");
  }
  widen(steps, out.log_window);
  const analysis::Reported summary = analysis::reported_of("log", "", steps);
  out.claim.drift_ratio = drift_of(steps);
  out.claim.mfu_ratio = summary.mfu_ratio;
  out.claim.flops_per_second_per_gpu = summary.flops_per_second_per_gpu;
  out.claim.tokens_per_second_per_gpu = summary.tokens_per_second_per_gpu;
  if (!out.claim.peak_flops_per_second) out.claim.peak_flops_per_second = summary.peak_flops_per_second_implied;
  out.step_seconds = summary.step_seconds;
  out.steps_used = steps_of_runs > 0 ? steps_of_runs : summary.steps_used;
  out.steps_excluded = summary.steps_excluded;
  rates.sequences_per_second = training_logs::sequences_per_second_of(steps);
  rates.batch_of_most = batch_of_most(steps);
  if (is_of_a_phase) {
    out.claim.tokens_per_second_per_gpu.reset();
    out.step_seconds.reset();
    rates = {};
    out.assumptions.push_back("verl prints the MFU of the actor's update alone: its tokens and times, of the whole step, are not compared with it");
  }
  return {};
}

// OFU of the job, and what it reports where nothing else does.
Status read_store(const AuditArguments& a, const Env& env, AuditCase& out) {
  OpenedJobs opened;
  FLOPSIGHT_RETURN_IF_ERROR(open_jobs(a.store_path, opened));
  samples::QualityLog quality;
  FLOPSIGHT_ASSIGN_OR_RETURN(JobInTime found, answer_job_in_time(opened, a.job, {a.start, a.end, a.since}, env.now(), quality));
  if (found.is_own_time) {
    out.assumptions.push_back("the job was not there in the last 24 hours: the store is asked about its own time, " + units::to_rfc3339(found.window.start) + " to " +
                              units::to_rfc3339(found.window.end));
  }
  analysis::JobAnswer& job = found.job;
  if (out.log_window) {
    // The OFU to compare a log with is that of the time that the log is of.
    if (!job.reported) job.reported.emplace();
    job.reported->first = out.log_window->start;
    job.reported->last = out.log_window->end;
  } else if (!a.logs.empty()) {
    job.reported.reset();
    out.assumptions.push_back("the steps of the log have no times (--zone): OFU is that of the whole window of the store");
  }
  FLOPSIGHT_ASSIGN_OR_RETURN(out.measured.ofu_ratio, ofu_while_reported(*opened.store, opened.service.get(), opened.settings, job, a.job, everybody()));
  if (!a.logs.empty() || a.mfu_ratio || a.flops_per_second_per_gpu || !job.reported) return {};
  out.claim.mfu_ratio = job.reported->mfu_ratio;
  out.claim.flops_per_second_per_gpu = job.reported->flops_per_second_per_gpu;
  out.claim.tokens_per_second_per_gpu = job.reported->tokens_per_second_per_gpu;
  out.claim.peak_flops_per_second = job.reported->peak_flops_per_second_implied;
  out.step_seconds = job.reported->step_seconds;
  out.steps_used = job.reported->steps_used;
  out.steps_excluded = job.reported->steps_excluded;
  return {};
}

// Where the trainer prints no tokens of a GPU: from those of the job, its samples or its step time.
void derive_tokens(const Rates& rates, const std::optional<std::uint64_t>& global_batch, AuditCase& out) {
  std::optional<double>& tokens = out.claim.tokens_per_second_per_gpu;
  if (tokens || !out.run.layout.gpus) return;
  const auto gpus = static_cast<double>(*out.run.layout.gpus);
  const char* from = "";
  if (rates.tokens_per_second) {
    tokens = *rates.tokens_per_second / gpus;
    from = "the job's tokens per second / GPUs";
  } else if (rates.tokens_per_step && out.step_seconds && *out.step_seconds > 0) {
    tokens = *rates.tokens_per_step / *out.step_seconds / gpus;
    from = "tokens per iteration / step time / GPUs";
  } else if (rates.samples_per_second && out.run.sequence_tokens) {
    tokens = *rates.samples_per_second * static_cast<double>(*out.run.sequence_tokens) / gpus;
    from = "samples per second x sequence length / GPUs";
  } else if (rates.sequences_per_second && out.run.sequence_tokens) {
    tokens = *rates.sequences_per_second * static_cast<double>(*out.run.sequence_tokens) / gpus;
    from = "each step's global batch x sequence length / its time / GPUs";
  } else if (out.step_seconds && *out.step_seconds > 0 && global_batch && out.run.sequence_tokens) {
    tokens = static_cast<double>(*global_batch) * static_cast<double>(*out.run.sequence_tokens) / *out.step_seconds / gpus;
    from = "global batch x sequence length / step time / GPUs";
  }
  if (tokens) out.assumptions.push_back(std::string("tokens per second and GPU: ") + from);
}

Status read_model(const AuditArguments& a, AuditCase& out) {
  FLOPSIGHT_ASSIGN_OR_RETURN(out.run.model, read_model_file(a.config_path, {a.ignored_keys}));
  if (a.prediction_steps.value_or(0) > 0 && out.run.model.prediction_steps == 0) {
    return Error{ErrorCode::kInvalid, "--mtp " + std::to_string(*a.prediction_steps) + ": the configuration has no multi-token prediction layers"};
  }
  if (a.adapter_rank == 0) return {};
  FLOPSIGHT_ASSIGN_OR_RETURN(out.run.model, flops::with_adapters(out.run.model, {a.adapter_rank, a.adapter_targets}));
  out.run.has_adapters = true;
  return {};
}

}  // namespace

Status gather_audit(const AuditArguments& a, const Env& env, AuditCase& out) {
  out.catalog = catalog::DeviceCatalog::builtin();
  if (!a.catalog_path.empty()) {
    FLOPSIGHT_ASSIGN_OR_RETURN(out.catalog, parse_file(a.catalog_path, &catalog::DeviceCatalog::with_user_rows));
  }
  out.gpu = a.gpu;
  out.run.device = out.catalog.find_whole(a.gpu);
  if (out.run.device == nullptr) return Error{ErrorCode::kNotFound, "--gpu " + out.catalog.not_found(a.gpu) + "; --gpu-catalog adds one"};
  FLOPSIGHT_RETURN_IF_ERROR(read_model(a, out));
  Reported settings;
  Rates rates;
  if (!a.logs.empty()) FLOPSIGHT_RETURN_IF_ERROR(read_logs(a, out, settings, rates));
  std::optional<std::uint64_t> global_batch;
  take_settings(a, settings, rates, out, global_batch);
  take_prediction_steps(a, settings, out);
  check_model(settings, out);
  if (!a.store_path.empty()) FLOPSIGHT_RETURN_IF_ERROR(read_store(a, env, out));
  if (a.mfu_ratio) out.claim.mfu_ratio = a.mfu_ratio;
  if (a.flops_per_second_per_gpu) out.claim.flops_per_second_per_gpu = a.flops_per_second_per_gpu;
  if (a.tokens_per_second_per_gpu) out.claim.tokens_per_second_per_gpu = a.tokens_per_second_per_gpu;
  if (a.step_seconds) out.step_seconds = a.step_seconds;
  if (!out.claim.peak_flops_per_second && a.mfu_ratio && a.flops_per_second_per_gpu && *a.mfu_ratio > 0) {
    out.claim.peak_flops_per_second = *a.flops_per_second_per_gpu / *a.mfu_ratio;
  }
  if (a.peak_flops_per_second) out.claim.peak_flops_per_second = a.peak_flops_per_second;
  if (a.global_batch || a.step_seconds) rates.sequences_per_second.reset();  // what was given goes before what steps print
  derive_tokens(rates, global_batch, out);
  if (a.ofu_ratio) out.measured = {a.ofu_ratio, true};
  out.run.document_tokens = a.document_tokens;
  out.run.capacity_ratio = a.capacity_factor;
  out.run.padding_ratio = a.padding_ratio;
  out.run.productive_ratio = a.productive_ratio;
  return {};
}

}  // namespace flopsight::app
