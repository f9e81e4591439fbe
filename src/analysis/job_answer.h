#pragma once
// One job, for the API and the page: its summary, how its GPUs were spread, and how both went over time.
// Ratios 0 to 1; absent where unknown. Threads: pure.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "analysis/finding_mention.h"
#include "analysis/report.h"
#include "analysis/reported.h"
#include "jobs/audit_finding.h"
#include "rollups/cell.h"
#include "schedulers/job.h"
#include "training_logs/report.h"

namespace flopsight::analysis {

// What a store has of a job in a window.
struct JobCells {
  std::string id;
  samples::Holder holder;
  units::Instant first;  // ever
  units::Instant last;
  std::vector<std::uint32_t> gpus;
  std::vector<std::pair<std::string, rollups::Cell>> by_model;  // raw model name
  rollups::Spread spread;
};

struct SpreadAnswer {
  std::optional<double> ofu_ratio_min;
  std::optional<double> ofu_ratio_p5;
  std::optional<double> ofu_ratio_p50;
  std::optional<double> ofu_ratio_p95;
  std::optional<double> ofu_ratio_max;
};

inline constexpr std::size_t kFindingsMentionedMax = 20;

struct JobAnswer {
  std::string id;
  samples::Holder holder;
  units::Instant first;
  units::Instant last;
  std::vector<std::string> models;  // catalogue names, else raw
  Summary summary;
  Waterfall waterfall;
  std::string absent_reason;
  SpreadAnswer spread;  // over GPUs and slots; extremes of single slots
  std::optional<double> energy_joules;  // of the time in which it is known
  std::optional<double> energy_coverage_ratio;
  double lost_seconds = 0;  // for ordering
  // What others say of it; filled in where there is a book of jobs.
  std::vector<std::string> members;     // of a group: the holders it was made of, "pod@namespace"
  std::optional<std::uint64_t> gpu_count_told;  // by its scheduler, where that is more than were seen: then it is the summary's
  bool gpu_count_unknown = false;  // never seen, and its scheduler did not say how many: the summary's number says nothing
  std::vector<schedulers::Job> runs;    // by its scheduler, ascending by start
  std::optional<Reported> reported;
  std::string family;  // empty: none
  std::optional<jobs::AuditFinding> audit;  // of what it reports, where its model is known
  std::vector<FindingMention> findings;     // that are open, the most severe first, kFindingsMentionedMax at most
  std::uint64_t finding_count = 0;          // of all that are open
};

JobAnswer answer_job(const JobCells& cells, const rollups::FleetOptions& options, const Prices& prices,
                     samples::QualityLog& quality);

// Columns over one time axis: start of each step, ascending; absent where nothing is known.
struct JobSeries {
  units::Seconds step;
  std::vector<units::Instant> time;
  std::vector<std::optional<double>> ofu_ratio;
  std::vector<std::optional<double>> tensor_active_ratio;
  std::vector<std::optional<double>> sm_active_ratio;
  std::vector<std::optional<double>> dram_active_ratio;
  std::vector<std::optional<double>> sm_clock_hertz;
  std::vector<std::optional<double>> coverage_ratio;
  std::vector<std::optional<double>> power_watts;  // mean of one GPU
  std::vector<std::optional<double>> gpu_count;    // mean over the step
  // Sent and received, mean of one GPU; absent where nothing was counted, as the rollups do not tell an idle link from an uncounted one.
  std::vector<std::optional<double>> nvlink_bytes_per_second;
  std::vector<std::optional<double>> pcie_bytes_per_second;
  std::vector<std::optional<double>> ofu_ratio_p5;
  std::vector<std::optional<double>> ofu_ratio_p50;
  std::vector<std::optional<double>> ofu_ratio_p95;
  std::vector<std::optional<double>> reported_mfu_ratio;  // median of the steps in it; add_reported()
  std::vector<std::string> absent_reason;  // why most of the step is unmeasured; empty: nothing is
};

// Steps of the window without a cell have no values and the reason not_seen. `cells` ascending in time.
JobSeries series_of(const std::vector<std::pair<units::Instant, std::pair<rollups::Cell, rollups::Spread>>>& cells,
                    units::Window window, units::Seconds step);

// What the job said of itself, into the steps in which it said it. Steps without a time, and excluded ones, have no place there.
void add_reported(JobSeries& series, std::span<const training_logs::Step> steps);

// The course of one GPU, whoever held it.
struct GpuCourse {
  samples::GpuIdentity gpu;
  std::string model;              // catalogue name; empty: unknown
  std::vector<std::string> jobs;  // that the caller may see, in order of name
  JobSeries series;               // without percentiles
};

}  // namespace flopsight::analysis
