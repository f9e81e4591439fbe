// Flushes of the embedded store: cells to blocks, rows, spans, names and a checkpoint, in one transaction.
#include <algorithm>
#include <cmath>

#include "store/sqlite_schema.h"
#include "store/sqlite_store_internal.h"
#include "wire/column_codec.h"

namespace flopsight::store {
namespace {

using rollups::CellField;

// GPU cells held back before their groups are written, so that a flush of a million GPUs fits in memory.
constexpr std::size_t kCellsHeldMax = 16'384;
// As many new names are held back.
constexpr std::size_t kNamesHeldMax = 4'096;
constexpr int kCompressionLevel = 3;

}  // namespace

base::Status SqliteStore::begin() {
  if (flushing_) roll_back();
  FLOPSIGHT_RETURN_IF_ERROR(database_.execute("BEGIN IMMEDIATE"));
  flushing_ = true;
  return {};
}

void SqliteStore::roll_back() {
  // Nothing to tell if it fails: SQLite rolls back by itself then.
  if (flushing_) static_cast<void>(database_.execute("ROLLBACK"));
  flushing_ = false;
  gpu_cells_.clear();
  gpu_cells_held_ = 0;
  job_cells_.clear();
  spans_to_write_.clear();
}

base::Status SqliteStore::add(const GpuCell& cell, ModelId model) {
  Gpu& gpu = gpus_.at(cell.gpu - 1);
  const std::int64_t start = cell.slot_start.unix_milliseconds;
  if (gpu.first == 0 || start < gpu.first) {
    gpu.first = start;
    gpu.first_changed = true;
  }
  JobCell& merged = job_cells_[{start, cell.job, model}];
  merged.job = cell.job;
  merged.model = model;
  merged.slot_start = cell.slot_start;
  merged.cell.merge(cell.cell);
  const std::int64_t measured = cell.cell[CellField::kMeasured];
  if (measured > 0) {
    merged.spread.add(static_cast<double>(cell.cell[CellField::kDelivered]) / static_cast<double>(measured), measured);
  }
  if (cell.job != 0) extend_span(cell);
  if (new_names_.size() >= kNamesHeldMax) FLOPSIGHT_RETURN_IF_ERROR(write_gpu_names());
  const std::uint32_t group = cell.gpu / kGroupSize;
  if (gpu_cells_held_ >= kCellsHeldMax && gpu_cells_.count(group) == 0) {
    while (!gpu_cells_.empty()) FLOPSIGHT_RETURN_IF_ERROR(write_gpu_group(gpu_cells_.begin()->first));
  }
  gpu_cells_[group].push_back(cell);
  ++gpu_cells_held_;
  if (gpu_cells_[group].size() >= kCellsHeldMax) return write_gpu_group(group);
  return {};
}

// Calls use(span) for each span of the GPU that may go on; those for which it says false are taken out.
void SqliteStore::keep_spans(GpuId gpu, const std::function<bool(Span&)>& use) {
  if (first_spans_.size() < gpu) first_spans_.resize(gpus_.size());
  Span& first = first_spans_[gpu - 1];
  if (first.job != 0 && !use(first)) first = Span{};
  const auto more = more_spans_.find(gpu);
  if (more == more_spans_.end()) return;
  std::erase_if(more->second, [&](Span& span) { return !use(span); });
  if (more->second.empty()) more_spans_.erase(more);
}

void SqliteStore::add_span(GpuId gpu, const Span& span) {
  if (first_spans_.size() < gpu) first_spans_.resize(gpus_.size());
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
  if (!extended) add_span(cell.gpu, {cell.job, 0, start, end});
}

base::Status SqliteStore::write_block(BlockKind kind, std::int64_t slot_seconds, std::int64_t group,
                                      units::Window window, std::size_t cells, std::string_view bytes) {
  FLOPSIGHT_ASSIGN_OR_RETURN(
      Statement insert,
      database_.prepare("INSERT INTO blocks(kind, slot_seconds, entity_group, start_unix_milliseconds, "
                        "end_unix_milliseconds, cell_count, bytes) VALUES(?, ?, ?, ?, ?, ?, ?)"));
  insert.bind(1, static_cast<std::int64_t>(kind));
  insert.bind(2, slot_seconds);
  insert.bind(3, group);
  insert.bind(4, window.start.unix_milliseconds);
  insert.bind(5, window.end.unix_milliseconds);
  insert.bind(6, static_cast<std::int64_t>(cells));
  insert.bind_blob(7, bytes);
  return insert.run();
}

base::Status SqliteStore::write_gpu_group(std::uint32_t group) {
  const auto at = gpu_cells_.find(group);
  // Blocks do not cross an hour, so that the hour is what housekeeping merges and forgets.
  std::map<std::int64_t, std::vector<GpuCell>> by_hour;
  for (GpuCell& cell : at->second) {
    by_hour[cell.slot_start.unix_milliseconds / milliseconds(kCoarseSeconds)].push_back(std::move(cell));
  }
  gpu_cells_held_ -= at->second.size();
  gpu_cells_.erase(at);
  for (auto& [hour, cells] : by_hour) {
    std::sort(cells.begin(), cells.end(), [](const GpuCell& a, const GpuCell& b) {
      return std::tie(a.gpu, a.slot_start, a.job) < std::tie(b.gpu, b.slot_start, b.job);
    });
    units::Window window{cells.front().slot_start, cells.front().slot_start};
    for (const GpuCell& cell : cells) {
      window.start = std::min(window.start, cell.slot_start);
      window.end = std::max(window.end, cell.slot_start + options_.slot);
    }
    FLOPSIGHT_RETURN_IF_ERROR(write_block(BlockKind::kGpu, slot_seconds_, group, window, cells.size(),
                                          encode_gpu_block(cells, options_.slot)));
  }
  return {};
}

base::Status SqliteStore::write_jobs() {
  std::map<std::pair<std::int64_t, std::int64_t>, std::vector<JobCell>> blocks;  // (hour, group)
  Merged middle, coarse;
  const auto add_to = [](Merged& level, std::int64_t seconds, const JobCell& cell) {
    const std::int64_t start = cell.slot_start.unix_milliseconds / milliseconds(seconds) * milliseconds(seconds);
    JobCell& into = level[{start, cell.job, cell.model}];
    into.job = cell.job;
    into.model = cell.model;
    into.slot_start = units::Instant{start};
    into.cell.merge(cell.cell);
    into.spread.merge(cell.spread);
  };
  for (auto& [key, cell] : job_cells_) {
    add_to(middle, kMiddleSeconds, cell);
    add_to(coarse, kCoarseSeconds, cell);
    blocks[{cell.slot_start.unix_milliseconds / milliseconds(kCoarseSeconds), cell.job / kGroupSize}].push_back(
        std::move(cell));
  }
  job_cells_.clear();
  for (auto& [key, cells] : blocks) {
    std::sort(cells.begin(), cells.end(), [](const JobCell& a, const JobCell& b) {
      return std::tie(a.job, a.model, a.slot_start) < std::tie(b.job, b.model, b.slot_start);
    });
    units::Window window{cells.front().slot_start, cells.front().slot_start};
    for (const JobCell& cell : cells) {
      window.start = std::min(window.start, cell.slot_start);
      window.end = std::max(window.end, cell.slot_start + options_.slot);
    }
    FLOPSIGHT_RETURN_IF_ERROR(write_block(BlockKind::kJob, slot_seconds_, key.second, window, cells.size(),
                                          encode_job_block(cells, options_.slot)));
  }
  FLOPSIGHT_RETURN_IF_ERROR(write_job_cells(kMiddleSeconds, middle));
  return write_job_cells(kCoarseSeconds, coarse);
}

base::Status SqliteStore::write_job_cells(std::int64_t slot_seconds, const Merged& cells) {
  std::string marks, merges;
  for (std::size_t i = 0; i < rollups::kCellFieldCount; ++i) {
    const rollups::CellFieldInfo& field = rollups::cell_fields()[i];
    const std::string name(field.name);
    marks += ", ?";
    // NULL is the identity of a minimum or maximum.
    switch (field.merge) {
      case rollups::Merge::kSum: merges += name + " = " + name + " + excluded." + name + ", "; break;
      case rollups::Merge::kMin:
        merges += name + " = min(ifnull(" + name + ", excluded." + name + "), ifnull(excluded." + name + ", " + name + ")), ";
        break;
      case rollups::Merge::kMax:
        merges += name + " = max(ifnull(" + name + ", excluded." + name + "), ifnull(excluded." + name + ", " + name + ")), ";
        break;
      case rollups::Merge::kLatest: {
        const std::string time(rollups::cell_fields()[static_cast<std::size_t>(CellField::kOfuLastTime)].name);
        merges += name + " = CASE WHEN ifnull(excluded." + time + ", -1) >= ifnull(" + time + ", -1) THEN excluded." + name +
                  " ELSE " + name + " END, ";
        break;
      }
    }
  }
  FLOPSIGHT_ASSIGN_OR_RETURN(
      Statement upsert,
      database_.prepare("INSERT INTO job_cells(slot_seconds, start_unix_milliseconds, job_id, model_id, " + cell_columns() +
                        ", spread) VALUES(?, ?, ?, ?" + marks + ", ?) ON CONFLICT DO UPDATE SET " + merges +
                        "spread = flopsight_merge_spread(spread, excluded.spread)"));
  for (const auto& [key, cell] : cells) {
    upsert.bind(1, slot_seconds);
    upsert.bind(2, cell.slot_start.unix_milliseconds);
    upsert.bind(3, cell.job);
    upsert.bind(4, cell.model);
    int parameter = 5;
    for (std::size_t i = 0; i < rollups::kCellFieldCount; ++i, ++parameter) {
      const auto field = static_cast<CellField>(i);
      if (cell.cell.has(field)) {
        upsert.bind(parameter, cell.cell[field]);
      } else {
        upsert.bind_null(parameter);
      }
    }
    upsert.bind_blob(parameter, encode_spread(cell.spread));
    FLOPSIGHT_RETURN_IF_ERROR(upsert.run());
  }
  return {};
}

base::Status SqliteStore::write_gpu_names() {
  FLOPSIGHT_ASSIGN_OR_RETURN(
      Statement gpu_row,
      database_.prepare("INSERT OR REPLACE INTO gpus(id, first_unix_milliseconds, " + std::string(kGpuColumns) +
                        ") VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"));
  for (const auto& [id, identity] : new_names_) {
    gpu_row.bind(1, id);
    gpu_row.bind(2, gpus_[id - 1].first);
    for (int i = 0; i < 8; ++i) gpu_row.bind_text(3 + i, identity.*kGpuNames[i]);
    FLOPSIGHT_RETURN_IF_ERROR(gpu_row.run());
  }
  new_names_.clear();
  return {};
}

base::Status SqliteStore::write_names() {
  FLOPSIGHT_RETURN_IF_ERROR(write_gpu_names());
  FLOPSIGHT_ASSIGN_OR_RETURN(Statement first_seen,
                             database_.prepare("UPDATE gpus SET first_unix_milliseconds = ? WHERE id = ?"));
  for (std::size_t i = 0; i < gpus_.size(); ++i) {
    if (!gpus_[i].first_changed) continue;
    first_seen.bind(1, gpus_[i].first);
    first_seen.bind(2, static_cast<std::int64_t>(i + 1));
    FLOPSIGHT_RETURN_IF_ERROR(first_seen.run());
  }
  FLOPSIGHT_ASSIGN_OR_RETURN(Statement job_row,
                             database_.prepare("INSERT OR REPLACE INTO jobs VALUES(?, ?, ?, ?, ?, ?, ?)"));
  for (std::size_t i = 0; i < jobs_.size(); ++i) {
    if (!jobs_[i].dirty) continue;
    job_row.bind(1, static_cast<std::int64_t>(i + 1));
    const samples::Holder& holder = jobs_[i].holder;
    const std::string* const texts[] = {&holder.job, &holder.name_space, &holder.container,
                                        &holder.user, &holder.team, &holder.rule};
    for (int t = 0; t < 6; ++t) job_row.bind_text(t + 2, *texts[t]);
    FLOPSIGHT_RETURN_IF_ERROR(job_row.run());
  }
  FLOPSIGHT_ASSIGN_OR_RETURN(Statement model_row, database_.prepare("INSERT OR REPLACE INTO models VALUES(?, ?)"));
  for (std::size_t i = 0; i < models_.size(); ++i) {
    if (!models_dirty_[i]) continue;
    model_row.bind(1, static_cast<std::int64_t>(i + 1));
    model_row.bind_text(2, models_[i]);
    FLOPSIGHT_RETURN_IF_ERROR(model_row.run());
  }
  return {};
}

base::Status SqliteStore::write_spans() {
  FLOPSIGHT_ASSIGN_OR_RETURN(
      Statement insert,
      database_.prepare("INSERT INTO spans(job_id, gpu_id, start_unix_milliseconds, end_unix_milliseconds, is_open) "
                        "VALUES(?, ?, ?, ?, ?)"));
  FLOPSIGHT_ASSIGN_OR_RETURN(
      Statement close, database_.prepare("UPDATE spans SET end_unix_milliseconds = ?, is_open = 0 WHERE id = ?"));
  const auto write_new = [&](GpuId gpu, const Span& span, bool is_open) {
    insert.bind(1, span.job);
    insert.bind(2, gpu);
    insert.bind(3, span.start);
    insert.bind(4, span.end);
    insert.bind(5, is_open ? 1 : 0);
    return insert.run();
  };
  const auto write_closed = [&](GpuId gpu, const Span& span) -> base::Status {
    if (span.row == 0) return write_new(gpu, span, false);
    close.bind(1, span.end);
    close.bind(2, span.row);
    return close.run();
  };
  for (const auto& [gpu, span] : spans_to_write_) FLOPSIGHT_RETURN_IF_ERROR(write_closed(gpu, span));
  spans_to_write_.clear();
  base::Status failed;
  for (GpuId gpu = 1; gpu <= gpus_.size(); ++gpu) {
    keep_spans(gpu, [&](Span& span) {
      if (!failed.ok()) return true;
      if (span.end < gpus_[gpu - 1].closed_until) {
        failed = write_closed(gpu, span);
        return false;
      }
      if (span.row == 0) {
        failed = write_new(gpu, span, true);
        span.row = database_.last_rowid();
      }
      return true;
    });
    FLOPSIGHT_RETURN_IF_ERROR(failed);
  }
  return {};
}

base::Status SqliteStore::write_checkpoint(const Checkpoint& checkpoint) {
  std::vector<std::int64_t> ids, times;
  for (const auto& [id, time] : checkpoint.closed_until) gpus_.at(id - 1).closed_until = time.unix_milliseconds;
  for (std::size_t i = 0; i < gpus_.size(); ++i) {
    if (gpus_[i].closed_until == 0) continue;
    ids.push_back(static_cast<std::int64_t>(i + 1));
    times.push_back(gpus_[i].closed_until);
  }
  wire::ColumnWriter writer;
  writer.add(ids);
  writer.add(times);
  FLOPSIGHT_ASSIGN_OR_RETURN(Statement replace, database_.prepare("INSERT OR REPLACE INTO checkpoint VALUES(1, ?, ?)"));
  replace.bind(1, checkpoint.log_segment);
  replace.bind_blob(2, writer.finish(kCompressionLevel));
  return replace.run();
}

base::Status SqliteStore::commit(const Checkpoint& checkpoint) {
  const auto steps = [&]() -> base::Status {
    while (!gpu_cells_.empty()) FLOPSIGHT_RETURN_IF_ERROR(write_gpu_group(gpu_cells_.begin()->first));
    FLOPSIGHT_RETURN_IF_ERROR(write_jobs());
    FLOPSIGHT_RETURN_IF_ERROR(write_checkpoint(checkpoint));
    FLOPSIGHT_RETURN_IF_ERROR(write_spans());
    FLOPSIGHT_RETURN_IF_ERROR(write_names());
    if (simulated_) FLOPSIGHT_RETURN_IF_ERROR(database_.execute("INSERT OR IGNORE INTO meta VALUES('simulated', 1)"));
    return database_.execute("COMMIT");
  };
  if (const base::Status done = steps(); !done.ok()) {
    roll_back();
    return done;
  }
  flushing_ = false;
  log_segment_ = checkpoint.log_segment;
  for (Gpu& gpu : gpus_) gpu.first_changed = false;
  for (Job& job : jobs_) job.dirty = false;
  models_dirty_.assign(models_.size(), false);
  return {};
}

}  // namespace flopsight::store
