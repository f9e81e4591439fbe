#include "store/job_book.h"

#include <algorithm>

#include "schedulers/job_json.h"
#include "schedulers/merge.h"
#include "store/put_aside.h"

namespace flopsight::store {
namespace {

using base::Error;
using base::ErrorCode;
using base::Result;
using base::Status;

constexpr std::int64_t kVersion = 1;
constexpr std::int64_t kForgetAtOnce = 5'000;
constexpr std::int64_t kNoEnd = INT64_MAX;

// Columns of scheduler_jobs are for people and for looking up; what is read back is `told`, the
// whole job as JSON.
constexpr const char* kTables = R"sql(
CREATE TABLE scheduler_jobs(
  cluster TEXT NOT NULL, id TEXT NOT NULL, start_unix_milliseconds INTEGER NOT NULL,
  end_unix_milliseconds INTEGER NOT NULL, told_unix_milliseconds INTEGER NOT NULL, name TEXT NOT NULL, user TEXT NOT NULL,
  account TEXT NOT NULL, state TEXT NOT NULL, gpu_count INTEGER, told TEXT NOT NULL,
  PRIMARY KEY(cluster, id, start_unix_milliseconds)) WITHOUT ROWID;
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

Result<std::int64_t> number(Database& database, const char* sql) {
  FLOPSIGHT_ASSIGN_OR_RETURN(Statement statement, database.prepare(sql));
  FLOPSIGHT_ASSIGN_OR_RETURN(const bool row, statement.step());
  return row ? statement.integer(0) : std::int64_t{0};
}

Status prepare(Database& database, bool read_only) {
  FLOPSIGHT_ASSIGN_OR_RETURN(const std::int64_t version, number(database, "PRAGMA user_version"));
  if (version > kVersion) {
    return Error{ErrorCode::kUnsupported, "a book of jobs of version " + std::to_string(version) +
                                              ", this program knows up to " +
                                              std::to_string(kVersion)};
  }
  if (read_only || version == kVersion) return {};
  FLOPSIGHT_RETURN_IF_ERROR(
      database.execute("PRAGMA auto_vacuum = INCREMENTAL; PRAGMA journal_mode = WAL;"));
  return database.execute(std::string("BEGIN IMMEDIATE;") + kTables +
                          "PRAGMA user_version = " + std::to_string(kVersion) + "; COMMIT;");
}

// Runs `work` as one transaction: all of it or nothing.
template <typename Work>
Status in_transaction(Database& database, Work work) {
  FLOPSIGHT_RETURN_IF_ERROR(database.execute("BEGIN IMMEDIATE"));
  Status done = work();
  if (done.ok()) done = database.execute("COMMIT");
  if (!done.ok()) (void)database.execute("ROLLBACK");
  return done;
}

Result<ToldJob> told_in(Statement& row, int first) {
  FLOPSIGHT_ASSIGN_OR_RETURN(const base::json::Value json, base::json::parse(row.text(first)));
  FLOPSIGHT_ASSIGN_OR_RETURN(schedulers::Job job, schedulers::job_from_json(json));
  return ToldJob{std::move(job), units::Instant{row.integer(first + 1)}};
}

void bind_step(Statement& put, const training_logs::Step& step, std::int64_t received) {
  // What tells steps of one attempt apart: their number, else their time, else where they stand.
  const std::int64_t number = step.step   ? *step.step
                              : step.time ? step.time->unix_milliseconds
                                          : static_cast<std::int64_t>(step.source.offset_bytes);
  put.bind(2, step.attempt);
  put.bind(3, number);
  put.bind(4, step.step ? 1 : 0);
  put.bind(5, step.time ? step.time->unix_milliseconds : received);
  put.bind(6, step.time ? 1 : 0);
  put.bind_real(7, step.mfu_ratio);
  put.bind_real(8, step.flops_per_second_per_gpu);
  put.bind_real(9, step.tokens_per_second_per_gpu);
  put.bind_real(10, step.tokens_per_second);
  put.bind_real(11, step.samples_per_second);
  put.bind_real(12, step.step_seconds);
  put.bind_real(13, step.peak_flops_per_second);
  put.bind_real(14, step.loss ? std::optional(step.loss->value) : std::nullopt);
  if (step.excluded) {
    put.bind(15, static_cast<std::int64_t>(*step.excluded));
  } else {
    put.bind_null(15);
  }
}

training_logs::Step step_in(const Statement& row) {
  training_logs::Step step;
  step.attempt = static_cast<std::uint32_t>(row.integer(1));
  if (row.integer(3) != 0) step.step = row.integer(2);
  if (row.integer(5) != 0) step.time = units::Instant{row.integer(4)};
  step.mfu_ratio = row.real(6);
  step.flops_per_second_per_gpu = row.real(7);
  step.tokens_per_second_per_gpu = row.real(8);
  step.tokens_per_second = row.real(9);
  step.samples_per_second = row.real(10);
  step.step_seconds = row.real(11);
  step.peak_flops_per_second = row.real(12);
  if (const auto loss = row.real(13)) step.loss = training_logs::Loss{*loss};
  const std::int64_t excluded = row.integer(14);
  if (!row.is_null(14) && excluded >= 0 &&
      excluded < static_cast<std::int64_t>(training_logs::kExclusionCount)) {
    step.excluded = static_cast<training_logs::Exclusion>(excluded);
  }
  return step;
}

}  // namespace

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
            database.execute("PRAGMA synchronous = FULL; PRAGMA cache_size = -4000;"));
      std::unique_ptr<JobBook> book(new JobBook(std::move(database), options));
      FLOPSIGHT_RETURN_IF_ERROR(book->count_rows());
      book->damage_ = damage;
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

