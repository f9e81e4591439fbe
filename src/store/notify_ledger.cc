#include "store/notify_ledger.h"

#include "store/put_aside.h"
#include "store/sqlite_transaction.h"

namespace flopsight::store {
namespace {

using base::Result;
using base::Status;

constexpr std::int64_t kVersion = 1;
constexpr const char* kTables = R"sql(
CREATE TABLE receivers(name TEXT PRIMARY KEY, since_unix_milliseconds INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE told(
  receiver TEXT NOT NULL, finding TEXT NOT NULL, is_open INTEGER NOT NULL, is_given_up INTEGER NOT NULL,
  told_unix_milliseconds INTEGER NOT NULL, severity TEXT NOT NULL, labels TEXT NOT NULL, PRIMARY KEY(receiver, finding)) WITHOUT ROWID;
CREATE VIEW told_findings AS SELECT receiver, finding, iif(is_open, 'open', 'ended') AS state, is_given_up, severity,
  strftime('%Y-%m-%dT%H:%M:%SZ', told_unix_milliseconds / 1000, 'unixepoch') AS told FROM told;
)sql";

Status prepare(Database& database) {
  FLOPSIGHT_ASSIGN_OR_RETURN(const std::int64_t version, number(database, "PRAGMA user_version"));
  if (version > kVersion) {
    return base::Error{base::ErrorCode::kUnsupported, "a ledger of notifications of version " + std::to_string(version) + ", this program knows up to " +
                                                          std::to_string(kVersion)};
  }
  if (version == kVersion) return {};
  FLOPSIGHT_RETURN_IF_ERROR(database.execute("PRAGMA journal_mode = WAL;"));
  return database.execute(std::string("BEGIN IMMEDIATE;") + kTables + "PRAGMA user_version = " + std::to_string(kVersion) + "; COMMIT;");
}

Result<Database> open_database(const std::string& path) {
  FLOPSIGHT_ASSIGN_OR_RETURN(Database database, Database::open(path, Database::Mode::kReadWrite));
  FLOPSIGHT_RETURN_IF_ERROR(prepare(database).within(path));
  FLOPSIGHT_RETURN_IF_ERROR(database.execute("PRAGMA synchronous = FULL; PRAGMA cache_size = -1000;"));
  return database;
}

}  // namespace

Result<std::unique_ptr<NotifyLedger>> NotifyLedger::open(const std::string& folder, std::size_t rows_max) {
  const std::string path = folder + "/flopsight-notify.db";
  std::string damage;
  Result<Database> database = open_database(path);
  if (!database.ok() && database.error().code == base::ErrorCode::kCorrupt) {
    FLOPSIGHT_ASSIGN_OR_RETURN(const std::string aside, put_aside(path));
    damage = database.error().message + "; put aside as " + aside + ", a new one was begun: findings that are open are told again";
    database = open_database(path);
  }
  if (!database.ok()) return database.error();
  std::unique_ptr<NotifyLedger> ledger(new NotifyLedger(std::move(database).value(), rows_max));
  ledger->damage_ = damage;
  return ledger;
}

Result<units::Instant> NotifyLedger::since(std::string_view receiver, units::Instant now) {
  const std::scoped_lock lock(mutex_);
  FLOPSIGHT_ASSIGN_OR_RETURN(Statement insert, database_.prepare("INSERT OR IGNORE INTO receivers VALUES(?, ?)"));
  insert.bind_text(1, receiver);
  insert.bind(2, now.unix_milliseconds);
  FLOPSIGHT_RETURN_IF_ERROR(insert.run());
  FLOPSIGHT_ASSIGN_OR_RETURN(Statement find, database_.prepare("SELECT since_unix_milliseconds FROM receivers WHERE name = ?"));
  find.bind_text(1, receiver);
  FLOPSIGHT_ASSIGN_OR_RETURN(const bool row, find.step());
  return row ? units::Instant{find.integer(0)} : now;
}

Result<ToldFindings> NotifyLedger::told(std::string_view receiver) {
  const std::scoped_lock lock(mutex_);
  FLOPSIGHT_ASSIGN_OR_RETURN(Statement find, database_.prepare("SELECT finding, is_open, is_given_up, told_unix_milliseconds, severity, labels FROM told "
                                                               "WHERE receiver = ? ORDER BY finding"));
  find.bind_text(1, receiver);
  ToldFindings out;
  for (;;) {
    FLOPSIGHT_ASSIGN_OR_RETURN(const bool row, find.step());
    if (!row) return out;
    ToldFinding told{std::string(find.text(0)), find.integer(1) != 0, find.integer(2) != 0, units::Instant{find.integer(3)}, std::string(find.text(4)),
                     std::string(find.text(5))};
    out.emplace_hint(out.end(), told.finding, std::move(told));
  }
}

Status NotifyLedger::put(std::string_view receiver, const std::vector<ToldFinding>& rows) {
  const std::scoped_lock lock(mutex_);
  return in_transaction(database_, [&]() -> Status {
    FLOPSIGHT_ASSIGN_OR_RETURN(Statement insert, database_.prepare("INSERT OR REPLACE INTO told VALUES(?, ?, ?, ?, ?, ?, ?)"));
    for (const ToldFinding& row : rows) {
      insert.bind_text(1, receiver);
      insert.bind_text(2, row.finding);
      insert.bind(3, row.is_open ? 1 : 0);
      insert.bind(4, row.is_given_up ? 1 : 0);
      insert.bind(5, row.told.unix_milliseconds);
      insert.bind_text(6, row.severity);
      insert.bind_text(7, row.labels);
      FLOPSIGHT_RETURN_IF_ERROR(insert.run());
    }
    return {};
  });
}

Status NotifyLedger::forget(std::string_view receiver, units::Instant before) {
  const std::scoped_lock lock(mutex_);
  FLOPSIGHT_ASSIGN_OR_RETURN(Statement old, database_.prepare("DELETE FROM told WHERE receiver = ? AND is_open = 0 AND told_unix_milliseconds < ?"));
  old.bind_text(1, receiver);
  old.bind(2, before.unix_milliseconds);
  FLOPSIGHT_RETURN_IF_ERROR(old.run());
  FLOPSIGHT_ASSIGN_OR_RETURN(Statement over, database_.prepare("DELETE FROM told WHERE receiver = ?1 AND finding IN (SELECT finding FROM told WHERE receiver = ?1 "
                                                               "ORDER BY is_open DESC, told_unix_milliseconds DESC LIMIT -1 OFFSET ?2) AND is_open = 0"));
  over.bind_text(1, receiver);
  over.bind(2, static_cast<std::int64_t>(rows_max_));
  return over.run();
}

}  // namespace flopsight::store
