#pragma once
// The MFU that trainers export to a Prometheus server, of the jobs of a report: for each job the median over time of the median over its
// ranks, taken on the server. Only metrics that are said to be an MFU (training_logs/exported_metrics.h) are asked for.
//
// Threads: one. Errors: none; what the server does not tell is noted.

#include "analysis/report.h"
#include "report/report_sources.h"
#include "sources/prometheus_client.h"

namespace flopsight::app {

void ask_reported_mfu(sources::PrometheusClient& client, const ReportSettings& settings, units::Window window, SourceResult& out);

// Puts it beside the OFU of the groups, which are jobs. `group_of`: the job that a holder is a part of.
void add_reported_mfu(const SourceResult& source, const std::function<samples::Holder(const samples::Holder&)>& group_of,
                      analysis::Report& report);

}  // namespace flopsight::app
