#pragma once
// The models that jobs train: told for a job (POST /api/v1/jobs/{id}/model), or by the rules of a site's file (audit/model_rules.h), which
// is read at the start and with SIGHUP. Threads: values.

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/job_answer.h"
#include "base/result.h"
#include "serve/job_service.h"

namespace flopsight::app {

// Rules of a file with the configurations that they name.
class JobModels {
 public:
  // A rule whose configuration cannot be read or counted is left out, and `mistakes` says why in a line. Errors: of the file of rules.
  static base::Result<JobModels> read(const std::string& path, std::vector<std::string>& mistakes);

  struct Match {
    std::string_view match;  // the rule's pattern
    std::string_view told;   // for audit::parse_told_model
  };
  // Of the first rule that fits the name.
  std::optional<Match> find(std::string_view name) const;
  bool empty() const { return rules_.empty(); }

 private:
  struct Rule {
    std::string match;
    std::string told;
  };
  std::vector<Rule> rules_;
};

struct JobModel {
  std::string told;
  std::string from;  // "told of the job", "rule llama3-*"
};

// Told of the job, of one of its members (of the first 64), or by a rule for the name that its scheduler gives it, or else for its own. `rules` may be null.
base::Result<std::optional<JobModel>> model_of(JobService& jobs, const JobModels* rules, const analysis::JobAnswer& job);

// Keeps what is told, durable when it returns. Errors: of parse_told_model, kLimit past what the book of jobs keeps.
base::Status tell_model(JobService& jobs, const samples::Holder& holder, std::string_view json_text, units::Instant now);

}  // namespace flopsight::app
