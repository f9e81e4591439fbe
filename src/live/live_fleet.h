#pragma once
// The fleet as it comes in: samples in any order become rows per GPU, and rows become cells, slot by slot, as soon as
// nothing can change them any more. The arithmetic is rollups/integrate.h, the same as a report's.
//
// Time is the samples' own. A GPU's slot is closed when a sample arrives that is `late` after its end, so that a backlog
// of hours, sent in order after an outage, is rolled up like anything else; what is older than a closed slot is
// refused (kTooOld). The clock on the wall only decides when a silent GPU is closed out (`idle`), and what is
// too far in the future to be believed.
// A gap of at most `gap_attribution_max` between two samples gives unmeasured cells; over a longer one the GPU was away: no cells.
//
// Copies never count twice: a second sample of one quantity, GPU and time is a duplicate; replicas that are shifted in time
// only make the series denser.
// Memory: rows of the last slots per GPU (pending_rows.h), one binding per label set, names once. Everything has a limit, and forget_unused() lets go
// of label sets and holders that are over, so that a fleet whose jobs change reaches none.
// Threads: one at a time.

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/hash_numbers.h"
#include "catalog/metrics.h"
#include "jobs/holder_table.h"
#include "jobs/label_rules.h"
#include "live/host_pause.h"
#include "live/identity_table.h"
#include "live/pending_rows.h"
#include "rollups/cell.h"
#include "rollups/divided_gpu.h"
#include "rollups/fleet.h"
#include "samples/gpu.h"
#include "samples/quality.h"

namespace flopsight::live {

using catalog::kSimulatedMetric;

struct LiveOptions {
  rollups::FleetOptions fleet;  // of integrate, the window is ignored
  units::Seconds slot{60};
  units::Seconds late{60};
  units::Seconds idle{600};
  units::Seconds future_max{600};
  units::Seconds gap_attribution_max{3600};
  // No slot that ends after it is closed: where an import ends and something else goes on.
  std::optional<units::Instant> closed_max;
  std::uint32_t gpus_max = 2'000'000;
  std::uint32_t label_sets_max = 8'000'000;
  std::uint32_t holders_max = 4'000'000;
  // What is written cannot be made less: of an instance nothing is taken any more once the rest of its GPU's slot is written.
  bool rests_are_final = false;
  // A GPU that sends faster than its slots are closed waits for close().
  std::uint32_t rows_per_gpu_max = 8'192;
};

using LabelSetId = std::uint32_t;
using GpuIndex = std::uint32_t;

enum class AddResult : std::uint8_t {
  kKept,
  kDuplicate,
  kNotOurs,   // no GPU in the labels, or no quantity that is rolled up
  kTooOld,    // before what is closed
  kTooNew,    // further in the future than future_max
  kLimit,     // gpus_max
  kRowsFull,  // rows_per_gpu_max: closing makes room
};
inline constexpr std::size_t kAddResultCount = 7;

// A raw metric name, looked up once.
struct MetricUse {
  const catalog::MetricAlias* alias = nullptr;
  bool by_label = false;  // which alias it is depends on the label `pipe` or `clock_type`
  bool simulated = false;

  bool wanted() const { return alias != nullptr || simulated; }
};
MetricUse metric_use(std::string_view raw_metric);

struct ClosedCell {
  GpuIndex gpu = 0;
  units::Instant slot_start;
  std::optional<samples::HolderId> holder;
  rollups::Cell cell;
};

// What a GPU's rollups were closed up to, from a store, so that a restart does not count twice.
struct ClosedUntil {
  units::Instant time;
  HolderSetId holders = 0;  // up to then, of holders_of()
};

class LiveFleet {
 public:
  // All three are borrowed and must outlive the fleet.
  LiveFleet(LiveOptions options, const jobs::LabelRules& rules, samples::QualityLog& quality);

  // Asked once for each GPU when it is first seen.
  std::function<std::optional<ClosedUntil>(const samples::GpuIdentity&)> restore;
  // The same of a GPU, if it is divided, when it or the first of its instances is seen: for_divided() as it was when cells were last written.
  std::function<std::optional<rollups::DividedGpu>(const samples::GpuIdentity&)> restore_divided;

  // What the labels of a series mean (without the metric's name). `scope` is the target that was scraped, empty where
  // labels alone name hosts. Nothing past label_sets_max.
  std::optional<LabelSetId> bind(std::span<const jobs::LabelView> labels, std::string_view scope);

