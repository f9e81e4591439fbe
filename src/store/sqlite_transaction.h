#pragma once
// What users of a Database need. Threads: as a Database.

#include <cstdint>

#include "store/sqlite.h"

namespace flopsight::store {

// The first column of the first row; 0 without one.
inline base::Result<std::int64_t> number(Database& database, const char* sql) {
  FLOPSIGHT_ASSIGN_OR_RETURN(Statement statement, database.prepare(sql));
  FLOPSIGHT_ASSIGN_OR_RETURN(const bool row, statement.step());
  return row ? statement.integer(0) : std::int64_t{0};
}

// What is read while it lives is of one state, and takes the lock of the file once instead of for every statement. Also within a transaction.
class ReadTransaction {
 public:
  explicit ReadTransaction(Database& database) : database_(database) { static_cast<void>(database_.execute("SAVEPOINT reading")); }
  ~ReadTransaction() { static_cast<void>(database_.execute("RELEASE reading")); }
  ReadTransaction(const ReadTransaction&) = delete;
  ReadTransaction& operator=(const ReadTransaction&) = delete;

 private:
  Database& database_;
};

// Runs `work` as one transaction: all of it or nothing.
template <typename Work>
base::Status in_transaction(Database& database, Work work) {
  FLOPSIGHT_RETURN_IF_ERROR(database.execute("BEGIN IMMEDIATE"));
  base::Status done = work();
  if (done.ok()) done = database.execute("COMMIT");
  if (!done.ok()) (void)database.execute("ROLLBACK");
  return done;
}

}  // namespace flopsight::store
