#pragma once
// What an audit found of a job: the record that is kept, shown beside the job and told in /metrics. Who audits is in src/audit; this is what
// others need of it, as plain text. Threads: plain values.

#include <string>
#include <vector>

#include "samples/gpu.h"
#include "units/time.h"

namespace flopsight::jobs {

struct AuditFinding {
  samples::Holder holder;  // job, namespace, user, team
  units::Instant time;     // when it was audited
  std::string verdict;     // audit::verdict_name: "consistent", "over_reported", …
  std::string summary;     // one sentence
  std::vector<std::string> hypotheses;  // their ids, the best explanation first
  std::string evidence_json;            // the whole audit, as answers give it; empty where only the rest was asked for

  // Something is wrong with what the job reports.
  bool is_discrepancy() const { return verdict != "consistent" && verdict != "undecided"; }
};

}  // namespace flopsight::jobs