Status JobBook::put_job(const schedulers::Job& seen, units::Instant now, Put& put) {
  if (!seen.start) {
    ++put.not_started;
    return {};
  }
  FLOPSIGHT_ASSIGN_OR_RETURN(
      Statement find,
      database_.prepare("SELECT told, told_unix_milliseconds FROM scheduler_jobs WHERE "
                        "cluster = ? AND id = ? AND start_unix_milliseconds = ?"));
  find.bind_text(1, seen.cluster);
  find.bind_text(2, seen.id);
  find.bind(3, seen.start->unix_milliseconds);
  FLOPSIGHT_ASSIGN_OR_RETURN(const bool is_known, find.step());
  schedulers::Job job = seen;
  if (is_known) {
    FLOPSIGHT_ASSIGN_OR_RETURN(ToldJob known, told_in(find, 0));
    const bool changed = schedulers::merge_into(known.job, seen);
    ++(changed ? put.changed : put.unchanged);
    job = std::move(known.job);
  } else {
    if (jobs_total_ + put.added >= options_.jobs_max) {
      return Error{ErrorCode::kLimit,
                   "more than " + std::to_string(options_.jobs_max) + " jobs in the book"};
    }
    ++put.added;
  }
  FLOPSIGHT_ASSIGN_OR_RETURN(
      Statement write,
      database_.prepare(
          "INSERT OR REPLACE INTO scheduler_jobs VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"));
  write.bind_text(1, job.cluster);
  write.bind_text(2, job.id);
  write.bind(3, job.start->unix_milliseconds);
  write.bind(4, job.end ? job.end->unix_milliseconds : kNoEnd);
  write.bind(5, now.unix_milliseconds);
  write.bind_text(6, job.name);
  write.bind_text(7, job.user);
  write.bind_text(8, job.account);
  write.bind_text(9, job.state);
  if (job.gpu_count) {
    write.bind(10, *job.gpu_count);
  } else {
    write.bind_null(10);
  }
  write.bind_text(11, base::json::dump(schedulers::to_json(job), 0));
  return write.run();
}

