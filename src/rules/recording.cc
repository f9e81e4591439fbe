#include <algorithm>
#include <map>
#include <set>

#include "base/text.h"
#include "catalog/name_pattern.h"
#include "rules/expressions_internal.h"
#include "sources/contradiction_query.h"

namespace flopsight::rules {
namespace {

using catalog::Metric;

// One file's recording rules, in the order of their evaluation.
class Recording {
 public:
  explicit Recording(const Options& options) : options_(options), l_(options) {}

  Group make() {
    add_models();
    add_clocks();
    add_gpus();
    add_holders();
    add_shares();
    add_sums("job", " by (" + l_.job + ")");
    add_sums("fleet", "");
    return {"flopsight", std::move(rules_)};
  }

 private:
  void add(std::string name, std::string expression, std::string comment = {},
           std::vector<std::pair<std::string, std::string>> labels = {}) {
    Rule rule;
    rule.name = std::move(name);
    rule.expression = std::move(expression);
    rule.comment = std::move(comment);
    rule.labels = std::move(labels);
    rules_.push_back(std::move(rule));
  }

  void add_models() {
    sources::Reading reading = reading_of(options_);
    const std::string match = reading.match;
    for (const ModelFacts& model : options_.models) {
      reading.match = match + "," + options_.model_label + "=~" + sources::promql_quoted(model.pattern);
      add("gpu:flopsight_model:info",
          sources::held("group by (" + l_.gpu + ")", all_names({Metric::kSmClock, Metric::kTensorActive}), reading), {},
          {{"flopsight_model", model.model}});
    }
  }

  // Models by one figure, as terms "gpu:flopsight_model:info{flopsight_model=~…} * figure" joined by `or`.
  template <typename Figure>
  std::string by_model(Figure figure) const {
    std::map<double, std::vector<std::string>> models;
    for (const ModelFacts& model : options_.models) {
      if (const auto value = figure(model)) models[value->value].push_back(catalog::regex_escaped(model.model));
    }
    std::vector<std::string> terms;
    for (const auto& [value, names] : models) {
      terms.push_back("max by (" + l_.gpu + ") (gpu:flopsight_model:info{flopsight_model=~" + sources::promql_quoted(base::joined(names, "|")) + "}) * " +
                      sources::promql_number(value));
    }
    // Two models for one GPU contradict each other: then it has none.
    if (terms.empty()) return {};
    return "(\n" + base::joined(terms, "\nor\n") + "\n)\nunless on(" + l_.gpu + ") (count by (" + l_.gpu + ") (gpu:flopsight_model:info) > 1)";
  }

  void add_clocks() {
    const std::string name = "gpu:flopsight_reference_clock:hertz";
    const std::string catalog_clock = by_model([](const ModelFacts& m) { return m.reference_clock; });
    if (!catalog_clock.empty()) {
      add(name, catalog_clock, "The clock at which each model's tensor peak is quoted. A model that is not listed has none.",
          {{"clock_source", "tensor_peak"}});
    }
    add(name, "(\n" + quantity(options_, Metric::kSmClockMax, "max by (" + l_.gpu + ")") + "\n)\nunless on(" + l_.gpu + ") " + name + "{clock_source=\"tensor_peak\"}",
        "Otherwise the GPU's own maximum, where the exporter tells it: not another model's clock, but perhaps not that of the tensor peak.",
        {{"clock_source", "scraped_maximum"}});
    const std::string maximum = by_model([](const ModelFacts& m) { return m.reference_clock ? std::nullopt : m.nvml_max_clock; });
    if (!maximum.empty()) {
      add(name, "(\n" + maximum + "\n)\nunless on(" + l_.gpu + ") " + name + "{clock_source=~\"tensor_peak|scraped_maximum\"}",
          "Models whose tensor-peak clock is not known, against their maximum.", {{"clock_source", "catalog_maximum"}});
    }
    const std::string power = by_model([](const ModelFacts& m) { return m.board_power; });
    if (!power.empty()) add("gpu:flopsight_board_power:watts", power, "What a board may draw by its data sheet: a hung GPU draws far less.");
  }

