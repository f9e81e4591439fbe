#pragma once
// The report: GPU time summed by job, user, team, namespace, host, GPU, model or family of jobs, each with its OFU, its error band and
// where the rest went. Groups, fleet and GPUs are made of the same totals, so that they add up.
//
// Ratios 0 to 1, absent where unknown. Hours are absent when the input has no times. For every group
//   allocated = delivered + lost + unmeasured,
// and the groups' hours add up to the fleet's, "no job" being a group.
// Threads: pure.

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "analysis/families.h"
#include "analysis/finding_mention.h"
#include "analysis/group_numbers.h"
#include "analysis/mfu_comparison.h"
#include "analysis/prices.h"
#include "analysis/waterfall.h"
#include "jobs/holder_table.h"
#include "model/error_band.h"
#include "rollups/fleet.h"
#include "samples/quality.h"

namespace flopsight::analysis {

std::optional<GroupBy> parse_group_by(std::string_view text);
std::string_view group_by_name(GroupBy by);
// What a group's key is made of, in its order: also where there are no groups.
std::vector<std::string> group_key_names(GroupBy by);

struct Summary {
  std::uint64_t gpu_count = 0;  // distinct physical GPUs
  std::optional<double> gpu_hours_allocated;
  std::optional<double> gpu_hours_delivered;
  std::optional<double> gpu_hours_lost;
  std::optional<double> gpu_hours_unmeasured;
  std::optional<double> ofu_ratio;  // over the measured time
  std::optional<double> ofu_ratio_low;
  std::optional<double> ofu_ratio_high;
  std::optional<model::ErrorBudget> error;  // all that can be wrong with it; absent where there is no band
  std::optional<double> tensor_active_ratio;
  std::optional<double> sm_clock_hertz_mean;
  // Tensor activity less OFU, over the measured time: what the clock cost. Negative: ran above the reference.
  std::optional<double> clock_loss_ratio;
  std::optional<double> coverage_ratio;  // measured over allocated
  std::optional<double> cost_usd;
  std::optional<double> cost_lost_usd;
  std::optional<double> cost_unmeasured_usd;
  std::optional<double> tile_overhead_ratio;  // executed over useful FLOPs of a job's matrix products, where it was told
  std::string tile_overhead_source;

  // OFU without what kernels executed only because of their tiles.
  std::optional<double> ofu_adjusted_ratio() const {
    if (!ofu_ratio || !tile_overhead_ratio) return std::nullopt;
    return *ofu_ratio / *tile_overhead_ratio;
  }
  // Of a trace the overhead is measured, else assumed; it becomes a part of the error.
  void set_tile_overhead(double overhead_ratio, const std::string& source, bool is_measured);
};

struct Group {
  // The grouping's own key first: {"job", "train-0"}, {"namespace", "team-a"}; absent: nobody, unknown.
  std::vector<std::pair<std::string, std::optional<std::string>>> key;
  Summary summary;
  Waterfall waterfall;
  std::string absent_reason;   // why most of the unmeasured time is so; empty without any
  double weight_seconds = 0;   // what was lost, for ordering
  std::optional<double> reported_mfu_ratio = {};  // by the job itself, over the time that it reported
  // The most GPUs that a job of it held at once by its scheduler, where that is more than were seen: then it is the summary's gpu_count.
  std::optional<std::uint64_t> gpu_count_told = {};
};

// Job and namespace of a group by jobs, each empty where it has none.
std::pair<std::string, std::string> job_of(const Group& group);

struct GpuRow {
  samples::GpuIdentity gpu;
  std::string model;  // catalogue name; empty: unknown
  std::vector<std::string> jobs;
  std::vector<std::string> attributed_by;
  std::uint32_t shared_by = 0;  // holders at once, at most; 1: not shared; 0: no holder
  std::optional<double> reference_clock_hertz;
  std::string reference_clock_source;
  std::optional<double> tensor_active_ratio;
  std::optional<double> sm_clock_hertz;
  std::optional<double> ofu_ratio;
  std::optional<double> coverage_ratio;
  std::string absent_reason;  // empty: OFU is known
};

struct Report {
  std::optional<units::Window> window;
  std::string source;
  GroupBy by = GroupBy::kJob;
  Summary fleet;
  std::optional<std::uint64_t> fleet_gpu_count_told = {};  // as Group::gpu_count_told: it has at least so many
  Waterfall fleet_waterfall;
  // Why the fleet's unmeasured time is so: reasons and their shares of the allocated time, largest first.
  std::vector<std::pair<std::string, double>> fleet_absent_ratios;
  std::vector<Group> groups;  // by what was lost, then by name
  std::uint64_t groups_omitted_count = 0;
  std::vector<GpuRow> gpus;
  std::vector<samples::QualityEntry> quality;
  std::vector<std::string> assumptions;
  std::optional<MfuComparison> mfu;  // where jobs reported theirs
  // Open findings that cost most, and how many there are of all; nothing where findings are not kept.
  std::optional<std::vector<FindingMention>> findings;
  std::uint64_t finding_count = 0;
};

// How many GPUs jobs had by their scheduler, to groups of a report by job, user, team or namespace.
struct ToldGpus {
  samples::Holder holder;
  std::uint64_t gpu_count = 0;
};
void add_told_gpus(Report& report, std::span<const ToldGpus> told);

struct ReportOptions {
  GroupBy by = GroupBy::kJob;
  std::optional<std::uint64_t> top;  // keep that many groups
  Prices prices;
  std::string source;
  std::vector<std::string> assumptions;  // of the source, put first
  const FamilyRule* families = nullptr;  // by family: which jobs are of one; borrowed, not null then
  GroupNumbers* group_numbers = nullptr;  // of the same holders, from reports before; borrowed, may be null
};

Report build_report(const rollups::Fleet& fleet, const jobs::HolderTable& holders,
                    samples::QualityLog quality, const ReportOptions& options);

// The same, one GPU after another, for callers that do not hold the fleet: of tens of thousands of jobs, making and keeping each is most of
// the work. First all of it is seen (by family, with the members of entries that are many), for the clocks and for which groups lost most; then the same
// is added, then the report.
class ReportBuilder {
 public:
  // All are borrowed. `holder` gives a holder by its id, for as long as the builder lives.
  using HolderOf = std::function<const samples::Holder&(samples::HolderId)>;
  ReportBuilder(HolderOf holder, const ReportOptions& options, samples::QualityLog& quality);
  ~ReportBuilder();

  // Reads its kind, members and spread, and of portions holder, measured and delivered time.
  void see(const rollups::GpuTime& gpu);
  void see_rest(const rollups::GpuTime& rest);
  void add(const rollups::GpuTime& gpu);
  // GPU time of no listed GPU (rollups::Fleet::rests).
  void add_rest(const rollups::GpuTime& rest);
  Report finish(bool has_times, const std::optional<units::Window>& window);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace flopsight::analysis
