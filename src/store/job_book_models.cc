#include "base/text.h"
#include "store/job_book_internal.h"
#include "store/sqlite_transaction.h"

// Models that jobs train, and what audits of them found.

namespace flopsight::store {

using base::Error;
using base::ErrorCode;
using base::Result;
using base::Status;

namespace {

constexpr units::Seconds kModelIdle{30 * 86'400.0};

jobs::AuditFinding finding_in(const Statement& row) {
  jobs::AuditFinding finding;
  finding.holder.job = row.text(0);
  finding.holder.name_space = row.text(1);
  finding.holder.user = row.text(2);
  finding.holder.team = row.text(3);
  finding.time = units::Instant{row.integer(4)};
  finding.verdict = row.text(5);
  finding.summary = row.text(6);
  finding.hypotheses = base::split(row.text(7), ' ');
  std::erase(finding.hypotheses, std::string());
  return finding;
}

}  // namespace

Status JobBook::put_model(std::string_view job, std::string_view name_space, std::string_view model, units::Instant now) {
  const std::scoped_lock lock(mutex_);
  return in_transaction(database_, [&]() -> Status {
    FLOPSIGHT_ASSIGN_OR_RETURN(Statement put, database_.prepare("INSERT OR REPLACE INTO told_models VALUES(?, ?, ?, ?)"));
    put.bind_text(1, job);
    put.bind_text(2, name_space);
    put.bind(3, now.unix_milliseconds);
    put.bind_text(4, model);
    FLOPSIGHT_RETURN_IF_ERROR(put.run());
    FLOPSIGHT_ASSIGN_OR_RETURN(const std::int64_t count, number(database_, "SELECT count(*) FROM told_models"));
    if (static_cast<std::uint64_t>(count) <= options_.models_max) return {};
    // The one told longest ago whose job said nothing for a month makes room.
    FLOPSIGHT_ASSIGN_OR_RETURN(
        Statement drop,
        database_.prepare("DELETE FROM told_models WHERE (job, namespace) IN (SELECT job, namespace FROM told_models m WHERE told_unix_milliseconds < ?1 "
                          "AND NOT EXISTS (SELECT 1 FROM reported_sources s WHERE s.job = m.job AND s.last_unix_milliseconds >= ?1) "
                          "ORDER BY told_unix_milliseconds LIMIT 1)"));
    drop.bind(1, (now - kModelIdle).unix_milliseconds);
    FLOPSIGHT_RETURN_IF_ERROR(drop.run());
    if (database_.changes() > 0) return {};
    return Error{ErrorCode::kLimit, "models of " + std::to_string(options_.models_max) + " jobs are kept already, all told or reported of in the last 30 days"};
  });
}

Result<std::optional<ToldModel>> JobBook::model(std::string_view job, std::string_view name_space) {
  const std::scoped_lock lock(mutex_);
  FLOPSIGHT_ASSIGN_OR_RETURN(Statement find, database_.prepare("SELECT model, told_unix_milliseconds FROM told_models WHERE job = ? AND namespace = ?"));
  find.bind_text(1, job);
  find.bind_text(2, name_space);
  FLOPSIGHT_ASSIGN_OR_RETURN(const bool row, find.step());
  return row ? std::optional(ToldModel{std::string(find.text(0)), units::Instant{find.integer(1)}}) : std::nullopt;
}

Result<std::uint64_t> JobBook::models_total() {
  const std::scoped_lock lock(mutex_);
  FLOPSIGHT_ASSIGN_OR_RETURN(const std::int64_t count, number(database_, "SELECT count(*) FROM told_models"));
  return static_cast<std::uint64_t>(count);
}

Status JobBook::put_audit(const jobs::AuditFinding& finding) {
  const std::scoped_lock lock(mutex_);
  std::string hypotheses;
  for (const std::string& id : finding.hypotheses) hypotheses += (hypotheses.empty() ? "" : " ") + id;
  return in_transaction(database_, [&]() -> Status {
    FLOPSIGHT_ASSIGN_OR_RETURN(Statement put, database_.prepare("INSERT OR REPLACE INTO job_audits VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?)"));
    put.bind_text(1, finding.holder.job);
    put.bind_text(2, finding.holder.name_space);
    put.bind_text(3, finding.holder.user);
    put.bind_text(4, finding.holder.team);
    put.bind(5, finding.time.unix_milliseconds);
    put.bind_text(6, finding.verdict);
    put.bind_text(7, finding.summary);
    put.bind_text(8, hypotheses);
    put.bind_text(9, finding.evidence_json);
    FLOPSIGHT_RETURN_IF_ERROR(put.run());
    FLOPSIGHT_ASSIGN_OR_RETURN(const std::int64_t count, number(database_, "SELECT count(*) FROM job_audits"));
    if (static_cast<std::uint64_t>(count) <= options_.audits_max) return {};
    return database_.execute("DELETE FROM job_audits WHERE (job, namespace) IN (SELECT job, namespace FROM job_audits ORDER BY audited_unix_milliseconds LIMIT 1)");
  });
}

Result<std::optional<jobs::AuditFinding>> JobBook::audit(std::string_view job, std::string_view name_space) {
  const std::scoped_lock lock(mutex_);
  FLOPSIGHT_ASSIGN_OR_RETURN(Statement find, database_.prepare("SELECT job, namespace, user, team, audited_unix_milliseconds, verdict, summary, hypotheses, audit "
                                                               "FROM job_audits WHERE job = ? AND namespace = ?"));
  find.bind_text(1, job);
  find.bind_text(2, name_space);
  FLOPSIGHT_ASSIGN_OR_RETURN(const bool row, find.step());
  if (!row) return std::optional<jobs::AuditFinding>();
  jobs::AuditFinding finding = finding_in(find);
  finding.evidence_json = find.text(8);
  return std::optional(std::move(finding));
}

Result<std::vector<jobs::AuditFinding>> JobBook::audits(units::Instant since) {
  const std::scoped_lock lock(mutex_);
  FLOPSIGHT_ASSIGN_OR_RETURN(Statement find, database_.prepare("SELECT job, namespace, user, team, audited_unix_milliseconds, verdict, summary, hypotheses "
                                                               "FROM job_audits WHERE audited_unix_milliseconds >= ? ORDER BY job, namespace"));
  find.bind(1, since.unix_milliseconds);
  std::vector<jobs::AuditFinding> out;
  for (;;) {
    FLOPSIGHT_ASSIGN_OR_RETURN(const bool row, find.step());
    if (!row) return out;
    out.push_back(finding_in(find));
  }
}

}  // namespace flopsight::store
