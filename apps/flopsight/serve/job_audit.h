#pragma once
// The audit of a job whose model is known (serve/job_models.h): what it reports against the count of its model and its OFU while it reported.
// One audit takes a few milliseconds; the last one of each of the last 64 jobs is kept in memory. Threads: any.

#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "audit/audit.h"
#include "jobs/audit_finding.h"
#include "samples/quality.h"
#include "serve/answer.h"
#include "serve/job_service.h"
#include "store/store.h"

namespace flopsight::app {

// OFU of a job from its first reported step to its last, or of the whole window where steps have no times. Nothing where none was measured
// in that time.
base::Result<std::optional<double>> ofu_while_reported(store::Reader& reader, JobService* jobs, const AnswerSettings& settings,
                                                       const analysis::JobAnswer& job, const std::string& id, const Caller& caller);

// FLOPs that the job executes over those without recomputation, by its model; nothing where no model of it is known, or not what it computes
// again or how long its sequences are.
base::Result<std::optional<double>> recompute_overhead(JobService& jobs, const AnswerSettings& settings, const analysis::JobAnswer& job);

// What an audit without it says is missing.
inline constexpr const char* kNoOfu = "no OFU at the time of the steps: no GPU of the job was measured then";

// Where what the job reports is found wrong: the quality entry mfu_discrepancy.
void note_discrepancy(const analysis::JobAnswer& job, samples::QualityLog& quality);

class JobAudits {
 public:
  // Nothing where no model of the job is known or it reports nothing.
  base::Result<std::optional<audit::Audit>> audit(store::Reader& reader, JobService& jobs, const AnswerSettings& settings,
                                                  const analysis::JobAnswer& job, const std::string& id, const Caller& caller);
  // The same as a record, for the answer's window.
  base::Result<std::optional<jobs::AuditFinding>> finding(store::Reader& reader, JobService& jobs, const AnswerSettings& settings,
                                                          const analysis::JobAnswer& job, const std::string& id, const Caller& caller,
                                                          units::Instant now);
  // Sets the answer's finding to that of its window, where there is one, instead of the one that is kept.
  base::Status audit_answer(store::Reader& reader, JobService& jobs, const AnswerSettings& settings, const std::string& id, const Caller& caller,
                            units::Instant now, analysis::JobAnswer& job);

 private:
  struct Known {
    std::string asked;  // what the audit is of: model, claim, OFU, GPU
    audit::Audit audit;
  };
  std::mutex mutex_;
  std::map<std::string, Known, std::less<>> known_;
};

}  // namespace flopsight::app
