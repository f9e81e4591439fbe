#pragma once
// Which jobs are runs of the same training: the baseline that a run is compared with. Two jobs are
// of one family when their names are the same but for numbers, dates and hashes, and user, GPU
// model and GPU count are the same.
//
// The rule is a list of substitutions, shown with every answer and replaced by the configuration
// (families.ignore): what an expression matches in a name becomes '#'. A job without a name goes by
// its id, which makes it a family of its own unless its id has a stem ("llama-worker-0"). Threads:
// immutable.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/regex.h"
#include "base/result.h"

namespace flopsight::analysis {

struct FamilyFacts {
  std::string name;  // the job's own name; its id where it has none
  std::string user;
  std::vector<std::string> models;  // of its GPUs, sorted
  std::uint64_t gpu_count = 0;
};

class FamilyRule {
 public:
  static FamilyRule builtin();
  // Errors: kInvalid naming the expression; kLimit past 32.
  static base::Result<FamilyRule> parse(const std::vector<std::string>& ignore);

  // "llama-# | ada | H100-SXM | 64 GPUs"; empty for a job without a name.
  std::string family_of(const FamilyFacts& facts) const;
  std::vector<std::string> ignored() const;

 private:
  std::vector<base::Regex> ignore_;
};

}  // namespace flopsight::analysis
