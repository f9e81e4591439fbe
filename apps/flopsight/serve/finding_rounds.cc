#include "serve/finding_rounds.h"

#include <malloc.h>

#include <algorithm>
#include <chrono>
#include <cmath>

#include "jobs/job_name.h"
#include "serve/finding_others.h"

namespace flopsight::app {
namespace {

using base::Result;
using base::Status;
using findings::Sighting;

constexpr std::int64_t kMinuteMilliseconds = 60'000;
constexpr double kMinuteSeconds = 60;
constexpr double kFirstLookSeconds = 86'400;      // how far back the first time
constexpr double kJobPastSeconds = 12 * 3'600;    // that a regression's baseline needs
constexpr double kJobPastMaxSeconds = 7 * 86'400;  // minutes are not kept for longer
constexpr double kGpuPastSeconds = 40 * 60;       // longer than any condition of a GPU needs
constexpr double kSilentPastSeconds = 15 * 60;    // in which a job that is silent now had its GPUs
constexpr double kLiveSeconds = 300;              // samples are live when the newest is not older
constexpr double kBesideSeconds = 60, kWasteSeconds = 3'600, kForgetSeconds = 3'600;
constexpr double kLevelsSeconds = 3'600;
constexpr std::string_view kLevelsNote = "family_levels";
constexpr std::size_t kCellsAtOnce = 60'000;
constexpr std::size_t kNotesMax = 100;
constexpr auto kPause = std::chrono::seconds(5);

units::Instant whole_minute(units::Instant time) { return {time.unix_milliseconds / kMinuteMilliseconds * kMinuteMilliseconds}; }

}  // namespace

FindingRounds::FindingRounds(Ingest& ingest, JobService& jobs, FindingService& findings, std::shared_ptr<const AnswerSettings> settings,
                             FindingRoundOptions options)
    : ingest_(ingest), jobs_(jobs), findings_(findings), reader_(&jobs), watch_(reader_, options.watch), silent_(reader_, jobs), settings_(std::move(settings)), options_(std::move(options)) {
  health_.looked_until = findings_.looked_until();
}

void FindingRounds::start(std::function<units::Instant()> now) {
  thread_ = std::thread([this, now = std::move(now)] { run(now); });
}

void FindingRounds::stop() {
  {
    const std::scoped_lock lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void FindingRounds::replace(std::shared_ptr<const AnswerSettings> settings, FindingRoundOptions options) {
  const std::scoped_lock lock(mutex_);
  settings_ = std::move(settings);
  options_ = std::move(options);
  is_new_ = true;
}

void FindingRounds::run(const std::function<units::Instant()>& now) {
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    lock.unlock();
    const Result<bool> more = step(now());
    // What minutes of a large fleet needed goes back to the system instead of staying with the allocator.
    if (std::exchange(has_read_, false)) malloc_trim(0);
    lock.lock();
    const std::string trouble = more.ok() ? "" : "findings: " + more.error().message;
    if (!more.ok()) ++health_.failures;
    if (trouble != trouble_ && !trouble.empty() && notes_.size() < kNotesMax) notes_.push_back(trouble);
    trouble_ = trouble;
    if (!more.ok() || !*more) wake_.wait_for(lock, kPause, [this] { return stopping_; });
  }
}

std::optional<units::Instant> FindingRounds::closed_until(units::Instant now) const {
  const IngestHealth health = ingest_.health();
  const units::Instant newest = health.newest_sample;
  if (newest.unix_milliseconds == 0) return std::nullopt;
  const std::optional<units::Instant> open = ingest_.oldest_open();
  const units::Instant closed = whole_minute(open.value_or(newest + units::Seconds(kMinuteSeconds)));
  if ((now - newest).value > kLiveSeconds) return closed;
  // Of what came in since the last flush nothing is written yet, be it hours.
  return std::max(closed, whole_minute(health.newest_written - how_.settle));
}

Result<std::vector<FleetMinute>> FindingRounds::read(units::Window window) {
  has_read_ = true;
  Ingest::StoreHandle store = ingest_.store();
  FLOPSIGHT_ASSIGN_OR_RETURN(std::vector<FleetMinute> minutes, reader_.read(*store, answers_, window));
  // A fleet of any size is read in pieces of one: of memory, and of the time for which the store is held.
  std::size_t cells = 1;
  for (const FleetMinute& minute : minutes) {
    cells = std::max(cells, minute.gpus.size());
    FLOPSIGHT_RETURN_IF_ERROR(warm_jobs(*store, minute));
  }
  minutes_at_once_ = static_cast<std::int64_t>(std::clamp<std::size_t>(kCellsAtOnce / cells, 1, 60));
  answers_.simulated = store->simulated();
  return minutes;
}

units::Instant FindingRounds::past_of(std::uint32_t job, units::Instant minute) const {
  const auto open = open_since_.find(reader_.job_id(job));
  const units::Instant from = open == open_since_.end() ? minute : std::min(minute, open->second);
  return std::max(from - units::Seconds(kJobPastSeconds), minute - units::Seconds(kJobPastMaxSeconds));
}

std::string FindingRounds::family_of(std::uint32_t job, const JobMinute& minute, units::Instant start) const {
  if (answers_.families == nullptr) return {};
  const samples::Holder holder = reader_.holder_of(job);
  analysis::FamilyFacts facts;
  facts.name = holder.job;
  const auto runs = jobs_.runs_of(holder, {start, start + units::Seconds(kMinuteSeconds)});
  if (runs.ok() && !runs->empty() && !runs->back().name.empty()) facts.name = runs->back().name;
  facts.user = holder.user;
  for (const std::uint32_t gpu : minute.gpus) {
    const std::string& model = reader_.models()[reader_.gpus()[gpu].model].name;
    if (!model.empty() && std::find(facts.models.begin(), facts.models.end(), model) == facts.models.end()) facts.models.push_back(model);
  }
  std::sort(facts.models.begin(), facts.models.end());
  facts.gpu_count = minute.gpus.size();
  return answers_.families->family_of(facts);
}

Status FindingRounds::warm_jobs(store::Store& store, const FleetMinute& minute) {
  for (const JobMinute& job : minute.jobs) {
    if (watch_.watches(job.job) || !watch_.has_room()) continue;
    FLOPSIGHT_ASSIGN_OR_RETURN(const std::vector<detect::MinutePoint> past,
                               reader_.course(store, job.job, {past_of(job.job, minute.start), minute.start}));
    watch_.warm(job.job, minute.start, past, family_of(job.job, job, minute.start));
  }
  return {};
}

// Of jobs that were silent when the process ended: the minutes before, in which they had their GPUs.
Status FindingRounds::learn_silent() {
  std::set<units::Instant> since;
  for (const findings::Record& record : findings_.open_records()) {
    if (record.kind == detect::info_of(detect::FindingKind::kUnseen).name && !record.job.empty() && record.host.empty() && record.gpu.empty()) since.insert(record.first);
  }
  for (const units::Instant first : since) {
    FLOPSIGHT_ASSIGN_OR_RETURN(const std::vector<FleetMinute> minutes, read({first - units::Seconds(kSilentPastSeconds), first}));
    static_cast<void>(minutes);  // the reader has learned of them
  }
  return {};
}

Status FindingRounds::keep_levels(units::Instant minute) {
  if (std::abs((minute - levels_kept_).value) < kLevelsSeconds || watch_.families().empty()) return {};
  levels_kept_ = minute;
  return jobs_.book().put_note(kLevelsNote, watch_.families().text());
}

Status FindingRounds::add_silent(units::Instant minute, units::Instant now, std::vector<Sighting>& seen) {
  FLOPSIGHT_ASSIGN_OR_RETURN(const std::vector<detect::Finding> silent, silent_.at(minute, now));
  for (const detect::Finding& finding : silent) {
    if (auto sighting = watch_.sighting(finding, minute, answers_)) seen.push_back(std::move(*sighting));
  }
  return {};
}

// While nothing comes in. The last minute of data goes on being the last, and what does not show is not resolved by it.
Status FindingRounds::look_at_silence(units::Instant horizon, units::Instant now) {
  const units::Instant minute = whole_minute(now) - units::Seconds(kMinuteSeconds);
  const double silent_seconds = (minute - horizon).value, since_seconds = (minute - looked_at_silence_).value;
  if (silent_seconds < kMinuteSeconds * SilentJobs::kMinutes || silent_seconds > kFirstLookSeconds || since_seconds == 0) return {};
  looked_at_silence_ = minute;
  std::vector<Sighting> seen;
  FLOPSIGHT_RETURN_IF_ERROR(add_silent(minute, now, seen));
  if (seen.empty()) return {};
  return findings_.round(seen, horizon - units::Seconds(kMinuteSeconds), now);
}

Status FindingRounds::begin(units::Instant horizon) {
  const std::optional<units::Instant> looked = findings_.looked_until();
  const units::Instant first = std::max(whole_minute(looked.value_or(horizon - units::Seconds(kFirstLookSeconds))),
                                        whole_minute(horizon - units::Seconds(kJobPastMaxSeconds)));
  open_since_.clear();
  for (const findings::Record& record : findings_.open_records()) {
    if (record.job.empty()) continue;
    const auto at = open_since_.emplace(record.job, record.first).first;
    at->second = std::min(at->second, record.first);
  }
  FLOPSIGHT_RETURN_IF_ERROR(learn_silent());
  FLOPSIGHT_ASSIGN_OR_RETURN(const std::optional<std::string> levels, jobs_.book().note(kLevelsNote));
  if (levels) watch_.families().restore(*levels);
  levels_kept_ = first;
  units::Instant from = first - units::Seconds(kGpuPastSeconds);
  while (from < first) {
    const units::Instant end = std::min(first, from + units::Seconds(kMinuteSeconds * static_cast<double>(minutes_at_once_)));
    FLOPSIGHT_ASSIGN_OR_RETURN(const std::vector<FleetMinute> minutes, read({from, end}));
    for (const FleetMinute& minute : minutes) findings_.replay(watch_.minute(minute, answers_));
    from = end;
  }
  open_since_.clear();
  next_ = first;
  return {};
}

void FindingRounds::look_beside(units::Instant start, units::Instant now) {
  const double since_seconds = (now - looked_beside_).value;
  if (since_seconds >= 0 && since_seconds < kBesideSeconds) return;
  looked_beside_ = now;
  std::erase_if(beside_, [](const Sighting& sighting) { return sighting.record.kind == findings::kAuditKind; });
  if (audits_ && !how_.watch.kinds_off.contains(std::string(findings::kAuditKind))) {
    for (const jobs::AuditFinding& audit : audits_()) {
      if (audit.is_discrepancy()) beside_.push_back(sighting_of(audit, answers_.simulated));
    }
  }
  const bool is_waste_due = !waste_until_ || (start - *waste_until_).value >= kWasteSeconds || start < *waste_until_;
  if (!is_waste_due) return;
  waste_until_ = start;
  std::erase_if(beside_, [](const Sighting& sighting) { return sighting.record.kind == findings::kWasteKind; });
  if (how_.waste_usd_per_day <= 0 || how_.watch.kinds_off.contains(std::string(findings::kWasteKind)) || answers_.prices.empty()) return;
  auto wasted = [&]() -> Result<std::vector<Sighting>> {
    Ingest::StoreHandle store = ingest_.store();
    return wasted_of(*store, answers_, jobs_, start, how_.waste_usd_per_day);
  }();
  if (wasted.ok()) {
    std::move(wasted->begin(), wasted->end(), std::back_inserter(beside_));
    return;
  }
  const std::scoped_lock lock(mutex_);
  ++health_.failures;
  if (notes_.size() < kNotesMax) notes_.push_back("findings: waste: " + wasted.error().message);
}

Status FindingRounds::look_at(units::Instant start, const FleetMinute* minute, units::Instant now, bool more_follow) {
  const auto begun = std::chrono::steady_clock::now();
  std::vector<Sighting> seen;
  if (minute != nullptr) seen = watch_.minute(*minute, answers_);
  const Status silent = add_silent(start, now, seen);
  if (std::abs((start - jobs_forgotten_).value) >= kForgetSeconds) {
    jobs_forgotten_ = start;
    reader_.forget(start, [this](std::uint32_t job) { return watch_.watches(job); });
  }
  look_beside(start, now);
  for (Sighting sighting : beside_) {
    sighting.record.first = std::min(sighting.record.first, start);
    sighting.record.last = start;
    seen.push_back(std::move(sighting));
  }
  // Detectors have seen the minute in any case; what could not be written is with the next.
  Status written = findings_.round(seen, start, now, more_follow);
  if (written.ok() && !silent.ok()) written = silent;
  if (written.ok()) written = keep_levels(start);
  const std::scoped_lock lock(mutex_);
  ++health_.minutes;
  health_.looked_until = start + units::Seconds(kMinuteSeconds);
  health_.minute_last_seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count();
  health_.jobs_watched = watch_.jobs_watched();
  health_.jobs_unwatched = watch_.jobs_unwatched();
  return written;
}

Result<bool> FindingRounds::step(units::Instant now) {
  {
    const std::scoped_lock lock(mutex_);
    if (is_new_) {
      answers_ = *settings_;
      how_ = options_;
      watch_.set_options(how_.watch);
    }
    is_new_ = false;
    if (stopping_ || !how_.use) return false;
  }
  std::optional<units::Instant> horizon;
  {
    // A flush holds the store from closing minutes to having written them.
    Ingest::StoreHandle store = ingest_.store();
    horizon = closed_until(now);
  }
  // Nothing came since the process began: the past is as it was looked at.
  const std::optional<units::Instant> looked = findings_.looked_until();
  if (!horizon && looked && (now - *looked).value <= kFirstLookSeconds) horizon = looked;
  if (!horizon) return false;
  if (!next_) FLOPSIGHT_RETURN_IF_ERROR(begin(*horizon));
  if ((now - forgotten_).value >= kForgetSeconds || now < forgotten_) {
    forgotten_ = now;
    FLOPSIGHT_RETURN_IF_ERROR(findings_.forget(*horizon - how_.retention));
  }
  const units::Instant end = std::min(*horizon, *next_ + units::Seconds(kMinuteSeconds * static_cast<double>(minutes_at_once_)));
  if (end <= *next_) {
    FLOPSIGHT_RETURN_IF_ERROR(look_at_silence(*horizon, now));
    return false;
  }
  FLOPSIGHT_ASSIGN_OR_RETURN(const std::vector<FleetMinute> minutes, read({*next_, end}));
  auto minute = minutes.begin();
  Status written;
  while (*next_ < end) {
    while (minute != minutes.end() && minute->start < *next_) ++minute;
    const FleetMinute* known = minute != minutes.end() && minute->start == *next_ ? &*minute : nullptr;
    const units::Instant after = *next_ + units::Seconds(kMinuteSeconds);
    Status one = look_at(*next_, known, now, after < end);
    if (!one.ok()) written = std::move(one);
    next_ = after;
    const std::scoped_lock lock(mutex_);
    if (stopping_) return false;
  }
  FLOPSIGHT_RETURN_IF_ERROR(written);
  return end < *horizon;
}

FindingHealth FindingRounds::health() const {
  const std::scoped_lock lock(mutex_);
  FindingHealth health = health_;
  health.dropped = findings_.dropped_total();
  return health;
}

std::vector<std::string> FindingRounds::take_notes() {
  const std::scoped_lock lock(mutex_);
  return std::exchange(notes_, {});
}

}  // namespace flopsight::app
