// The outbox beside a store: a table in the same file, so that what is put in and what is checkpointed are one transaction.
#include "store/sqlite_store_internal.h"

namespace flopsight::store {
namespace {

constexpr const char* kTables = R"sql(
CREATE TABLE IF NOT EXISTS outbox(
  id INTEGER PRIMARY KEY AUTOINCREMENT, slot_unix_milliseconds INTEGER NOT NULL, byte_count INTEGER NOT NULL, bytes BLOB NOT NULL);
CREATE TABLE IF NOT EXISTS outbox_values(key TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;
)sql";

class SqliteOutbox : public Outbox {
 public:
  explicit SqliteOutbox(Database& database) : database_(database) {}

  base::Status put(std::string_view bytes, units::Instant slot_start) override {
    FLOPSIGHT_ASSIGN_OR_RETURN(
        Statement insert,
        database_.prepare("INSERT INTO outbox(slot_unix_milliseconds, byte_count, bytes) VALUES(?, ?, ?)"));
    insert.bind(1, slot_start.unix_milliseconds);
    insert.bind(2, static_cast<std::int64_t>(bytes.size()));
    insert.bind_blob(3, bytes);
    return insert.run();
  }

  base::Status remember(const std::string& key, std::int64_t value) override {
    FLOPSIGHT_ASSIGN_OR_RETURN(Statement replace, database_.prepare("INSERT OR REPLACE INTO outbox_values VALUES(?, ?)"));
    replace.bind_text(1, key);
    replace.bind(2, value);
    return replace.run();
  }

  base::Result<std::optional<std::int64_t>> recall(const std::string& key) override {
    FLOPSIGHT_ASSIGN_OR_RETURN(Statement select, database_.prepare("SELECT value FROM outbox_values WHERE key = ?"));
    select.bind_text(1, key);
    FLOPSIGHT_ASSIGN_OR_RETURN(const bool row, select.step());
    return row ? std::optional(select.integer(0)) : std::nullopt;
  }

  base::Result<std::optional<Parcel>> oldest() override {
    FLOPSIGHT_ASSIGN_OR_RETURN(Statement select, database_.prepare("SELECT id, bytes FROM outbox ORDER BY id LIMIT 1"));
    FLOPSIGHT_ASSIGN_OR_RETURN(const bool row, select.step());
    if (!row) return std::optional<Parcel>();
    return std::optional(Parcel{select.integer(0), std::string(select.blob(1))});
  }

  base::Status remove(std::int64_t id) override {
    FLOPSIGHT_ASSIGN_OR_RETURN(Statement remove, database_.prepare("DELETE FROM outbox WHERE id = ?"));
    remove.bind(1, id);
    return remove.run();
  }

  base::Result<State> state() override {
    FLOPSIGHT_ASSIGN_OR_RETURN(
        Statement select,
        database_.prepare("SELECT ifnull(sum(byte_count), 0), count(*), ifnull(min(slot_unix_milliseconds), 0) FROM outbox"));
    FLOPSIGHT_ASSIGN_OR_RETURN(const bool row, select.step());
    if (!row) return State{};
    return State{static_cast<std::uint64_t>(select.integer(0)), static_cast<std::uint64_t>(select.integer(1)),
                 units::Instant{select.integer(2)}};
  }

 private:
  Database& database_;
};

}  // namespace

base::Result<StoreWithOutbox> open_sqlite_store_with_outbox(const std::string& folder, SqliteStoreOptions options) {
  FLOPSIGHT_ASSIGN_OR_RETURN(std::unique_ptr<Store> store, open_sqlite_store(folder, options));
  Database& database = static_cast<SqliteStore&>(*store).database();
  FLOPSIGHT_RETURN_IF_ERROR(database.execute(kTables));
  return StoreWithOutbox{std::move(store), std::make_unique<SqliteOutbox>(database)};
}

}  // namespace flopsight::store
