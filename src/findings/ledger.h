#pragma once
// Where findings and silences are kept: FOLDER/flopsight-findings.db (docs/formats/findings.md), a file of its own beside rollups and the book
// of jobs. What is put is durable when the call returns, whole or not at all.
//
// Past records_max the records that were resolved longest ago go.
// Errors: kLimit when the disk is full, kCorrupt, kIo, kUnsupported for a file of a newer program. A damaged file is put aside and a new one
// begun (damage()). Threads: any.

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "findings/record.h"
#include "findings/silence.h"
#include "store/sqlite.h"

namespace flopsight::findings {

struct LedgerOptions {
  bool read_only = false;
  std::uint64_t records_max = 200'000;
};

// What is looked for. Empty lists and texts: anything.
struct Query {
  std::vector<State> states;
  std::vector<std::string> kinds;
  std::vector<detect::Severity> severities;
  std::string job;  // as in Record::job, or the bare name
  std::string host, gpu, user, team;
  std::optional<units::Window> window;  // it showed at some time in it
  // Whose findings may be seen: of these users' and teams' jobs. Both empty: all.
  std::vector<std::string> seen_users, seen_teams;
  std::uint64_t skip = 0;
  std::uint64_t limit = 1'000;
};

struct Page {
  std::vector<Record> records;  // unresolved first, then by severity, dollars and hours, most first, then the last to show
  std::uint64_t records_total = 0;
};

struct Count {
  std::string kind;
  detect::Severity severity = detect::Severity::kWarning;
  State state = State::kOpen;
  std::uint64_t records = 0;
};

class Ledger {
 public:
  static std::string path_in(const std::string& folder) { return folder + "/flopsight-findings.db"; }
  static base::Result<std::unique_ptr<Ledger>> open(const std::string& folder, LedgerOptions options);

  // Unresolved ones, and those that showed at or after `last` ; ascending by `last`.
  base::Result<std::vector<Record>> current(units::Instant last);
  base::Result<std::vector<Silence>> silences();
  // Up to which minute of data was looked, exclusive.
  base::Result<std::optional<units::Instant>> looked_until();

  // Records, new or as they are now, and how far was looked where it is told.
  base::Status put(std::span<const Record> records, std::optional<units::Instant> looked_until);
  base::Status put_silence(const Silence& silence);
  base::Status remove_silence(std::string_view id);

  base::Result<Page> find(const Query& query);
  base::Result<std::optional<Record>> record(std::string_view id);
  base::Result<std::vector<Count>> counts();
  // Resolved ones that showed last before it, and silences that were over before it.
  base::Status forget(units::Instant before);

  // What was wrong when it was opened; empty: nothing.
  const std::string& damage() const { return damage_; }

 private:
  Ledger(store::Database database, LedgerOptions options) : database_(std::move(database)), options_(options) {}

  std::mutex mutex_;
  store::Database database_;
  LedgerOptions options_;
  std::string damage_;
};

}  // namespace flopsight::findings
