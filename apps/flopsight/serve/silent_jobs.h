#pragma once
// Jobs that hold their GPUs and of which nothing comes any more: all their exporters are dead, or what collects from them. That is a matter of the
// measurement and never of the work, and costs nothing.
//
// A job is silent when none of the GPUs that it had last was seen for kMinutes. That alone says nothing, since jobs end. It is a finding while
//   a scheduler, or who else told of the job, says that it holds its GPUs, or
//   hosts of it are among the targets of this service, and the exporters of none of its hosts answer. Targets are known as they are now, so that
//   counts only while the minute is no older than kLiveSeconds.
// for a day at most. Schedulers are not asked again of a job that was over once, until it was seen anew.
// Threads: one at a time. The reader of minutes and the jobs are borrowed.

#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "base/result.h"
#include "detect/finding.h"
#include "serve/finding_minutes.h"
#include "serve/job_service.h"

namespace flopsight::app {

class SilentJobs {
 public:
  static constexpr int kMinutes = 10;
  static constexpr double kLiveSeconds = 1'800;

  SilentJobs(const MinuteReader& reader, JobService& jobs) : reader_(reader), jobs_(jobs) {}
  // Hosts whose exporters do not answer now.
  void set_hosts_down(std::function<std::set<std::string>()> hosts_down) { hosts_down_ = std::move(hosts_down); }

  // What shows in a minute; `now` is the clock on the wall.
  base::Result<std::vector<detect::Finding>> at(units::Instant minute, units::Instant now);

 private:
  // Both say by what, in words.
  base::Result<bool> is_told(const MinuteReader::Silence& silence, units::Instant minute, std::string& by);
  bool has_hosts_down(const MinuteReader::Silence& silence, const std::set<std::string>& down, std::string& by) const;

  const MinuteReader& reader_;
  JobService& jobs_;
  std::function<std::set<std::string>()> hosts_down_;
  std::map<std::uint32_t, std::int64_t> over_;  // by silent job: when it was last seen, of those that no scheduler tells to hold anything
};

}  // namespace flopsight::app
