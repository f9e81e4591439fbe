#pragma once
// Gathers samples of any exporter, in any order, into one timeline per GPU: aliases become one quantity, units are
// normalised, copies count once, and what is no value is counted with its reason.
//
// Identity is (UUID, MIG instance); without a UUID, or with a masked one, it is (host, index, MIG instance) within the scope of
// the scrape, and such a GPU joins one with the same host and index whose UUID is known. Label renames do not split a GPU.
// Copies: the same quantity of one GPU at one time from several series (pods sharing a GPU, replicas,
// two names during an upgrade) is one reading; per-process families add up to the device's.
// MIG: values that belong to the whole GPU are given to each instance that lacks them; while instances are there
// the parent is not a GPU of its own.
// A GPU that has samples with timestamps keeps those; of the others it takes the labels.
//
// Memory: one GpuScrape per GPU and time. Threads: one collector, one thread.

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "catalog/metrics.h"
#include "jobs/holder_table.h"
#include "jobs/label_rules.h"
#include "jobs/owners.h"
#include "samples/gpu.h"
#include "samples/quality.h"
#include "units/time.h"

namespace flopsight::sources {

using catalog::kSimulatedMetric;

class Collector {
 public:
  // All three are borrowed and must outlive the collector.
  Collector(const jobs::LabelRules& rules, jobs::HolderTable& holders, samples::QualityLog& quality);

  using BindingId = std::uint32_t;

  // What the labels of a series mean; the same labels need binding only once per scope. `scope` is the file or
  // endpoint, which tells GPUs without a UUID apart; empty where hosts are named by labels (a server).
  BindingId bind(std::span<const jobs::LabelView> labels, std::string_view scope);

  // One sample. `time` is when; for scrapes without timestamps pass timed = false and a number that is the
  // same for all samples of one scrape. Samples of metrics that are no GPU's are skipped.
  void add(BindingId binding, std::string_view raw_metric, units::Instant time, bool timed, double raw);

  // Of readings outside of the window nothing is noted: they are context for those in it.
  void note_within(const std::optional<units::Window>& window) { noted_ = window; }

  // Samples of these metrics are about jobs and not about GPUs, and are kept as they are, by job.
  void keep(std::set<std::string, std::less<>> metrics) { wanted_ = std::move(metrics); }
  // By metric and holder; values of all series in order of sight.
  using Kept = std::map<std::string, std::map<samples::HolderId, std::vector<std::pair<units::Instant, double>>>, std::less<>>;
  const Kept& kept() const { return kept_; }

  // What samples of kube-state-metrics among the others say of pods.
  jobs::OwnerTable& owners() { return owners_; }

  // Hands the timelines over and starts anew. GPUs in order of first sight.
  std::vector<samples::GpuTimeline> take();

 private:
  struct Binding {
    jobs::LabelFacts facts;
    std::string whole;   // identity of the GPU
    std::string key;     // of it or its instance
    std::string scope;
    std::string pipe;    // label "pipe", "clock_type": what an alias may depend on
    bool has_pipe = false;
    std::int64_t gpu = -1;
    std::int64_t holder = -1;
  };
  struct Gpu {
    samples::GpuTimeline timeline;
    std::string whole;  // Binding::whole; empty where several GPUs may be behind it
    std::string masked_place;  // where a GPU with a masked UUID is; of others nothing
    std::unordered_map<std::int64_t, std::uint32_t> row_at;  // by unix_milliseconds
    std::vector<char> util_is_devices;                       // per row: utilisation came without a pod
    // Which alias each quantity was first read under: another field for the same quantity (a requested and an enforced
    // limit) is no contradiction, and the first is kept.
    std::array<const catalog::MetricAlias*, catalog::kMetricCount> first_alias{};
  };

  void store(Gpu& gpu, const Binding& binding, const catalog::MetricAlias& alias,
             units::Instant time, const samples::Reading& reading);
  std::uint32_t row(Gpu& gpu, units::Instant time);
  bool is_noted(units::Instant time) const;
  Gpu& gpu_of(Binding& binding);
  void keep_sample(Binding& binding, std::string_view metric, units::Instant time, double value);
  void join_by_index();
  void join_masked();
  void give_to_instances();

  const jobs::LabelRules& rules_;
  jobs::HolderTable& holders_;
  samples::QualityLog& quality_;
  std::optional<units::Window> noted_;
  jobs::OwnerTable owners_;
  std::set<std::string, std::less<>> wanted_;
  Kept kept_;
  std::vector<Binding> bindings_;
  std::vector<Gpu> gpus_;
  std::unordered_map<std::string, std::uint32_t> gpu_by_key_;
};

}  // namespace flopsight::sources
