#pragma once
// The service's own /metrics: OFU of jobs and GPUs in the last closed slots, and its health, in Prometheus' text format.

#include <optional>
#include <string>
#include <vector>

#include "findings/ledger.h"
#include "jobs/audit_finding.h"
#include "serve/access.h"
#include "serve/ingest.h"
#include "net/http_server.h"
#include "serve/receiver_health.h"
#include "serve/slurm_poller.h"

namespace flopsight::app {

struct QueryCounters {
  std::uint64_t queries = 0;
  double seconds = 0;
  double seconds_max = 0;
  std::uint64_t unauthorized = 0;  // 401 and 403
  std::uint64_t over_limit = 0;    // 413 and 422
};

// Of what the service asks and reads about jobs.
struct TellingHealth {
  std::optional<SlurmHealth> slurm;  // none: not asked
  std::uint64_t logs_followed = 0;
  std::uint64_t logs_failing = 0;
};

// Of audits of what jobs report.
struct AuditingHealth {
  std::uint64_t audits = 0;    // made since the start
  std::uint64_t failures = 0;  // that could not be made
  std::vector<jobs::AuditFinding> findings;  // the last of each job, of the last day
};

// Of the look at each minute for findings.
struct FindingHealth {
  std::uint64_t minutes = 0;   // looked at since the start
  std::uint64_t failures = 0;  // of reading or writing; tried again
  std::optional<units::Instant> looked_until;
  double minute_last_seconds = 0;  // that the last minute took
  std::size_t jobs_watched = 0;
  std::size_t jobs_unwatched = 0;
  std::uint64_t dropped = 0;  // findings past limits.findings
};

struct SelfMetricsInputs {
  units::Instant now;
  units::Seconds slot{60};
  bool per_gpu = true;
  net::ServerCounters server;
  QueryCounters queries;
  TellingHealth telling;
  AuditingHealth auditing;
  std::optional<FindingHealth> looking;         // none: findings are not kept
  std::vector<findings::Count> finding_counts;  // of all that are kept
  std::uint64_t silences = 0;
  std::vector<ReceiverHealth> receivers;
  std::uint64_t models_told = 0;     // in the book
  std::uint64_t jobs_told = 0;       // in the book
  std::uint64_t steps_reported = 0;  // in the book
};

// Only what the caller may see of jobs; GPUs and the service's health for callers who see all.
std::string self_metrics(const Ingest& ingest, const SelfMetricsInputs& inputs, const Caller& caller);

}  // namespace flopsight::app
