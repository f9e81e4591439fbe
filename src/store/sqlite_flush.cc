// Flushes of the embedded store: cells to blocks, rows, spans, names and a checkpoint, in one transaction.
#include <algorithm>

#include "store/sqlite_store_internal.h"
#include "wire/column_codec.h"

namespace flopsight::store {
namespace {

using rollups::CellField;

// GPU cells held back before their groups are written, so that a flush of a million GPUs fits in memory.
constexpr std::size_t kCellsHeldMax = 16'384;
// As many new names are held back.
constexpr std::size_t kNamesHeldMax = 4'096;

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
  if (cell.job != 0) extend_span(cell);
  return add_cell(cell, model);
}

base::Status SqliteStore::add_cell(const GpuCell& cell, ModelId model) {
  const std::int64_t start = cell.slot_start.unix_milliseconds;
  JobCell& merged = job_cells_[{start, cell.job, model}];
  merged.job = cell.job;
  merged.model = model;
  merged.slot_start = cell.slot_start;
  merged.cell.merge(cell.cell);
  const std::int64_t measured = cell.cell[CellField::kMeasured];
  if (measured > 0) {
    merged.spread.add(static_cast<double>(cell.cell[CellField::kDelivered]) / static_cast<double>(measured), measured);
  }
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
  // How many GPUs it had stays as it is.
  FLOPSIGHT_ASSIGN_OR_RETURN(
      Statement job_row,
      database_.prepare("INSERT INTO jobs(id, job, namespace, container, user, team, rule, gpu_count) VALUES(?, ?, ?, ?, ?, ?, ?, 0) "
                        "ON CONFLICT(id) DO UPDATE SET job = excluded.job, namespace = excluded.namespace, "
                        "container = excluded.container, user = excluded.user, team = excluded.team, rule = excluded.rule"));
  for (const JobId id : jobs_to_write_) {
    job_row.bind(1, id);
    const samples::Holder holder = this->holder(id);
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

base::Status SqliteStore::write_checkpoint(const Checkpoint& checkpoint) {
  std::vector<std::int64_t> ids, times;
  for (const auto& [id, time] : checkpoint.closed_until) gpus_.at(id - 1).closed_until = time.unix_milliseconds;
  for (const auto& [instance, divided] : checkpoint.divided) {
    if (const auto whole = instances_.whole_of(instance)) divided_[*whole] = {instance, divided};
  }
  for (std::size_t i = 0; i < gpus_.size(); ++i) {
    if (gpus_[i].closed_until == 0) continue;
    ids.push_back(static_cast<std::int64_t>(i + 1));
    times.push_back(gpus_[i].closed_until);
  }
  wire::ColumnWriter writer;
  writer.add(ids);
  writer.add(times);
  FLOPSIGHT_ASSIGN_OR_RETURN(Statement replace, database_.prepare("INSERT OR REPLACE INTO checkpoint(id, log_segment, closed_until, divided) VALUES(1, ?, ?, ?)"));
  replace.bind(1, checkpoint.log_segment);
  replace.bind_blob(2, writer.finish(kCheckpointCompressionLevel));
  replace.bind_blob(3, encode_divided());
  return replace.run();
}

base::Status SqliteStore::commit(const Checkpoint& checkpoint) {
  const auto steps = [&]() -> base::Status {
    while (!gpu_cells_.empty()) FLOPSIGHT_RETURN_IF_ERROR(write_gpu_group(gpu_cells_.begin()->first));
    FLOPSIGHT_RETURN_IF_ERROR(write_jobs());
    FLOPSIGHT_RETURN_IF_ERROR(write_checkpoint(checkpoint));
    FLOPSIGHT_RETURN_IF_ERROR(write_names());
    FLOPSIGHT_RETURN_IF_ERROR(write_spans());
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
  jobs_to_write_.clear();
  models_dirty_.assign(models_.size(), false);
  return {};
}

}  // namespace flopsight::store
