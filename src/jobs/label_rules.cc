#include "jobs/label_rules.h"

#include <algorithm>
#include <array>

#include "base/json.h"
#include "base/text.h"

namespace flopsight::jobs {
namespace {

using base::Error;
using base::ErrorCode;

constexpr std::array<std::string_view, 10> kFields = {"uuid", "mig_instance", "mig_profile", "index", "pci_bus_id",
                                                      "model", "driver_version", "host", "user", "team"};

std::string_view value_of(std::span<const LabelView> labels, std::string_view name) {
  for (const LabelView& label : labels) {
    if (label.name == name) return base::trim(label.value);
  }
  return {};
}

// "node-1:9400" without its port; IPv6 in brackets keeps them.
std::string_view without_port(std::string_view instance) {
  const std::size_t colon = instance.rfind(':');
  if (colon == std::string_view::npos || instance.find(':') != colon) {
    const std::size_t bracket = instance.rfind("]:");
    return bracket == std::string_view::npos ? instance : instance.substr(0, bracket + 1);
  }
  return instance.substr(0, colon);
}

// AMD's exporter may print a JSON object instead of the id (ROCm/device-metrics-exporter 231).
std::string job_id_of(std::string_view value) {
  if (!value.starts_with('{')) return std::string(value);
  const auto json = base::json::parse(value);
  if (!json.ok()) return {};
  for (const char* key : {"job_id", "jobid", "SLURM_JOB_ID", "id"}) {
    const base::json::Value* id = json->find(key);
    if (id == nullptr) continue;
    if (const std::string* text = id->as_string()) return *text;
    if (const double* number = id->as_number()) return base::json::number_text(*number);
  }
  return {};
}

base::Result<std::vector<std::string>> string_list(const base::json::Value& value,
                                                   std::string_view key) {
  const base::json::Array* array = value.as_array();
  std::vector<std::string> out;
  if (array != nullptr) {
    for (const base::json::Value& item : *array) {
      if (item.as_string() == nullptr) break;
      out.push_back(*item.as_string());
    }
  }
  if (array == nullptr || out.size() != array->size()) {
    return Error{ErrorCode::kInvalid, "key \"" + std::string(key) + "\": expected a list of strings"};
  }
  return out;
}

std::string member(const base::json::Value& object, std::string_view key) {
  const base::json::Value* value = object.find(key);
  return value != nullptr && value->as_string() != nullptr ? *value->as_string() : std::string();
}

base::Result<std::vector<HolderRule>> holder_list(const base::json::Value& value) {
  std::vector<HolderRule> out;
  const base::json::Array* array = value.as_array();
  for (const base::json::Value& item : array == nullptr ? base::json::Array{} : *array) {
    HolderRule rule{member(item, "rule"), member(item, "job"), member(item, "namespace"),
                    member(item, "container"), false};
    if (const auto* pod = item.find("is_pod"); pod != nullptr && pod->as_bool() != nullptr) {
      rule.is_pod = *pod->as_bool();
    }
    if (rule.job.empty()) break;
    if (rule.rule.empty()) rule.rule = rule.job;
    out.push_back(std::move(rule));
  }
  if (array == nullptr || out.size() != array->size()) {
    return Error{ErrorCode::kInvalid,
                 "key \"holders\": expected a list of objects, each with \"job\": a label name"};
  }
  return out;
}

base::Result<std::map<std::string, std::map<std::string, std::string>>> host_index_map(
    const base::json::Value& value) {
  std::map<std::string, std::map<std::string, std::string>> out;
  const Error wrong{ErrorCode::kInvalid,
                    "key \"index_map\": expected {host: {index in the scrape: index in the jobs file}}"};
  if (value.as_object() == nullptr) return wrong;
  for (const auto& [host, pairs] : *value.as_object()) {
    if (pairs.as_object() == nullptr) return wrong;
    for (const auto& [from, to] : *pairs.as_object()) {
      if (to.as_string() != nullptr) {
        out[host][from] = *to.as_string();
      } else if (to.as_number() != nullptr) {
        out[host][from] = base::json::number_text(*to.as_number());
      } else {
        return wrong;
      }
    }
  }
  return out;
}

}  // namespace

const LabelRules& LabelRules::builtin() {
  static const LabelRules rules = [] {
    LabelRules r;
    r.holders_ = {
        {"hpc_job", "hpc_job", "", "", false},
        {"slurmjobid", "slurmjobid", "", "", false},
        {"slurm_job_id", "slurm_job_id", "", "", false},
        {"exported_job_id", "exported_job_id", "", "", false},
        {"job_id", "job_id", "", "", false},
        {"jobid", "jobid", "", "", false},
        {"exported_pod", "exported_pod", "exported_namespace", "exported_container", true},
        {"pod", "pod", "namespace", "container", true},
        {"pod_name", "pod_name", "pod_namespace", "container_name", true},
        {"pod_uid", "pod_uid", "namespace", "container", true},
    };
    r.fields_["uuid"] = {"UUID", "uuid", "gpu_uuid", "GPU_UUID", "gpuuuid", "gpu", "gpu_id"};
    r.fields_["mig_instance"] = {"GPU_I_ID", "gpu_i_id", "gpuiid", "gpu_instance_id"};
    r.fields_["mig_profile"] = {"GPU_I_PROFILE", "gpu_i_profile", "mig_profile"};
    r.fields_["index"] = {"gpu", "minor_number", "gpu_id", "index", "GPU", "card", "id"};
    r.fields_["pci_bus_id"] = {"pci_bus_id", "pci_bdf", "bus_id"};
    r.fields_["model"] = {"modelName", "model_name", "gpu_type", "card_series", "model", "name"};
    r.fields_["driver_version"] = {"DCGM_FI_DRIVER_VERSION", "driver_version"};
    r.fields_["host"] = {"node", "kubernetes_node", "nodename", "Hostname", "hostname",
                         "exported_hostname", "host", "exported_instance", "instance"};
    r.fields_["user"] = {"exported_user", "user", "job_user", "slurm_user", "username", "label_user"};
    r.fields_["team"] = {"exported_team", "team", "label_team", "account", "exported_account",
                         "job_account", "slurm_account", "project", "label_project"};
    r.exporter_pods_ = {"dcgm-exporter*",        "*-dcgm-exporter*",       "nvidia-dcgm-exporter*",
                        "nvidia-gpu-exporter*",  "nvidia-dcgm-*",          "gpu-exporter*",
                        "gpu-metrics-exporter*", "*-metrics-exporter-*",   "amd-gpu-metrics-exporter*",
                        "device-metrics-exporter*", "node-exporter*",      "*-node-exporter*",
                        "slurm-job-exporter*"};
    return r;
  }();
  return rules;
}

base::Result<LabelRules> LabelRules::parse(std::string_view json) {
  FLOPSIGHT_ASSIGN_OR_RETURN(const base::json::Value root, base::json::parse(json));
  if (root.as_object() == nullptr) {
    return Error{ErrorCode::kInvalid, "expected a JSON object of rules, found " + std::string(root.kind())};
  }
  LabelRules rules = builtin();
  for (const auto& [key, value] : *root.as_object()) {
    if (std::find(kFields.begin(), kFields.end(), key) != kFields.end()) {
      FLOPSIGHT_ASSIGN_OR_RETURN(rules.fields_[key], string_list(value, key));
    } else if (key == "exporter_pods") {
      FLOPSIGHT_ASSIGN_OR_RETURN(rules.exporter_pods_, string_list(value, key));
    } else if (key == "holders") {
      FLOPSIGHT_ASSIGN_OR_RETURN(rules.holders_, holder_list(value));
    } else if (key == "index_map") {
      FLOPSIGHT_ASSIGN_OR_RETURN(rules.index_map_, host_index_map(value));
    } else if (key == "bridge_intervals" && value.as_number() != nullptr && *value.as_number() >= 0) {
      rules.bridge_intervals_ = *value.as_number();
    } else if (key == "ignore_metrics" && value.as_array() != nullptr) {
      for (const base::json::Value& item : *value.as_array()) {
        rules.ignore_.push_back({member(item, "metric"), member(item, "driver_version")});
        if (rules.ignore_.back().metric.empty()) {
          return Error{ErrorCode::kInvalid, "key \"ignore_metrics\": expected objects with \"metric\""};
        }
      }
    } else {
      return Error{ErrorCode::kInvalid, "key \"" + base::printable(key, 60) +
                                            "\": not a rule, or not of its type; see docs/attribution.md"};
    }
  }
  return rules;
}

namespace {

// An instance that is named by a UUID of its own ("MIG-265a…", or as drivers before 470 had it "MIG-GPU-…/1/0"), and a profile that
// is in the name of the model ("NVIDIA H100 80GB HBM3 MIG 1g.10gb").
void read_instance(samples::GpuIdentity& gpu) {
  constexpr std::string_view kOld = "MIG-GPU-";
  const std::size_t slash = gpu.uuid.find('/');
  if (gpu.uuid.starts_with(kOld) && slash != std::string::npos) {
    const std::size_t end = gpu.uuid.find('/', slash + 1);
    if (gpu.mig_instance.empty()) gpu.mig_instance = gpu.uuid.substr(slash + 1, end - slash - 1);
    gpu.uuid = gpu.uuid.substr(4, slash - 4);
  }
  if (samples::is_instance_uuid(gpu.uuid) && gpu.mig_instance.empty()) gpu.mig_instance = gpu.uuid;
  const std::size_t mig = gpu.model_raw.rfind("MIG");
  if (gpu.mig_instance.empty() || mig == std::string::npos || mig < 2 || gpu.model_raw.size() < mig + 5) return;
  samples::GpuIdentity named;
  named.mig_profile = gpu.model_raw.substr(mig + 4);
  if (!named.mig_slices()) return;
  if (gpu.mig_profile.empty()) gpu.mig_profile = named.mig_profile;
  gpu.model_raw.erase(mig - 1);
}

}  // namespace

LabelFacts LabelRules::apply(std::span<const LabelView> labels) const {
  LabelFacts facts;
  const auto first = [&](std::string_view field, auto accept) -> std::string_view {
    for (const std::string& name : fields_.find(field)->second) {
      const std::string_view value = value_of(labels, name);
      if (!value.empty() && accept(name, value)) return value;
    }
    return {};
  };
  const auto any = [](std::string_view, std::string_view) { return true; };
  // `gpu` and `gpu_id` hold an index or a UUID, depending on the exporter.
  const auto looks_like_uuid = [](std::string_view value) {
    return value.starts_with("GPU-") || value.starts_with("MIG-");
  };
  facts.gpu.uuid = first("uuid", [&](std::string_view name, std::string_view value) {
    const bool names_one = (name != "gpu" && name != "gpu_id") || looks_like_uuid(value);
    if (names_one && is_masked_uuid(value) && value.size() > 8) facts.masked_uuid = true;
    return names_one && !is_masked_uuid(value);
  });
  facts.gpu.index = first("index", [&](std::string_view, std::string_view value) { return !looks_like_uuid(value); });
  facts.gpu.mig_instance = first("mig_instance", any);
  facts.gpu.mig_profile = first("mig_profile", any);
  facts.gpu.pci_bus_id = first("pci_bus_id", any);
  facts.gpu.model_raw = first("model", any);
  read_instance(facts.gpu);
  facts.gpu.driver_version = first("driver_version", any);
  std::string_view host_label;
  facts.gpu.host = first("host", [&](std::string_view name, std::string_view) {
    host_label = name;
    return true;
  });
  if (host_label == "instance" || host_label == "exported_instance") {
    facts.gpu.host = std::string(without_port(facts.gpu.host));
  }
  if (const auto host = index_map_.find(facts.gpu.host); host != index_map_.end()) {
    auto to = host->second.end();
    if (!facts.gpu.mig_instance.empty()) to = host->second.find(facts.gpu.index + "/" + facts.gpu.mig_instance);
    if (to == host->second.end()) to = host->second.find(facts.gpu.index);
    if (to != host->second.end()) facts.gpu.index = to->second;
  }
  for (const HolderRule& rule : holders_) {
    const std::string_view job = value_of(labels, rule.job);
    // The UID beside an exporter's own name is the exporter's.
    if (job.empty() || (facts.exporter_pod && rule.rule == "pod_uid")) continue;
    if (rule.is_pod && std::any_of(exporter_pods_.begin(), exporter_pods_.end(),
                                   [&](const auto& glob) { return glob_matches(glob, job); })) {
      facts.exporter_pod = true;
      continue;
    }
    facts.holder.job = job_id_of(job);
    if (facts.holder.job.empty()) continue;
    facts.holder.rule = rule.rule;
    if (!rule.name_space.empty()) facts.holder.name_space = value_of(labels, rule.name_space);
    if (!rule.container.empty()) facts.holder.container = value_of(labels, rule.container);
    facts.holder.user = first("user", any);
    facts.holder.team = first("team", any);
    break;
  }
  return facts;
}

bool LabelRules::ignores(std::string_view raw_metric, std::string_view driver_version) const {
  return std::any_of(ignore_.begin(), ignore_.end(), [&](const IgnoreRule& rule) {
    return rule.metric == raw_metric && driver_version.starts_with(rule.driver_version_prefix);
  });
}

bool LabelRules::maps_instance(std::string_view host, std::string_view index) const {
  for (const auto& [name, pairs] : index_map_) {
    if (!same_host(name, host)) continue;
    for (const auto& [from, to] : pairs) {
      if (to == index && from.find('/') != std::string::npos) return true;
    }
  }
  return false;
}

std::vector<std::string> LabelRules::label_names() const {
  std::vector<std::string> out;
  for (const auto& [field, names] : fields_) out.insert(out.end(), names.begin(), names.end());
  for (const HolderRule& rule : holders_) {
    for (const std::string& name : {rule.job, rule.name_space, rule.container}) {
      if (!name.empty()) out.push_back(name);
    }
  }
  std::sort(out.begin(), out.end());
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

std::span<const std::string> LabelRules::names_of(std::string_view field) const {
  // The one list that names no labels: globs of pods that are never a job.
  if (field == "exporter_pods") return exporter_pods_;
  const auto at = fields_.find(field);
  FLOPSIGHT_CHECK(at != fields_.end());
  return at->second;
}

std::string LabelRules::markdown() const {
  std::string out = "| order | rule | job label | namespace label | container label |\n"
                    "| --- | --- | --- | --- | --- |\n";
  int order = 0;
  for (const HolderRule& rule : holders_) {
    out += "| " + std::to_string(++order) + " | " + rule.rule + " | `" + rule.job + "` | " +
           (rule.name_space.empty() ? "" : "`" + rule.name_space + "`") + " | " +
           (rule.container.empty() ? "" : "`" + rule.container + "`") + " |\n";
  }
  out += "\n| field | labels, first that is not empty |\n| --- | --- |\n";
  for (const auto& [field, names] : fields_) {
    out += "| " + field + " |";
    for (const std::string& name : names) out += " `" + name + "`";
    out += " |\n";
  }
  out += "\nPods never taken for a job:";
  for (const std::string& glob : exporter_pods_) out += " `" + glob + "`";
  return out + "\n";
}

bool is_masked_uuid(std::string_view uuid) {
  // "GPU-x" is somebody's short name.
  return uuid.find_first_not_of("GPUMI-0") == uuid.npos || (uuid.size() > 8 && uuid.find_first_not_of("GPUMI-0xX*#?._") == uuid.npos);
}

bool glob_matches(std::string_view pattern, std::string_view text) {
  std::size_t p = 0, t = 0, star = std::string_view::npos, resume = 0;
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      resume = t;
    } else if (p < pattern.size() && pattern[p] == text[t]) {
      ++p;
      ++t;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      t = ++resume;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

bool same_host(std::string_view a, std::string_view b) {
  if (a == b) return !a.empty();
  if (a.size() > b.size()) std::swap(a, b);
  return !a.empty() && b.starts_with(a) && b[a.size()] == '.';
}

std::string short_host(std::string_view host) { return std::string(host.substr(0, host.find('.'))); }

}  // namespace flopsight::jobs
