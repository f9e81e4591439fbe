#include "store/job_book.h"

#include <algorithm>

#include "base/text.h"
#include "schedulers/job_json.h"
#include "store/job_book_internal.h"
#include "store/put_aside.h"
#include "store/sqlite_transaction.h"

namespace flopsight::store {
namespace {

using base::Error;
using base::ErrorCode;
using base::Result;
using base::Status;

constexpr std::int64_t kVersion = 2;
constexpr std::int64_t kForgetAtOnce = 5'000;

// Columns of scheduler_jobs are for people and for looking up; what is read back is `told`, the
// whole job as JSON.
constexpr const char* kTables = R"sql(
CREATE TABLE scheduler_jobs(
  cluster TEXT NOT NULL, id TEXT NOT NULL, start_unix_milliseconds INTEGER NOT NULL,
  end_unix_milliseconds INTEGER NOT NULL, told_unix_milliseconds INTEGER NOT NULL, name TEXT NOT NULL, user TEXT NOT NULL,
  account TEXT NOT NULL, state TEXT NOT NULL, gpu_count INTEGER, is_mig INTEGER NOT NULL, told TEXT NOT NULL,
  hosts TEXT, PRIMARY KEY(cluster, id, start_unix_milliseconds)) WITHOUT ROWID;
CREATE INDEX scheduler_jobs_by_id ON scheduler_jobs(id);
CREATE INDEX scheduler_jobs_by_end ON scheduler_jobs(end_unix_milliseconds, start_unix_milliseconds);
CREATE TABLE reported_sources(
  id INTEGER PRIMARY KEY, job TEXT NOT NULL, namespace TEXT NOT NULL, source TEXT NOT NULL, format TEXT NOT NULL,
  first_unix_milliseconds INTEGER NOT NULL, last_unix_milliseconds INTEGER NOT NULL, UNIQUE(job, namespace, source));
CREATE INDEX reported_sources_by_last ON reported_sources(last_unix_milliseconds);
CREATE TABLE reported_steps(
  source_id INTEGER NOT NULL, attempt INTEGER NOT NULL, number INTEGER NOT NULL, has_step INTEGER NOT NULL,
  unix_milliseconds INTEGER NOT NULL, has_time INTEGER NOT NULL, mfu_ratio REAL, flops_per_second_per_gpu REAL,
  tokens_per_second_per_gpu REAL, tokens_per_second REAL, samples_per_second REAL, step_seconds REAL,
  peak_flops_per_second REAL, loss REAL, excluded INTEGER, PRIMARY KEY(source_id, attempt, number)) WITHOUT ROWID;
CREATE INDEX reported_steps_by_time ON reported_steps(unix_milliseconds);
CREATE TABLE pod_owners(
  namespace TEXT NOT NULL, pod TEXT NOT NULL, kind TEXT NOT NULL, name TEXT NOT NULL, told_unix_milliseconds INTEGER NOT NULL,
  PRIMARY KEY(namespace, pod)) WITHOUT ROWID;
CREATE TABLE hosts(name TEXT PRIMARY KEY, gpu_count INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE notes(key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE VIEW told_jobs AS SELECT cluster, id, name, user, account, state, gpu_count,
  strftime('%Y-%m-%dT%H:%M:%SZ', start_unix_milliseconds / 1000, 'unixepoch') AS start,
  CASE WHEN end_unix_milliseconds < 9223372036854775807
    THEN strftime('%Y-%m-%dT%H:%M:%SZ', end_unix_milliseconds / 1000, 'unixepoch') END AS end,
  strftime('%Y-%m-%dT%H:%M:%SZ', told_unix_milliseconds / 1000, 'unixepoch') AS told FROM scheduler_jobs;
CREATE VIEW reported AS SELECT s.job, s.namespace, s.source, s.format, r.attempt,
  CASE WHEN r.has_step THEN r.number END AS step,
  strftime('%Y-%m-%dT%H:%M:%SZ', r.unix_milliseconds / 1000, 'unixepoch') AS time, r.mfu_ratio,
  r.flops_per_second_per_gpu, r.tokens_per_second_per_gpu, r.step_seconds, r.excluded IS NOT NULL AS is_excluded
  FROM reported_steps r JOIN reported_sources s ON s.id = r.source_id;
)sql";

// Came later, and does not matter to programs that do not know it.
constexpr const char* kLateJobs = R"sql(
CREATE TABLE IF NOT EXISTS late_jobs(
  cluster TEXT NOT NULL, id TEXT NOT NULL, start_unix_milliseconds INTEGER NOT NULL,
  PRIMARY KEY(start_unix_milliseconds, cluster, id)) WITHOUT ROWID;
)sql";
constexpr const char* kModels = R"sql(
CREATE TABLE IF NOT EXISTS told_models(
  job TEXT NOT NULL, namespace TEXT NOT NULL, told_unix_milliseconds INTEGER NOT NULL, model TEXT NOT NULL, PRIMARY KEY(job, namespace));
CREATE TABLE IF NOT EXISTS job_audits(
  job TEXT NOT NULL, namespace TEXT NOT NULL, user TEXT NOT NULL, team TEXT NOT NULL, audited_unix_milliseconds INTEGER NOT NULL,
  verdict TEXT NOT NULL, summary TEXT NOT NULL, hypotheses TEXT NOT NULL, audit TEXT NOT NULL, PRIMARY KEY(job, namespace));
CREATE INDEX IF NOT EXISTS job_audits_by_time ON job_audits(audited_unix_milliseconds);
)sql";
// Rows of before have none: it is read out of `told` for these.
constexpr const char* kSinceVersion1 = "ALTER TABLE scheduler_jobs ADD COLUMN hosts TEXT; PRAGMA user_version = 2;";
// For a book that is only read and older than these tables.
constexpr const char* kNoModels = R"sql(
CREATE TEMP TABLE told_models(job, namespace, told_unix_milliseconds, model);
CREATE TEMP TABLE job_audits(job, namespace, user, team, audited_unix_milliseconds, verdict, summary, hypotheses, audit);
)sql";

