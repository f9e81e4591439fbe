// Version 2 to 3: cells of the fleet from now on. Version 1 to 2: sums of jobs from a column for each field to blocks (job_columns.h), spans from a row for each GPU to one for all that
// a job took and gave back together.
#include <algorithm>

#include "store/gpu_runs.h"
#include "store/sqlite_schema.h"
#include "store/sqlite_store_internal.h"

namespace flopsight::store {
namespace {

units::Seconds seconds(std::int64_t count) { return units::Seconds(static_cast<double>(count)); }

base::Status insert_block(Database& database, BlockKind kind, std::int64_t slot_seconds, std::int64_t group, units::Instant start,
                          std::size_t cells, std::string_view bytes) {
  FLOPSIGHT_ASSIGN_OR_RETURN(
      Statement insert, database.prepare("INSERT INTO blocks(kind, slot_seconds, entity_group, start_unix_milliseconds, "
                                         "end_unix_milliseconds, cell_count, bytes) VALUES(?, ?, ?, ?, ?, ?, ?)"));
  const std::int64_t values[] = {static_cast<std::int64_t>(kind), slot_seconds, group, start.unix_milliseconds,
                                 start.unix_milliseconds + milliseconds(slot_seconds), static_cast<std::int64_t>(cells)};
  int parameter = 0;
  for (const std::int64_t value : values) insert.bind(++parameter, value);
  insert.bind_blob(7, bytes);
  return insert.run();
}

base::Status write_cells(Database& database, std::int64_t slot_seconds, std::vector<JobCell>& cells) {
  if (cells.empty()) return {};
  const std::int64_t group = cells.front().job / kGroupSize;
  const units::Instant start = cells.front().slot_start;
  const units::Seconds slot = seconds(slot_seconds);
  FLOPSIGHT_RETURN_IF_ERROR(
      insert_block(database, BlockKind::kJobSums, slot_seconds, group, start, cells.size(), encode_job_sums(cells, slot)));
  FLOPSIGHT_RETURN_IF_ERROR(
      insert_block(database, BlockKind::kJobSpreads, slot_seconds, group, start, cells.size(), encode_job_spreads(cells, slot)));
  cells.clear();
  return {};
}

// Rows of version 1 in slots of `from_seconds` as blocks of slots of `to_seconds`.
base::Status move_job_cells(Database& database, std::int64_t from_seconds, std::int64_t to_seconds) {
  std::string columns;
  const auto fields = rollups::cell_fields().first(rollups::kFirstCellFieldCount);
  for (const rollups::CellFieldInfo& field : fields) columns += ", " + std::string(field.name);
  FLOPSIGHT_ASSIGN_OR_RETURN(
      Statement select,
      database.prepare("SELECT start_unix_milliseconds / ?1 * ?1 AS start, job_id, model_id, spread" + columns +
                       " FROM job_cells_1 WHERE slot_seconds = ?2 ORDER BY start, job_id, model_id"));
  select.bind(1, milliseconds(to_seconds));
  select.bind(2, from_seconds);
  std::vector<JobCell> cells;
  for (;;) {
    FLOPSIGHT_ASSIGN_OR_RETURN(const bool row, select.step());
    if (!row) break;
    JobCell cell;
    cell.slot_start = units::Instant{select.integer(0)};
    cell.job = static_cast<JobId>(select.integer(1));
    cell.model = static_cast<ModelId>(select.integer(2));
    for (std::size_t i = 0; i < fields.size(); ++i) {
      const int column = 4 + static_cast<int>(i);
      if (!select.is_null(column)) cell.cell[static_cast<rollups::CellField>(i)] = select.integer(column);
    }
    // One that is damaged was left out of answers before as well.
    if (auto spread = decode_spread(select.blob(3)); spread.ok()) cell.spread = std::move(spread).value();
    const bool is_next = !cells.empty() && (cells.front().slot_start != cell.slot_start ||
                                            cells.front().job / kGroupSize != cell.job / kGroupSize);
    if (is_next) FLOPSIGHT_RETURN_IF_ERROR(write_cells(database, to_seconds, cells));
    if (!cells.empty() && cells.back().job == cell.job && cells.back().model == cell.model) {
      cells.back().cell.merge(cell.cell);
      cells.back().spread.merge(cell.spread);
    } else {
      cells.push_back(std::move(cell));
    }
  }
  return write_cells(database, to_seconds, cells);
}

base::Status move_job_rows(Database& database) {
  std::string absent;
  for (std::size_t i = 0; i < samples::kAbsentReasonCount; ++i) {
    const auto field = static_cast<std::size_t>(rollups::CellField::kAbsentFirst) + i;
    absent += (absent.empty() ? "" : " + ") + std::string(rollups::cell_fields()[field].name);
  }
  return database.execute("INSERT INTO job_cells SELECT slot_seconds, start_unix_milliseconds, job_id, model_id, measured_microseconds, "
                          "delivered_microseconds, " + absent + ", energy_joules, energy_known_microseconds FROM job_cells_1");
}

base::Status move_spans(Database& database) {
  FLOPSIGHT_ASSIGN_OR_RETURN(
      Statement select,
      database.prepare("SELECT job_id, start_unix_milliseconds, iif(is_open = 1, start_unix_milliseconds, end_unix_milliseconds) AS ends, "
                       "is_open, gpu_id FROM spans_1 ORDER BY job_id, start_unix_milliseconds, ends, is_open, gpu_id"));
  FLOPSIGHT_ASSIGN_OR_RETURN(
      Statement insert,
      database.prepare("INSERT INTO spans(job_id, start_unix_milliseconds, end_unix_milliseconds, is_open, gpus) VALUES(?, ?, ?, ?, ?)"));
  std::array<std::int64_t, 4> key{};
  std::vector<GpuId> gpus;
  const auto write = [&]() -> base::Status {
    if (gpus.empty()) return {};
    gpus.erase(std::unique(gpus.begin(), gpus.end()), gpus.end());
    for (int i = 0; i < 4; ++i) insert.bind(i + 1, key[static_cast<std::size_t>(i)]);
    insert.bind_blob(5, encode_gpu_runs(gpus));
    gpus.clear();
    return insert.run();
  };
  for (;;) {
    FLOPSIGHT_ASSIGN_OR_RETURN(const bool row, select.step());
    if (!row) break;
    const std::array<std::int64_t, 4> next{select.integer(0), select.integer(1), select.integer(2), select.integer(3)};
    if (next != key) FLOPSIGHT_RETURN_IF_ERROR(write());
    key = next;
    gpus.push_back(static_cast<GpuId>(select.integer(4)));
  }
  FLOPSIGHT_RETURN_IF_ERROR(write());
  return database.execute("UPDATE jobs SET gpu_count = (SELECT count(DISTINCT gpu_id) FROM spans_1 WHERE job_id = jobs.id)");
}

}  // namespace

base::Status upgrade_from_1(Database& database) {
  const auto steps = [&]() -> base::Status {
    FLOPSIGHT_RETURN_IF_ERROR(database.execute(
        "BEGIN IMMEDIATE; DROP VIEW job_rollups; DROP VIEW job_list; DROP INDEX spans_open; "
        "ALTER TABLE job_cells RENAME TO job_cells_1; ALTER TABLE spans RENAME TO spans_1; "
        "ALTER TABLE jobs ADD COLUMN gpu_count INTEGER NOT NULL DEFAULT 0;" +
        tables_since_2()));
    FLOPSIGHT_RETURN_IF_ERROR(move_job_cells(database, kMiddleSeconds, kMiddleSeconds));
    FLOPSIGHT_RETURN_IF_ERROR(move_job_cells(database, kCoarseSeconds, kCoarseSeconds));
    FLOPSIGHT_RETURN_IF_ERROR(move_job_cells(database, kCoarseSeconds, kWideSeconds));
    FLOPSIGHT_RETURN_IF_ERROR(move_job_rows(database));
    FLOPSIGHT_RETURN_IF_ERROR(move_spans(database));
    return database.execute("DROP TABLE job_cells_1; DROP TABLE spans_1;" + indices_since_2() + views() +
                            "PRAGMA user_version = 2; COMMIT;");
  };
  const base::Status done = steps();
  if (!done.ok()) static_cast<void>(database.execute("ROLLBACK"));
  return done.ok() ? done : base::Status(done.error().within("bringing it up to date from version 1"));
}

// What there is stays as it is and is added up by jobs, as adding up weeks of a large fleet here would keep the service from starting.
base::Status upgrade_from_2(Database& database) {
  const std::string wide = std::to_string(milliseconds(kWideSeconds));
  const base::Status done = database.execute(
      "BEGIN IMMEDIATE; INSERT INTO meta SELECT 'fleet_since_unix_milliseconds', (coalesce(max(end_unix_milliseconds), 0) + " + wide + " - 1) / " +
      wide + " * " + wide + " FROM blocks WHERE kind = 1; PRAGMA user_version = 3; COMMIT;");
  if (!done.ok()) static_cast<void>(database.execute("ROLLBACK"));
  return done.ok() ? done : base::Status(done.error().within("bringing it up to date from version 2"));
}

// Of one name and namespace there was one job, whatever users and teams it had.
base::Status upgrade_from_3(Database& database) {
  const base::Status done = database.execute(
      "BEGIN IMMEDIATE; DROP VIEW job_rollups; DROP VIEW job_list; ALTER TABLE jobs RENAME TO jobs_3;" + jobs_since_4() +
      "INSERT INTO jobs SELECT id, job, namespace, container, user, team, rule, gpu_count FROM jobs_3; DROP TABLE jobs_3;" + views() +
      "PRAGMA user_version = 4; COMMIT;");
  if (!done.ok()) static_cast<void>(database.execute("ROLLBACK"));
  return done.ok() ? done : base::Status(done.error().within("bringing it up to date from version 3"));
}

// How far divided GPUs are written was in no store: slots that are open now are as they would have been then.
base::Status upgrade_from_4(Database& database) {
  const base::Status done = database.execute("BEGIN IMMEDIATE; ALTER TABLE checkpoint ADD COLUMN divided BLOB NOT NULL DEFAULT x''; PRAGMA user_version = 5; COMMIT;");
  if (!done.ok()) static_cast<void>(database.execute("ROLLBACK"));
  return done.ok() ? done : base::Status(done.error().within("bringing it up to date from version 4"));
}

}  // namespace flopsight::store
