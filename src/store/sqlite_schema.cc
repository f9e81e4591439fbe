#include "store/sqlite_schema.h"

#include "store/sqlite_transaction.h"

namespace flopsight::store {
namespace {

constexpr const char* kTables = R"sql(
CREATE TABLE meta(key TEXT PRIMARY KEY, value) WITHOUT ROWID;
CREATE TABLE gpus(
  id INTEGER PRIMARY KEY, uuid TEXT NOT NULL, mig_instance TEXT NOT NULL,
  mig_profile TEXT NOT NULL, host TEXT NOT NULL, gpu_index TEXT NOT NULL, pci_bus_id TEXT NOT NULL,
  model_raw TEXT NOT NULL, driver_version TEXT NOT NULL, first_unix_milliseconds INTEGER);
CREATE TABLE models(id INTEGER PRIMARY KEY, model_raw TEXT NOT NULL UNIQUE);
CREATE TABLE blocks(
  id INTEGER PRIMARY KEY, kind INTEGER NOT NULL, slot_seconds INTEGER NOT NULL, entity_group INTEGER NOT NULL,
  start_unix_milliseconds INTEGER NOT NULL, end_unix_milliseconds INTEGER NOT NULL, cell_count INTEGER NOT NULL,
  bytes BLOB NOT NULL);
CREATE INDEX blocks_by_time ON blocks(
  kind, slot_seconds, entity_group, start_unix_milliseconds, end_unix_milliseconds);
CREATE TABLE checkpoint(
  id INTEGER PRIMARY KEY CHECK (id = 1), log_segment INTEGER NOT NULL, closed_until BLOB NOT NULL, divided BLOB NOT NULL DEFAULT x'');
)sql";

// What is missing of a store is noticed when it is opened, when it can be put aside, and not by the first question.
base::Status check_tables(Database& database) {
  for (const char* needed :
       {"meta", "gpus", "models", "jobs", "checkpoint", "job_cells", "blocks INDEXED BY blocks_by_time", "blocks INDEXED BY blocks_by_start",
        "spans INDEXED BY spans_by_job", "spans INDEXED BY spans_by_end WHERE is_open = 0 AND end_unix_milliseconds > 0",
        "spans INDEXED BY spans_open WHERE is_open = 1"}) {
    const auto there = database.prepare("SELECT 1 FROM " + std::string(needed));
    if (!there.ok()) return base::Error{base::ErrorCode::kCorrupt, there.error().message};
  }
  return {};
}

}  // namespace

std::string jobs_since_4() {
  return R"sql(
CREATE TABLE jobs(
  id INTEGER PRIMARY KEY, job TEXT NOT NULL, namespace TEXT NOT NULL, container TEXT NOT NULL, user TEXT NOT NULL,
  team TEXT NOT NULL, rule TEXT NOT NULL, gpu_count INTEGER NOT NULL DEFAULT 0);
)sql";
}

std::string tables_since_2() {
  return R"sql(
CREATE TABLE job_cells(
  slot_seconds INTEGER NOT NULL, start_unix_milliseconds INTEGER NOT NULL, job_id INTEGER NOT NULL, model_id INTEGER NOT NULL,
  measured_microseconds INTEGER NOT NULL, delivered_microseconds INTEGER NOT NULL, absent_microseconds INTEGER NOT NULL,
  energy_joules INTEGER NOT NULL, energy_known_microseconds INTEGER NOT NULL,
  PRIMARY KEY(slot_seconds, start_unix_milliseconds, job_id, model_id)) WITHOUT ROWID;
CREATE TABLE spans(
  id INTEGER PRIMARY KEY, job_id INTEGER NOT NULL, start_unix_milliseconds INTEGER NOT NULL,
  end_unix_milliseconds INTEGER NOT NULL, is_open INTEGER NOT NULL, gpus BLOB NOT NULL);
)sql";
}

std::string indices_since_2() {
  return R"sql(
CREATE INDEX spans_by_job ON spans(job_id, start_unix_milliseconds);
CREATE INDEX spans_by_end ON spans(end_unix_milliseconds) WHERE is_open = 0;
CREATE INDEX spans_open ON spans(is_open) WHERE is_open = 1;
CREATE INDEX blocks_by_start ON blocks(kind, slot_seconds, start_unix_milliseconds);
)sql";
}

