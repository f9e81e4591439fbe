#pragma once
// The three sources of a report, each to a fleet of GPU time.

#include <string>
#include <vector>

#include "analysis/prices.h"
#include "command_line.h"
#include "env.h"
#include "jobs/label_rules.h"
#include "jobs/owners.h"
#include "net/http_client.h"
#include "rollups/fleet.h"
#include "training_logs/exported_metrics.h"

namespace flopsight::app {

// Settings read from files; shared by all sources.
struct ReportSettings {
  jobs::LabelRules rules;
  catalog::DeviceCatalog catalog;
  jobs::JobTable jobs;
  analysis::Prices prices;
  std::vector<std::string> notes;  // what looks like a mistake of files that are read all the same; a line each
  net::HttpOptions http;
  rollups::FleetOptions fleet;
  training_logs::ExportedMetrics metrics = training_logs::ExportedMetrics::builtin();  // in which trainers report their speed
};

struct SourceResult {
  std::string name;  // "file a.prom", "3 endpoints", "http://prom:9090 (Prometheus 2.42.0)"
  rollups::Fleet fleet;
  jobs::HolderTable holders;
  jobs::OwnerTable owners;  // of pods, where kube-state-metrics was among the samples
  struct ReportedMfu {
    samples::Holder holder;
    double mfu_ratio = 0;
  };
  std::vector<ReportedMfu> reported;  // by trainers, where the source was asked
  samples::QualityLog quality;
  std::vector<std::string> assumptions;

  // The job that a holder is a part of: the pods of one owner are one.
  samples::Holder group_of(const samples::Holder& holder) const;
  // What the quality log says of an empty fleet, for the error line.
  std::string hint() const;
};

// Errors: the first file that cannot be read or is not the format at all.
base::Status roll_files(const std::vector<std::string>& paths, const ReportSettings& settings,
                        SourceResult& out);

// An endpoint that does not answer is noted; an error only when none does.
base::Status roll_scrapes(const std::vector<std::string>& urls, const ReportSettings& settings,
                          units::Instant now, SourceResult& out);

base::Status roll_prometheus(const ReportArguments& arguments, units::Window window,
                             const ReportSettings& settings, const Env& env, SourceResult& out);

// report_setup.cc
// Everything that files on disk say, read before any network is touched. `settings` does not move afterwards.
base::Status read_settings(const ReportArguments& arguments, ReportSettings& settings);
// [start, end) from --start, --end and --since; nothing for files and scrapes without them.
std::optional<units::Window> window_of(const ReportArguments& arguments, const Env& env);
// From any source but a store; with the GPUs that only a jobs file knows. An error where there is none at all.
base::Status roll_source(const ReportArguments& arguments, const ReportSettings& settings, const std::optional<units::Window>& window,
                         const Env& env, SourceResult& out);

}  // namespace flopsight::app
