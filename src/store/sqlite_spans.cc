// When GPUs were whose. A row is all GPUs that one job took at one time and gave back at one time, or has still.
#include <algorithm>
#include <set>

#include "store/gpu_runs.h"
#include "store/sqlite_store_internal.h"

namespace flopsight::store {

// Calls use(span) for each span of the GPU that may go on; those for which it says false are taken out.
template <typename Use>
void SqliteStore::keep_spans(GpuId gpu, Use use) {
  if (first_spans_.size() < gpu) {
    base::make_room(first_spans_, gpus_.size());
    first_spans_.resize(gpus_.size());
  }
  Span& first = first_spans_[gpu - 1];
  if (first.job != 0 && !use(first)) first = Span{};
  if (more_spans_.empty()) return;
  const auto more = more_spans_.find(gpu);
  if (more == more_spans_.end()) return;
  std::erase_if(more->second, [&](Span& span) { return !use(span); });
  if (more->second.empty()) more_spans_.erase(more);
}

void SqliteStore::add_span(GpuId gpu, const Span& span) {
  if (first_spans_.size() < gpu) {
    base::make_room(first_spans_, gpus_.size());
    first_spans_.resize(gpus_.size());
  }
  Span& first = first_spans_[gpu - 1];
  if (first.job == 0) {
    first = span;
  } else {
    more_spans_[gpu].push_back(span);
  }
}

void SqliteStore::extend_span(const GpuCell& cell) {
  const std::int64_t start = cell.slot_start.unix_milliseconds;
  const std::int64_t end = start + milliseconds(slot_seconds_);
  bool extended = false;
  keep_spans(cell.gpu, [&](Span& span) {
    // Cells of a GPU come in order: what did not reach this slot's start is over.
    if (span.end < start) {
      spans_to_write_.emplace_back(cell.gpu, span);
      return false;
    }
    if (span.job == cell.job) {
      span.end = std::max(span.end, end);
      extended = true;
    }
    return true;
  });
  if (!extended) add_span(cell.gpu, {cell.job, false, start, end});
}

base::Status SqliteStore::write_span_rows(SpanRows& rows, bool is_open) {
  FLOPSIGHT_ASSIGN_OR_RETURN(
      Statement insert,
      database_.prepare("INSERT INTO spans(job_id, start_unix_milliseconds, end_unix_milliseconds, is_open, gpus) VALUES(?, ?, ?, ?, ?)"));
  for (auto& [key, gpus] : rows) {
    const auto& [job, start, end] = key;
    make_distinct(gpus);
    insert.bind(1, job);
    insert.bind(2, start);
    insert.bind(3, end);
    insert.bind(4, is_open ? 1 : 0);
    insert.bind_blob(5, encode_gpu_runs(gpus));
    FLOPSIGHT_RETURN_IF_ERROR(insert.run());
  }
  return {};
}

base::Status SqliteStore::write_spans() {
  SpanRows closed;
  std::set<std::pair<JobId, std::int64_t>> changed;  // rows of open spans that others come into or go out of
  std::set<JobId> grown;
  const auto close = [&](GpuId gpu, const Span& span) {
    closed[{span.job, span.start, span.end}].push_back(gpu);
    if (span.is_written) {
      changed.insert({span.job, span.start});
    } else {
      grown.insert(span.job);
    }
  };
  for (const auto& [gpu, span] : spans_to_write_) close(gpu, span);
  spans_to_write_.clear();
  for (GpuId gpu = 1; gpu <= gpus_.size(); ++gpu) {
    keep_spans(gpu, [&](Span& span) {
      if (span.end < gpus_[gpu - 1].closed_until) {
        close(gpu, span);
        return false;
      }
      if (!span.is_written) {
        changed.insert({span.job, span.start});
        grown.insert(span.job);
        span.is_written = true;
      }
      return true;
    });
  }
  if (closed.empty() && changed.empty()) return {};
  FLOPSIGHT_RETURN_IF_ERROR(write_span_rows(closed, false));
  SpanRows open;
  for (GpuId gpu = 1; gpu <= gpus_.size(); ++gpu) {
    keep_spans(gpu, [&](const Span& span) {
      // Where an open one ends is where its GPU is closed.
      if (changed.count({span.job, span.start}) != 0) open[{span.job, span.start, span.start}].push_back(gpu);
      return true;
    });
  }
  FLOPSIGHT_ASSIGN_OR_RETURN(
      Statement remove, database_.prepare("DELETE FROM spans WHERE job_id = ? AND start_unix_milliseconds = ? AND is_open = 1"));
  for (const auto& [job, start] : changed) {
    remove.bind(1, job);
    remove.bind(2, start);
    FLOPSIGHT_RETURN_IF_ERROR(remove.run());
  }
  FLOPSIGHT_RETURN_IF_ERROR(write_span_rows(open, true));
  return count_gpus_of(grown);
}

// Distinct GPUs of jobs that got some, for people who read the view job_list.
base::Status SqliteStore::count_gpus_of(const std::set<JobId>& jobs) {
  FLOPSIGHT_ASSIGN_OR_RETURN(Statement select, database_.prepare("SELECT gpus FROM spans WHERE job_id = ?"));
  FLOPSIGHT_ASSIGN_OR_RETURN(Statement update, database_.prepare("UPDATE jobs SET gpu_count = ? WHERE id = ?"));
  for (const JobId job : jobs) {
    std::vector<GpuId> all;
    select.bind(1, job);
    for (;;) {
      FLOPSIGHT_ASSIGN_OR_RETURN(const bool row, select.step());
      if (!row) break;
      FLOPSIGHT_ASSIGN_OR_RETURN(const std::vector<GpuId> gpus, decode_gpu_runs(select.blob(0)));
      all.insert(all.end(), gpus.begin(), gpus.end());
    }
    make_distinct(all);
    make_whole(all);
    update.bind(1, static_cast<std::int64_t>(all.size()));
    update.bind(2, job);
    FLOPSIGHT_RETURN_IF_ERROR(update.run());
  }
  return {};
}

base::Status SqliteStore::load_spans() {
  FLOPSIGHT_ASSIGN_OR_RETURN(Statement spans,
                             database_.prepare("SELECT job_id, start_unix_milliseconds, gpus FROM spans WHERE is_open = 1"));
  for (;;) {
    FLOPSIGHT_ASSIGN_OR_RETURN(const bool more, spans.step());
    if (!more) return {};
    FLOPSIGHT_ASSIGN_OR_RETURN(const std::vector<GpuId> gpus, decode_gpu_runs(spans.blob(2)));
    for (const GpuId gpu : gpus) {
      if (gpu < 1 || gpu > gpus_.size()) continue;
      // One that is open went on up to where its GPU was closed.
      add_span(gpu, {static_cast<JobId>(spans.integer(0)), true, spans.integer(1), gpus_[gpu - 1].closed_until});
    }
  }
}

base::Result<std::vector<Held>> SqliteStore::held_in(Database& database, std::optional<JobId> job, units::Window window) const {
  std::vector<Held> spans;
  const auto read = [&](bool is_open) -> base::Status {
    const std::string where = job ? " AND job_id = ?3" : "";
    const std::string index = job ? "spans_by_job" : is_open ? "spans_open" : "spans_by_end";
    FLOPSIGHT_ASSIGN_OR_RETURN(
        Statement select,
        database.prepare("SELECT job_id, start_unix_milliseconds, end_unix_milliseconds, gpus FROM spans INDEXED BY " + index +
                          " WHERE start_unix_milliseconds < ?2 AND is_open = " + (is_open ? "1" : "0 AND end_unix_milliseconds > ?1") +
                          where));
    if (!is_open) select.bind(1, window.start.unix_milliseconds);
    select.bind(2, window.end.unix_milliseconds);
    if (job) select.bind(3, *job);
    for (;;) {
      FLOPSIGHT_ASSIGN_OR_RETURN(const bool row, select.step());
      if (!row) return {};
      FLOPSIGHT_ASSIGN_OR_RETURN(std::vector<GpuId> gpus, decode_gpu_runs(select.blob(3)));
      Held span{static_cast<JobId>(select.integer(0)), {{select.integer(1)}, {select.integer(2)}}, std::move(gpus)};
      if (is_open) {
        add_open(std::move(span), window, spans);
      } else {
        spans.push_back(std::move(span));
      }
    }
  };
  FLOPSIGHT_RETURN_IF_ERROR(read(false));
  FLOPSIGHT_RETURN_IF_ERROR(read(true));
  return spans;
}

// GPUs of an open span that are closed up to different times become spans of their own.
void SqliteStore::add_open(Held span, units::Window window, std::vector<Held>& spans) const {
  std::map<std::int64_t, std::vector<GpuId>> by_end;
  std::int64_t last = -1;
  std::vector<GpuId>* list = nullptr;
  for (const GpuId gpu : span.gpus) {
    if (gpu < 1 || gpu > gpus_.size()) continue;
    const std::int64_t end = gpus_[gpu - 1].closed_until;
    if (end != last || list == nullptr) list = &by_end[end];
    last = end;
    list->push_back(gpu);
  }
  for (auto& [end, gpus] : by_end) {
    if (end > window.start.unix_milliseconds) spans.push_back({span.job, {span.window.start, {end}}, std::move(gpus)});
  }
}

base::Result<std::vector<JobRecord>> SqliteStore::jobs() {
  std::vector<JobRecord> records(jobs_.size());
  for (std::size_t i = 0; i < jobs_.size(); ++i) {
    records[i].id = static_cast<JobId>(i + 1);
    records[i].holder = jobs_[i];
  }
  FLOPSIGHT_ASSIGN_OR_RETURN(std::vector<Held> spans, held(std::nullopt, {{0}, {std::numeric_limits<std::int64_t>::max()}}));
  std::sort(spans.begin(), spans.end(), [](const Held& a, const Held& b) { return a.job < b.job; });
  for (std::size_t i = 0; i < spans.size();) {
    const JobId job = spans[i].job;
    std::vector<GpuId> gpus;
    JobRecord unknown;
    JobRecord& record = job >= 1 && job <= records.size() ? records[job - 1] : unknown;
    for (; i < spans.size() && spans[i].job == job; ++i) {
      if (record.last.unix_milliseconds == 0 || spans[i].window.start < record.first) record.first = spans[i].window.start;
      record.last = std::max(record.last, spans[i].window.end);
      gpus.insert(gpus.end(), spans[i].gpus.begin(), spans[i].gpus.end());
    }
    make_distinct(gpus);
    record.gpu_count = static_cast<std::uint32_t>(gpus.size());
  }
  std::erase_if(records, [](const JobRecord& record) { return record.last.unix_milliseconds == 0; });
  return records;
}

}  // namespace flopsight::store
