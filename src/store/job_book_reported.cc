#include <algorithm>

#include "store/job_book.h"
#include "store/sqlite_transaction.h"

namespace flopsight::store {
namespace {

using base::Error;
using base::ErrorCode;
using base::Result;
using base::Status;

// What has_time says.
enum : std::int64_t { kNoTime = 0, kTime = 1, kTimeInAssumedZone = 2 };

void bind_step(Statement& put, const training_logs::Step& step, std::int64_t received) {
  // What tells steps of one attempt apart: their number, else their time, else where they stand.
  const std::int64_t number = step.step   ? *step.step
                              : step.time ? step.time->unix_milliseconds
                                          : static_cast<std::int64_t>(step.source.offset_bytes);
  put.bind(2, step.attempt);
  put.bind(3, number);
  put.bind(4, step.step ? 1 : 0);
  put.bind(5, step.time ? step.time->unix_milliseconds : received);
  put.bind(6, !step.time ? kNoTime : step.is_zone_assumed ? kTimeInAssumedZone : kTime);
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
  if (row.integer(5) != kNoTime) step.time = units::Instant{row.integer(4)};
  step.is_zone_assumed = row.integer(5) == kTimeInAssumedZone;
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

// In a transaction. How many rows were written; replaced ones count again: the limit is a guard, not an account.
Result<std::uint64_t> JobBook::put_steps(const ReportedKey& key, std::string_view format, std::span<const training_logs::Step> steps,
                                         units::Instant now) {
  if (steps_total_ + steps.size() > options_.steps_max) {
    return Error{ErrorCode::kLimit,
                 "more than " + std::to_string(options_.steps_max) + " reported steps in the book"};
  }
  units::Instant first = steps.front().time.value_or(now), last = first;
  for (const training_logs::Step& step : steps) {
    first = std::min(first, step.time.value_or(now));
    last = std::max(last, step.time.value_or(now));
  }
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
  FLOPSIGHT_ASSIGN_OR_RETURN(Statement put,
                             database_.prepare("INSERT OR REPLACE INTO reported_steps VALUES(?, "
                                               "?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"));
  for (const training_logs::Step& step : steps) {
    put.bind(1, id);
    bind_step(put, step, now.unix_milliseconds);
    FLOPSIGHT_RETURN_IF_ERROR(put.run());
  }
  return static_cast<std::uint64_t>(steps.size());
}

Status JobBook::put_reported(const ReportedKey& key, std::string_view format,
                             std::span<const training_logs::Step> steps, units::Instant now) {
  if (steps.empty()) return {};
  const std::scoped_lock lock(mutex_);
  std::uint64_t added = 0;
  const Status done = in_transaction(database_, [&]() -> Status {
    FLOPSIGHT_ASSIGN_OR_RETURN(added, put_steps(key, format, steps, now));
    return {};
  });
  FLOPSIGHT_RETURN_IF_ERROR(done);
  steps_total_ += added;
  return {};
}

Result<std::optional<units::Instant>> JobBook::last_reported(const ReportedKey& key) {
  FLOPSIGHT_ASSIGN_OR_RETURN(Statement find, database_.prepare("SELECT last_unix_milliseconds FROM reported_sources WHERE job = ? AND "
                                                               "namespace = ? AND source = ?"));
  find.bind_text(1, key.job);
  find.bind_text(2, key.name_space);
  find.bind_text(3, key.source);
  FLOPSIGHT_ASSIGN_OR_RETURN(const bool row, find.step());
  return row ? std::optional(units::Instant{find.integer(0)}) : std::nullopt;
}

Status JobBook::add_reported(std::span<const ReportedSteps> reported, units::Instant now) {
  if (reported.empty()) return {};
  const std::scoped_lock lock(mutex_);
  std::uint64_t added = 0;
  const Status done = in_transaction(database_, [&]() -> Status {
    for (const ReportedSteps& one : reported) {
      FLOPSIGHT_ASSIGN_OR_RETURN(const std::optional<units::Instant> last, last_reported(one.key));
      std::vector<training_logs::Step> fresh;
      for (const training_logs::Step& step : one.steps) {
        if (!last || !step.time || *step.time > *last) fresh.push_back(step);
      }
      if (fresh.empty()) continue;
      FLOPSIGHT_ASSIGN_OR_RETURN(const std::uint64_t put, put_steps(one.key, one.format, fresh, now));
      added += put;
    }
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

Result<std::vector<Reporter>> JobBook::reporters(units::Window window) {
  const std::scoped_lock lock(mutex_);
  FLOPSIGHT_ASSIGN_OR_RETURN(
      Statement find,
      database_.prepare(
          "SELECT job, namespace, max(last_unix_milliseconds) FROM reported_sources WHERE last_unix_milliseconds >= ? "
          "AND first_unix_milliseconds < ? GROUP BY job, namespace ORDER BY job, namespace"));
  find.bind(1, window.start.unix_milliseconds);
  find.bind(2, window.end.unix_milliseconds);
  std::vector<Reporter> out;
  for (;;) {
    FLOPSIGHT_ASSIGN_OR_RETURN(const bool row, find.step());
    if (!row) return out;
    out.push_back({std::string(find.text(0)), std::string(find.text(1)), units::Instant{find.integer(2)}});
  }
}

}  // namespace flopsight::store
