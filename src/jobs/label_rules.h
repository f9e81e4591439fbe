#pragma once
// From the labels of a series to the GPU it belongs to and the job that holds it: one ordered list of rules,
// the same that docs/attribution.md shows, and that a user's JSON file can replace.
//
// Rules, in order; the first whose job label is there and not empty wins:
//   an empty label is no label; `exported_pod` wins over `pod`, which after Prometheus' relabelling is the
//   exporter's own pod; a pod that looks like an exporter is never a job; Prometheus' own `job` label (the
//   scrape job) is never a job.
// Threads: immutable after parsing.

#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "samples/gpu.h"

namespace flopsight::jobs {

struct LabelView {
  std::string_view name;
  std::string_view value;
};

// One way in which labels name a job.
struct HolderRule {
  std::string rule;        // its name, shown as "attributed by"
  std::string job;         // label names
  std::string name_space;  // may be empty
  std::string container;   // may be empty
  bool is_pod = false;     // checked against the exporter patterns
};

// What the labels of one series say.
struct LabelFacts {
  samples::GpuIdentity gpu;
  samples::Holder holder;
  bool masked_uuid = false;   // a UUID label was there that somebody made unreadable: it names nothing outside its scrape
  bool exporter_pod = false;  // a pod label was there and ignored because it is the exporter's
};

// A metric to leave out, e.g. one that a DCGM version reads wrongly.
struct IgnoreRule {
  std::string metric;                 // the raw name
  std::string driver_version_prefix;  // empty: always
};

class LabelRules {
 public:
  static const LabelRules& builtin();

  // A JSON object; a key that is there replaces the built-in list of that name, the others stay. Keys:
  // holders [{rule, job, namespace, container, is_pod}], user, team, host, uuid, mig_instance, mig_profile,
  // index, pci_bus_id, model, driver_version (lists of label names), exporter_pods (globs), ignore_metrics
  // [{metric, driver_version}], index_map {host: {index in the scrape: index in the jobs file}}, where "0/7" is MIG
  // instance 7 of GPU 0, bridge_intervals.
  // Errors: kInvalid naming the key and what was expected; an unknown key is an error.
  static base::Result<LabelRules> parse(std::string_view json);

  LabelFacts apply(std::span<const LabelView> labels) const;
  bool ignores(std::string_view raw_metric, std::string_view driver_version) const;

  bool ignores_any() const { return !ignore_.empty(); }

  // How many scrape intervals of missing job labels between two samples of one job are bridged.
  double bridge_intervals() const { return bridge_intervals_; }

  // Whether the index map says which MIG instance of the host this index is.
  bool maps_instance(std::string_view host, std::string_view index) const;

  const std::vector<HolderRule>& holders() const { return holders_; }
  // Every label name that can matter, for grouping on a server.
  std::vector<std::string> label_names() const;
  std::span<const std::string> names_of(std::string_view field) const;

  // docs/attribution.md's tables.
  std::string markdown() const;

 private:
  std::vector<HolderRule> holders_;
  std::map<std::string, std::vector<std::string>, std::less<>> fields_;
  std::vector<std::string> exporter_pods_;
  std::vector<IgnoreRule> ignore_;
  std::map<std::string, std::map<std::string, std::string>> index_map_;
  double bridge_intervals_ = 2;
};

// Whether a UUID was made unreadable ("GPU-00000000-…", "GPU-xxxxxxxx-…", "GPU-********"): it names nothing.
bool is_masked_uuid(std::string_view uuid);

// '*' matches any run of characters; everything else itself.
bool glob_matches(std::string_view pattern, std::string_view text);

// Host names are equal when they are the same, or when one is the short form of the other ("n1" and
// "n1.cluster.example"); a common prefix ("n1", "n10") is not enough.
bool same_host(std::string_view a, std::string_view b);
std::string short_host(std::string_view host);

}  // namespace flopsight::jobs
