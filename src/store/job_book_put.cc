#include <algorithm>
#include <utility>

#include "base/check.h"
#include "schedulers/job_json.h"
#include "schedulers/merge.h"
#include "store/job_book_internal.h"
#include "store/sqlite_transaction.h"

namespace flopsight::store {

using base::Error;
using base::ErrorCode;
using base::Result;
using base::Status;

namespace {

// Slots wait longer than this for who tells of them (rollup.late).
constexpr units::Seconds kToldInTime{60};

void bind_key(Statement& statement, int first, const schedulers::Job& job) {
  statement.bind_text(first, job.cluster);
  statement.bind_text(first + 1, job.id);
  statement.bind(first + 2, job.start->unix_milliseconds);
}

}  // namespace

// One call of put_jobs. Statements are made once, not once a job.
struct JobBook::PutJobs {
  Statement find;
  Statement write;
  Statement touch;
  Statement late;
  Statement named;
  Statement drop;
  Statement drop_late;
  Statement runs_of_id;
  units::Instant now;
  std::uint64_t room;  // for so many new jobs
  std::uint64_t jobs_max;
  std::uint64_t removed = 0;  // rows that became part of another
  Put put;

  static Result<PutJobs> begin(Database& database, units::Instant now, std::uint64_t jobs_total, std::uint64_t jobs_max) {
    FLOPSIGHT_ASSIGN_OR_RETURN(Statement find, database.prepare("SELECT told, told_unix_milliseconds FROM scheduler_jobs WHERE "
                                                                "cluster = ? AND id = ? AND start_unix_milliseconds = ?"));
    FLOPSIGHT_ASSIGN_OR_RETURN(Statement write,
                               database.prepare("INSERT OR REPLACE INTO scheduler_jobs VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"));
    FLOPSIGHT_ASSIGN_OR_RETURN(Statement touch, database.prepare("UPDATE scheduler_jobs SET told_unix_milliseconds = ? WHERE "
                                                                 "cluster = ? AND id = ? AND start_unix_milliseconds = ?"));
    FLOPSIGHT_ASSIGN_OR_RETURN(Statement late, database.prepare("INSERT OR IGNORE INTO late_jobs VALUES(?, ?, ?)"));
    // Two are enough to know that there are several.
    FLOPSIGHT_ASSIGN_OR_RETURN(Statement named, database.prepare("SELECT cluster FROM scheduler_jobs WHERE id = ? AND "
                                                                 "start_unix_milliseconds = ? AND cluster NOT IN ('', ?) LIMIT 2"));
    FLOPSIGHT_ASSIGN_OR_RETURN(Statement drop, database.prepare("DELETE FROM scheduler_jobs WHERE cluster = ? AND id = ? AND start_unix_milliseconds = ?"));
    FLOPSIGHT_ASSIGN_OR_RETURN(Statement drop_late, database.prepare("DELETE FROM late_jobs WHERE cluster = ? AND id = ? AND start_unix_milliseconds = ?"));
    FLOPSIGHT_ASSIGN_OR_RETURN(Statement runs_of_id, database.prepare("SELECT cluster, start_unix_milliseconds, end_unix_milliseconds FROM scheduler_jobs "
                                                                      "WHERE id = ? ORDER BY start_unix_milliseconds"));
    return PutJobs{std::move(find), std::move(write), std::move(touch), std::move(late), std::move(named), std::move(drop), std::move(drop_late), std::move(runs_of_id),
                   now, jobs_max - std::min(jobs_max, jobs_total), jobs_max, 0, {}};
  }

  // Clusters other than the job's that have a run of its id and start; two at most.
  Result<std::vector<std::string>> other_clusters(const schedulers::Job& job) {
    named.bind_text(1, job.id);
    named.bind(2, job.start->unix_milliseconds);
    named.bind_text(3, job.cluster);
    std::vector<std::string> clusters;
    for (;;) {
      FLOPSIGHT_ASSIGN_OR_RETURN(const bool row, named.step());
      if (!row) break;
      clusters.emplace_back(named.text(0));
    }
    named.reset();
    return clusters;
  }

  // The row's run as it stands in the book.
  struct Run {
    std::string cluster;
    std::string id;
    units::Instant start;
    bool is_open = false;
  };

  Status put_one(const schedulers::Job& seen) {
    const std::uint64_t before = put.added + put.changed;
    FLOPSIGHT_RETURN_IF_ERROR(one(seen));
    const bool is_news = seen.start ? put.added + put.changed > before : seen.submit || seen.restart_count > 0;
    return is_news ? end_runs_before(seen) : Status();
  }

