#pragma once
// OFU inside an engine that exists: Prometheus recording rules, alerting rules and a Grafana dashboard that stand on them.
//
// The arithmetic is the report's (sources/promql_parts.h): activity times clock at each evaluation, divided by the model's
// reference clock, then summed over GPUs and time. No mean of a factor is ever multiplied by a mean of another. Series that
// are recorded, in the order of their evaluation:
//
//   gpu:flopsight_model:info            which model of the catalogue, by the name that the exporter prints
//   gpu:flopsight_reference_clock:hertz the clock its tensor peak is quoted at; a model that is not known has none
//   gpu:flopsight_sm_clock:hertz, gpu:flopsight_tensor_active:ratio
//   gpu:flopsight_ofu:ratio             activity * clock / reference clock
//   gpu:flopsight_labels:info, gpu:flopsight_identity:info, gpu:flopsight_holder:info
//   gpu:flopsight_share:ratio           the part of the GPU that a job holds: slices of MIG, equal parts where it is shared
//   {job,fleet}:flopsight_{allocated,measured,delivered,tensor_active}_gpus:sum
//   {job,fleet}:flopsight_{ofu,coverage,tensor_active,clock_loss}:ratio and ofu:ratio_avg15m, _avg1h, _avg1d
//
// On the "one" side of every join stands an aggregation by the join's labels, so that no pair of exporters that
// contradict each other makes a rule fail for the whole fleet.
// Threads: pure.

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/result.h"
#include "catalog/devices.h"
#include "jobs/label_rules.h"
#include "units/units.h"

namespace flopsight::rules {

// A model of GPU as rules need it.
struct ModelFacts {
  std::string model;    // ours: "H100-SXM5-80GB"
  std::string pattern;  // of its names, RE2 (catalog/name_pattern.h)
  std::optional<units::Hertz> reference_clock;  // of the tensor peak, or as the user says
  std::optional<units::Hertz> nvml_max_clock;
  std::optional<units::Watts> board_power;
  int mig_slices = 7;
};

struct Options {
  std::vector<ModelFacts> models;
  jobs::LabelRules labels = jobs::LabelRules::builtin();
  units::Seconds interval{60};         // of the evaluation
  units::Seconds scrape_interval{30};  // of the exporters
  std::string match;                   // further matchers, "cluster=\"a\""; may be empty
  std::vector<std::string> group_by;   // further labels that jobs are told apart by
  std::string gpu_label = "UUID";
  std::string model_label = "modelName";
  bool has_alerts = true;
};

struct Rule {
  std::string name;  // of the series, or of the alert
  std::string expression;
  std::string comment;  // what a reader of the file should know; may be empty
  std::vector<std::pair<std::string, std::string>> labels;
  bool is_alert = false;
  units::Seconds pending{0};  // how long an alert must hold
  std::string summary, description;
};

struct Group {
  std::string name;
  std::vector<Rule> rules;  // evaluated in this order
};

// The models of a catalogue, sorted by name. `user_csv` is the text of the user's rows (empty: none). `only`: names of the
// models wanted (empty: all). `clocks`: model and reference clock; a model that the catalogue does not know is added under
// that name. Errors: kInvalid for a name in `only` that is not known, and for a name that would not fit one line.
base::Result<std::vector<ModelFacts>> model_facts(const catalog::DeviceCatalog& devices, std::string_view user_csv,
                                                  const std::vector<std::string>& only,
                                                  const std::vector<std::pair<std::string, units::Hertz>>& clocks);

// Whether this may stand as a label name in an expression. Source: Prometheus data model, [a-zA-Z_][a-zA-Z0-9_]*.
bool is_label_name(std::string_view text);

// Errors: kInvalid for a label name (of the options, or of the attribution rules) that is none.
base::Status check(const Options& options);

Group recording_group(const Options& options);
Group alerting_group(const Options& options);

// A rule file for Prometheus or vmalert. The same options give the same bytes.
std::string prometheus_yaml(const Options& options);

// A dashboard of Grafana 10 and later (schema version 39), which an older one migrates.
std::string grafana_dashboard(const Options& options);

}  // namespace flopsight::rules
