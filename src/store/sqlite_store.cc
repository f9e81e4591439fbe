#include <algorithm>
#include <cmath>
#include <filesystem>

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
constexpr float kFullTable = 0.85F;
constexpr int kCompressionLevel = 3;

std::int64_t milliseconds(std::int64_t seconds) { return seconds * 1000; }

std::string job_key(const samples::Holder& holder) { return holder.job + '\0' + holder.name_space; }

void fill(std::string& into, const std::string& from, bool& changed) {
  if (!into.empty() || from.empty()) return;
  into = from;
  changed = true;
}

constexpr std::string samples::GpuIdentity::*kNames[] = {
    &samples::GpuIdentity::uuid,  &samples::GpuIdentity::mig_instance, &samples::GpuIdentity::mig_profile,
    &samples::GpuIdentity::host,  &samples::GpuIdentity::index,        &samples::GpuIdentity::pci_bus_id,
    &samples::GpuIdentity::model_raw, &samples::GpuIdentity::driver_version};
constexpr const char* kGpuColumns =
    "uuid, mig_instance, mig_profile, host, gpu_index, pci_bus_id, model_raw, driver_version";

std::uint8_t known_names(const samples::GpuIdentity& identity) {
  std::uint8_t bits = 0;
  for (std::size_t i = 0; i < 8; ++i) {
    if (!(identity.*kNames[i]).empty()) bits = static_cast<std::uint8_t>(bits | 1U << i);
  }
  return bits;
}

// The columns kGpuColumns from `first` on.
samples::GpuIdentity identity_of(const Statement& row, int first) {
  samples::GpuIdentity identity;
  for (int i = 0; i < 8; ++i) identity.*kNames[i] = std::string(row.text(first + i));
  return identity;
}

}  // namespace

base::Hash128 gpu_key(const samples::GpuIdentity& identity) {
  if (!identity.uuid.empty()) {
    return base::hash128("u" + samples::normalized_uuid(identity.uuid) + '\0' + identity.mig_instance);
  }
  return base::hash128("i" + identity.host + '\0' + identity.index + '\0' + identity.mig_instance);
}

SqliteStore::SqliteStore(Database database, std::string path, SqliteStoreOptions options)
    : database_(std::move(database)),
      path_(std::move(path)),
      options_(options),
      slot_seconds_(std::llround(options.slot.value)) {
  gpu_ids_.max_load_factor(kFullTable);
}

void SqliteStore::note(std::string line) {
  constexpr std::size_t kNotesMax = 100;
  if (notes_.size() < kNotesMax) notes_.push_back(std::move(line));
}

std::vector<std::string> SqliteStore::take_notes() { return std::exchange(notes_, {}); }

base::Status SqliteStore::load() {
  FLOPSIGHT_RETURN_IF_ERROR(database_.add_merge_function(
      "flopsight_merge_spread", [](std::string_view a, std::string_view b) {
        auto left = decode_spread(a);
        auto right = decode_spread(b);
        if (!left.ok() || !right.ok()) return std::string(left.ok() ? a : b);
        left->merge(*right);
        return encode_spread(*left);
      }));
  FLOPSIGHT_ASSIGN_OR_RETURN(
      Statement gpus, database_.prepare("SELECT id, first_unix_milliseconds, " + std::string(kGpuColumns) + " FROM gpus ORDER BY id"));
  for (;;) {
    FLOPSIGHT_ASSIGN_OR_RETURN(const bool row, gpus.step());
    if (!row) break;
    const samples::GpuIdentity identity = identity_of(gpus, 2);
    if (gpus.integer(0) != static_cast<std::int64_t>(gpus_.size()) + 1) {
      return base::Error{base::ErrorCode::kCorrupt, path_ + ": GPUs are missing from its table"};
    }
    gpus_.push_back({gpu_key(identity), gpus.integer(1), 0, known_names(identity), false});
    gpu_ids_.emplace(gpus_.back().key, static_cast<GpuId>(gpus_.size()));
  }
  FLOPSIGHT_ASSIGN_OR_RETURN(
      Statement jobs, database_.prepare("SELECT id, job, namespace, container, user, team, rule FROM jobs ORDER BY id"));
  for (;;) {
    FLOPSIGHT_ASSIGN_OR_RETURN(const bool row, jobs.step());
    if (!row) break;
    Job job;
    std::string* const texts[] = {&job.holder.job, &job.holder.name_space, &job.holder.container,
                                  &job.holder.user, &job.holder.team, &job.holder.rule};
    for (int i = 0; i < 6; ++i) *texts[i] = std::string(jobs.text(i + 1));
    job.dirty = false;
    if (jobs.integer(0) != static_cast<std::int64_t>(jobs_.size()) + 1) {
      return base::Error{base::ErrorCode::kCorrupt, path_ + ": jobs are missing from its table"};
    }
    job_ids_.emplace(job_key(job.holder), static_cast<JobId>(jobs_.size() + 1));
    jobs_.push_back(std::move(job));
  }
  FLOPSIGHT_ASSIGN_OR_RETURN(Statement models, database_.prepare("SELECT model_raw FROM models ORDER BY id"));
  for (;;) {
    FLOPSIGHT_ASSIGN_OR_RETURN(const bool row, models.step());
    if (!row) break;
    models_.emplace_back(models.text(0));
    models_dirty_.push_back(false);
    model_ids_.emplace(models_.back(), static_cast<ModelId>(models_.size()));
  }
  return load_checkpoint();
}