  // A job is once at a time: a run without an end was over when the job was submitted again, and at the latest when its next run began. (A scheduler
  // that requeues a job may never say when the run before ended: its accounting lists the last run alone, unless it is asked for duplicates.)
  Status end_runs_before(const schedulers::Job& seen) {
    runs_of_id.bind_text(1, seen.id);
    std::vector<Run> runs;
    std::string cluster = seen.cluster;
    bool is_of_one_cluster = true;
    for (;;) {
      FLOPSIGHT_ASSIGN_OR_RETURN(const bool row, runs_of_id.step());
      if (!row) break;
      runs.push_back({std::string(runs_of_id.text(0)), seen.id, units::Instant{runs_of_id.integer(1)}, runs_of_id.integer(2) == kNoEnd});
      const std::string& other = runs.back().cluster;
      is_of_one_cluster &= other.empty() || cluster.empty() || other == cluster;
      if (cluster.empty()) cluster = other;
    }
    runs_of_id.reset();
    for (std::size_t i = 0; i < runs.size(); ++i) {
      const auto is_same_job = [&](const std::string& other) { return runs[i].cluster == other || (is_of_one_cluster && (runs[i].cluster.empty() || other.empty())); };
      if (!runs[i].is_open || !is_same_job(seen.cluster)) continue;
      if (!seen.start) {
        FLOPSIGHT_RETURN_IF_ERROR(end_by(runs[i], seen));
        continue;
      }
      const auto next = std::find_if(runs.begin() + static_cast<std::ptrdiff_t>(i) + 1, runs.end(),
                                     [&](const Run& run) { return is_same_job(run.cluster) && run.start > runs[i].start; });
      if (next == runs.end()) continue;
      FLOPSIGHT_ASSIGN_OR_RETURN(const ToldJob told, job_of(*next));
      FLOPSIGHT_RETURN_IF_ERROR(end_by(runs[i], told.job));
    }
    return {};
  }

  Result<ToldJob> job_of(const Run& run) {
    find.bind_text(1, run.cluster);
    find.bind_text(2, run.id);
    find.bind(3, run.start.unix_milliseconds);
    FLOPSIGHT_ASSIGN_OR_RETURN(const bool row, find.step());
    FLOPSIGHT_CHECK(row);
    FLOPSIGHT_ASSIGN_OR_RETURN(ToldJob told, told_in(find, 0));
    find.reset();
    return told;
  }

  // `again` is a later telling of the same job: waiting anew, or its next run.
  Status end_by(const Run& run, const schedulers::Job& again) {
    FLOPSIGHT_ASSIGN_OR_RETURN(ToldJob told, job_of(run));
    std::optional<units::Instant> end = again.start;
    if (again.submit && *again.submit > run.start && (!end || *again.submit < *end)) end = again.submit;
    if (!end && again.restart_count > told.job.restart_count) end = now;
    if (!end || *end <= run.start) return {};
    told.job.end = end;
    told.job.state = "REQUEUED";
    ++put.changed;
    return replace(told.job, base::json::dump(schedulers::to_json(told.job), 0));
  }

  // `scontrol show job` never names the cluster, `sacct` may: a run without one is that of the only cluster with its id and start.
  Status one(const schedulers::Job& seen) {
    if (!seen.start) {
      ++put.not_started;
      return {};
    }
    FLOPSIGHT_ASSIGN_OR_RETURN(const std::vector<std::string> others, other_clusters(seen));
    if (!seen.cluster.empty()) return others.empty() ? one_with_cluster(seen) : one_by_key(seen);
    if (others.empty()) return one_by_key(seen);
    if (others.size() == 1) {
      schedulers::Job of_cluster = seen;
      of_cluster.cluster = others.front();
      return one_with_cluster(of_cluster);
    }
    const std::uint64_t added_before = put.added;
    FLOPSIGHT_RETURN_IF_ERROR(one_by_key(seen));
    if (put.added == added_before) return {};
    if (put.ambiguous++ == 0) put.first_ambiguous = "job " + seen.id + ": " + others[0] + " and " + others[1] + " both have it";
    return {};
  }

