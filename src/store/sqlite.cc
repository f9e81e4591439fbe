#include "store/sqlite.h"

#include <sqlite3.h>

#include <utility>

#include "store/disk.h"

namespace flopsight::store {
namespace {

base::ErrorCode code_of(int result) {
  if (result == SQLITE_IOERR_SHMSIZE) return base::ErrorCode::kLimit;  // no room for the index of the journal
  switch (result & 0xFF) {
    case SQLITE_FULL: return base::ErrorCode::kLimit;
    case SQLITE_BUSY:
    case SQLITE_LOCKED: return base::ErrorCode::kUnavailable;
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB: return base::ErrorCode::kCorrupt;
    case SQLITE_CANTOPEN: return base::ErrorCode::kNotFound;
    default: return base::ErrorCode::kIo;
  }
}

bool needs_to_write(sqlite3* handle) {
  const int result = sqlite3_exec(handle, "SELECT count(*) FROM sqlite_master", nullptr, nullptr, nullptr) & 0xFF;
  return result == SQLITE_READONLY || result == SQLITE_CANTOPEN;
}

std::string immutable_uri(const std::string& path) {
  std::string uri = "file:";
  for (const char c : path) {
    constexpr std::string_view kSpecial = "%?#";
    constexpr std::string_view kCodes[] = {"%25", "%3f", "%23"};
    const std::size_t at = kSpecial.find(c);
    uri += at == kSpecial.npos ? std::string(1, c) : std::string(kCodes[at]);
  }
  return uri + "?immutable=1";
}

}  // namespace

struct Database::State {
  sqlite3* handle = nullptr;
  std::string path;

  base::Error error(int result) const {
    return {code_of(result), path + ": " + (handle != nullptr ? sqlite3_errmsg(handle) : sqlite3_errstr(result))};
  }
  ~State() { sqlite3_close_v2(handle); }
};

struct Statement::State {
  sqlite3_stmt* handle = nullptr;
  const Database::State* database = nullptr;
  ~State() { sqlite3_finalize(handle); }
};

Statement::Statement(std::unique_ptr<State> state) : state_(std::move(state)) {}
Statement::~Statement() = default;
Statement::Statement(Statement&&) noexcept = default;
Statement& Statement::operator=(Statement&&) noexcept = default;

void Statement::bind(int parameter, std::int64_t value) { sqlite3_bind_int64(state_->handle, parameter, value); }
void Statement::bind_real(int parameter, const std::optional<double>& value) {
  if (value) {
    sqlite3_bind_double(state_->handle, parameter, *value);
  } else {
    sqlite3_bind_null(state_->handle, parameter);
  }
}
void Statement::bind_text(int parameter, std::string_view text) {
  sqlite3_bind_text64(state_->handle, parameter, text.data(), text.size(), SQLITE_TRANSIENT, SQLITE_UTF8);
}
void Statement::bind_blob(int parameter, std::string_view bytes) {
  sqlite3_bind_blob64(state_->handle, parameter, bytes.data(), bytes.size(), SQLITE_TRANSIENT);
}
void Statement::bind_null(int parameter) { sqlite3_bind_null(state_->handle, parameter); }

base::Result<bool> Statement::step() {
  const int result = sqlite3_step(state_->handle);
  if (result == SQLITE_ROW) return true;
  if (result == SQLITE_DONE) {
    sqlite3_reset(state_->handle);
    return false;
  }
  const base::Error error = state_->database->error(result);
  sqlite3_reset(state_->handle);
  return error;
}

base::Status Statement::run() {
  FLOPSIGHT_ASSIGN_OR_RETURN(const bool row, step());
  if (row) reset();
  return {};
}

void Statement::reset() { sqlite3_reset(state_->handle); }

std::int64_t Statement::integer(int column) const { return sqlite3_column_int64(state_->handle, column); }
std::string_view Statement::text(int column) const {
  const unsigned char* text = sqlite3_column_text(state_->handle, column);
  if (text == nullptr) return {};
  return {reinterpret_cast<const char*>(text),
          static_cast<std::size_t>(sqlite3_column_bytes(state_->handle, column))};
}
std::string_view Statement::blob(int column) const {
  const void* bytes = sqlite3_column_blob(state_->handle, column);
  if (bytes == nullptr) return {};
  return {static_cast<const char*>(bytes),
          static_cast<std::size_t>(sqlite3_column_bytes(state_->handle, column))};
}
std::optional<double> Statement::real(int column) const {
  if (is_null(column)) return std::nullopt;
  return sqlite3_column_double(state_->handle, column);
}
bool Statement::is_null(int column) const {
  return sqlite3_column_type(state_->handle, column) == SQLITE_NULL;
}

Database::Database(std::unique_ptr<State> state) : state_(std::move(state)) {}
Database::~Database() = default;
Database::Database(Database&&) noexcept = default;
Database& Database::operator=(Database&&) noexcept = default;

base::Result<Database> Database::open(const std::string& path, Mode mode) {
  auto state = std::make_unique<State>();
  state->path = path;
  const int flags = mode == Mode::kReadOnly ? SQLITE_OPEN_READONLY : SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE;
  int result = sqlite3_open_v2(path.c_str(), &state->handle, flags | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE, nullptr);
  if (result != SQLITE_OK) return state->error(result);
  if (mode == Mode::kReadOnly && needs_to_write(state->handle)) {
    // Whoever reads a database with a journal has to lock it in a file beside it, which takes a folder that may be written. One
    // that nobody has open has no journal, and cannot change.
    const std::string journal = path + "-wal";
    if (const auto bytes = real_disk().size(journal); bytes.ok() && *bytes > 0) {
      return base::Error{base::ErrorCode::kIo, path + ": in use, or not closed, by another process; with " + journal +
                                                   " beside it it can be read only by who may write in that folder"};
    }
    sqlite3_close_v2(std::exchange(state->handle, nullptr));
    result = sqlite3_open_v2(immutable_uri(path).c_str(), &state->handle, flags | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_URI | SQLITE_OPEN_EXRESCODE, nullptr);
    if (result != SQLITE_OK) return state->error(result);
  }
  sqlite3_extended_result_codes(state->handle, 1);
  sqlite3_busy_timeout(state->handle, 5'000);
  return Database(std::move(state));
}

base::Status Database::execute(const std::string& sql) {
  const int result = sqlite3_exec(state_->handle, sql.c_str(), nullptr, nullptr, nullptr);
  if (result != SQLITE_OK) return state_->error(result);
  return {};
}

base::Result<Statement> Database::prepare(std::string_view sql) {
  auto state = std::make_unique<Statement::State>();
  state->database = state_.get();
  const int result = sqlite3_prepare_v2(state_->handle, sql.data(), static_cast<int>(sql.size()),
                                        &state->handle, nullptr);
  if (result != SQLITE_OK) return state_->error(result).within(sql.substr(0, 80));
  return Statement(std::move(state));
}

std::int64_t Database::last_rowid() const { return sqlite3_last_insert_rowid(state_->handle); }
std::int64_t Database::changes() const { return sqlite3_changes64(state_->handle); }

}  // namespace flopsight::store