Status prepare(Database& database, bool read_only) {
  FLOPSIGHT_ASSIGN_OR_RETURN(const std::int64_t version, number(database, "PRAGMA user_version"));
  if (version > kVersion) {
    return Error{ErrorCode::kUnsupported, "a book of jobs of version " + std::to_string(version) +
                                              ", this program knows up to " +
                                              std::to_string(kVersion)};
  }
  if (read_only) {
    if (version == 0) return Error{ErrorCode::kCorrupt, "empty or cut, expected a book of jobs"};
    FLOPSIGHT_ASSIGN_OR_RETURN(const std::int64_t tables, number(database, "SELECT count(*) FROM sqlite_master WHERE name = 'job_audits'"));
    return tables > 0 ? Status() : database.execute(kNoModels);
  }
  if (version == 1) FLOPSIGHT_RETURN_IF_ERROR(database.execute(std::string("BEGIN IMMEDIATE;") + kSinceVersion1 + "COMMIT;"));
  if (version > 0) return database.execute(std::string(kLateJobs) + kModels);
  FLOPSIGHT_RETURN_IF_ERROR(
      database.execute("PRAGMA auto_vacuum = INCREMENTAL; PRAGMA journal_mode = WAL;"));
  return database.execute(std::string("BEGIN IMMEDIATE;") + kTables + kLateJobs + kModels +
                          "PRAGMA user_version = " + std::to_string(kVersion) + "; COMMIT;");
}

}  // namespace

Result<ToldJob> told_in(const Statement& row, int first) {
  FLOPSIGHT_ASSIGN_OR_RETURN(const base::json::Value json, base::json::parse(row.text(first)));
  FLOPSIGHT_ASSIGN_OR_RETURN(schedulers::Job job, schedulers::job_from_json(json));
  return ToldJob{std::move(job), units::Instant{row.integer(first + 1)}};
}

std::string hosts_text(const schedulers::Job& job) {
  std::string text;
  for (const std::string& host : schedulers::all_hosts(job)) text.append(text.empty() ? "" : "\n").append(host);
  return text;
}

