#include "base/json.h"
#include "rules/expressions_internal.h"

namespace flopsight::rules {
namespace {

using base::json::Array;
using base::json::Object;
using base::json::Value;

Value source() { return Object{{"type", "prometheus"}, {"uid", "${datasource}"}}; }

struct Query {
  std::string expression;
  std::string legend;
};

struct Panel {
  std::string title, type, unit, description;
  int x = 0, y = 0, width = 12, height = 8;
  std::vector<Query> queries;
  bool is_instant = false;
  Object options = {};
};

Value panel_json(const Panel& panel, int id) {
  Array targets;
  char reference = 'A';
  for (const Query& query : panel.queries) {
    targets.push_back(Object{{"refId", std::string(1, reference++)},
                             {"datasource", source()},
                             {"expr", query.expression},
                             {"legendFormat", query.legend},
                             {"format", panel.type == "table" ? "table" : "time_series"},
                             {"instant", panel.is_instant},
                             {"range", !panel.is_instant}});
  }
  Object defaults{{"unit", panel.unit}, {"noValue", "unknown"}};
  if (panel.unit == "percentunit") defaults.insert(defaults.end(), {{"min", 0}, {"decimals", 1}});
  return Object{{"id", id},
                {"type", panel.type},
                {"title", panel.title},
                {"description", panel.description},
                {"datasource", source()},
                {"gridPos", Object{{"x", panel.x}, {"y", panel.y}, {"w", panel.width}, {"h", panel.height}}},
                {"fieldConfig", Object{{"defaults", std::move(defaults)}, {"overrides", Array{}}}},
                {"options", panel.options},
                {"targets", std::move(targets)}};
}

Value variable(const std::string& name, const std::string& label, const std::string& query) {
  const Object all{{"selected", true}, {"text", Array{"All"}}, {"value", Array{"$__all"}}};
  return Object{{"name", name},        {"label", label},        {"type", "query"},
                {"datasource", source()}, {"query", Object{{"query", query}, {"refId", name}}}, {"definition", query},
                {"multi", true},       {"includeAll", true},    {"allValue", ".*"},
                {"current", all},      {"refresh", 2},          {"sort", 1}};
}

// Over the window of the dashboard: integrals first, the ratio at the end.
std::string over_window(const std::string& part, const std::string& of) {
  return "sum by (flopsight_namespace, flopsight_job) (sum_over_time(" + part + of + "[$__range])) / sum by (flopsight_namespace, flopsight_job) (sum_over_time(job:flopsight_measured_gpus:sum" + of + "[$__range]))";
}

std::vector<Panel> panels(const Labels& l) {
  const std::string job = "{flopsight_job=~\"$job\", flopsight_job!=\"\"}", gpu = "{flopsight_job=~\"$job\", flopsight_host=~\"$host\"}";
  const std::string name = "{{flopsight_namespace}} {{flopsight_job}}";
  const std::string gpu_ofu = "max by (flopsight_host, " + l.unit + ") (gpu:flopsight_share:ratio" + gpu + " * 0 + on(" + l.unit + ") group_left() max by (" + l.unit + ") (gpu:flopsight_ofu:ratio))";
  const Object last{{"reduceOptions", Object{{"calcs", Array{"lastNotNull"}}, {"fields", ""}, {"values", false}}}};
  return {
      {"Fleet OFU", "stat", "percentunit", "Delivered over measured, in the window shown.", 0, 0, 6, 5,
       {{"sum_over_time(fleet:flopsight_delivered_gpus:sum[$__range]) / sum_over_time(fleet:flopsight_measured_gpus:sum[$__range])", "OFU"}}, true, last},
      {"Coverage", "stat", "percentunit", "The part of GPU time of which OFU is known.", 6, 0, 6, 5,
       {{"sum_over_time(fleet:flopsight_measured_gpus:sum[$__range]) / sum_over_time(fleet:flopsight_allocated_gpus:sum[$__range])", "coverage"}}, true, last},
      {"GPUs", "stat", "short", "GPUs seen, now.", 12, 0, 6, 5, {{"fleet:flopsight_allocated_gpus:sum", "GPUs"}}, true, last},
      {"Firing alerts", "stat", "short", "Of the rules that belong to this dashboard.", 18, 0, 6, 5,
       {{"sum(ALERTS{alertname=~\"Flopsight.*\", alertstate=\"firing\"}) or vector(0)", "alerts"}}, true, last},
      {"Fleet: OFU, tensor activity and clock loss", "timeseries", "percentunit", "Clock loss: tensor work below the reference clock; negative where the clock is above it.", 0, 5, 12, 8,
       {{"fleet:flopsight_ofu:ratio", "OFU"}, {"fleet:flopsight_tensor_active:ratio", "tensor active"}, {"fleet:flopsight_clock_loss:ratio", "clock loss"}}},
      {"Jobs: OFU", "timeseries", "percentunit", "", 12, 5, 12, 8, {{"job:flopsight_ofu:ratio" + job, name}}},
      {"Jobs by OFU, lowest first", "bargauge", "percentunit", "Over the window shown.", 0, 13, 12, 9,
       {{"sort(" + over_window("job:flopsight_delivered_gpus:sum", job) + ")", name}}, true, last},
      {"Jobs: coverage", "timeseries", "percentunit", "Where it is below 100 %, OFU is of the GPUs that are measured.", 12, 13, 12, 9, {{"job:flopsight_coverage:ratio" + job, name}}},
      {"Jobs: clock loss", "timeseries", "percentunit", "", 0, 22, 12, 8, {{"job:flopsight_clock_loss:ratio" + job, name}}},
      {"Jobs: GPUs held", "timeseries", "short", "Shares of GPUs add up.", 12, 22, 12, 8, {{"sum by (flopsight_namespace, flopsight_job) (job:flopsight_allocated_gpus:sum" + job + ")", name}}},
      {"OFU of each GPU", "status-history", "percentunit", "A row is a GPU, or an instance of one. A gap is unmeasured.", 0, 30, 24, 14,
       {{gpu_ofu, "{{flopsight_host}} {{" + l.gpu + "}} {{" + l.instance + "}}"}}, false, {{"showValue", "never"}, {"rowHeight", 0.9}}},
  };
}

}  // namespace

std::string grafana_dashboard(const Options& options) {
  const Labels labels(options);
  Array all;
  for (const Panel& panel : panels(labels)) all.push_back(panel_json(panel, static_cast<int>(all.size()) + 1));
  const Value datasource = Object{{"name", "datasource"}, {"label", "Data source"}, {"type", "datasource"}, {"query", "prometheus"}, {"refresh", 1}};
  const Object dashboard{
      {"uid", "flopsight-ofu"},
      {"title", "Flopsight: OFU of jobs and GPUs"},
      {"description", "What share of the GPUs' tensor peak is in use. Needs the recording rules of flopsight rules prometheus."},
      {"tags", Array{"flopsight", "gpu"}},
      {"schemaVersion", 39},
      {"version", 1},
      {"editable", true},
      {"graphTooltip", 1},
      {"refresh", "1m"},
      {"time", Object{{"from", "now-6h"}, {"to", "now"}}},
      {"templating", Object{{"list", Array{datasource, variable("job", "Job", "label_values(job:flopsight_allocated_gpus:sum, flopsight_job)"),
                                           variable("host", "Host", "label_values(gpu:flopsight_share:ratio, flopsight_host)")}}}},
      {"annotations", Object{{"list", Array{}}}},
      {"links", Array{}},
      {"panels", std::move(all)},
  };
  return base::json::dump(dashboard, 2) + "\n";
}

}  // namespace flopsight::rules
