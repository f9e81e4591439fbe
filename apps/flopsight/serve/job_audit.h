#pragma once
// Audits of jobs whose model was told (audit/told_model.h), when somebody asks for the job: what it reports against the count of its model and
// its OFU while it reported. One audit takes a few milliseconds; the last one of each of the last 64 jobs is kept. Threads: any.

#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "audit/audit.h"
#include "serve/answer.h"
#include "serve/job_service.h"
#include "store/store.h"

namespace flopsight::app {

// Keeps what is told, durable when it returns. Errors: of parse_told_model, kLimit for one job more than audit::kToldModelsMax.
base::Status tell_model(JobService& jobs, const samples::Holder& holder, std::string_view json_text);

// OFU of a job from its first reported step to its last, or of the whole window where steps have no times.
base::Result<std::optional<double>> ofu_while_reported(store::Reader& reader, JobService* jobs, const AnswerSettings& settings,
                                                       const analysis::JobAnswer& job, const std::string& id, const Caller& caller);

class JobAudits {
 public:
  // Nothing where no model was told of the job or it reports nothing.
  base::Result<std::optional<audit::Audit>> audit(store::Reader& reader, JobService& jobs, const AnswerSettings& settings,
                                                  const analysis::JobAnswer& job, const std::string& id, const Caller& caller);

 private:
  struct Known {
    std::string told;      // what the audit is of: model, claim, OFU, GPU
    audit::Audit audit;
  };
  std::mutex mutex_;
  std::map<std::string, Known, std::less<>> known_;
};

}  // namespace flopsight::app
