#pragma once
// The MFU that trainers export, of the jobs of a report: for each job the median over time of the median over its
// ranks, taken on a Prometheus server, or over all samples of saved or live scrapes. Only metrics that are said to be an MFU (training_logs/exported_metrics.h) are asked for.
//
// Threads: one. Errors: none; what the server does not tell is noted.

#include "analysis/report.h"
#include "report/report_sources.h"
#include "sources/collector.h"
#include "sources/prometheus_client.h"

namespace flopsight::app {

void ask_reported_mfu(sources::PrometheusClient& client, const ReportSettings& settings, units::Window window, SourceResult& out);

// Has the collector keep what trainers export, and takes it from there: samples in `window`, or all without one.
void keep_reported_mfu(const ReportSettings& settings, sources::Collector& collector);
void take_reported_mfu(const ReportSettings& settings, const std::optional<units::Window>& window, const sources::Collector& collector,
                       SourceResult& out);

// Puts it beside the OFU of the groups, which are jobs. `group_of`: the job that a holder is a part of.
void add_reported_mfu(const SourceResult& source, const std::function<samples::Holder(const samples::Holder&)>& group_of,
                      analysis::Report& report);

}  // namespace flopsight::app
