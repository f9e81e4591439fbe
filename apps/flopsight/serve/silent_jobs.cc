#include "serve/silent_jobs.h"

#include <algorithm>

#include "jobs/label_rules.h"

namespace flopsight::app {
namespace {

using base::Result;
using detect::Finding;

constexpr double kMinuteSeconds = 60;

// Also where one is the short form of the other (jobs::same_host).
bool is_down(const std::set<std::string>& down, const std::string& host) {
  if (host.empty()) return false;
  if (down.contains(host) || down.contains(jobs::short_host(host))) return true;
  const auto longer = down.lower_bound(host + ".");
  return longer != down.end() && jobs::same_host(host, *longer);
}

}  // namespace

Result<bool> SilentJobs::is_told(const MinuteReader::Silence& silence, units::Instant minute, std::string& by) {
  const std::int64_t seen = silence.seen.unix_milliseconds;
  if (const auto known = over_.find(silence.job); known != over_.end() && known->second == seen) return false;
  const samples::Holder holder = reader_.holder_of(silence.job);
  FLOPSIGHT_ASSIGN_OR_RETURN(const std::vector<schedulers::Job> runs, jobs_.runs_of(holder, {minute, minute + units::Seconds(kMinuteSeconds)}));
  for (const schedulers::Job& run : runs) {
    if (!run.held_at(minute)) continue;
    by = "it is told to hold its GPUs" + (run.source.empty() ? "" : " by " + run.source);
    return true;
  }
  over_[silence.job] = seen;
  return false;
}

bool SilentJobs::has_hosts_down(const MinuteReader::Silence& silence, const std::set<std::string>& down, std::string& by) const {
  std::set<std::string> hosts;
  for (const std::uint32_t gpu : silence.gpus) {
    const std::string& host = reader_.host_names()[reader_.gpus()[gpu].host];
    if (!is_down(down, host)) return false;
    hosts.insert(host);
  }
  by = hosts.size() == 1 ? "the exporter of its host does not answer" : "the exporters of its " + std::to_string(hosts.size()) + " hosts do not answer";
  return true;
}

Result<std::vector<Finding>> SilentJobs::at(units::Instant minute, units::Instant now) {
  std::vector<Finding> out;
  const std::vector<MinuteReader::Silence> silences = reader_.silent(minute, kMinutes);
  std::erase_if(over_, [&](const auto& over) {
    return std::none_of(silences.begin(), silences.end(), [&](const auto& silence) { return silence.job == over.first; });
  });
  if (silences.empty()) return out;
  const std::set<std::string> down = hosts_down_ && (now - minute).value <= kLiveSeconds ? hosts_down_() : std::set<std::string>();
  for (const MinuteReader::Silence& silence : silences) {
    std::string by;
    FLOPSIGHT_ASSIGN_OR_RETURN(const bool is_told_to_hold, is_told(silence, minute, by));
    if (!is_told_to_hold && !has_hosts_down(silence, down, by)) continue;
    Finding& finding = out.emplace_back();
    finding.kind = detect::FindingKind::kUnseen;
    finding.severity = detect::info_of(finding.kind).severity;
    finding.job = reader_.job_id(silence.job);
    finding.first = silence.seen + units::Seconds(kMinuteSeconds);
    finding.last = minute;
    finding.evidence = {{"gpu_count", static_cast<double>(silence.gpus.size())}, {"unmeasured_seconds", (minute - silence.seen).value}};
    finding.text = "unmeasured: nothing comes of any of its " + std::to_string(silence.gpus.size()) + " GPUs; " + by;
  }
  return out;
}

}  // namespace flopsight::app
