#include "findings/ledger.h"

#include <algorithm>

#include "findings/record_json.h"
#include "store/put_aside.h"
#include "store/sqlite_transaction.h"

namespace flopsight::findings {
namespace {

using base::Error;
using base::ErrorCode;
using base::Result;
using base::Status;
using base::json::Array;
using store::Database;
using store::Statement;

constexpr std::int64_t kVersion = 1;

// Columns of findings are for looking up and for people; what is read back is `record`, the whole as JSON.
constexpr const char* kTables = R"sql(
CREATE TABLE findings(
  id TEXT PRIMARY KEY, key TEXT NOT NULL, kind TEXT NOT NULL, severity INTEGER NOT NULL, state INTEGER NOT NULL, job TEXT NOT NULL,
  job_name TEXT NOT NULL, user TEXT NOT NULL, team TEXT NOT NULL, host TEXT NOT NULL, gpu TEXT NOT NULL,
  first_unix_milliseconds INTEGER NOT NULL, last_unix_milliseconds INTEGER NOT NULL, cost_gpu_hours REAL, cost_usd REAL,
  record TEXT NOT NULL) WITHOUT ROWID;
CREATE INDEX findings_by_state ON findings(state, kind, severity);
CREATE INDEX findings_by_last ON findings(last_unix_milliseconds);
CREATE INDEX findings_by_job ON findings(job);
CREATE TABLE silences(id TEXT PRIMARY KEY, end_unix_milliseconds INTEGER NOT NULL, silence TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE progress(looked_until_unix_milliseconds INTEGER NOT NULL);
CREATE VIEW told_findings AS SELECT id, kind,
  CASE severity WHEN 2 THEN 'critical' WHEN 1 THEN 'warning' ELSE 'info' END AS severity,
  CASE state WHEN 0 THEN 'open' WHEN 1 THEN 'acknowledged' ELSE 'resolved' END AS state, job, user, team, host, gpu,
  strftime('%Y-%m-%dT%H:%M:%SZ', first_unix_milliseconds / 1000, 'unixepoch') AS first,
  strftime('%Y-%m-%dT%H:%M:%SZ', last_unix_milliseconds / 1000, 'unixepoch') AS last, cost_gpu_hours, cost_usd,
  json_extract(record, '$.text') AS text FROM findings;
)sql";

Status prepare(Database& database, bool read_only) {
  FLOPSIGHT_ASSIGN_OR_RETURN(const std::int64_t version, store::number(database, "PRAGMA user_version"));
  if (version > kVersion) {
    return Error{ErrorCode::kUnsupported,
                 "findings of version " + std::to_string(version) + ", this program knows up to " + std::to_string(kVersion)};
  }
  if (read_only) return version == 0 ? Status(Error{ErrorCode::kCorrupt, "empty or cut, expected findings"}) : Status();
  if (version == 0) {
    FLOPSIGHT_RETURN_IF_ERROR(database.execute("PRAGMA auto_vacuum = INCREMENTAL; PRAGMA journal_mode = WAL;"));
    FLOPSIGHT_RETURN_IF_ERROR(
        database.execute(std::string("BEGIN IMMEDIATE;") + kTables + "PRAGMA user_version = " + std::to_string(kVersion) + "; COMMIT;"));
  }
  return database.execute("PRAGMA synchronous = FULL; PRAGMA cache_size = -1000;");
}

Result<Record> record_in(const Statement& row) {
  FLOPSIGHT_ASSIGN_OR_RETURN(const base::json::Value json, base::json::parse(row.text(0)));
  return record_from_json(json);
}

Result<std::vector<Record>> records_of(Statement& find) {
  std::vector<Record> out;
  for (;;) {
    FLOPSIGHT_ASSIGN_OR_RETURN(const bool row, find.step());
    if (!row) return out;
    auto record = record_in(find);
    if (!record.ok()) return Error{ErrorCode::kCorrupt, "a finding that cannot be read: " + record.error().message};
    out.push_back(std::move(record).value());
  }
}

// A list as JSON, for json_each(): '[]' is anything.
template <typename T, typename Name>
std::string list_text(const std::vector<T>& items, Name name) {
  Array out;
  for (const T& item : items) out.emplace_back(name(item));
  return base::json::dump(std::move(out), 0);
}

constexpr const char* kWhere = R"sql( FROM findings WHERE (?1 = '[]' OR state IN (SELECT value FROM json_each(?1)))
  AND (?2 = '[]' OR kind IN (SELECT value FROM json_each(?2))) AND (?3 = '[]' OR severity IN (SELECT value FROM json_each(?3)))
  AND (?4 = '' OR job = ?4 OR job_name = ?4) AND (?5 = '' OR host = ?5) AND (?6 = '' OR gpu = ?6) AND (?7 = '' OR user = ?7)
  AND (?8 = '' OR team = ?8) AND last_unix_milliseconds >= ?9 AND first_unix_milliseconds < ?10
  AND ((?11 = '[]' AND ?12 = '[]') OR (user <> '' AND user IN (SELECT value FROM json_each(?11)))
    OR (team <> '' AND team IN (SELECT value FROM json_each(?12)))))sql";
constexpr const char* kOrder =
    " ORDER BY state = 2, severity DESC, coalesce(cost_usd, 0) DESC, coalesce(cost_gpu_hours, 0) DESC, last_unix_milliseconds DESC, id"
    " LIMIT ?13 OFFSET ?14";

void bind(Statement& find, const Query& query) {
  const auto itself = [](const std::string& text) { return text; };
  find.bind_text(1, list_text(query.states, [](State state) { return static_cast<int>(state); }));
  find.bind_text(2, list_text(query.kinds, itself));
  find.bind_text(3, list_text(query.severities, [](detect::Severity severity) { return static_cast<int>(severity); }));
  find.bind_text(4, query.job);
  find.bind_text(5, query.host);
  find.bind_text(6, query.gpu);
  find.bind_text(7, query.user);
  find.bind_text(8, query.team);
  find.bind(9, query.window ? query.window->start.unix_milliseconds : INT64_MIN);
  find.bind(10, query.window ? query.window->end.unix_milliseconds : INT64_MAX);
  find.bind_text(11, list_text(query.seen_users, itself));
  find.bind_text(12, list_text(query.seen_teams, itself));
}

}  // namespace

