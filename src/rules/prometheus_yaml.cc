#include "base/json.h"
#include "base/text.h"
#include "rules/expressions_internal.h"

namespace flopsight::rules {
namespace {

// A JSON string is a YAML string too, whatever is in it.
std::string text(std::string_view value) { return base::json::dump(base::json::Value(value), 0); }

void add_lines(std::string& out, std::string_view lines, const std::string& indent) {
  for (const std::string& line : base::split(lines, '\n')) out += indent + line + "\n";
}

void add_rule(std::string& out, const Rule& rule) {
  if (!rule.comment.empty()) add_lines(out, rule.comment, "      # ");
  out += std::string("      - ") + (rule.is_alert ? "alert: " : "record: ") + rule.name + "\n        expr: |-\n";
  add_lines(out, rule.expression, "          ");
  if (rule.is_alert) out += "        for: " + duration(rule.pending) + "\n";
  if (!rule.labels.empty()) out += "        labels:\n";
  for (const auto& [name, value] : rule.labels) out += "          " + name + ": " + text(value) + "\n";
  if (!rule.is_alert) return;
  out += "        annotations:\n          summary: " + text(rule.summary) + "\n          description: " + text(rule.description) + "\n";
}

constexpr std::string_view kHead =
    "# OFU, overall FLOP utilization, inside this engine. Written by flopsight rules; write it anew rather than edit it.\n"
    "#\n"
    "# OFU is the share of a GPU's tensor peak that is in use: tensor-pipe activity * SM clock / clock of the tensor peak.\n"
    "# Over time and GPUs it is the sum of what is delivered over the sum of what is measured:\n"
    "#   sum_over_time(job:flopsight_delivered_gpus:sum[24h]) / sum_over_time(job:flopsight_measured_gpus:sum[24h])\n"
    "#\n"
    "# What a report from raw samples does and rules cannot: cycle counters, frozen and contradicting readings, jobs known by a file or a\n"
    "# scheduler only, activity given by process or of AMD GPUs, the exact moment at which a GPU changes hands.\n";

}  // namespace

std::string prometheus_yaml(const Options& options) {
  std::string out(kHead);
  out += "# A sample holds for " + duration(sources::sample_hold(options.scrape_interval)) + ", for exporters scraped every " +
         duration(options.scrape_interval) + ": at longer intervals GPUs would come and go.\n";
  out += "groups:\n";
  std::vector<Group> groups = {recording_group(options)};
  if (options.has_alerts) groups.push_back(alerting_group(options));
  for (const Group& group : groups) {
    out += "  - name: " + group.name + "\n    interval: " + duration(options.interval) + "\n    rules:\n";
    for (const Rule& rule : group.rules) add_rule(out, rule);
  }
  return out;
}

}  // namespace flopsight::rules