base::Status SqliteStore::load_checkpoint() {
  FLOPSIGHT_ASSIGN_OR_RETURN(Statement simulated, database_.prepare("SELECT 1 FROM meta WHERE key = 'simulated'"));
  FLOPSIGHT_ASSIGN_OR_RETURN(simulated_, simulated.step());
  simulated.reset();
  FLOPSIGHT_ASSIGN_OR_RETURN(Statement checkpoint,
                             database_.prepare("SELECT log_segment, closed_until FROM checkpoint"));
  FLOPSIGHT_ASSIGN_OR_RETURN(const bool row, checkpoint.step());
  if (!row) return {};
  log_segment_ = static_cast<std::uint32_t>(checkpoint.integer(0));
  FLOPSIGHT_ASSIGN_OR_RETURN(const auto columns, wire::read_columns(checkpoint.blob(1), {}));
  if (columns.size() != 2 || columns[0].size() != columns[1].size()) {
    return base::Error{base::ErrorCode::kCorrupt, path_ + ": its checkpoint is damaged"};
  }
  for (std::size_t i = 0; i < columns[0].size(); ++i) {
    const std::int64_t id = columns[0][i];
    if (id < 1 || id > static_cast<std::int64_t>(gpus_.size())) {
      return base::Error{base::ErrorCode::kCorrupt, path_ + ": its checkpoint names a GPU that it does not have"};
    }
    gpus_[static_cast<std::size_t>(id - 1)].closed_until = columns[1][i];
  }
  FLOPSIGHT_ASSIGN_OR_RETURN(Statement spans,
                             database_.prepare("SELECT id, job_id, gpu_id, start_unix_milliseconds FROM spans WHERE is_open = 1"));
  for (;;) {
    FLOPSIGHT_ASSIGN_OR_RETURN(const bool more, spans.step());
    if (!more) return {};
    const auto gpu = static_cast<GpuId>(spans.integer(2));
    if (gpu < 1 || gpu > gpus_.size()) continue;
    // One that is open went on up to where its GPU was closed.
    add_span(gpu, {static_cast<JobId>(spans.integer(1)), spans.integer(0), spans.integer(3),
                   gpus_[gpu - 1].closed_until});
  }
}

base::Result<samples::GpuIdentity> SqliteStore::names_of(GpuId id) {
  FLOPSIGHT_ASSIGN_OR_RETURN(Statement select,
                             database_.prepare("SELECT " + std::string(kGpuColumns) + " FROM gpus WHERE id = ?"));
  select.bind(1, id);
  FLOPSIGHT_ASSIGN_OR_RETURN(const bool row, select.step());
  return row ? identity_of(select, 0) : samples::GpuIdentity{};
}

GpuId SqliteStore::gpu(const samples::GpuIdentity& identity) {
  const base::Hash128 key = gpu_key(identity);
  const std::uint8_t names = known_names(identity);
  const auto [at, is_new] = gpu_ids_.emplace(key, static_cast<GpuId>(gpus_.size() + 1));
  const GpuId id = at->second;
  if (is_new) {
    gpus_.push_back({key, 0, 0, names, false});
    new_names_[id] = identity;
    return id;
  }
  Gpu& known = gpus_[id - 1];
  if ((names & ~known.names) == 0) return id;
  // Seldom: an exporter that says more than the one before.
  auto change = new_names_.find(id);
  if (change == new_names_.end()) {
    auto before = names_of(id);
    change = new_names_.emplace(id, before.ok() ? std::move(before).value() : identity).first;
  }
  bool changed = false;
  for (const auto name : kNames) fill(change->second.*name, identity.*name, changed);
  known.names = static_cast<std::uint8_t>(known.names | names);
  return id;
}