Result<std::unique_ptr<JobBook>> JobBook::open(const std::string& folder, JobBookOptions options) {
  const std::string path = folder + "/flopsight-jobs.db";
  const auto mode = options.read_only ? Database::Mode::kReadOnly : Database::Mode::kReadWrite;
  std::string damage;
  for (int attempt = 0;; ++attempt) {
    auto opened = [&]() -> Result<std::unique_ptr<JobBook>> {
      FLOPSIGHT_ASSIGN_OR_RETURN(Database database, Database::open(path, mode));
      FLOPSIGHT_RETURN_IF_ERROR(prepare(database, options.read_only).within(path));
      if (!options.read_only)
        FLOPSIGHT_RETURN_IF_ERROR(
            database.execute("PRAGMA synchronous = FULL; PRAGMA cache_size = -1000;"));
      std::unique_ptr<JobBook> book(new JobBook(std::move(database), options));
      FLOPSIGHT_RETURN_IF_ERROR(book->count_rows());
      book->damage_ = damage;
      FLOPSIGHT_ASSIGN_OR_RETURN(const std::int64_t version, number(book->database_, "PRAGMA user_version"));
      book->has_hosts_ = version >= kVersion;
      return book;
    }();
    if (opened.ok() || opened.error().code != ErrorCode::kCorrupt || options.read_only ||
        attempt > 0)
      return opened;
    const auto aside = put_aside(path);
    if (!aside.ok()) return opened.error();
    damage = opened.error().message + "; put aside as " + *aside +
             ", a new book of jobs was begun: what schedulers and jobs told "
             "before is not in it";
  }
}

Status JobBook::count_rows() {
  FLOPSIGHT_ASSIGN_OR_RETURN(const std::int64_t jobs,
                             number(database_, "SELECT count(*) FROM scheduler_jobs"));
  FLOPSIGHT_ASSIGN_OR_RETURN(const std::int64_t steps,
                             number(database_, "SELECT count(*) FROM reported_steps"));
  jobs_total_ = static_cast<std::uint64_t>(jobs);
  steps_total_ = static_cast<std::uint64_t>(steps);
  return {};
}

Result<std::vector<ToldJob>> JobBook::jobs(units::Window window, std::uint64_t limit) {
  const std::scoped_lock lock(mutex_);
  FLOPSIGHT_ASSIGN_OR_RETURN(
      Statement find,
      database_.prepare(
          "SELECT told, told_unix_milliseconds FROM scheduler_jobs WHERE end_unix_milliseconds > ? "
          "AND "
          "start_unix_milliseconds < ? ORDER BY start_unix_milliseconds, cluster, id"));
  find.bind(1, window.start.unix_milliseconds);
  find.bind(2, window.end.unix_milliseconds);
  std::vector<ToldJob> out;
  std::size_t hosts = 0;
  for (;;) {
    FLOPSIGHT_ASSIGN_OR_RETURN(const bool row, find.step());
    if (!row) return out;
    if (out.size() >= limit) {
      return Error{ErrorCode::kLimit, "more than " + std::to_string(limit) +
                                          " jobs in the window; ask for a shorter one"};
    }
    FLOPSIGHT_ASSIGN_OR_RETURN(ToldJob told, told_in(find, 0));
    hosts += schedulers::host_count(told.job);
    if (hosts > schedulers::kHostsTotalMax) {
      return Error{ErrorCode::kLimit, "the jobs in the window have more than " + std::to_string(schedulers::kHostsTotalMax) +
                                          " hosts together; ask for a shorter one"};
    }
    out.push_back(std::move(told));
  }
}