  // Engine or SM activity of exactly 0, and the device says that it works. Of whole GPUs, as utilization and power are of all instances.
  std::string contradicted() const {
    const sources::ContradictionLimits limits;
    const std::string on = " on(" + l_.gpu + ") ";
    const auto of_gpu = [&](const char* aggregation, Metric metric) {
      return "(" + quantity(options_, metric, std::string(aggregation) + " by (" + l_.gpu + ")") + ")";
    };
    const std::string engine = "(" + of_gpu("min", Metric::kGraphicsEngineActive) + " == 0)", sm = "(" + of_gpu("min", Metric::kSmActive) + " == 0)";
    const std::string idle = "group by (" + l_.unit + ") ((" + quantity(options_, Metric::kTensorActive, "avg by (" + l_.unit + ")", l_.instance + "=\"\"") + ") == 0)";
    const std::string most = "(" + of_gpu("min", Metric::kPowerLimit) + " or" + on + "max by (" + l_.gpu + ") (gpu:flopsight_board_power:watts))";
    return idle + "\nand" + on + "(\n" + of_gpu("max", Metric::kGpuUtil) + " >= " + sources::promql_number(limits.utilization_ratio_min) + " and" + on + engine +
           "\nor\n" + of_gpu("max", Metric::kPower) + " >" + on + "(" + sources::promql_number(limits.power_to_limit_ratio_min) + " * " + most + ") and" + on + "(" + engine +
           " or" + on + sm + ")\n)";
  }

  void add_gpus() {
    const std::string of_gpu = "avg by (" + l_.gpu + ")", of_unit = "avg by (" + l_.unit + ")";
    add("gpu:flopsight_contradicted:info", contradicted(),
        "Zeros of a profiler that is gone, e.g. after an Xid, while utilization or power say that the GPU works: not measured, and no waste.");
    add("gpu:flopsight_sm_clock:hertz", quantity(options_, Metric::kSmClock, of_gpu),
        "Copies of a series fold into one. Values outside the physical range (blank, not supported) are left out.");
    add("gpu:flopsight_tensor_active:ratio",
        "(\n" + quantity(options_, Metric::kTensorActive, of_unit) + "\n)\nunless on(" + l_.unit + ") gpu:flopsight_contradicted:info");
    add("gpu:flopsight_ofu:ratio",
        sources::activity_times_clock("gpu:flopsight_tensor_active:ratio", "max by (" + l_.gpu + ") (gpu:flopsight_sm_clock:hertz)", l_.gpu) +
            "\n/ on(" + l_.gpu + ") group_left() max by (" + l_.gpu + ") (gpu:flopsight_reference_clock:hertz)",
        "Overall FLOP utilization at this moment. Over time: the mean of these products, never the product of means.");
  }