JobId SqliteStore::job(const samples::Holder& holder) {
  const auto [at, is_new] = job_ids_.emplace(job_key(holder), static_cast<JobId>(jobs_.size() + 1));
  if (is_new) {
    jobs_.push_back({holder, true});
    return at->second;
  }
  Job& known = jobs_[at->second - 1];
  fill(known.holder.user, holder.user, known.dirty);
  fill(known.holder.team, holder.team, known.dirty);
  return at->second;
}

ModelId SqliteStore::model(std::string_view model_raw) {
  const auto [at, is_new] = model_ids_.emplace(std::string(model_raw), static_cast<ModelId>(models_.size() + 1));
  if (is_new) {
    models_.emplace_back(model_raw);
    models_dirty_.push_back(true);
  }
  return at->second;
}

const std::string& SqliteStore::model_name(ModelId id) const {
  static const std::string unknown;
  return id >= 1 && id <= models_.size() ? models_[id - 1] : unknown;
}

std::vector<std::pair<base::Hash128, units::Instant>> SqliteStore::closed_until() const {
  std::vector<std::pair<base::Hash128, units::Instant>> out;
  for (const Gpu& gpu : gpus_) {
    if (gpu.closed_until != 0) out.emplace_back(gpu.key, units::Instant{gpu.closed_until});
  }
  return out;
}

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
    for (int i = 0; i < 8; ++i) gpu_row.bind_text(3 + i, identity.*kNames[i]);
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

base::Result<std::unique_ptr<Store>> open_sqlite_store(const std::string& folder, SqliteStoreOptions options) {
  const std::string path = folder + "/flopsight.db";
  std::string put_aside;
  for (int attempt = 0;; ++attempt) {
    const auto opened = [&]() -> base::Result<std::unique_ptr<SqliteStore>> {
      FLOPSIGHT_ASSIGN_OR_RETURN(
          Database database,
          Database::open(path, options.read_only ? Database::Mode::kReadOnly : Database::Mode::kReadWrite));
      if (options.read_only) {
        FLOPSIGHT_ASSIGN_OR_RETURN(const std::int64_t slot, slot_of_store(database).within(path));
        options.slot = units::Seconds(static_cast<double>(slot) / 1000);
      } else {
        // FULL: a commit survives a power cut, which is what lets the log be dropped behind it.
        FLOPSIGHT_RETURN_IF_ERROR(database.execute(
            "PRAGMA auto_vacuum = INCREMENTAL; PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA wal_autocheckpoint = 4000; "
            "PRAGMA cache_size = -8000; PRAGMA mmap_size = 0; PRAGMA trusted_schema = OFF;"));
        FLOPSIGHT_RETURN_IF_ERROR(prepare_schema(database, std::llround(options.slot.value * 1000)).within(path));
      }
      auto store = std::make_unique<SqliteStore>(std::move(database), path, options);
      FLOPSIGHT_RETURN_IF_ERROR(store->load());
      return store;
    }();
    if (opened.ok()) {
      auto store = std::move(const_cast<base::Result<std::unique_ptr<SqliteStore>>&>(opened)).value();
      if (!put_aside.empty()) store->note(put_aside);
      return std::unique_ptr<Store>(std::move(store));
    }
    if (opened.error().code != base::ErrorCode::kCorrupt || options.read_only || attempt > 0) return opened.error();
    std::string aside;
    for (int n = 1; aside.empty() || std::filesystem::exists(aside); ++n) aside = path + ".damaged-" + std::to_string(n);
    std::error_code error;
    std::filesystem::rename(path, aside, error);
    if (error) return opened.error();
    for (const char* companion : {"-wal", "-shm"}) {
      if (std::filesystem::exists(path + companion)) std::filesystem::rename(path + companion, aside + companion, error);
    }
    put_aside = opened.error().message + "; put aside as " + aside + ", a new store was begun: rollups before " +
                "what the log still holds are not in it";
  }
}

}  // namespace flopsight::store
