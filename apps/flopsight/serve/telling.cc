#include "serve/telling.h"

#include <chrono>
#include <cmath>
#include <optional>
#include <tuple>
#include <utility>

namespace flopsight::app {
namespace {

// Of a book that cannot be written, so many jobs' steps wait in memory.
constexpr std::size_t kUnkeptMax = 200'000;
constexpr std::size_t kNotesMax = 100;  // until they are taken

bool asks_slurm(const ServeConfig& c) { return c.slurm_commands || !c.slurm_rest_url.empty(); }

auto asked_of_slurm(const ServeConfig& c) {
  return std::tie(c.slurm_commands, c.slurm_command_folder, c.slurm_rest_url, c.slurm_rest_user, c.slurm_rest_token_file, c.slurm_rest_version,
                  c.slurm_cluster, c.slurm_zone, c.slurm_accounting, c.slurm_interval, c.slurm_timeout, c.slurm_history);
}

base::Result<SlurmPollerOptions> slurm_options(const ServeConfig& c) {
  const auto milliseconds = [](units::Seconds s) { return std::chrono::milliseconds(std::llround(s.value * 1000)); };
  SlurmPollerOptions options;
  options.source.cluster = c.slurm_cluster;
  FLOPSIGHT_ASSIGN_OR_RETURN(options.source.zone, base::Zone::find(c.slurm_zone));
  options.source.command_folder = c.slurm_command_folder;
  options.source.rest_url = c.slurm_rest_url;
  options.source.rest_user = c.slurm_rest_user;
  options.source.rest_token_file = c.slurm_rest_token_file;
  options.source.rest_version = c.slurm_rest_version;
  options.source.accounting = c.slurm_accounting;
  options.source.timeout = milliseconds(c.slurm_timeout);
  options.interval = milliseconds(c.slurm_interval);
  options.history = c.slurm_history;
  return options;
}

}  // namespace

units::Seconds slot_wait(const ServeConfig& c) {
  return asks_slurm(c) ? std::max(c.rollup_late, c.slurm_interval) : c.rollup_late;
}

base::Result<std::unique_ptr<Telling>> Telling::start(const ServeConfig& c, Ingest& ingest, JobService& jobs,
                                                      std::function<units::Instant()> now) {
  std::unique_ptr<Telling> telling(new Telling(ingest, jobs, std::move(now)));
  FLOPSIGHT_RETURN_IF_ERROR(telling->begin(c));
  return telling;
}

base::Status Telling::begin(const ServeConfig& c) {
  config_ = c;
  std::unique_ptr<LogReading> logs;
  if (!c.training_logs.empty()) {
    FLOPSIGHT_ASSIGN_OR_RETURN(logs, LogReading::start(c.training_logs, jobs_, now_));
  }
  std::optional<SlurmPollerOptions> options;
  if (asks_slurm(c)) {
    FLOPSIGHT_ASSIGN_OR_RETURN(options, slurm_options(c));
  }
  const std::scoped_lock lock(mutex_);
  logs_ = std::move(logs);
  if (!options) return {};
  slurm_ = std::make_unique<SlurmPoller>(std::move(*options), [this, c](const SlurmTelling& told) { take(told, c); }, now_);
  return {};
}

base::Status Telling::reload(const ServeConfig& c) {
  // The files that it names may have changed although the name is the same.
  const bool is_same = asked_of_slurm(c) == asked_of_slurm(config_) && c.training_logs.empty() && config_.training_logs.empty();
  if (is_same) return {};
  std::unique_ptr<LogReading> logs;
  std::unique_ptr<SlurmPoller> slurm;
  {
    const std::scoped_lock lock(mutex_);
    logs.swap(logs_);
    slurm.swap(slurm_);
  }
  // Two at once would both keep positions of one file.
  slurm.reset();
  logs.reset();
  // Of a Slurm that is no longer asked, nothing is the matter.
  slurm_trouble_.clear();
  {
    const std::scoped_lock lock(mutex_);
    trouble_.clear();
  }
  return begin(c);
}

Telling::~Telling() {
  slurm_.reset();
  logs_.reset();
}

void Telling::take(const SlurmTelling& told, const ServeConfig& config) {
  const units::Instant now = now_();
  std::string ambiguous;
  const base::Status kept = [&]() -> base::Status {
    FLOPSIGHT_RETURN_IF_ERROR(jobs_.tell_nodes(told.nodes, now));
    const auto put = jobs_.tell(told.jobs, now);
    if (!put.ok()) return put.error();
    if (put->ambiguous > 0) {
      ambiguous = "Slurm: " + std::to_string(put->ambiguous) + " runs without a cluster are counted apart, since several clusters have that id and start (" +
                  put->first_ambiguous + "); slurm.cluster says whose they are";
    }
    // Of what was not listed for a few polls, the scheduler knows no more.
    if (told.is_whole) jobs_.listed(config.slurm_cluster, now - units::Seconds(4 * config.slurm_interval.value + 60));
    return {};
  }();
  const std::scoped_lock lock(mutex_);
  trouble_ = kept.ok() ? "" : kept.error().message;
  // Only of runs that are new in the book, so each is said once.
  if (!ambiguous.empty() && slurm_notes_.size() < kNotesMax) slurm_notes_.push_back(std::move(ambiguous));
}

void Telling::keep_reported(units::Instant now) {
  for (auto& steps : ingest_.take_reported(now)) unkept_.push_back(std::move(steps));
  const base::Status kept = jobs_.tell_exported(unkept_, now);
  const std::string trouble = kept.ok() ? "" : "what trainers reported is not kept: " + kept.error().message;
  if (trouble != reported_trouble_ && !trouble.empty()) notes_.push_back(trouble);
  reported_trouble_ = trouble;
  if (kept.ok()) unkept_.clear();
  if (unkept_.empty()) ingest_.reported_is_kept();
  if (unkept_.size() > kUnkeptMax) {
    notes_.push_back("lost: steps that trainers reported, of which the book of jobs took none for too long");
    unkept_.clear();
  }
}

TellingHealth Telling::health() const {
  TellingHealth health;
  const std::scoped_lock lock(mutex_);
  if (slurm_) health.slurm = slurm_->health();
  for (const FollowedFile& file : logs_ ? logs_->files() : std::vector<FollowedFile>()) {
    ++health.logs_followed;
    health.logs_failing += file.error.empty() && !file.job.empty() ? 0U : 1U;
  }
  return health;
}

std::vector<std::string> Telling::take_notes() {
  // Once, not with every poll.
  std::string slurm;
  if (slurm_) {
    const SlurmHealth health = slurm_->health();
    const std::scoped_lock lock(mutex_);
    slurm = health.failures_in_a_row > 0 ? health.last_error : trouble_;
    for (std::string& note : slurm_notes_) notes_.push_back(std::move(note));
    slurm_notes_.clear();
  }
  if (slurm != slurm_trouble_) notes_.push_back(slurm.empty() ? "Slurm answers again" : "Slurm: " + slurm);
  slurm_trouble_ = slurm;
  for (const std::string& note : logs_ ? logs_->take_notes() : std::vector<std::string>()) notes_.push_back("training log: " + note);
  return std::exchange(notes_, {});
}

}  // namespace flopsight::app
