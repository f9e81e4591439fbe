#pragma once
// Which holders are one job: pods by who owns them (owners.h), names by patterns of the user. The
// grouping is applied when a question is answered, not when samples come in, so that it holds for
// the past as well and can be changed.
//
// Patterns, in order; the first that matches gives the name: the group named `name`, or the first
// group, or the whole match.
// "^(.+)-(?:worker|master|launcher)-[0-9]+$" makes one job of the pods llama-worker-0 to
// llama-worker-63. Limits: 64 patterns. Errors: kInvalid naming the pattern. Threads: immutable.

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/regex.h"
#include "base/result.h"
#include "jobs/owners.h"
#include "samples/gpu.h"

namespace flopsight::jobs {

class Grouping {
 public:
  static constexpr std::size_t kPatternsMax = 64;

  Grouping() = default;
  static base::Result<Grouping> parse(const std::vector<std::string>& patterns);

  void use_owners(bool use) { use_owners_ = use; }
  bool changes_nothing() const { return patterns_.empty() && !use_owners_; }

  // (namespace, pod) to its owner.
  using OwnerOf = std::function<std::optional<Owner>(const std::string& name_space, const std::string& pod)>;

  // The holder as a part of its group: job is the group's name, container empty, rule says how. The same holder where nothing
  // groups it. `owner_of` may be empty.
  samples::Holder group_of(const samples::Holder& holder, const OwnerOf& owner_of) const;

  std::vector<std::string> patterns() const;

 private:
  std::vector<base::Regex> patterns_;
  bool use_owners_ = true;
};

}  // namespace flopsight::jobs
