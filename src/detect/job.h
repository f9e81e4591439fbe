#pragma once
// All that is watched of one job, and its findings: regression, stall, its GPUs among each other, its family.
// Threads: one at a time; one of it for each job.

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "detect/family.h"
#include "detect/finding.h"
#include "detect/peers.h"
#include "detect/regression.h"
#include "detect/stall.h"
#include "detect/suspects.h"

namespace flopsight::detect {

class JobDetector {
 public:
  explicit JobDetector(std::string job, RegressionOptions options = {}) : job_(std::move(job)), regression_(options) {}

  // The next minute: of the job as a whole, and of each of its GPUs (ascending by number; may be empty where they are not at hand).
  void add(const MinutePoint& job, std::span<const GpuMinute> gpus);
  // Median OFU of the last hour that it worked, for family_shortfall(); nothing before that.
  std::optional<double> level_ofu_ratio() const;

  // Whether `changes` are of interest to findings().
  bool is_regressed() const { return regression_.open().has_value(); }

  // What is the matter now. `family`: levels of the family's other runs. `changes`: of the job's labels. `faults`: of GPUs and hosts of the job.
  // Suspects that it is told of here stay with the regression.
  std::vector<Finding> findings(const SubjectNames& names, std::span<const double> family = {}, std::span<const LabelChange> changes = {},
                                std::span<const Finding> faults = {});

 private:
  Finding regression_finding(const Regression& open) const;
  Finding stall_finding(const Stall& open) const;

  std::string job_;
  RegressionDetector regression_;
  StallDetector stall_;
  PeerDetector peers_;
  std::unique_ptr<KeptSuspects> suspects_;  // while a regression is open: of thousands of jobs few have one
};

}  // namespace flopsight::detect
