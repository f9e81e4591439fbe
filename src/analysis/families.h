#pragma once
// Which jobs are runs of the same training: the baseline that a run is compared with. Two jobs are
// of one family when their names are the same but for numbers, dates and hashes, and user, GPU
// model and GPU count are the same.
//
// The rule is a list of substitutions, shown with every answer and replaced by the configuration
// (families.ignore): what an expression matches in a name becomes '#'. A job without a name goes by
// its id, which makes it a family of its own unless its id has a stem ("llama-worker-0"). Threads:
// a rule is immutable.

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/regex.h"
#include "base/result.h"
#include "rollups/integrate.h"
#include "samples/gpu.h"

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

// The families of a report's jobs. First each GPU (see), then a holder's family: what a job had is known only once all of it was seen.
class FamilyIndex {
 public:
  using HolderOf = std::function<const samples::Holder&(samples::HolderId)>;
  // Borrowed.
  explicit FamilyIndex(const FamilyRule& rule) : rule_(rule) {}
  void see(const rollups::GpuTime& gpu, const HolderOf& holder_of);
  // Empty: of no family.
  const std::string& of(samples::HolderId id, const HolderOf& holder_of);

 private:
  struct Job {
    std::set<std::string> models;
    std::set<std::string> gpus;           // that are listed
    std::set<std::uint32_t> members;      // that are only numbered
  };
  using Key = std::pair<std::string, std::string>;  // job, namespace
  const FamilyRule& rule_;
  std::map<Key, Job> jobs_;
  std::unordered_map<samples::HolderId, std::string> families_;
};

}  // namespace flopsight::analysis
