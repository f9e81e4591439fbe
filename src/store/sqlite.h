#pragma once
// SQLite as the rest of the store sees it: a database, statements, results instead of codes.
//
// Errors: kLimit when the disk is full, kUnavailable when another process holds the file, kCorrupt when its pages are damaged
// or it is no database, kIo otherwise; the message names the file and what SQLite said.
// Threads: one Database, one thread at a time. A Statement must not outlive its Database.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace flopsight::store {

class Statement {
 public:
  ~Statement();
  Statement(Statement&&) noexcept;
  Statement& operator=(Statement&&) noexcept;

  // Parameters count from 1. Text and blobs are copied.
  void bind(int parameter, std::int64_t value);
  void bind_real(int parameter, const std::optional<double>& value);  // NULL for none
  void bind_text(int parameter, std::string_view text);
  void bind_blob(int parameter, std::string_view bytes);
  void bind_null(int parameter);

  // True: a row is there. False: done. A statement that is done, or has failed, can be bound and stepped anew.
  base::Result<bool> step();
  // For statements without rows: steps once and is ready again.
  base::Status run();
  void reset();

  // Columns count from 0; views live until the next step.
  std::int64_t integer(int column) const;
  std::optional<double> real(int column) const;  // NULL: none
  std::string_view text(int column) const;
  std::string_view blob(int column) const;
  bool is_null(int column) const;

 private:
  friend class Database;
  struct State;
  explicit Statement(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

class Database {
 public:
  enum class Mode { kReadWrite, kReadOnly };
  static base::Result<Database> open(const std::string& path, Mode mode);
  ~Database();
  Database(Database&&) noexcept;
  Database& operator=(Database&&) noexcept;

  base::Status execute(const std::string& sql);  // one or more statements without rows
  base::Result<Statement> prepare(std::string_view sql);
  std::int64_t last_rowid() const;
  std::int64_t changes() const;

 private:
  friend class Statement;
  struct State;
  explicit Database(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace flopsight::store
