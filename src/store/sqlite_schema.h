#pragma once
// The tables of the embedded store and how an older file is brought up to date. docs/formats/store.md describes them.

#include <string>

#include "base/result.h"
#include "store/sqlite.h"

namespace flopsight::store {

inline constexpr std::int64_t kSchemaVersion = 1;

// Makes or upgrades the tables. Errors: kUnsupported for a newer version than this program's, naming both.
base::Status prepare_schema(Database& database, std::int64_t slot_milliseconds);

// Of a store that is only read: its slot in milliseconds. Errors as above, and kUnsupported for a database that is no store.
base::Result<std::int64_t> slot_of_store(Database& database);

// "measured_microseconds, delivered_microseconds, …" of all cell fields.
std::string cell_columns();

}  // namespace flopsight::store