Result<JobBook::Put> JobBook::put_jobs(std::span<const schedulers::Job> jobs, units::Instant now) {
  const std::scoped_lock lock(mutex_);
  Put put;
  const Status done = in_transaction(database_, [&]() -> Status {
    for (const schedulers::Job& job : jobs) {
      FLOPSIGHT_RETURN_IF_ERROR(put_job(job, now, put).within("job " + job.id));
    }
    return {};
  });
  FLOPSIGHT_RETURN_IF_ERROR(done);
  jobs_total_ += put.added;
  return put;
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
  for (;;) {
    FLOPSIGHT_ASSIGN_OR_RETURN(const bool row, find.step());
    if (!row) return out;
    if (out.size() >= limit) {
      return Error{ErrorCode::kLimit, "more than " + std::to_string(limit) +
                                          " jobs in the window; ask for a shorter one"};
    }
    FLOPSIGHT_ASSIGN_OR_RETURN(ToldJob told, told_in(find, 0));
    out.push_back(std::move(told));
  }
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

Status JobBook::put_reported(const ReportedKey& key, std::string_view format,
                             std::span<const training_logs::Step> steps, units::Instant now) {
  if (steps.empty()) return {};
  const std::scoped_lock lock(mutex_);
  if (steps_total_ + steps.size() > options_.steps_max) {
    return Error{ErrorCode::kLimit,
                 "more than " + std::to_string(options_.steps_max) + " reported steps in the book"};
  }
  units::Instant first = steps.front().time.value_or(now), last = first;
  for (const training_logs::Step& step : steps) {
    first = std::min(first, step.time.value_or(now));
    last = std::max(last, step.time.value_or(now));
  }
  std::uint64_t added = 0;
  const Status done = in_transaction(database_, [&]() -> Status {
    FLOPSIGHT_ASSIGN_OR_RETURN(
        Statement source,
        database_.prepare(
            "INSERT INTO reported_sources(job, namespace, source, format, first_unix_milliseconds, "
            "last_unix_milliseconds) VALUES(?, ?, ?, ?, ?, ?) ON CONFLICT(job, namespace, source) "
            "DO UPDATE SET "
            "format = excluded.format, first_unix_milliseconds = min(first_unix_milliseconds, "
            "excluded.first_unix_milliseconds), last_unix_milliseconds = "
            "max(last_unix_milliseconds, "
            "excluded.last_unix_milliseconds) RETURNING id"));
    source.bind_text(1, key.job);
    source.bind_text(2, key.name_space);
    source.bind_text(3, key.source);
    source.bind_text(4, format);
    source.bind(5, first.unix_milliseconds);
    source.bind(6, last.unix_milliseconds);
    FLOPSIGHT_ASSIGN_OR_RETURN(const bool row, source.step());
    if (!row) return Error{ErrorCode::kIo, "a source of reported steps was not written"};
    const std::int64_t id = source.integer(0);
    source.reset();
    FLOPSIGHT_ASSIGN_OR_RETURN(const std::int64_t before,
                               number(database_, "SELECT total_changes()"));
    FLOPSIGHT_ASSIGN_OR_RETURN(Statement put,
                               database_.prepare("INSERT OR REPLACE INTO reported_steps VALUES(?, "
                                                 "?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"));
    for (const training_logs::Step& step : steps) {
      put.bind(1, id);
      bind_step(put, step, now.unix_milliseconds);
      FLOPSIGHT_RETURN_IF_ERROR(put.run());
    }
    FLOPSIGHT_ASSIGN_OR_RETURN(const std::int64_t after,
                               number(database_, "SELECT total_changes()"));
    added = static_cast<std::uint64_t>(
        after - before);  // replaced ones count again: the limit is a guard, not an account
    return {};
  });
  FLOPSIGHT_RETURN_IF_ERROR(done);
  steps_total_ += added;
  return {};
}

Result<std::vector<ReportedSteps>> JobBook::reported(std::string_view job,
                                                     std::string_view name_space,
                                                     units::Window window) {
  const std::scoped_lock lock(mutex_);
  FLOPSIGHT_ASSIGN_OR_RETURN(
      Statement sources,
      database_.prepare("SELECT id, source, format FROM reported_sources WHERE job = ? "
                        "AND namespace = ? AND last_unix_milliseconds >= ? AND "
                        "first_unix_milliseconds < ? ORDER BY source"));
  sources.bind_text(1, job);
  sources.bind_text(2, name_space);
  sources.bind(3, window.start.unix_milliseconds);
  sources.bind(4, window.end.unix_milliseconds);
  FLOPSIGHT_ASSIGN_OR_RETURN(
      Statement rows,
      database_.prepare(
          "SELECT source_id, attempt, number, has_step, unix_milliseconds, has_time, mfu_ratio, "
          "flops_per_second_per_gpu, tokens_per_second_per_gpu, tokens_per_second, "
          "samples_per_second, step_seconds, "
          "peak_flops_per_second, loss, excluded FROM reported_steps WHERE source_id = ? AND "
          "unix_milliseconds >= ? "
          "AND unix_milliseconds < ? ORDER BY attempt, number"));
  std::vector<ReportedSteps> out;
  for (;;) {
    FLOPSIGHT_ASSIGN_OR_RETURN(const bool is_source, sources.step());
    if (!is_source) return out;
    ReportedSteps reported{
        {std::string(job), std::string(name_space), std::string(sources.text(1))},
        std::string(sources.text(2)),
        {}};
    rows.bind(1, sources.integer(0));
    rows.bind(2, window.start.unix_milliseconds);
    rows.bind(3, window.end.unix_milliseconds);
    for (;;) {
      FLOPSIGHT_ASSIGN_OR_RETURN(const bool is_row, rows.step());
      if (!is_row) break;
      reported.steps.push_back(step_in(rows));
    }
    if (!reported.steps.empty()) out.push_back(std::move(reported));
  }
}

Result<std::vector<std::pair<std::string, std::string>>> JobBook::reporters(units::Window window) {
  const std::scoped_lock lock(mutex_);
  FLOPSIGHT_ASSIGN_OR_RETURN(
      Statement find,
      database_.prepare(
          "SELECT DISTINCT job, namespace FROM reported_sources WHERE last_unix_milliseconds >= ? "
          "AND first_unix_milliseconds < ? ORDER BY job, namespace"));
  find.bind(1, window.start.unix_milliseconds);
  find.bind(2, window.end.unix_milliseconds);
  std::vector<std::pair<std::string, std::string>> out;
  for (;;) {
    FLOPSIGHT_ASSIGN_OR_RETURN(const bool row, find.step());
    if (!row) return out;
    out.emplace_back(find.text(0), find.text(1));
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
          "WHERE unix_milliseconds < ?1 LIMIT ?2)"}) {
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