  void add_holders() {
    std::set<std::string> names = {l_.gpu, l_.instance, l_.profile};
    for (const std::string& name : options_.labels.label_names()) names.insert(name);
    for (const std::string& name : options_.group_by) names.insert(name);
    for (const char* replica : {"instance", "exported_instance"}) {
      const bool is_wanted = std::find(options_.group_by.begin(), options_.group_by.end(), replica) != options_.group_by.end();
      if (!is_wanted) names.erase(replica);
    }
    const std::vector<std::string> list(names.begin(), names.end());
    std::string host = sources::held("group by (" + base::joined(list, ", ") + ")", all_names({Metric::kSmClock, Metric::kTensorActive}), reading_of(options_));
    const auto hosts = options_.labels.names_of("host");
    for (auto name = hosts.rbegin(); name != hosts.rend(); ++name) {
      if (names.count(*name) == 0) continue;
      host = "label_replace(" + host + ", \"flopsight_host\", \"$1\", \"" + *name + "\", \"(.+)\")";
    }
    add("gpu:flopsight_labels:info", host, "What names a GPU, its host and its job. Not the exporter's address, which differs between replicas.");
    const std::string hosts_of_gpus = "topk by (" + l_.gpu + ") (1, group by (" + l_.gpu + ", flopsight_host) (gpu:flopsight_labels:info))";
    const std::string one_model = "max by (" + l_.gpu + ", flopsight_model) (gpu:flopsight_model:info) unless on(" + l_.gpu + ") (count by (" +
                                  l_.gpu + ") (gpu:flopsight_model:info) > 1)";
    add("gpu:flopsight_identity:info", hosts_of_gpus + "\n* on(" + l_.gpu + ") group_left(flopsight_model) (" + one_model + ")\nor on(" + l_.gpu + ") " + hosts_of_gpus);
    std::vector<std::string> not_before;
    for (const jobs::HolderRule& rule : options_.labels.holders()) add_holder(rule, not_before);
    add("gpu:flopsight_holder:info",
        "group by (" + l_.unit + ", " + l_.profile + group_labels() + ") (gpu:flopsight_labels:info{" + base::joined(not_before, ", ") +
            "})\nunless on(" + l_.unit + ") gpu:flopsight_holder:info{flopsight_job!=\"\"}",
        "GPUs that no job holds have no flopsight_job.", {{"attributed_by", "nothing"}});
  }

  std::string group_labels() const {
    std::string out;
    for (const std::string& name : options_.group_by) out += ", " + name;
    return out;
  }

  std::string exporter_pods() const {
    std::vector<std::string> patterns;
    for (const std::string& glob : options_.labels.names_of("exporter_pods")) {
      std::vector<std::string> pieces = base::split(glob, '*');
      for (std::string& piece : pieces) piece = catalog::regex_escaped(piece);
      std::string pattern = pieces.front();
      for (std::size_t i = 1; i < pieces.size(); ++i) pattern += ".*" + pieces[i];
      patterns.push_back(std::move(pattern));
    }
    return base::joined(patterns, "|");
  }

  // The first rule of the list whose job label is there wins, as in a report: each asks for what none before it took.
  void add_holder(const jobs::HolderRule& rule, std::vector<std::string>& not_before) {
    const std::string exporters = exporter_pods();
    std::vector<std::string> matchers = not_before;
    matchers.push_back(rule.job + "!=\"\"");
    if (rule.is_pod && !exporters.empty()) matchers.push_back(rule.job + "!~" + sources::promql_quoted(exporters));
    std::string named = "label_replace(gpu:flopsight_labels:info{" + base::joined(matchers, ", ") + "}, \"flopsight_job\", \"$1\", \"" + rule.job + "\", \"(.+)\")";
    if (!rule.name_space.empty()) named = "label_replace(" + named + ", \"flopsight_namespace\", \"$1\", \"" + rule.name_space + "\", \"(.+)\")";
    add("gpu:flopsight_holder:info", "group by (" + l_.unit + ", " + l_.profile + ", " + l_.job + ") (" + named + ")", {}, {{"attributed_by", rule.rule}});
    not_before.push_back(rule.is_pod && !exporters.empty() ? rule.job + "=~" + sources::promql_quoted("|" + exporters) : rule.job + "=\"\"");
  }

  // The part of a MIG instance: its slices of those that the model is divided into.
  std::vector<std::string> slices_terms() const {
    std::map<int, std::vector<std::string>> models;
    for (const ModelFacts& model : options_.models) models[model.mig_slices].push_back(catalog::regex_escaped(model.model));
    std::vector<std::string> terms;
    for (const auto& [all, names] : models) {
      for (int slices = 1; slices <= all; ++slices) {
        if (slices == 5 || slices == 6) continue;  // there are no such profiles
        terms.push_back("(gpu:flopsight_holder:info{" + l_.instance + "!=\"\", " + l_.profile + "=~\"(.*[.])?" + std::to_string(slices) +
                        "g[.].*\"} * " + std::to_string(slices) + " / " + std::to_string(all) + " and on(" + l_.gpu +
                        ") gpu:flopsight_identity:info{flopsight_model=~" + sources::promql_quoted(base::joined(names, "|")) + "})");
      }
    }
    return terms;
  }

