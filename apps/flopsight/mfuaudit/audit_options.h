#pragma once
// The options of `flopsight audit`: registered with the parser and checked, one line for each mistake. Opens no file.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "catalog/devices.h"
#include "flops/count.h"
#include "units/time.h"

namespace CLI {
class App;
}

namespace flopsight::app {

struct AuditArguments {
  std::string config_path;
  std::vector<std::string> ignored_keys;
  // The claim.
  std::vector<std::string> logs;
  std::string run_label;   // of a log with several runs
  std::string patterns_path, log_format, zone;
  std::optional<double> mfu_ratio;
  std::optional<double> flops_per_second_per_gpu;
  std::optional<double> tokens_per_second_per_gpu;
  std::optional<double> step_seconds;
  std::optional<double> peak_flops_per_second;  // that the claimed MFU is of
  // The run.
  std::string gpu;
  std::string catalog_path;
  std::optional<std::uint64_t> gpus;
  std::optional<catalog::Precision> precision;
  std::optional<std::uint64_t> sequence_tokens;
  std::optional<std::uint64_t> document_tokens;
  std::optional<std::uint64_t> global_batch;  // sequences of a step
  std::optional<std::uint64_t> prediction_steps;
  std::optional<flops::Recompute> recompute;
  std::uint64_t adapter_rank = 0;
  std::vector<std::string> adapter_targets = {"all"};
  std::optional<std::uint64_t> tensor_parallel, pipeline_parallel, context_parallel, expert_parallel, gradient_accumulation;
  std::optional<double> padding_ratio, productive_ratio, capacity_factor;
  // What was measured.
  std::optional<double> ofu_ratio;
  std::string store_path;
  std::string job;
  std::optional<units::Instant> start;
  std::optional<units::Instant> end;
  std::optional<units::Seconds> since;
  bool json = false;
};

// As text; turned into settings after parsing.
struct AuditTexts {
  std::string mfu, ofu, precision, recompute, targets, start, end, since, format = "table";
};

void add_audit(CLI::App& app, AuditArguments& arguments, AuditTexts& texts);

// What is wrong, or nothing.
std::optional<std::string> set_audit(AuditArguments& arguments, const AuditTexts& texts);

}  // namespace flopsight::app