  // Of the only cluster that has it: what was told of it without a cluster becomes part of it.
  Status one_with_cluster(const schedulers::Job& seen) {
    schedulers::Job unnamed = seen;
    unnamed.cluster.clear();
    bind_key(find, 1, unnamed);
    FLOPSIGHT_ASSIGN_OR_RETURN(const bool is_told_unnamed, find.step());
    if (!is_told_unnamed) {
      find.reset();
      return one_by_key(seen);
    }
    FLOPSIGHT_ASSIGN_OR_RETURN(ToldJob told, told_in(find, 0));
    find.reset();
    for (Statement* remove : {&drop, &drop_late}) {
      bind_key(*remove, 1, unnamed);
      FLOPSIGHT_RETURN_IF_ERROR(remove->run());
    }
    schedulers::Job whole = std::move(told.job);
    whole.cluster = seen.cluster;
    bind_key(find, 1, seen);
    FLOPSIGHT_ASSIGN_OR_RETURN(const bool is_known, find.step());
    if (is_known) {
      FLOPSIGHT_ASSIGN_OR_RETURN(const ToldJob known, told_in(find, 0));
      schedulers::merge_into(whole, known.job);
      ++removed;
    }
    find.reset();
    schedulers::merge_into(whole, seen);
    ++put.changed;
    FLOPSIGHT_RETURN_IF_ERROR(replace(whole, base::json::dump(schedulers::to_json(whole), 0)));
    return note_late(whole);
  }

  Status one_by_key(const schedulers::Job& seen) {
    const std::string seen_json = base::json::dump(schedulers::to_json(seen), 0);
    bind_key(find, 1, seen);
    FLOPSIGHT_ASSIGN_OR_RETURN(const bool is_known, find.step());
    if (!is_known) return add(seen, seen_json);
    // Polls and imports tell the same again and again, and reading what is stored costs more than comparing it.
    if (find.text(0) == seen_json) return unchanged(seen);
    FLOPSIGHT_ASSIGN_OR_RETURN(ToldJob known, told_in(find, 0));
    find.reset();
    const std::vector<schedulers::Allocation> before = known.job.allocations;
    if (!schedulers::merge_into(known.job, seen)) return unchanged(known.job);
    ++put.changed;
    FLOPSIGHT_RETURN_IF_ERROR(replace(known.job, base::json::dump(schedulers::to_json(known.job), 0)));
    return known.job.allocations != before ? note_late(known.job) : Status();
  }

  Status add(const schedulers::Job& job, const std::string& json) {
    if (put.added >= room + removed) return Error{ErrorCode::kLimit, "more than " + std::to_string(jobs_max) + " jobs in the book"};
    ++put.added;
    FLOPSIGHT_RETURN_IF_ERROR(replace(job, json));
    return note_late(job);
  }

  // When a running job was heard of last says when it was over, should its scheduler forget it.
  Status unchanged(const schedulers::Job& job) {
    ++put.unchanged;
    find.reset();
    if (job.end) return {};
    touch.bind(1, now.unix_milliseconds);
    bind_key(touch, 2, job);
    return touch.run();
  }

  Status replace(const schedulers::Job& job, const std::string& json) {
    bind_key(write, 1, job);
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
    write.bind(11, job.is_mig() ? 1 : 0);
    write.bind_text(12, json);
    write.bind_text(13, hosts_text(job));
    return write.run();
  }

  // Its GPUs became known only now.
  Status note_late(const schedulers::Job& job) {
    const bool holds_gpus = job.gpu_count != 0U && !job.allocations.empty();
    if (!holds_gpus || (now - *job.start).value < kToldInTime.value) return {};
    bind_key(late, 1, job);
    return late.run();
  }
};

Result<JobBook::Put> JobBook::put_jobs(std::span<const schedulers::Job> jobs, units::Instant now) {
  const std::scoped_lock lock(mutex_);
  Put put;
  std::uint64_t removed = 0;
  const Status done = in_transaction(database_, [&]() -> Status {
    FLOPSIGHT_ASSIGN_OR_RETURN(PutJobs putting, PutJobs::begin(database_, now, jobs_total_, options_.jobs_max));
    for (const schedulers::Job& job : jobs) {
      FLOPSIGHT_RETURN_IF_ERROR(putting.put_one(job).within("job " + job.id));
    }
    put = std::move(putting.put);
    removed = putting.removed;
    return {};
  });
  FLOPSIGHT_RETURN_IF_ERROR(done);
  jobs_total_ = jobs_total_ + put.added - removed;
  return put;
}

}  // namespace flopsight::store