Result<std::vector<RunRow>> JobBook::run_rows(units::Window window) {
  const std::scoped_lock lock(mutex_);
  FLOPSIGHT_ASSIGN_OR_RETURN(
      Statement find,
      database_.prepare("SELECT cluster, id, user, account, start_unix_milliseconds, end_unix_milliseconds, "
                        "told_unix_milliseconds, gpu_count, is_mig FROM scheduler_jobs WHERE end_unix_milliseconds > ? AND "
                        "start_unix_milliseconds < ? ORDER BY cluster, id, start_unix_milliseconds"));
  find.bind(1, window.start.unix_milliseconds);
  find.bind(2, window.end.unix_milliseconds);
  std::vector<RunRow> out;
  for (;;) {
    FLOPSIGHT_ASSIGN_OR_RETURN(const bool row, find.step());
    if (!row) return out;
    RunRow& run = out.emplace_back();
    run.cluster = find.text(0);
    run.id = find.text(1);
    run.user = find.text(2);
    run.account = find.text(3);
    run.start = units::Instant{find.integer(4)};
    if (find.integer(5) != kNoEnd) run.end = units::Instant{find.integer(5)};
    run.told = units::Instant{find.integer(6)};
    if (!find.is_null(7)) run.gpu_count = static_cast<std::uint32_t>(find.integer(7));
    run.is_mig = find.integer(8) != 0;
  }
}

Status JobBook::for_run_hosts(units::Window window, const std::function<bool(const RunRow&)>& wants,
                              const std::function<void(const RunRow&, std::span<const std::string>)>& sink) {
  const std::scoped_lock lock(mutex_);
  FLOPSIGHT_ASSIGN_OR_RETURN(
      Statement find,
      database_.prepare(std::string("SELECT cluster, id, start_unix_milliseconds, end_unix_milliseconds, told_unix_milliseconds, ") +
                        (has_hosts_ ? "hosts" : "NULL") + ", told, told_unix_milliseconds FROM scheduler_jobs WHERE "
                        "end_unix_milliseconds > ? AND start_unix_milliseconds < ? ORDER BY cluster, id, start_unix_milliseconds"));
  find.bind(1, window.start.unix_milliseconds);
  find.bind(2, window.end.unix_milliseconds);
  RunRow run;
  for (;;) {
    FLOPSIGHT_ASSIGN_OR_RETURN(const bool row, find.step());
    if (!row) return {};
    run.cluster = find.text(0);
    run.id = find.text(1);
    run.start = units::Instant{find.integer(2)};
    run.end.reset();
    if (find.integer(3) != kNoEnd) run.end = units::Instant{find.integer(3)};
    run.told = units::Instant{find.integer(4)};
    if (!wants(run)) continue;
    std::string hosts;
    if (find.is_null(5)) {
      FLOPSIGHT_ASSIGN_OR_RETURN(const ToldJob told, told_in(find, 6));
      hosts = hosts_text(told.job);
    } else {
      hosts = find.text(5);
    }
    sink(run, hosts.empty() ? std::vector<std::string>() : base::split(hosts, '\n'));
  }
}

Result<std::vector<ToldJob>> JobBook::late_jobs(std::uint64_t limit) {
  const std::scoped_lock lock(mutex_);
  FLOPSIGHT_ASSIGN_OR_RETURN(
      Statement find, database_.prepare("SELECT s.told, s.told_unix_milliseconds FROM late_jobs l JOIN scheduler_jobs s "
                                        "USING(cluster, id, start_unix_milliseconds) ORDER BY l.start_unix_milliseconds LIMIT ?"));
  find.bind(1, static_cast<std::int64_t>(limit));
  std::vector<ToldJob> out;
  for (;;) {
    FLOPSIGHT_ASSIGN_OR_RETURN(const bool row, find.step());
    if (!row) return out;
    FLOPSIGHT_ASSIGN_OR_RETURN(ToldJob told, told_in(find, 0));
    out.push_back(std::move(told));
  }
}

Status JobBook::drop_late(std::span<const ToldJob> jobs) {
  const std::scoped_lock lock(mutex_);
  return in_transaction(database_, [&]() -> Status {
    FLOPSIGHT_ASSIGN_OR_RETURN(
        Statement drop, database_.prepare("DELETE FROM late_jobs WHERE cluster = ? AND id = ? AND start_unix_milliseconds = ?"));
    for (const ToldJob& told : jobs) {
      drop.bind_text(1, told.job.cluster);
      drop.bind_text(2, told.job.id);
      drop.bind(3, told.job.start->unix_milliseconds);
      FLOPSIGHT_RETURN_IF_ERROR(drop.run());
    }
    return {};
  });
}

