#include <algorithm>
#include <cmath>

#include "store/sqlite_schema.h"
#include "store/sqlite_store_internal.h"

namespace flopsight::store {
namespace {

using rollups::CellField;

std::int64_t floor_to(std::int64_t value, std::int64_t step) { return value / step * step; }
std::int64_t ceil_to(std::int64_t value, std::int64_t step) { return (value + step - 1) / step * step; }

}  // namespace

base::Status SqliteStore::read_blocks(BlockKind kind, std::optional<std::int64_t> group, units::Window window,
                                      const std::function<base::Status(const BlockRow&)>& sink) {
  // Blocks do not cross an hour; the bound on start lets the index find them.
  const std::string by_group = group ? "= ?4" : ">= ?4";
  FLOPSIGHT_ASSIGN_OR_RETURN(
      Statement select,
      database_.prepare("SELECT id, slot_seconds, entity_group, start_unix_milliseconds, end_unix_milliseconds, bytes "
                        "FROM blocks WHERE kind = ?1 AND slot_seconds IN (" + std::to_string(slot_seconds_) + ", " +
                        std::to_string(kMiddleSeconds) + ", " + std::to_string(kCoarseSeconds) +
                        ") AND entity_group " + by_group +
                        " AND start_unix_milliseconds < ?3 AND start_unix_milliseconds >= ?5 AND end_unix_milliseconds > ?2"));
  select.bind(1, static_cast<std::int64_t>(kind));
  select.bind(2, window.start.unix_milliseconds);
  select.bind(3, window.end.unix_milliseconds);
  select.bind(4, group.value_or(0));
  select.bind(5, window.start.unix_milliseconds - 24 * milliseconds(kCoarseSeconds));
  for (;;) {
    FLOPSIGHT_ASSIGN_OR_RETURN(const bool row, select.step());
    if (!row) return {};
    const BlockRow block{select.integer(0), select.integer(1), select.integer(2), {select.integer(3)},
                         {select.integer(4)}, std::string(select.blob(5))};
    if (base::Status done = sink(block); !done.ok()) {
      if (done.error().code != base::ErrorCode::kCorrupt) return done;
      note(path_ + ": block " + std::to_string(block.id) + " of " + units::to_rfc3339(block.start) +
           " cannot be read (" + done.error().message + "); its cells are missing from answers");
    }
  }
}

base::Status SqliteStore::add_fine_jobs(units::Window window, std::optional<JobId> job,
                                        const std::function<void(JobCell)>& sink) {
  if (!(window.start < window.end)) return {};
  std::optional<std::int64_t> group;
  if (job) group = *job / kGroupSize;
  return read_blocks(BlockKind::kJob, group, window, [&](const BlockRow& block) -> base::Status {
    FLOPSIGHT_ASSIGN_OR_RETURN(std::vector<JobCell> cells,
                               decode_job_block(block.bytes, units::Seconds(static_cast<double>(block.slot_seconds))));
    for (JobCell& cell : cells) {
      if (window.contains(cell.slot_start) && (!job || cell.job == *job)) sink(std::move(cell));
    }
    return {};
  });
}

base::Status SqliteStore::add_job_cells_of(std::int64_t slot_seconds, units::Window window, std::optional<JobId> job,
                                           const std::function<void(JobCell)>& sink) {
  if (!(window.start < window.end)) return {};
  FLOPSIGHT_ASSIGN_OR_RETURN(
      Statement select,
      database_.prepare("SELECT start_unix_milliseconds, job_id, model_id, " + cell_columns() +
                        ", spread FROM job_cells WHERE slot_seconds = ? AND start_unix_milliseconds >= ? AND "
                        "start_unix_milliseconds < ?" + (job ? " AND job_id = ?" : "")));
  select.bind(1, slot_seconds);
  select.bind(2, window.start.unix_milliseconds);
  select.bind(3, window.end.unix_milliseconds);
  if (job) select.bind(4, *job);
  for (;;) {
    FLOPSIGHT_ASSIGN_OR_RETURN(const bool row, select.step());
    if (!row) return {};
    JobCell cell;
    cell.slot_start = units::Instant{select.integer(0)};
    cell.job = static_cast<JobId>(select.integer(1));
    cell.model = static_cast<ModelId>(select.integer(2));
    int column = 3;
    for (std::size_t i = 0; i < rollups::kCellFieldCount; ++i, ++column) {
      // A sum is never NULL, and most columns are sums.
      const bool is_there = rollups::cell_fields()[i].merge == rollups::Merge::kSum || !select.is_null(column);
      if (is_there) cell.cell[static_cast<CellField>(i)] = select.integer(column);
    }
    if (auto spread = decode_spread(select.blob(column)); spread.ok()) {
      cell.spread = std::move(spread).value();
    } else {
      note(path_ + ": a spread cannot be read: " + spread.error().message);
    }
    sink(std::move(cell));
  }
}

// The window from the coarsest slots that fit into it, and finer ones at its ends.
base::Status SqliteStore::for_job_cells(units::Window window, std::optional<JobId> job,
                                        std::int64_t coarsest_seconds, const std::function<void(JobCell)>& sink) {
  if (coarsest_seconds <= slot_seconds_) return add_fine_jobs(window, job, sink);
  const std::int64_t step = milliseconds(coarsest_seconds);
  const std::int64_t start = ceil_to(window.start.unix_milliseconds, step);
  const std::int64_t end = floor_to(window.end.unix_milliseconds, step);
  const std::int64_t finer = coarsest_seconds == kCoarseSeconds ? kMiddleSeconds : slot_seconds_;
  if (start >= end) return for_job_cells(window, job, finer, sink);
  FLOPSIGHT_RETURN_IF_ERROR(add_job_cells_of(coarsest_seconds, {{start}, {end}}, job, sink));
  FLOPSIGHT_RETURN_IF_ERROR(for_job_cells({window.start, {start}}, job, finer, sink));
  return for_job_cells({{end}, window.end}, job, finer, sink);
}

base::Result<std::vector<JobTotal>> SqliteStore::job_totals(units::Window window, std::optional<JobId> job) {
  const std::int64_t slot = milliseconds(slot_seconds_);
  window = {{floor_to(window.start.unix_milliseconds, slot)}, {ceil_to(window.end.unix_milliseconds, slot)}};
  std::unordered_map<std::uint64_t, std::size_t> at;
  std::vector<JobTotal> totals;
  FLOPSIGHT_RETURN_IF_ERROR(for_job_cells(window, job, kCoarseSeconds, [&](JobCell cell) {
    const auto [place, is_new] = at.emplace(std::uint64_t{cell.job} << 32 | cell.model, totals.size());
    if (is_new) totals.push_back({cell.job, cell.model, {}, {}});
    totals[place->second].cell.merge(cell.cell);
    totals[place->second].spread.merge(cell.spread);
  }));
  std::sort(totals.begin(), totals.end(), [](const JobTotal& a, const JobTotal& b) {
    return std::tie(a.job, a.model) < std::tie(b.job, b.model);
  });
  return totals;
}

base::Result<std::vector<JobCell>> SqliteStore::job_series(JobId job, units::Window window, units::Seconds step) {
  const std::int64_t step_seconds = std::max(slot_seconds_, static_cast<std::int64_t>(std::llround(step.value)));
  const std::int64_t step_milliseconds = milliseconds(step_seconds);
  const std::int64_t from = step_seconds % kCoarseSeconds == 0   ? kCoarseSeconds
                            : step_seconds % kMiddleSeconds == 0 ? kMiddleSeconds
                                                                 : slot_seconds_;
  window = {{floor_to(window.start.unix_milliseconds, step_milliseconds)},
            {ceil_to(window.end.unix_milliseconds, step_milliseconds)}};
  Merged merged;
  FLOPSIGHT_RETURN_IF_ERROR(for_job_cells(window, job, from, [&](JobCell cell) {
    const std::int64_t start = floor_to(cell.slot_start.unix_milliseconds, step_milliseconds);
    JobCell& into = merged[{start, cell.job, cell.model}];
    into.job = cell.job;
    into.model = cell.model;
    into.slot_start = units::Instant{start};
    into.cell.merge(cell.cell);
    into.spread.merge(cell.spread);
  }));
  std::vector<JobCell> series;
  for (auto& [key, cell] : merged) series.push_back(std::move(cell));
  return series;
}

base::Result<std::vector<GpuTotal>> SqliteStore::gpu_totals(units::Window window, std::optional<JobId> job) {
  const std::int64_t slot = milliseconds(slot_seconds_);
  window = {{floor_to(window.start.unix_milliseconds, slot)}, {ceil_to(window.end.unix_milliseconds, slot)}};
  std::map<std::pair<GpuId, JobId>, rollups::Cell> merged;
  const auto take = [&](const BlockRow& block) -> base::Status {
    FLOPSIGHT_ASSIGN_OR_RETURN(const std::vector<GpuCell> cells,
                               decode_gpu_block(block.bytes, units::Seconds(static_cast<double>(block.slot_seconds))));
    for (const GpuCell& cell : cells) {
      if (!window.contains(cell.slot_start) || (job && cell.job != *job)) continue;
      merged[{cell.gpu, cell.job}].merge(cell.cell);
    }
    return {};
  };
  if (job) {
    FLOPSIGHT_ASSIGN_OR_RETURN(const std::vector<Held> spans, held(job, window));
    std::vector<std::int64_t> groups;
    for (const Held& span : spans) groups.push_back(span.gpu / kGroupSize);
    std::sort(groups.begin(), groups.end());
    groups.erase(std::unique(groups.begin(), groups.end()), groups.end());
    for (const std::int64_t group : groups) {
      FLOPSIGHT_RETURN_IF_ERROR(read_blocks(BlockKind::kGpu, group, window, take));
    }
  } else {
    FLOPSIGHT_RETURN_IF_ERROR(read_blocks(BlockKind::kGpu, std::nullopt, window, take));
  }
  std::vector<GpuTotal> totals;
  for (auto& [key, cell] : merged) totals.push_back({key.first, key.second, cell});
  return totals;
}

std::vector<std::pair<GpuId, units::Window>> SqliteStore::present(units::Window window) const {
  std::vector<std::pair<GpuId, units::Window>> out;
  for (std::size_t i = 0; i < gpus_.size(); ++i) {
    if (gpus_[i].first == 0) continue;
    const units::Window seen{std::max(window.start, units::Instant{gpus_[i].first}),
                             std::min(window.end, units::Instant{gpus_[i].closed_until})};
    if (seen.start < seen.end) out.emplace_back(static_cast<GpuId>(i + 1), seen);
  }
  return out;
}

base::Result<std::vector<Held>> SqliteStore::held(std::optional<JobId> job, units::Window window) {
  FLOPSIGHT_ASSIGN_OR_RETURN(
      Statement select,
      database_.prepare(std::string("SELECT gpu_id, job_id, start_unix_milliseconds, end_unix_milliseconds, is_open FROM spans "
                                    "WHERE start_unix_milliseconds < ?2 AND (end_unix_milliseconds > ?1 OR is_open = 1)") +
                        (job ? " AND job_id = ?3" : "")));
  select.bind(1, window.start.unix_milliseconds);
  select.bind(2, window.end.unix_milliseconds);
  if (job) select.bind(3, *job);
  std::vector<Held> spans;
  for (;;) {
    FLOPSIGHT_ASSIGN_OR_RETURN(const bool row, select.step());
    if (!row) return spans;
    Held span{static_cast<GpuId>(select.integer(0)), static_cast<JobId>(select.integer(1)),
              {{select.integer(2)}, {select.integer(3)}}};
    if (select.integer(4) == 1 && span.gpu >= 1 && span.gpu <= gpus_.size()) {
      span.window.end = units::Instant{gpus_[span.gpu - 1].closed_until};
    }
    if (span.window.end > window.start) spans.push_back(span);
  }
}

base::Result<std::vector<JobRecord>> SqliteStore::jobs() {
  std::vector<JobRecord> records(jobs_.size());
  for (std::size_t i = 0; i < jobs_.size(); ++i) {
    records[i].id = static_cast<JobId>(i + 1);
    records[i].holder = jobs_[i].holder;
  }
  FLOPSIGHT_ASSIGN_OR_RETURN(const std::vector<Held> spans,
                             held(std::nullopt, {{0}, {std::numeric_limits<std::int64_t>::max()}}));
  std::vector<std::pair<JobId, GpuId>> pairs;
  for (const Held& span : spans) {
    if (span.job < 1 || span.job > records.size()) continue;
    JobRecord& record = records[span.job - 1];
    if (record.last.unix_milliseconds == 0 || span.window.start < record.first) record.first = span.window.start;
    record.last = std::max(record.last, span.window.end);
    pairs.emplace_back(span.job, span.gpu);
  }
  std::sort(pairs.begin(), pairs.end());
  pairs.erase(std::unique(pairs.begin(), pairs.end()), pairs.end());
  for (const auto& [job, gpu] : pairs) ++records[job - 1].gpu_count;
  std::erase_if(records, [](const JobRecord& record) { return record.last.unix_milliseconds == 0; });
  return records;
}

base::Result<std::vector<GpuRecord>> SqliteStore::gpus() {
  FLOPSIGHT_ASSIGN_OR_RETURN(Statement select, database_.prepare("SELECT id FROM gpus ORDER BY id"));
  std::vector<GpuId> ids;
  for (;;) {
    FLOPSIGHT_ASSIGN_OR_RETURN(const bool row, select.step());
    if (!row) break;
    ids.push_back(static_cast<GpuId>(select.integer(0)));
  }
  return gpus(ids);
}

base::Result<std::vector<GpuRecord>> SqliteStore::gpus(const std::vector<GpuId>& ids) {
  std::vector<GpuRecord> records;
  for (const GpuId id : ids) {
    if (id < 1 || id > gpus_.size() || gpus_[id - 1].first == 0) continue;
    FLOPSIGHT_ASSIGN_OR_RETURN(samples::GpuIdentity identity, names_of(id));
    records.push_back({id, std::move(identity), {gpus_[id - 1].first}, {gpus_[id - 1].closed_until}});
  }
  return records;
}

base::Result<StoreSize> SqliteStore::size() {
  const auto number = [&](const std::string& sql) -> base::Result<std::uint64_t> {
    FLOPSIGHT_ASSIGN_OR_RETURN(Statement statement, database_.prepare(sql));
    FLOPSIGHT_ASSIGN_OR_RETURN(const bool row, statement.step());
    return row ? static_cast<std::uint64_t>(statement.integer(0)) : std::uint64_t{0};
  };
  StoreSize size;
  FLOPSIGHT_ASSIGN_OR_RETURN(const std::uint64_t pages, number("PRAGMA page_count"));
  FLOPSIGHT_ASSIGN_OR_RETURN(const std::uint64_t free, number("PRAGMA freelist_count"));
  FLOPSIGHT_ASSIGN_OR_RETURN(const std::uint64_t page_bytes, number("PRAGMA page_size"));
  size.bytes = (pages - free) * page_bytes;
  return size;
}

}  // namespace flopsight::store
