#pragma once
// The tables of the embedded store and how an older file is brought up to date. docs/formats/store.md describes them.

#include <string>

#include "base/result.h"
#include "store/sqlite.h"

namespace flopsight::store {

inline constexpr std::int64_t kSchemaVersion = 5;
// Older ones can be read as they are, but not written.
inline constexpr std::int64_t kReadableVersion = 2;

// Makes or upgrades the tables. Errors: kUnsupported for a newer version than this program's, naming both.
base::Status prepare_schema(Database& database, std::int64_t slot_milliseconds);

// Of a store that is only read: its slot in milliseconds. Errors as above, and kUnsupported for a database that is no store.
base::Result<std::int64_t> slot_of_store(Database& database);

// Parts of the schema as SQL, for a new store and for one that is brought up to date.
std::string jobs_since_4();
std::string tables_since_2();
std::string indices_since_2();
std::string views();

// One transaction each; a store that it fails for stays as it was.
base::Status upgrade_from_1(Database& database);
base::Status upgrade_from_2(Database& database);
base::Status upgrade_from_3(Database& database);
base::Status upgrade_from_4(Database& database);

}  // namespace flopsight::store