  void add_shares() {
    const std::string holder = "gpu:flopsight_holder:info";
    std::string parts = "(\n(" + holder + "{" + l_.instance + "=\"\"} unless on(" + l_.gpu + ") " + holder + "{" + l_.instance + "!=\"\"})";
    for (const std::string& term : slices_terms()) parts += "\nor\n" + term;
    parts += "\n)\n/ on(" + l_.unit + ") group_left() count by (" + l_.unit + ") (" + holder + ")\n* on(" + l_.gpu +
             ") group_left(flopsight_host, flopsight_model) topk by (" + l_.gpu + ") (1, gpu:flopsight_identity:info)";
    add("gpu:flopsight_share:ratio", parts,
        "The part of a GPU that a job holds: one GPU hour is one GPU hour. Jobs on a GPU at once get equal parts, as no counter tells\n"
        "them apart, a MIG instance its slices. Slices that no instance holds are not counted here; a report counts them as unallocated.");
  }

  void add_sums(const std::string& level, const std::string& by) {
    const std::string head = level + ":flopsight_", share = "gpu:flopsight_share:ratio", unit = l_.unit;
    const auto of_unit = [&](const std::string& name) { return "max by (" + unit + ") (" + name + ")"; };
    add(head + "allocated_gpus:sum", "sum" + by + " (" + share + ")");
    add(head + "measured_gpus:sum", "sum" + by + " (" + share + " and on(" + unit + ") gpu:flopsight_ofu:ratio)",
        "GPUs with activity, clock and a reference clock; the others are unmeasured, which is not zero.");
    add(head + "delivered_gpus:sum", "sum" + by + " (" + share + " * on(" + unit + ") group_left() " + of_unit("gpu:flopsight_ofu:ratio") + ")");
    add(head + "tensor_active_gpus:sum", "sum" + by + " ((" + share + " and on(" + unit + ") gpu:flopsight_ofu:ratio) * on(" + unit +
                                             ") group_left() " + of_unit("gpu:flopsight_tensor_active:ratio") + ")");
    const std::string measured = head + "measured_gpus:sum", delivered = head + "delivered_gpus:sum", active = head + "tensor_active_gpus:sum";
    add(head + "ofu:ratio", delivered + " / " + measured);
    add(head + "coverage:ratio", "(" + measured + " or " + head + "allocated_gpus:sum * 0) / " + head + "allocated_gpus:sum");
    add(head + "tensor_active:ratio", active + " / " + measured);
    add(head + "clock_loss:ratio", "(" + active + " - " + delivered + ") / " + measured,
        level == "job" ? "What tensor work loses to clocks below the reference; negative where they are above it." : "");
    for (const char* window : {"15m", "1h", "1d"}) {
      add(head + "ofu:ratio_avg" + window, "sum_over_time(" + delivered + "[" + window + "]) / sum_over_time(" + measured + "[" + window + "])");
    }
  }

  const Options& options_;
  Labels l_;
  std::vector<Rule> rules_;
};

}  // namespace

base::Status check(const Options& options) {
  std::vector<std::string> names = options.labels.label_names();
  names.insert(names.end(), options.group_by.begin(), options.group_by.end());
  names.push_back(options.gpu_label);
  names.push_back(options.model_label);
  for (const std::string& name : names) {
    if (!is_label_name(name)) {
      return base::Error{base::ErrorCode::kInvalid, base::printable(name, 60) + ": expected a label name of letters, digits and _"};
    }
  }
  return {};
}

Group recording_group(const Options& options) { return Recording(options).make(); }

}  // namespace flopsight::rules