  // `now` is the wall clock; `segment` of the write-ahead log that holds the sample.
  AddResult add(LabelSetId labels, const MetricUse& metric, std::string_view raw_metric, units::Instant time,
                double raw, units::Instant now, std::uint32_t segment);

  // While set, samples before what is closed are context for what is open, and no error.
  void set_replaying(bool replaying);

  using CellSink = std::function<void(const ClosedCell&)>;
  // Closes what can be closed, and with `everything` also what could still change (tests, an import that is done).
  void close(units::Instant now, const CellSink& sink, bool everything = false);
  // The same in parts, between which samples may be added: first the MIG instances, then ranges of GPUs [first, last) that
  // together are all, then what instances leave over.
  void close_instances(units::Instant now, const CellSink& sink, bool everything);
  void close_range(GpuIndex first, GpuIndex last, units::Instant now, const CellSink& sink, bool everything);
  void close_rests(const CellSink& sink);
  // At most so many slots of a GPU in one call of these, so that a backlog is not one endless close; 0: all.
  void set_slots_at_once(std::int64_t count) { slots_at_once_ = count; }
  // Each divided GPU that has anything written or open, with its instances.
  void for_divided(const std::function<void(std::span<const GpuIndex> instances, const rollups::DividedGpu&)>& use) const;
  // For ClosedUntil.
  HolderSetId holders_of(std::span<const samples::Holder> holders);
  // Slots wait a quarter as long for late samples: there is no room for what comes meanwhile.
  void set_hurried(bool hurried) { hurried_ = hurried; }
  // Whether that held something back since the last time it was asked.
  bool take_more() { return std::exchange(more_, false); }

  // What label sets and holders were forgotten, by number: nobody may use these any more, for they are given to others.
  struct Forgotten {
    std::vector<bool> label_sets;
    std::vector<bool> holders;
  };
  // Forgets label sets without a sample since the call before the last one, and holders that neither a label set, a row nor one of `used_sets` names.
  Forgotten forget_unused(std::span<const HolderSetId> used_sets);

  // The oldest log segment with a sample that is not in a closed cell; nothing when there is none.
  std::optional<std::uint32_t> oldest_segment(std::uint32_t current_segment) const;

  // From where on something is not closed; nothing when no GPU has samples that wait.
  std::optional<units::Instant> oldest_open() const;

  void set_jobs(jobs::JobTable jobs) { jobs_ = std::move(jobs); }
  // What became known of a holder after its samples came.
  void complete_holder(samples::HolderId id, const samples::Holder& facts) { holders_.complete(id, facts); }

  std::size_t gpu_count() const { return gpus_.size(); }
  std::size_t label_set_count() const { return bindings_.size() - free_label_sets_.size(); }
  samples::GpuIdentity identity(GpuIndex gpu) const { return identities_.at(gpu); }
  bool has_model(GpuIndex gpu) const { return gpus_[gpu].has_model; }
  units::Instant closed_until(GpuIndex gpu) const { return units::Instant{gpus_[gpu].closed_until}; }
  units::Instant last_sample(GpuIndex gpu) const { return units::Instant{gpus_[gpu].newest}; }
  const catalog::Device* device(GpuIndex gpu) const { return kinds_[gpus_[gpu].kind].device; }
  const jobs::HolderTable& holders() const { return holders_; }
  bool simulated() const { return simulated_; }
  std::uint64_t count(AddResult result) const { return counts_[static_cast<std::size_t>(result)]; }
  std::size_t pending_row_count() const;
  std::size_t memory_bytes() const;  // of rows, bindings and names, roughly

 private:
  struct Binding {
    GpuIndex gpu = 0;
    samples::HolderId holder = 0;
    bool has_gpu : 1 = false;
    bool has_holder : 1 = false;
    bool is_free : 1 = false;
    std::uint8_t label_value = 0;  // 1 + index into label_values_; 0: no such label
    std::uint8_t used_round = 0;   // forget_round_ of its last sample
  };
  // What many GPUs have in common.
  struct Kind {
    const catalog::Device* device = nullptr;
    std::optional<model::ReferenceClock> reference;
    double weight = 1;
  };
  struct Gpu {
    std::uint32_t kind = 0;             // number of kinds_; 0: not resolved yet
    float scraped_max_clock_hertz = 0;  // 0: not scraped
    std::uint32_t speaks = 0;           // 1 + the label set of the newest tensor activity
    std::uint32_t arrived_seconds = 0;  // since 1970, on the wall clock
    bool has_uuid : 1 = false;
    bool has_model : 1 = false;
    bool calibrated : 1 = true;
    bool has_tensor : 1 = false;  // ever
    bool opened : 1 = false;      // closed_until is set
    bool away : 1 = false;        // closed out; the last row is context only
    bool is_instance : 1 = false;
    bool has_instances : 1 = false;
    GpuIndex parent = 0;  // of a MIG instance
    std::int64_t closed_until = 0;
    std::int64_t newest = 0;
    PendingRows rows;
  };
  static_assert(sizeof(PendingRows) == 64);
  static_assert(sizeof(Gpu) == 104);  // there may be a million

