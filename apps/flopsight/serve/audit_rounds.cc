#include "serve/audit_rounds.h"

#include <algorithm>
#include <chrono>

#include "jobs/job_name.h"
#include "serve/job_answers.h"

namespace flopsight::app {
namespace {

constexpr units::Seconds kRound{600};
constexpr units::Seconds kAuditAgain{3600};
constexpr units::Seconds kWindow{86'400};
constexpr std::size_t kJobsMax = 10'000;  // of a round; /metrics has a series for each
constexpr std::size_t kNotesMax = 100;
constexpr auto kPause = std::chrono::seconds(5);

}  // namespace

void AuditRounds::stop() {
  {
    const std::scoped_lock lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  if (thread_.joinable()) thread_.join();
}

void AuditRounds::start(OpenReader open_reader, std::function<units::Instant()> now) {
  thread_ = std::thread([this, open_reader = std::move(open_reader), now = std::move(now)] { run(open_reader, now); });
}

void AuditRounds::run(const OpenReader& open_reader, const std::function<units::Instant()>& now) {
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    lock.unlock();
    const auto more = [&]() -> base::Result<bool> {
      // Opened for each job, so that questions and flushes come in between.
      FLOPSIGHT_ASSIGN_OR_RETURN(Ingest::ReaderHandle reader, open_reader(now()));
      return step(*reader, now());
    }();
    lock.lock();
    const std::string trouble = more.ok() ? "" : "audits: " + more.error().message;
    if (trouble != trouble_ && !trouble.empty() && notes_.size() < kNotesMax) notes_.push_back(trouble);
    trouble_ = trouble;
    if (!more.ok() || !*more) wake_.wait_for(lock, kPause, [this] { return stopping_ || is_asked_ || !asked_.empty(); });
  }
}

void AuditRounds::replace(std::shared_ptr<const AnswerSettings> settings) {
  {
    const std::scoped_lock lock(mutex_);
    settings_ = std::move(settings);
    is_asked_ = true;
  }
  wake_.notify_all();
}

void AuditRounds::ask(const samples::Holder& holder) {
  {
    const std::scoped_lock lock(mutex_);
    if (asked_.size() < kJobsMax) asked_.push_back(jobs::job_text(group_of(holder, &jobs_, *settings_)));
  }
  wake_.notify_all();
}

base::Status AuditRounds::begin_round(units::Instant now) {
  std::shared_ptr<const AnswerSettings> settings;
  {
    const std::scoped_lock lock(mutex_);
    settings = settings_;
    is_asked_ = false;
    // What was found before a restart is known.
    if (!is_loaded_) {
      FLOPSIGHT_ASSIGN_OR_RETURN(std::vector<jobs::AuditFinding> kept, jobs_.book().audits(now - kWindow));
      for (jobs::AuditFinding& finding : kept) findings_.emplace(jobs::job_text(finding.holder), std::move(finding));
      is_loaded_ = true;
    }
    std::erase_if(findings_, [&](const auto& of) { return of.second.time < now - kWindow; });
  }
  round_ = now;
  FLOPSIGHT_ASSIGN_OR_RETURN(const std::uint64_t told, jobs_.book().models_total());
  if (told == 0 && (settings->models == nullptr || settings->models->empty())) return {};
  FLOPSIGHT_ASSIGN_OR_RETURN(const std::vector<store::Reporter> reporters, jobs_.reporters({now - kWindow, now}));
  std::map<std::string, units::Instant> last;  // by the job that they are parts of
  for (const store::Reporter& reporter : reporters) {
    samples::Holder holder;
    holder.job = reporter.job;
    holder.name_space = reporter.name_space;
    units::Instant& latest = last[jobs::job_text(group_of(holder, &jobs_, *settings))];
    latest = std::max(latest, reporter.last);
    if (last.size() < kJobsMax) continue;
    const std::scoped_lock lock(mutex_);
    if (notes_.size() < kNotesMax) notes_.push_back("audits: more than " + std::to_string(kJobsMax) + " jobs report; the rest are audited when asked for");
    break;
  }
  std::erase_if(known_, [&](const auto& of) { return !last.contains(of.first); });
  for (const auto& [id, reported] : last) due_.push_back({id, reported});
  return {};
}

base::Result<bool> AuditRounds::step(store::Reader& reader, units::Instant now) {
  bool is_round_due = (now - round_).value >= kRound.value || now < round_;  // also when the clock was set back
  {
    const std::scoped_lock lock(mutex_);
    is_round_due = is_round_due || is_asked_;
  }
  if (due_.empty() && is_round_due) FLOPSIGHT_RETURN_IF_ERROR(begin_round(now));
  {
    const std::scoped_lock lock(mutex_);
    while (!asked_.empty()) {
      due_.push_front({std::move(asked_.front()), std::nullopt});
      asked_.pop_front();
    }
  }
  if (due_.empty()) return false;
  const Due due = std::move(due_.front());
  due_.pop_front();
  FLOPSIGHT_RETURN_IF_ERROR(look_at(reader, due, now).within(due.id));
  return !due_.empty();
}

base::Status AuditRounds::look_at(store::Reader& reader, const Due& due, units::Instant now) {
  AnswerSettings settings;
  {
    const std::scoped_lock lock(mutex_);
    settings = *settings_;
  }
  samples::QualityLog unused;
  const auto answered = answer_known_job(reader, &jobs_, settings, due.id, {now - kWindow, now}, everybody(), unused);
  // It reports, and neither a GPU of it was seen nor did a scheduler tell of it; or its id alone does not say which it is.
  if (!answered.ok()) {
    const bool is_unknown = answered.error().code == base::ErrorCode::kNotFound || answered.error().code == base::ErrorCode::kInvalid;
    return is_unknown ? base::Status() : base::Status(answered.error());
  }
  FLOPSIGHT_ASSIGN_OR_RETURN(const std::optional<JobModel> model, model_of(jobs_, settings.models.get(), *answered));
  if (!model) return {};
  Known& known = known_[due.id];
  const bool is_due = !known.is_audited || !due.last || known.last != due.last || known.model != model->told || (now - known.audited).value >= kAuditAgain.value;
  if (!is_due) return {};
  known = {now, due.last, model->told, true};
  auto finding = audits_.finding(reader, jobs_, settings, *answered, due.id, everybody(), now);
  if (!finding.ok()) {
    const std::scoped_lock lock(mutex_);
    ++failures_total_;
    return finding.error();
  }
  if (!*finding) return {};
  FLOPSIGHT_RETURN_IF_ERROR(jobs_.book().put_audit(**finding));
  keep(std::move(**finding), answered->id);
  return {};
}

void AuditRounds::keep(jobs::AuditFinding finding, const std::string& id) {
  finding.evidence_json.clear();
  const std::scoped_lock lock(mutex_);
  ++audits_total_;
  const auto before = findings_.find(id);
  const bool is_new = before == findings_.end() || before->second.verdict != finding.verdict;
  if (is_new && finding.is_discrepancy() && notes_.size() < kNotesMax) notes_.push_back("job " + id + ": " + finding.verdict + ": " + finding.summary);
  findings_[id] = std::move(finding);
}

AuditingHealth AuditRounds::health() const {
  AuditingHealth health;
  const std::scoped_lock lock(mutex_);
  health.audits = audits_total_;
  health.failures = failures_total_;
  for (const auto& [id, finding] : findings_) health.findings.push_back(finding);
  return health;
}

std::vector<std::string> AuditRounds::take_notes() {
  const std::scoped_lock lock(mutex_);
  return std::exchange(notes_, {});
}

}  // namespace flopsight::app
