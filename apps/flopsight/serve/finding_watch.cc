#include "serve/finding_watch.h"

#include <algorithm>

namespace flopsight::app {
namespace {

using detect::Finding;
using findings::Sighting;

constexpr std::int64_t kForgetMilliseconds = 86'400'000;
constexpr std::int64_t kForgetSoonMilliseconds = 3'600'000;
constexpr std::int64_t kLevelEveryMilliseconds = 600'000;

// The price of all of them where it is one, and their model where that is.
void price(const MinuteReader& known, const std::vector<std::uint32_t>& gpus, const AnswerSettings& settings, Sighting& sighting) {
  bool is_first = true;
  for (const std::uint32_t number : gpus) {
    const MinuteReader::Model& of = known.models()[known.gpus()[number].model];
    const auto usd = settings.prices.of(of.name, of.raw, sighting.record.holder.team);
    const std::string& model = of.name.empty() ? of.raw : of.name;
    if (is_first) {
      sighting.record.gpu_model = model;
      sighting.usd_per_gpu_hour = usd;
    }
    is_first = false;
    if (sighting.record.gpu_model != model) sighting.record.gpu_model.clear();
    if (usd != sighting.usd_per_gpu_hour) sighting.usd_per_gpu_hour.reset();
  }
}

}  // namespace

void FindingWatch::warm(std::uint32_t job, units::Instant minute, std::span<const detect::MinutePoint> past, std::string family) {
  const std::string name = names_.holder_of(job).job;
  detect::RegressionOptions options;
  options.daily_load = options_.daily_load != nullptr && std::any_of(options_.daily_load->begin(), options_.daily_load->end(),
                                                                     [&](const base::Regex& one) { return one.found_in(name); });
  Watched& watched = jobs_.try_emplace(job, names_.job_id(job), options).first->second;
  watched.family = std::move(family);
  watched.seen_unix_milliseconds = minute.unix_milliseconds;
  for (const detect::MinutePoint& point : past) watched.detector.add(point, {});
}

void FindingWatch::name_owner(const Finding& finding, findings::Record& record, std::vector<std::uint32_t>& gpus) const {
  const std::vector<MinuteReader::Gpu>& all = names_.gpus();
  if (const auto gpu = names_.gpu_number(finding.gpu); !finding.gpu.empty() && gpu) {
    gpus = {*gpu};
    record.host = names_.host_names()[all[*gpu].host];
  } else if (const auto host = gpus_of_host_.find(finding.host); !finding.host.empty() && host != gpus_of_host_.end()) {
    gpus = host->second;
  }
  if (!finding.job.empty()) {
    const auto job = names_.job_number(finding.job);
    if (!job) return;
    record.job = finding.job;
    record.holder = names_.holder_of(*job);
    if (const auto now = gpus_of_job_.find(*job); gpus.empty() && now != gpus_of_job_.end()) gpus = now->second;
    // Of a job that is silent: those that it had last.
    for (std::uint32_t gpu = 0; gpus.empty() && gpu < all.size(); ++gpu) {
      if (all[gpu].has_job && all[gpu].job == *job) gpus.push_back(gpu);
    }
    return;
  }
  // Of a GPU or host: the job that has it, where that is one.
  if (gpus.empty()) return;
  const MinuteReader::Gpu& first = all[gpus.front()];
  const bool is_one = std::all_of(gpus.begin(), gpus.end(), [&](std::uint32_t gpu) { return all[gpu].has_job && all[gpu].job == first.job; });
  if (!is_one) return;
  record.job = names_.job_id(first.job);
  record.holder = names_.holder_of(first.job);
}

std::optional<Sighting> FindingWatch::sighting(const Finding& finding, units::Instant minute, const AnswerSettings& settings) const {
  const detect::FindingKindInfo& info = detect::info_of(finding.kind);
  if (options_.kinds_off.contains(std::string(info.name))) return std::nullopt;
  // Detectors remember; what is long over is nobody's to look at again.
  if ((minute - finding.last).value > findings::quiet_time(info.name).value) return std::nullopt;
  Sighting sighting;
  findings::Record& record = sighting.record;
  record.key = detect::finding_key(finding);
  record.kind = info.name;
  record.severity = finding.severity;
  record.host = finding.host;
  record.gpu = finding.gpu;
  record.first = finding.first;
  record.last = finding.last;
  record.text = finding.text;
  record.action = info.action;
  record.evidence = finding.evidence;
  record.series_name = finding.series_name;
  record.series = finding.series;
  record.suspects = finding.suspects;
  record.cost = finding.cost;
  record.simulated = settings.simulated;
  std::vector<std::uint32_t> gpus;
  name_owner(finding, record, gpus);
  price(names_, gpus, settings, sighting);
  return sighting;
}

std::map<std::uint32_t, std::vector<Finding>> FindingWatch::by_job(const std::vector<Finding>& faults) const {
  std::map<std::uint32_t, std::vector<Finding>> out;
  const std::vector<MinuteReader::Gpu>& all = names_.gpus();
  for (const Finding& fault : faults) {
    if (const auto gpu = names_.gpu_number(fault.gpu); !fault.gpu.empty() && gpu) {
      if (all[*gpu].has_job) out[all[*gpu].job].push_back(fault);
      continue;
    }
    const auto host = gpus_of_host_.find(fault.host);
    if (host == gpus_of_host_.end()) continue;
    std::set<std::uint32_t> jobs;
    for (const std::uint32_t number : host->second) {
      if (all[number].has_job) jobs.insert(all[number].job);
    }
    for (const std::uint32_t job : jobs) out[job].push_back(fault);
  }
  return out;
}

void FindingWatch::keep_level(std::uint32_t job, const Watched& watched) {
  const auto ofu_ratio = watched.detector.level_ofu_ratio();
  if (ofu_ratio && !watched.family.empty()) families_.keep(watched.family, names_.job_id(job), *ofu_ratio);
}

void FindingWatch::forget(std::int64_t now_unix_milliseconds) {
  // Where others want to be watched, those that seem to be over go sooner.
  const std::int64_t after = has_room() ? kForgetMilliseconds : kForgetSoonMilliseconds;
  std::erase_if(jobs_, [&](const auto& of) { return now_unix_milliseconds - of.second.seen_unix_milliseconds > after; });
}

std::vector<Sighting> FindingWatch::minute(const FleetMinute& minute, const AnswerSettings& settings) {
  std::vector<Sighting> out;
  const std::vector<MinuteReader::Gpu>& all = names_.gpus();
  for (const detect::GpuMinute& gpu : minute.gpus) gpus_of_host_[names_.host_names()[all[gpu.gpu].host]].push_back(gpu.gpu);
  const detect::SubjectNames subjects{[&](std::uint32_t gpu) { return names_.gpu_names()[gpu]; }, names_.host_names()};
  faults_.add(minute.gpus);
  const std::vector<Finding> faults = faults_.findings(subjects);
  const auto take = [&](const Finding& finding) {
    if (auto seen = sighting(finding, minute.start, settings)) out.push_back(std::move(*seen));
  };
  for (const Finding& fault : faults) take(fault);
  const std::map<std::uint32_t, std::vector<Finding>> faults_of = by_job(faults);
  const std::int64_t now = minute.start.unix_milliseconds;
  unwatched_ = 0;
  for (const JobMinute& job : minute.jobs) {
    gpus_of_job_[job.job] = job.gpus;
    const auto watched = jobs_.find(job.job);
    if (watched == jobs_.end()) {
      ++unwatched_;
      continue;
    }
    watched->second.seen_unix_milliseconds = now;
    watched->second.detector.add(job.point, gpus_of(minute, job));
    if (now % kLevelEveryMilliseconds == 0) keep_level(job.job, watched->second);
    const auto of_job = faults_of.find(job.job);
    const std::vector<double> family = families_.others(watched->second.family, names_.job_id(job.job));
    const std::vector<detect::LabelChange> changes =
        watched->second.detector.is_regressed() ? names_.changes(job.job) : std::vector<detect::LabelChange>();
    const std::vector<Finding> found =
        watched->second.detector.findings(subjects, family, changes, of_job == faults_of.end() ? std::span<const Finding>() : std::span<const Finding>(of_job->second));
    for (const Finding& finding : found) take(finding);
  }
  if (now % kLevelEveryMilliseconds == 0) forget(now);
  // Of 100,000 GPUs they are megabytes, and needed a second a minute.
  gpus_of_job_.clear();
  gpus_of_host_.clear();
  return out;
}

}  // namespace flopsight::app