  GpuIndex gpu_of(const jobs::LabelFacts& facts, std::string_view scope);
  GpuIndex make_gpu(const std::string& key, const samples::GpuIdentity& identity);
  void learn(Gpu& gpu, const samples::GpuIdentity& seen);
  samples::GpuIdentity identity_of(const Gpu& gpu) const { return identities_.at(static_cast<std::size_t>(&gpu - gpus_.data())); }
  const catalog::MetricAlias* alias_of(const Binding& binding, const MetricUse& metric,
                                       std::string_view raw_metric) const;
  AddResult store(Gpu& gpu, const Binding& binding, const catalog::MetricAlias& alias, std::int64_t time,
                  double raw, std::uint32_t segment);
  // Whether somebody else goes on telling the same of the GPU: a replica, whose samples come in between.
  void continue_from_start(GpuIndex index, units::Instant first, std::uint32_t segment);
  bool is_told_by_another(const Gpu& gpu, const Binding& binding) const;
  HolderSetId with_holder(HolderSetId set, samples::HolderId holder);
  HolderSetId looked_up(std::uint64_t set_and_holder);
  std::vector<bool> forget_sets(std::span<const HolderSetId> used_sets);  // true: of these holders there are sets
  void resolve(Gpu& gpu);
  static void drop_closed(Gpu& gpu);  // rows that no open slot can need
  void close_gpu(GpuIndex index, units::Instant now, const CellSink& sink, bool everything);
  void close_slot(GpuIndex index, units::Window window, const CellSink& sink);
  void sink_of_instance(const ClosedCell& closed, const CellSink& sink);
  bool is_divided_at(GpuIndex index, units::Instant start) const;
  samples::GpuTimeline timeline_of(const Gpu& gpu, units::Window window) const;
  // host_pause.cc: what a slot lacks because a profiler holds the counters of the whole host.
  void explain_by_host(GpuIndex index, units::Window window, rollups::GpuTime& rolled);
  bool is_host_paused(std::uint64_t host, std::int64_t unix_milliseconds);
  void end_pause_round();

  LiveOptions options_;
  const jobs::LabelRules& rules_;
  samples::QualityLog& quality_;
  jobs::HolderTable holders_;
  jobs::JobTable jobs_;
  std::vector<Binding> bindings_;
  std::vector<LabelSetId> free_label_sets_;
  std::uint8_t forget_round_ = 0;
  std::vector<std::string> label_values_;
  std::vector<Gpu> gpus_;
  IdentityTable identities_;  // by GpuIndex
  std::vector<Kind> kinds_{{}};  // the first is of GPUs that are not resolved
  base::HashNumbers gpu_by_key_;
  std::vector<std::vector<samples::HolderId>> holder_sets_{{}};
  std::map<std::vector<samples::HolderId>, HolderSetId> set_of_;
  std::vector<HolderSetId> free_sets_;
  std::unordered_map<GpuIndex, HolderSetId> before_start_;  // of GPUs that were closed before, until the first sample of each
  std::unordered_map<std::uint64_t, HolderSetId> set_with_;  // (set, holder) to set
  std::uint64_t last_key_ = UINT64_MAX;                      // of it, looked up last
  HolderSetId last_set_ = 0;
  struct Divided {
    std::vector<GpuIndex> instances;
    std::int64_t newest = 0;       // row of an instance
    std::int64_t rests_until = 0;  // as in rollups::DividedGpu
    std::map<std::int64_t, std::int64_t> open_microseconds;
  };
  static constexpr std::size_t kOpenSlotsMax = 256;  // of a GPU; past them the rest of the oldest is written, and corrected if more comes
  std::map<GpuIndex, Divided> divided_;
  std::array<std::uint64_t, kAddResultCount> counts_{};
  std::array<std::uint64_t, samples::kAbsentReasonCount> absent_noted_{};
  HostPauses pauses_;
  bool simulated_ = false;
  bool replaying_ = false;
  std::int64_t slots_at_once_ = 0;
  bool hurried_ = false;
  bool more_ = false;
};

}  // namespace flopsight::live
