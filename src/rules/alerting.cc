#include "rules/expressions_internal.h"

namespace flopsight::rules {
namespace {

using catalog::Metric;

// An hour of a job's own past, so that a start-up is no regression.
constexpr double kHistorySeconds = 3600;

Rule alert(std::string name, std::string severity, units::Seconds pending, std::string expression, std::string summary,
           std::string description) {
  Rule rule;
  rule.name = std::move(name);
  rule.expression = std::move(expression);
  rule.labels = {{"severity", std::move(severity)}};
  rule.is_alert = true;
  rule.pending = pending;
  rule.summary = std::move(summary);
  rule.description = std::move(description);
  return rule;
}

const char* const kJob = "{{ if $labels.flopsight_namespace }}{{ $labels.flopsight_namespace }}/{{ end }}{{ $labels.flopsight_job }}";

// Half of what it was finds a fall by 2.5 times also while a quarter of the window is from before it.
Rule ofu_dropped(const Options& options) {
  const std::string day = "(job:flopsight_ofu:ratio_avg1d{flopsight_job!=\"\"} offset 15m)";
  const std::string samples = sources::promql_number(kHistorySeconds / options.interval.value);
  return alert("FlopsightJobOfuDropped", "warning", units::Seconds(300),
               "(1 - job:flopsight_ofu:ratio_avg15m{flopsight_job!=\"\"} / " + day + " > 0.5)\nand " + day +
                   " > 0.1\nand (count_over_time(job:flopsight_delivered_gpus:sum{flopsight_job!=\"\"}[1d] offset 15m) >= " + samples +
                   ")\nand (job:flopsight_coverage:ratio{flopsight_job!=\"\"} >= 0.5)",
               std::string("OFU of job ") + kJob + " has dropped",
               std::string("Over the last 15 minutes, OFU of job ") + kJob +
                   " is {{ $value | humanizePercentage }} below its own mean of the day before. Look for a changed flag or library, "
                   "a slow GPU or host, waiting for input or other GPUs; a job that has ended its work and still holds its GPUs shows the same.");
}

Rule counter_missing(const Options& options, const Labels& l) {
  return alert("FlopsightTensorCounterMissing", "warning", units::Seconds(900),
               "(" + quantity(options, Metric::kGpuUtil, "max by (" + l.gpu + ")") + ") >= 0.5\nunless on(" + l.gpu +
                   ") gpu:flopsight_tensor_active:ratio",
               "GPU {{ $labels." + l.gpu + " }} is busy and has no tensor counter",
               "The GPU is {{ $value | humanizePercentage }} busy, and its tensor activity is blank, not exported, or zeros that its other readings contradict: its OFU is unknown, not zero. Check that "
               "profiling fields (DCGM 1004) are in the exporter's list, that no profiler has paused them and that no Xid has ended them.");
}

// Simulated hangs draw about 20 % of the board's power, running kernels without tensor work more than half.
Rule hung(const Options& options, const Labels& l) {
  const std::string by = "max by (" + l.gpu + ")";
  return alert("FlopsightGpuHung", "critical", units::Seconds(600),
               "(\n" + quantity(options, Metric::kPower, by) + "\n)\n/ on(" + l.gpu + ") " + by + " (gpu:flopsight_board_power:watts) < 0.35\nand on(" + l.gpu +
                   ") ((" + quantity(options, Metric::kGpuUtil, by) + ") >= 0.98)\nand on(" + l.gpu + ") (" + by +
                   " (max_over_time(gpu:flopsight_tensor_active:ratio[10m])) <= 0.001)\nand on(" + l.gpu +
                   ") (max by (" + l.gpu + ") (gpu:flopsight_share:ratio{flopsight_job!=\"\"}) > 0)",
               "GPU {{ $labels." + l.gpu + " }} seems to hang",
               "A kernel runs all the time, no tensor work has been done for 10 minutes, and the board draws {{ $value | humanizePercentage }} of its rated power: "
               "as when a collective operation never ends. Look at the job's stacks and at the links of its GPUs, then restart it from its last checkpoint.");
}

// A power cap alone takes an H100 to three quarters of its reference clock, so that a low clock needs a second sign: heat,
// or a clock that no cap explains. 83 degrees: boards slow down from about 85 on.
Rule throttled(const Options& options, const Labels& l) {
  const std::string by = "max by (" + l.gpu + ")";
  const std::string clock = "(" + by + " (avg_over_time(gpu:flopsight_sm_clock:hertz[15m])) / on(" + l.gpu + ") " + by + " (gpu:flopsight_reference_clock:hertz))";
  return alert("FlopsightGpuClockThrottled", "warning", units::Seconds(300),
               "((" + clock + " < 0.85 and on(" + l.gpu + ") ((" + quantity(options, Metric::kTemperature, by) + ") >= 83))\nor\n" + clock + " < 0.5)\nand on(" + l.gpu + ") (" + by +
                   " (avg_over_time(gpu:flopsight_tensor_active:ratio[15m])) >= 0.1)",
               "GPU {{ $labels." + l.gpu + " }} runs at a low clock",
               "While it does tensor work, the SM clock of this GPU is {{ $value | humanizePercentage }} of its reference clock, over 15 minutes, and it is hot or far below any usual power cap. "
               "Look at temperature, power cap and clock settings (nvidia-smi -q -d CLOCK,PERFORMANCE); the other GPUs of its job wait for it.");
}

Rule exporter_silent(const Labels& l) {
  return alert("FlopsightExporterSilent", "warning", units::Seconds(600),
               "count by (flopsight_host) (group by (flopsight_host, " + l.gpu +
                   ") (last_over_time(gpu:flopsight_share:ratio[1h])) unless on(" + l.gpu + ") gpu:flopsight_labels:info)",
               "{{ $value }} GPUs of {{ $labels.flopsight_host }} have fallen silent",
               "{{ $value }} GPUs that were seen within the last hour have had no samples for 10 minutes: their time is unmeasured. Check the host, its exporter and the "
               "scrape (up, scrape_samples_scraped); a host that was taken away on purpose stops counting after an hour.");
}

Rule coverage_low() {
  return alert("FlopsightJobCoverageLow", "info", units::Seconds(1800), "job:flopsight_coverage:ratio{flopsight_job!=\"\"} < 0.9",
               std::string("OFU of job ") + kJob + " is known in part",
               "Only {{ $value | humanizePercentage }} of the job's GPUs have tensor activity, a clock and a reference clock: its OFU is of these. Look for blank "
               "counters, and for models that the catalogue does not know (flopsight rules --clock MODEL=HERTZ adds one).");
}

}  // namespace

Group alerting_group(const Options& options) {
  const Labels labels(options);
  Group group{"flopsight-alerts", {}};
  group.rules.push_back(ofu_dropped(options));
  group.rules.push_back(counter_missing(options, labels));
  group.rules.push_back(hung(options, labels));
  group.rules.push_back(throttled(options, labels));
  group.rules.push_back(exporter_silent(labels));
  group.rules.push_back(coverage_low());
  return group;
}

}  // namespace flopsight::rules
