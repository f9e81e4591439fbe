#pragma once
// `flopsight logs FILE…`: what training jobs printed about their own speed.
// Exit codes: 0; 1 when nothing matched in one of the files; 2 when a file, a zone or a pattern file cannot be read.

#include "base/json.h"
#include "env.h"
#include "logs/logs_options.h"
#include "training_logs/report.h"

namespace flopsight::app {

int run_logs(const LogsArguments& arguments, const Env& env);

// One log, read in pieces to its end. Errors: of the file, the zone or the pattern file. Also for other commands that take a log.
base::Result<training_logs::Options> log_options(const LogsArguments& arguments);
base::Result<training_logs::Reported> read_log_file(const std::string& path, const training_logs::Options& options);

// As in `flopsight logs --format json`.
base::json::Value reported_json(const training_logs::Reported& reported, bool steps);

}  // namespace flopsight::app