Status JobBook::look_again(units::Instant since) {
  const std::scoped_lock lock(mutex_);
  FLOPSIGHT_ASSIGN_OR_RETURN(
      Statement put, database_.prepare("INSERT OR IGNORE INTO late_jobs SELECT cluster, id, start_unix_milliseconds FROM scheduler_jobs "
                                       "WHERE end_unix_milliseconds > ? AND (gpu_count IS NULL OR gpu_count > 0)"));
  put.bind(1, since.unix_milliseconds);
  return put.run();
}

Result<std::vector<ToldJob>> JobBook::runs(std::string_view id,
                                           const std::optional<std::string>& cluster) {
  const std::scoped_lock lock(mutex_);
  FLOPSIGHT_ASSIGN_OR_RETURN(
      Statement find,
      database_.prepare("SELECT told, told_unix_milliseconds FROM scheduler_jobs WHERE id = ?1 AND "
                        "(?2 IS NULL OR cluster = ?2) ORDER BY start_unix_milliseconds"));
  find.bind_text(1, id);
  if (cluster) {
    find.bind_text(2, *cluster);
  } else {
    find.bind_null(2);
  }
  std::vector<ToldJob> out;
  for (;;) {
    FLOPSIGHT_ASSIGN_OR_RETURN(const bool row, find.step());
    if (!row) return out;
    FLOPSIGHT_ASSIGN_OR_RETURN(ToldJob told, told_in(find, 0));
    out.push_back(std::move(told));
  }
}

Status JobBook::put_owners(std::span<const PodOwner> owners, units::Instant now) {
  const std::scoped_lock lock(mutex_);
  return in_transaction(database_, [&]() -> Status {
    FLOPSIGHT_ASSIGN_OR_RETURN(
        Statement put,
        database_.prepare("INSERT OR REPLACE INTO pod_owners VALUES(?, ?, ?, ?, ?)"));
    for (const PodOwner& owner : owners) {
      put.bind_text(1, owner.name_space);
      put.bind_text(2, owner.pod);
      put.bind_text(3, owner.owner.kind);
      put.bind_text(4, owner.owner.name);
      put.bind(5, now.unix_milliseconds);
      FLOPSIGHT_RETURN_IF_ERROR(put.run());
    }
    return {};
  });
}

Result<std::vector<PodOwner>> JobBook::owners() {
  const std::scoped_lock lock(mutex_);
  FLOPSIGHT_ASSIGN_OR_RETURN(
      Statement find, database_.prepare("SELECT namespace, pod, kind, name FROM pod_owners"));
  std::vector<PodOwner> out;
  for (;;) {
    FLOPSIGHT_ASSIGN_OR_RETURN(const bool row, find.step());
    if (!row) return out;
    out.push_back({std::string(find.text(0)),
                   std::string(find.text(1)),
                   {std::string(find.text(2)), std::string(find.text(3))}});
  }
}

Status JobBook::put_hosts(std::span<const std::pair<std::string, std::uint32_t>> hosts) {
  const std::scoped_lock lock(mutex_);
  return in_transaction(database_, [&]() -> Status {
    FLOPSIGHT_ASSIGN_OR_RETURN(Statement put,
                               database_.prepare("INSERT OR REPLACE INTO hosts VALUES(?, ?)"));
    for (const auto& [name, gpu_count] : hosts) {
      put.bind_text(1, name);
      put.bind(2, gpu_count);
      FLOPSIGHT_RETURN_IF_ERROR(put.run());
    }
    return {};
  });
}

Result<std::vector<std::pair<std::string, std::uint32_t>>> JobBook::hosts() {
  const std::scoped_lock lock(mutex_);
  FLOPSIGHT_ASSIGN_OR_RETURN(Statement find,
                             database_.prepare("SELECT name, gpu_count FROM hosts"));
  std::vector<std::pair<std::string, std::uint32_t>> out;
  for (;;) {
    FLOPSIGHT_ASSIGN_OR_RETURN(const bool row, find.step());
    if (!row) return out;
    out.emplace_back(find.text(0), static_cast<std::uint32_t>(find.integer(1)));
  }
}

