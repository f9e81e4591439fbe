#include "serve/telling.h"

#include <chrono>
#include <cmath>

namespace flopsight::app {
namespace {

// Of a book that cannot be written, so many jobs' steps wait in memory.
constexpr std::size_t kUnkeptMax = 200'000;

bool asks_slurm(const ServeConfig& c) { return c.slurm_commands || !c.slurm_rest_url.empty(); }

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
  std::unique_ptr<Telling> telling(new Telling(ingest, jobs, now));
  if (!c.training_logs.empty()) {
    FLOPSIGHT_ASSIGN_OR_RETURN(telling->logs_, LogReading::start(c.training_logs, jobs, now));
  }
  if (!asks_slurm(c)) return telling;
  FLOPSIGHT_ASSIGN_OR_RETURN(SlurmPollerOptions options, slurm_options(c));
  telling->slurm_ = std::make_unique<SlurmPoller>(
      std::move(options), [raw = telling.get(), c](const SlurmTelling& told) { raw->take(told, c); }, std::move(now));
  return telling;
}

Telling::~Telling() {
  slurm_.reset();
  logs_.reset();
}

void Telling::take(const SlurmTelling& told, const ServeConfig& config) {
  const units::Instant now = now_();
  const base::Status kept = [&]() -> base::Status {
    FLOPSIGHT_RETURN_IF_ERROR(jobs_.tell_nodes(told.nodes, now));
    const auto put = jobs_.tell(told.jobs, now);
    if (!put.ok()) return put.error();
    // Of what was not listed for a few polls, the scheduler knows no more.
    if (told.is_whole) jobs_.listed(config.slurm_cluster, now - units::Seconds(4 * config.slurm_interval.value + 60));
    return {};
  }();
  const std::scoped_lock lock(mutex_);
  trouble_ = kept.ok() ? "" : kept.error().message;
}

void Telling::keep_reported(units::Instant now) {
  for (auto& steps : ingest_.take_reported(now)) unkept_.push_back(std::move(steps));
  const base::Status kept = jobs_.tell_exported(unkept_, now);
  const std::string trouble = kept.ok() ? "" : "what trainers reported is not kept: " + kept.error().message;
  if (trouble != reported_trouble_ && !trouble.empty()) notes_.push_back(trouble);
  reported_trouble_ = trouble;
  if (kept.ok()) unkept_.clear();
  if (unkept_.size() > kUnkeptMax) {
    notes_.push_back("lost: steps that trainers reported, of which the book of jobs took none for too long");
    unkept_.clear();
  }
}

TellingHealth Telling::health() const {
  TellingHealth health;
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
  }
  if (slurm != slurm_trouble_) notes_.push_back(slurm.empty() ? "Slurm answers again" : "Slurm: " + slurm);
  slurm_trouble_ = slurm;
  for (const std::string& note : logs_ ? logs_->take_notes() : std::vector<std::string>()) notes_.push_back("training log: " + note);
  return std::exchange(notes_, {});
}

}  // namespace flopsight::app