Result<std::unique_ptr<Ledger>> Ledger::open(const std::string& folder, LedgerOptions options) {
  const std::string path = path_in(folder);
  const auto mode = options.read_only ? Database::Mode::kReadOnly : Database::Mode::kReadWrite;
  std::string damage;
  for (int attempt = 0;; ++attempt) {
    auto opened = [&]() -> Result<std::unique_ptr<Ledger>> {
      FLOPSIGHT_ASSIGN_OR_RETURN(Database database, Database::open(path, mode));
      FLOPSIGHT_RETURN_IF_ERROR(prepare(database, options.read_only).within(path));
      std::unique_ptr<Ledger> ledger(new Ledger(std::move(database), options));
      FLOPSIGHT_RETURN_IF_ERROR([&]() -> Status {
        const auto readable = ledger->current(units::Instant{INT64_MAX});
        return readable.ok() ? Status() : Status(readable.error().within(path));
      }());
      ledger->damage_ = damage;
      return ledger;
    }();
    if (opened.ok() || opened.error().code != ErrorCode::kCorrupt || options.read_only || attempt > 0) return opened;
    const auto aside = store::put_aside(path);
    if (!aside.ok()) return opened.error();
    damage = opened.error().message + "; put aside as " + *aside + ", new findings were begun: acknowledgements and silences of before are not in them";
  }
}

Result<std::vector<Record>> Ledger::current(units::Instant last) {
  const std::scoped_lock lock(mutex_);
  FLOPSIGHT_ASSIGN_OR_RETURN(Statement find, database_.prepare("SELECT record FROM findings WHERE state IN (0, 1) OR last_unix_milliseconds >= ? "
                                                               "ORDER BY last_unix_milliseconds"));
  find.bind(1, last.unix_milliseconds);
  return records_of(find);
}

Result<std::vector<Silence>> Ledger::silences() {
  const std::scoped_lock lock(mutex_);
  FLOPSIGHT_ASSIGN_OR_RETURN(Statement find, database_.prepare("SELECT silence FROM silences ORDER BY end_unix_milliseconds, id"));
  std::vector<Silence> out;
  for (;;) {
    FLOPSIGHT_ASSIGN_OR_RETURN(const bool row, find.step());
    if (!row) return out;
    FLOPSIGHT_ASSIGN_OR_RETURN(const base::json::Value json, base::json::parse(find.text(0)));
    FLOPSIGHT_ASSIGN_OR_RETURN(Silence silence, silence_from_json(json));
    out.push_back(std::move(silence));
  }
}

Result<std::optional<units::Instant>> Ledger::looked_until() {
  const std::scoped_lock lock(mutex_);
  FLOPSIGHT_ASSIGN_OR_RETURN(Statement find, database_.prepare("SELECT looked_until_unix_milliseconds FROM progress"));
  FLOPSIGHT_ASSIGN_OR_RETURN(const bool row, find.step());
  return row ? std::optional(units::Instant{find.integer(0)}) : std::nullopt;
}

