#include "sources/gpu_list.h"

#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "catalog/metrics.h"
#include "sources/promql_parts.h"
#include "sources/pushdown_gather.h"

namespace flopsight::sources {
namespace {

// That this label names no GPU: it is not there, masked, or an index.
std::string names_none(const std::string& label) {
  const bool may_be_index = label == "gpu" || label == "gpu_id";
  return label + (may_be_index ? "!~\"" + std::string(kNamingUuids) : "=~\"" + std::string(kMaskedUuids)) + "\"";
}

std::string selector(const std::vector<std::string>& metrics, const std::string& match, const std::vector<std::string>& matchers) {
  std::string out = "{__name__=~\"" + base::joined(metrics, "|") + "\"";
  if (!match.empty()) out += "," + match;
  for (const std::string& matcher : matchers) out += "," + matcher;
  return out + "}";
}

struct Name {
  std::string label, value, uuid;  // uuid: normalized; all empty when none
};

Name name_in(const std::vector<std::pair<std::string, std::string>>& labels, const jobs::LabelRules& rules) {
  for (const std::string& label : rules.names_of("uuid")) {
    for (const auto& [name, value] : labels) {
      if (name != label) continue;
      const jobs::LabelView view{name, value};
      const std::string uuid = rules.apply({&view, 1}).gpu.uuid;
      if (!uuid.empty()) return {label, value, samples::normalized_uuid(uuid)};
    }
  }
  return {};
}

void add_series(const wire::ApiSeries& series, const jobs::LabelRules& rules, GpuList& list) {
  std::vector<jobs::LabelView> views;
  for (const auto& [name, value] : series.labels) views.push_back({name, value});
  const jobs::LabelFacts facts = rules.apply(views);
  const Name name = name_in(series.labels, rules);
  if (name.uuid.empty()) {
    // Without an index it is a sum over a host or a fleet.
    if (facts.gpu.index.empty() && !facts.masked_uuid) return;
    list.has_unnamed = true;
    if (!facts.gpu.host.empty() && !facts.gpu.index.empty()) list.hosts_without_names.insert(facts.gpu.host);
    return;
  }
  ListedGpu& gpu = list.gpus[name.uuid];
  gpu.names[name.label].insert(name.value);
  if (gpu.host.empty()) gpu.host = facts.gpu.host;
  gpu.has_holder = gpu.has_holder || !facts.holder.unallocated();
}

}  // namespace

base::Result<GpuList> list_gpus(PrometheusClient& client, const Plan& plan, const std::string& match, const jobs::LabelRules& rules,
                                units::Window window, const std::string& beside) {
  std::vector<std::string> names, matchers;
  for (const char* field : {"uuid", "host", "index"}) {
    const auto of_field = rules.names_of(field);
    names.insert(names.end(), of_field.begin(), of_field.end());
  }
  if (!beside.empty()) {
    matchers.push_back(names_none(beside));
    const std::vector<std::string> of_holders = holder_label_names(plan, rules);
    names.insert(names.end(), of_holders.begin(), of_holders.end());
  }
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  const std::string by = "group by (" + base::joined(names, ",") + ") (last_over_time(" + selector(plan.gpu_metrics, match, matchers) + "[";
  GpuList list;
  FLOPSIGHT_RETURN_IF_ERROR(client.query_halved(
      window, [&](const std::string& range) { return by + range + "]))"; },
      [&](const wire::ApiAnswer& answer) {
        for (const wire::ApiSeries& series : answer.series) add_series(series, rules, list);
      }));
  return list;
}

base::Result<std::set<std::string>> gpus_with_other_metrics(PrometheusClient& client, const Plan& plan, const std::string& match,
                                                            const jobs::LabelRules& rules, units::Window window) {
  const std::string looked_at = "|" + plan.tensor_names + "|" + plan.clock_names + "|" + plan.presence_names + "|";
  std::vector<std::string> others;
  for (const std::string& name : plan.gpu_metrics) {
    if (looked_at.find("|" + name + "|") == std::string::npos) others.push_back(name);
  }
  std::set<std::string> out;
  if (others.empty()) return out;
  const std::string query = "group by (" + plan.gpu_label + ") (last_over_time(" + selector(others, match, {}) + "[" +
                            std::to_string(std::llround(sample_hold(plan.interval).value * 1000)) + "ms]))";
  for (const double back_ratio : {0.0, 0.25, 0.5, 0.75}) {
    FLOPSIGHT_ASSIGN_OR_RETURN(const wire::ApiAnswer answer,
                               client.query(query, window.end - window.length() * back_ratio - units::Seconds(0.001)));
    for (const wire::ApiSeries& series : answer.series) {
      for (const auto& [label, value] : series.labels) {
        if (label == plan.gpu_label && !name_in({{label, value}}, rules).uuid.empty()) out.insert(value);
      }
    }
  }
  return out;
}

std::vector<std::vector<std::string>> raw_batches(const GpuList& list, const Plan& plan, const std::string& match, const jobs::LabelRules& rules,
                                                  std::size_t gpus_max) {
  std::vector<std::vector<const ListedGpu*>> batches;
  std::vector<std::vector<std::string>> out;
  if (list.has_unnamed) batches.emplace_back();
  // Those of a host together: some errors are seen only by comparing them.
  std::map<std::string, std::vector<const ListedGpu*>> by_host;
  for (const auto& [uuid, gpu] : list.gpus) {
    const bool may_have_unnamed = list.has_unnamed && list.hosts_without_names.count(gpu.host) > 0;
    if (may_have_unnamed) {
      batches.front().push_back(&gpu);
    } else {
      by_host[gpu.host].push_back(&gpu);
    }
  }
  std::size_t room = 0;
  for (const auto& [host, gpus] : by_host) {
    for (const ListedGpu* gpu : gpus) {
      if (room == 0) {
        batches.emplace_back();
        room = gpus_max;
      }
      batches.back().push_back(gpu);
      --room;
    }
  }
  for (std::size_t i = 0; i < batches.size(); ++i) {
    std::vector<std::string>& selectors = out.emplace_back();
    std::vector<std::string> before;  // labels that come first and name none, as each series is to be fetched once
    for (const std::string& label : rules.names_of("uuid")) {
      std::set<std::string> values;
      for (const ListedGpu* gpu : batches[i]) {
        if (const auto at = gpu->names.find(label); at != gpu->names.end()) values.insert(at->second.begin(), at->second.end());
      }
      if (!values.empty()) {
        std::string pattern;
        for (const std::string& value : values) pattern += (pattern.empty() ? "" : "|") + regex_literal(value);
        std::vector<std::string> matchers = before;
        matchers.push_back(label + "=~\"" + pattern + "\"");
        selectors.push_back(selector(plan.gpu_metrics, match, matchers));
      }
      before.push_back(names_none(label));
    }
    if (i == 0 && list.has_unnamed) selectors.push_back(selector(plan.gpu_metrics, match, before));
  }
  return out;
}

}  // namespace flopsight::sources