Status JobBook::put_note(std::string_view key, std::string_view value) {
  const std::scoped_lock lock(mutex_);
  FLOPSIGHT_ASSIGN_OR_RETURN(Statement put,
                             database_.prepare("INSERT OR REPLACE INTO notes VALUES(?, ?)"));
  put.bind_text(1, key);
  put.bind_text(2, value);
  return put.run();
}

Result<std::optional<std::string>> JobBook::note(std::string_view key) {
  const std::scoped_lock lock(mutex_);
  FLOPSIGHT_ASSIGN_OR_RETURN(Statement find,
                             database_.prepare("SELECT value FROM notes WHERE key = ?"));
  find.bind_text(1, key);
  FLOPSIGHT_ASSIGN_OR_RETURN(const bool row, find.step());
  return row ? std::optional(std::string(find.text(0))) : std::nullopt;
}

Result<std::vector<std::string>> JobBook::notes(std::string_view prefix) {
  const std::scoped_lock lock(mutex_);
  FLOPSIGHT_ASSIGN_OR_RETURN(Statement find, database_.prepare("SELECT value FROM notes WHERE substr(key, 1, ?1) = ?2 ORDER BY key"));
  find.bind(1, static_cast<std::int64_t>(prefix.size()));
  find.bind_text(2, prefix);
  std::vector<std::string> out;
  for (;;) {
    FLOPSIGHT_ASSIGN_OR_RETURN(const bool row, find.step());
    if (!row) return out;
    out.emplace_back(find.text(0));
  }
}

Result<bool> JobBook::forget(units::Instant before) {
  const std::scoped_lock lock(mutex_);
  std::int64_t forgotten = 0;
  const Status done = in_transaction(database_, [&]() -> Status {
    for (const char* sql :
         {"DELETE FROM scheduler_jobs WHERE (cluster, id, start_unix_milliseconds) IN (SELECT "
          "cluster, id, start_unix_milliseconds "
          "FROM scheduler_jobs WHERE end_unix_milliseconds < ?1 OR (end_unix_milliseconds = ?3 AND "
          "told_unix_milliseconds < ?1) LIMIT ?2)",
          "DELETE FROM reported_steps WHERE (source_id, attempt, number) IN (SELECT source_id, "
          "attempt, number FROM reported_steps "
          "WHERE unix_milliseconds < ?1 LIMIT ?2)",
          "DELETE FROM late_jobs WHERE start_unix_milliseconds < ?1 AND ?2 > 0",
          "DELETE FROM told_models WHERE told_unix_milliseconds < ?1 AND ?2 > 0 AND NOT EXISTS (SELECT 1 FROM reported_sources s "
          "WHERE s.job = told_models.job AND s.last_unix_milliseconds >= ?1)",
          "DELETE FROM job_audits WHERE audited_unix_milliseconds < ?1 AND ?2 > 0",
          "DELETE FROM pod_owners WHERE told_unix_milliseconds < ?1 AND ?2 > 0"}) {
      FLOPSIGHT_ASSIGN_OR_RETURN(Statement remove, database_.prepare(sql));
      remove.bind(1, before.unix_milliseconds);
      remove.bind(2, kForgetAtOnce);
      remove.bind(3, kNoEnd);
      FLOPSIGHT_RETURN_IF_ERROR(remove.run());
      forgotten = std::max(forgotten, database_.changes());
    }
    return database_.execute("DELETE FROM reported_sources WHERE last_unix_milliseconds < " +
                             std::to_string(before.unix_milliseconds));
  });
  FLOPSIGHT_RETURN_IF_ERROR(done);
  FLOPSIGHT_RETURN_IF_ERROR(count_rows());
  return forgotten >= kForgetAtOnce;
}

Result<std::pair<std::uint64_t, std::uint64_t>> JobBook::counts() {
  const std::scoped_lock lock(mutex_);
  return std::pair(jobs_total_, steps_total_);
}

}  // namespace flopsight::store
