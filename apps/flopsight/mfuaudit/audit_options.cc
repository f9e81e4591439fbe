#include "mfuaudit/audit_options.h"

#include <CLI/CLI.hpp>


#include "audit/names.h"
#include "base/text.h"
#include "training_logs/report.h"
#include "number_options.h"

namespace flopsight::app {
namespace {

constexpr std::uint64_t kSequenceTokensMax = std::uint64_t{1} << 32;
constexpr std::uint64_t kGpusMax = 10'000'000;
constexpr double kMfuMax = 10;  // wrong ones are above 1; above this it is a percentage
constexpr double kRateLeast = 1e-9;
constexpr double kRateMax = 1e9;

const CLI::Range kCount(std::uint64_t{1}, kGpusMax);

void add_claim(CLI::App& app, AuditArguments& a, AuditTexts& t) {
  const std::string group = "Claim";
  app.add_option("--log", a.logs, "log(s) of the training job, plain, gzip or zstd; - is stdin")->group(group);
  app.add_option("--run", a.run_label, "of a log with several runs the one whose label has these words")->group(group);
  app.add_option("--patterns", a.patterns_path, "YAML file with patterns of your own (docs/training-logs.md)")->group(group);
  app.add_option("--log-format", a.log_format, "read only this format, e.g. megatron")->group(group);
  app.add_option("--zone", a.zone, "time zone of the log's dates without an offset: Europe/Berlin, UTC or +02:00")->group(group);
  app.add_option("--mfu", t.mfu, "reported MFU: a ratio (0.54), or a percentage with its sign (54%)")->group(group);
  in_range(app.add_option("--tflops-per-gpu", a.flops_per_second_per_gpu, "reported TFLOP/s of a GPU"), kRateLeast, kRateMax)->group(group);
  in_range(app.add_option("--tokens-per-second-per-gpu", a.tokens_per_second_per_gpu, "tokens per second of a GPU"), kRateLeast, kRateMax)->group(group);
  in_range(app.add_option("--step-seconds", a.step_seconds, "time of a step; with --global-batch, --seq-len and --gpus"), kRateLeast, kRateMax)->group(group);
  in_range(app.add_option("--peak-tflops", a.peak_flops_per_second, "the peak, in TFLOP/s, that the reported MFU is a share of"), kRateLeast, kRateMax)->group(group);
}

void add_run(CLI::App& app, AuditArguments& a, AuditTexts& t) {
  const std::string group = "Run";
  app.add_option("--gpu", a.gpu, "GPU model, e.g. H100-SXM5-80GB or as an exporter names it")->required()->group(group);
  app.add_option("--gpus", a.gpus, "number of GPUs")->check(kCount)->group(group);
  app.add_option("--precision", t.precision, "of the linear layers: bf16|fp16|fp8|fp4|tf32|fp32")->group(group);
  app.add_option("--seq-len", a.sequence_tokens, "tokens of a training sequence")->check(CLI::Range(std::uint64_t{1}, kSequenceTokensMax))->group(group);
  app.add_option("--document-tokens", a.document_tokens, "mean length of packed documents that do not see each other")->check(CLI::Range(std::uint64_t{1}, kSequenceTokensMax))->group(group);
  app.add_option("--global-batch", a.global_batch, "sequences of a step")->check(CLI::Range(std::uint64_t{1}, kSequenceTokensMax))->group(group);
  app.add_option("--mtp", a.prediction_steps, "multi-token prediction steps that are trained")->check(CLI::Range(std::uint64_t{0}, std::uint64_t{64}))->group(group);
  app.add_option("--recompute", t.recompute, "none|selective|full: activations that are computed again")->group(group);
  app.add_option("--lora-rank", a.adapter_rank, "adapters of this rank are trained, the weights are frozen")->check(CLI::Range(std::uint64_t{1}, std::uint64_t{65536}))->group(group);
  app.add_option("--lora-targets", t.targets, "with --lora-rank, as in flopsight flops")->group(group);
  app.add_option("--tp", a.tensor_parallel, "tensor-parallel size")->check(kCount)->group(group);
  app.add_option("--pp", a.pipeline_parallel, "pipeline-parallel size")->check(kCount)->group(group);
  app.add_option("--cp", a.context_parallel, "context-parallel size")->check(kCount)->group(group);
  app.add_option("--ep", a.expert_parallel, "expert-parallel size")->check(kCount)->group(group);
  app.add_option("--gradient-accumulation", a.gradient_accumulation, "micro-batches of a step")->check(kCount)->group(group);
  in_range(app.add_option("--padding-ratio", a.padding_ratio, "share of the tokens that is padding, 0-1"), 0.0, 0.999)->group(group);
  in_range(app.add_option("--productive-ratio", a.productive_ratio, "time that the figure is about over the time that OFU is about, 0-1"), 0.001, 1.0)->group(group);
  in_range(app.add_option("--capacity-factor", a.capacity_factor, "of experts whose batches are padded to it"), 1.0, 100.0)->group(group);
  app.add_option("--gpu-catalog", a.catalog_path, "CSV rows that add to or replace the GPU catalogue")->group(group);
}

void add_measured(CLI::App& app, AuditArguments& a, AuditTexts& t) {
  const std::string group = "Measured";
  app.add_option("--ofu", t.ofu, "OFU of the job: a ratio, or a percentage with its sign")->group(group);
  app.add_option("--store", a.store_path, "store folder that knows the job, with --job")->group(group);
  app.add_option("--job", a.job, "the job's id, as flopsight jobs lists it")->group(group);
  app.add_option("--start", t.start, "with --store: RFC 3339 with an offset, or Unix seconds")->group(group);
  app.add_option("--end", t.end, "exclusive; default: now")->group(group);
  app.add_option("--since", t.since, "length up to the end (default: 24h)")->group(group);
}

std::optional<std::string> set_ratio(const char* name, const std::string& text, double most, std::optional<double>& out) {
  if (text.empty()) return std::nullopt;
  out = ratio_of(text);
  if (out && *out < 0) out.reset();
  if (out && *out <= most) return std::nullopt;
  const std::string hint = out && !text.ends_with('%') ? "; a percentage is written " + base::printable(text, 20) + "%" : "";
  return std::string(name) + " " + base::printable(text, 40) + ": expected a ratio from 0 to " + (most > 1 ? "10" : "1") + hint;
}

std::optional<std::string> set_window(AuditArguments& a, const AuditTexts& t) {
  const auto instant = [](const std::string& text, std::optional<units::Instant>& out) {
    if (text.empty()) return true;
    out = units::parse_instant(text);
    return out.has_value();
  };
  if (!instant(t.start, a.start)) return "--start " + base::printable(t.start, 40) + ": expected RFC 3339 with an offset or Unix seconds";
  if (!instant(t.end, a.end)) return "--end " + base::printable(t.end, 40) + ": expected RFC 3339 with an offset or Unix seconds";
  if (!t.since.empty()) {
    a.since = units::parse_duration(t.since);
    if (!a.since) return "--since " + base::printable(t.since, 40) + ": expected a duration such as 24h or 90m";
  }
  if (a.start && a.since) return "--start and --since exclude each other";
  if (a.start && a.end && *a.end <= *a.start) return "--end is not after --start";
  if ((a.start || a.end || a.since) && a.store_path.empty()) return "--start, --end and --since need --store";
  return std::nullopt;
}

// A GPU holds one part of a model: --tp x --pp x --cp of them hold it once. --ep splits among the same.
std::optional<std::string> check_layout(const AuditArguments& a) {
  if (!a.gpus) return std::nullopt;
  const double parts = static_cast<double>(a.tensor_parallel.value_or(1)) * static_cast<double>(a.pipeline_parallel.value_or(1)) * static_cast<double>(a.context_parallel.value_or(1));
  const auto gpus = static_cast<double>(*a.gpus);
  if (parts <= gpus && static_cast<double>(a.expert_parallel.value_or(1)) <= gpus) return std::nullopt;
  std::string sizes;
  for (const auto& [name, size] : {std::pair("--tp ", a.tensor_parallel), std::pair("--pp ", a.pipeline_parallel), std::pair("--cp ", a.context_parallel), std::pair("--ep ", a.expert_parallel)}) {
    if (size) sizes += (sizes.empty() ? "" : ", ") + std::string(name) + std::to_string(*size);
  }
  return "--gpus " + std::to_string(*a.gpus) + ": fewer than " + sizes + " need";
}

std::optional<std::string> check_choices(const AuditArguments& a) {
  if (!a.logs.empty() && (a.mfu_ratio || a.flops_per_second_per_gpu)) return "--log excludes --mfu and --tflops-per-gpu";
  if (a.logs.empty() && (!a.run_label.empty() || !a.patterns_path.empty() || !a.log_format.empty() || !a.zone.empty())) return "--run, --patterns, --log-format and --zone need --log";
  if (!a.log_format.empty() && !training_logs::known_format(a.log_format)) {
    return "--log-format " + base::printable(a.log_format, 60) + ": expected " + training_logs::format_names();
  }
  if (a.store_path.empty() != a.job.empty()) return "--store and --job go together";
  if (a.ofu_ratio && !a.store_path.empty()) return "--ofu and --store exclude each other";
  if (a.logs.empty() && !a.mfu_ratio && !a.flops_per_second_per_gpu && a.store_path.empty()) {
    return "expected a claim: --log, --mfu, --tflops-per-gpu, or --store with a job that reports its MFU";
  }
  if (a.step_seconds && a.tokens_per_second_per_gpu) return "--step-seconds and --tokens-per-second-per-gpu exclude each other";
  if (a.step_seconds && (!a.global_batch || !a.gpus)) return "--step-seconds needs --global-batch and --gpus";
  return std::nullopt;
}

}  // namespace

void add_audit(CLI::App& app, AuditArguments& a, AuditTexts& t) {
  app.add_option("--config", a.config_path, "config.json of the model, a folder that has one, or - for stdin")->required();
  app.add_option("--ignore-key", a.ignored_keys, "a key of the configuration that is not known here, and leaves the count alone");
  add_claim(app, a, t);
  add_run(app, a, t);
  add_measured(app, a, t);
  app.add_option("--format", t.format, "table|json")->capture_default_str();
}

std::optional<std::string> set_audit(AuditArguments& a, const AuditTexts& t) {
  if (t.format != "table" && t.format != "json") return "--format " + base::printable(t.format, 40) + ": expected table or json";
  a.json = t.format == "json";
  if (auto wrong = set_ratio("--mfu", t.mfu, kMfuMax, a.mfu_ratio)) return wrong;
  if (auto wrong = set_ratio("--ofu", t.ofu, 1, a.ofu_ratio)) return wrong;
  if (!t.precision.empty()) {
    a.precision = catalog::find_precision(t.precision);
    const bool trains = a.precision && *a.precision != catalog::Precision::kInt8;  // as this option lists them
    if (!trains) return "--precision " + base::printable(t.precision, 40) + ": expected bf16, fp16, fp8, fp4, tf32 or fp32";
  }
  if (!t.recompute.empty()) {
    a.recompute = audit::parse_recompute(t.recompute);
    if (!a.recompute) return "--recompute " + base::printable(t.recompute, 40) + ": expected none, selective or full";
  }
  if (!t.targets.empty()) {
    if (a.adapter_rank == 0) return "--lora-targets needs --lora-rank";
    a.adapter_targets = base::split(t.targets, ',');
  }
  if (a.flops_per_second_per_gpu) *a.flops_per_second_per_gpu *= 1e12;
  if (a.peak_flops_per_second) *a.peak_flops_per_second *= 1e12;
  if (auto wrong = set_window(a, t)) return wrong;
  if (auto wrong = check_layout(a)) return wrong;
  return check_choices(a);
}

}  // namespace flopsight::app