// For people with a sqlite3 shell.
std::string views() {
  return R"sql(
CREATE VIEW job_rollups AS SELECT c.slot_seconds,
  strftime('%Y-%m-%dT%H:%M:%SZ', c.start_unix_milliseconds / 1000, 'unixepoch') AS start,
  coalesce(j.job, '') AS job, coalesce(j.namespace, '') AS namespace, coalesce(j.user, '') AS user,
  coalesce(j.team, '') AS team, m.model_raw AS model,
  (c.measured_microseconds + c.absent_microseconds) / 3600e6 AS gpu_hours_allocated,
  c.delivered_microseconds / 3600e6 AS gpu_hours_delivered,
  (c.measured_microseconds - c.delivered_microseconds) / 3600e6 AS gpu_hours_lost,
  c.absent_microseconds / 3600e6 AS gpu_hours_unmeasured,
  CASE WHEN c.measured_microseconds > 0 THEN 1.0 * c.delivered_microseconds / c.measured_microseconds END AS ofu_ratio,
  CASE WHEN c.energy_known_microseconds > 0 THEN c.energy_joules END AS energy_joules
  FROM job_cells c JOIN models m ON m.id = c.model_id LEFT JOIN jobs j ON j.id = c.job_id;
CREATE VIEW job_list AS SELECT j.id, j.job, j.namespace, j.user, j.team, j.rule AS attributed_by, j.gpu_count,
  strftime('%Y-%m-%dT%H:%M:%SZ', min(s.start_unix_milliseconds) / 1000, 'unixepoch') AS first,
  strftime('%Y-%m-%dT%H:%M:%SZ', max(s.end_unix_milliseconds) / 1000, 'unixepoch') AS last
  FROM jobs j LEFT JOIN spans s ON s.job_id = j.id GROUP BY j.id;
)sql";
}

base::Result<std::int64_t> slot_of_store(Database& database) {
  FLOPSIGHT_ASSIGN_OR_RETURN(const std::int64_t version, number(database, "PRAGMA user_version"));
  if (version < 1 || version > kSchemaVersion) {
    return base::Error{base::ErrorCode::kUnsupported,
                       version == 0 ? std::string("a database that is not Flopsight's")
                                    : "store of version " + std::to_string(version) + ", this program knows up to " +
                                          std::to_string(kSchemaVersion)};
  }
  if (version < kReadableVersion) {
    return base::Error{base::ErrorCode::kUnsupported, "store of version " + std::to_string(version) +
                                                          ", which `flopsight serve` brings up to date when it starts with it; only "
                                                          "versions from " + std::to_string(kReadableVersion) + " on can be read"};
  }
  return number(database, "SELECT value FROM meta WHERE key = 'slot_milliseconds'");
}

base::Status prepare_schema(Database& database, std::int64_t slot_milliseconds) {
  FLOPSIGHT_ASSIGN_OR_RETURN(const std::int64_t version, number(database, "PRAGMA user_version"));
  if (version > kSchemaVersion) {
    return base::Error{base::ErrorCode::kUnsupported, "store of version " + std::to_string(version) +
                                                          ", this program knows up to " +
                                                          std::to_string(kSchemaVersion)};
  }
  if (version == 0) {
    FLOPSIGHT_ASSIGN_OR_RETURN(const std::int64_t tables, number(database, "SELECT count(*) FROM sqlite_master"));
    if (tables != 0) return base::Error{base::ErrorCode::kUnsupported, "a database that is not Flopsight's"};
    FLOPSIGHT_RETURN_IF_ERROR(database.execute(
        std::string("BEGIN IMMEDIATE;") + kTables + jobs_since_4() + tables_since_2() + indices_since_2() + views() +
        "INSERT INTO meta VALUES('slot_milliseconds', " + std::to_string(slot_milliseconds) +
        "), ('fleet_since_unix_milliseconds', 0);" +
        "PRAGMA user_version = " + std::to_string(kSchemaVersion) + "; COMMIT;"));
  }
  if (version == kSchemaVersion) FLOPSIGHT_RETURN_IF_ERROR(check_tables(database));
  if (version == 1) FLOPSIGHT_RETURN_IF_ERROR(upgrade_from_1(database));
  if (version == 1 || version == 2) FLOPSIGHT_RETURN_IF_ERROR(upgrade_from_2(database));
  if (version >= 1 && version <= 3) FLOPSIGHT_RETURN_IF_ERROR(upgrade_from_3(database));
  if (version >= 1 && version <= 4) FLOPSIGHT_RETURN_IF_ERROR(upgrade_from_4(database));
  FLOPSIGHT_ASSIGN_OR_RETURN(const std::int64_t slot,
                             number(database, "SELECT value FROM meta WHERE key = 'slot_milliseconds'"));
  if (slot != slot_milliseconds) {
    return base::Error{base::ErrorCode::kInvalid, "the store has slots of " + std::to_string(slot / 1000) +
                                                      " s, the configuration asks for " +
                                                      std::to_string(slot_milliseconds / 1000) +
                                                      " s; a store keeps the slot it was made with"};
  }
  return {};
}

}  // namespace flopsight::store