Status Ledger::put(std::span<const Record> records, std::optional<units::Instant> looked_until) {
  const std::scoped_lock lock(mutex_);
  return store::in_transaction(database_, [&]() -> Status {
    FLOPSIGHT_ASSIGN_OR_RETURN(Statement put,
                               database_.prepare("INSERT OR REPLACE INTO findings VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"));
    for (const Record& record : records) {
      put.bind_text(1, record.id);
      put.bind_text(2, record.key);
      put.bind_text(3, record.kind);
      put.bind(4, static_cast<std::int64_t>(record.severity));
      put.bind(5, static_cast<std::int64_t>(record.state));
      put.bind_text(6, record.job);
      put.bind_text(7, record.holder.job);
      put.bind_text(8, record.holder.user);
      put.bind_text(9, record.holder.team);
      put.bind_text(10, record.host);
      put.bind_text(11, record.gpu);
      put.bind(12, record.first.unix_milliseconds);
      put.bind(13, record.last.unix_milliseconds);
      put.bind_real(14, record.cost ? std::optional(record.cost->value) : std::nullopt);
      put.bind_real(15, record.cost_usd ? std::optional(record.cost_usd->value) : std::nullopt);
      put.bind_text(16, base::json::dump(record_json(record), 0));
      FLOPSIGHT_RETURN_IF_ERROR(put.run());
    }
    if (!looked_until) return {};
    FLOPSIGHT_RETURN_IF_ERROR(database_.execute("DELETE FROM progress"));
    FLOPSIGHT_ASSIGN_OR_RETURN(Statement progress, database_.prepare("INSERT INTO progress VALUES(?)"));
    progress.bind(1, looked_until->unix_milliseconds);
    return progress.run();
  });
}

Status Ledger::put_silence(const Silence& silence) {
  const std::scoped_lock lock(mutex_);
  FLOPSIGHT_ASSIGN_OR_RETURN(Statement put, database_.prepare("INSERT OR REPLACE INTO silences VALUES(?, ?, ?)"));
  put.bind_text(1, silence.id);
  put.bind(2, silence.end.unix_milliseconds);
  put.bind_text(3, base::json::dump(silence_json(silence), 0));
  return put.run();
}

Status Ledger::remove_silence(std::string_view id) {
  const std::scoped_lock lock(mutex_);
  FLOPSIGHT_ASSIGN_OR_RETURN(Statement remove, database_.prepare("DELETE FROM silences WHERE id = ?"));
  remove.bind_text(1, id);
  return remove.run();
}

Result<Page> Ledger::find(const Query& query) {
  const std::scoped_lock lock(mutex_);
  Page page;
  FLOPSIGHT_ASSIGN_OR_RETURN(Statement count, database_.prepare(std::string("SELECT count(*)") + kWhere));
  bind(count, query);
  FLOPSIGHT_ASSIGN_OR_RETURN(const bool counted, count.step());
  page.records_total = counted ? static_cast<std::uint64_t>(count.integer(0)) : 0;
  FLOPSIGHT_ASSIGN_OR_RETURN(Statement find, database_.prepare(std::string("SELECT record") + kWhere + kOrder));
  bind(find, query);
  find.bind(13, static_cast<std::int64_t>(query.limit));
  find.bind(14, static_cast<std::int64_t>(std::min<std::uint64_t>(query.skip, INT64_MAX)));
  FLOPSIGHT_ASSIGN_OR_RETURN(page.records, records_of(find));
  return page;
}

Result<std::optional<Record>> Ledger::record(std::string_view id) {
  const std::scoped_lock lock(mutex_);
  FLOPSIGHT_ASSIGN_OR_RETURN(Statement find, database_.prepare("SELECT record FROM findings WHERE id = ?"));
  find.bind_text(1, id);
  FLOPSIGHT_ASSIGN_OR_RETURN(std::vector<Record> records, records_of(find));
  return records.empty() ? std::nullopt : std::optional(std::move(records.front()));
}

Result<std::vector<Count>> Ledger::counts() {
  const std::scoped_lock lock(mutex_);
  FLOPSIGHT_ASSIGN_OR_RETURN(Statement find,
                             database_.prepare("SELECT kind, severity, state, count(*) FROM findings GROUP BY state, kind, severity"));
  std::vector<Count> out;
  for (;;) {
    FLOPSIGHT_ASSIGN_OR_RETURN(const bool row, find.step());
    if (!row) return out;
    out.push_back({std::string(find.text(0)), static_cast<detect::Severity>(find.integer(1)), static_cast<State>(find.integer(2)),
                   static_cast<std::uint64_t>(find.integer(3))});
  }
}

Status Ledger::forget(units::Instant before) {
  const std::scoped_lock lock(mutex_);
  return store::in_transaction(database_, [&]() -> Status {
    FLOPSIGHT_ASSIGN_OR_RETURN(Statement old, database_.prepare("DELETE FROM findings WHERE state = 2 AND last_unix_milliseconds < ?"));
    old.bind(1, before.unix_milliseconds);
    FLOPSIGHT_RETURN_IF_ERROR(old.run());
    FLOPSIGHT_ASSIGN_OR_RETURN(Statement silent, database_.prepare("DELETE FROM silences WHERE end_unix_milliseconds < ?"));
    silent.bind(1, before.unix_milliseconds);
    FLOPSIGHT_RETURN_IF_ERROR(silent.run());
    FLOPSIGHT_ASSIGN_OR_RETURN(Statement many,
                               database_.prepare("DELETE FROM findings WHERE id IN (SELECT id FROM findings WHERE state = 2 ORDER BY "
                                                 "last_unix_milliseconds LIMIT max(0, (SELECT count(*) FROM findings) - ?))"));
    many.bind(1, static_cast<std::int64_t>(options_.records_max));
    return many.run();
  });
}

}  // namespace flopsight::findings
