#include <algorithm>
#include <cmath>

#include "store/sqlite_store_internal.h"

namespace flopsight::store {
namespace {

// An hour is merged when its samples can be expected to be complete; later ones make a further block.
constexpr std::int64_t kSettledSeconds = 1800;

template <typename CellType>
units::Window window_of(const std::vector<CellType>& cells, std::int64_t slot_seconds) {
  units::Window window{cells.front().slot_start, cells.front().slot_start};
  for (const CellType& cell : cells) {
    window.start = std::min(window.start, cell.slot_start);
    window.end = std::max(window.end, cell.slot_start + units::Seconds(static_cast<double>(slot_seconds)));
  }
  return window;
}

base::Result<std::vector<GpuCell>> decode(std::string_view bytes, units::Seconds slot, const GpuCell*) {
  return decode_gpu_block(bytes, slot);
}
base::Result<std::vector<JobCell>> decode(std::string_view bytes, units::Seconds slot, const JobCell*) {
  return decode_job_block(bytes, slot);
}
std::pair<std::uint32_t, std::uint32_t> ids_of(const GpuCell& cell) { return {cell.gpu, cell.job}; }
std::pair<std::uint32_t, std::uint32_t> ids_of(const JobCell& cell) { return {cell.job, cell.model}; }
void merge(GpuCell& into, const GpuCell& cell) { into.cell.merge(cell.cell); }
void merge(JobCell& into, const JobCell& cell) {
  into.cell.merge(cell.cell);
  into.spread.merge(cell.spread);
}

// Cells of several blocks, merged to longer slots, in the order in which blocks hold them.
template <typename CellType>
class Chunk {
 public:
  Chunk(std::int64_t from_seconds, std::int64_t to_seconds)
      : from_(static_cast<double>(from_seconds)), to_milliseconds_(milliseconds(to_seconds)) {}

  // False: it cannot be read, and nothing of it was taken.
  bool add(std::string_view bytes) {
    const auto cells = decode(bytes, from_, static_cast<const CellType*>(nullptr));
    if (!cells.ok()) return false;
    for (const CellType& cell : *cells) {
      const std::int64_t start = cell.slot_start.unix_milliseconds / to_milliseconds_ * to_milliseconds_;
      const auto [at, is_new] = cells_.try_emplace({ids_of(cell), start}, cell);
      if (is_new) {
        at->second.slot_start = units::Instant{start};
      } else {
        merge(at->second, cell);
      }
    }
    return true;
  }
  std::vector<CellType> take() {
    std::vector<CellType> out;
    for (auto& [key, cell] : cells_) out.push_back(std::move(cell));
    return out;
  }

 private:
  units::Seconds from_;
  std::int64_t to_milliseconds_;
  std::map<std::pair<std::pair<std::uint32_t, std::uint32_t>, std::int64_t>, CellType> cells_;
};

}  // namespace

// All blocks of one group, kind and slot that start in the chunk become one, in slots of `to_seconds`.
base::Status SqliteStore::replace_blocks(BlockKind kind, std::int64_t slot_seconds, std::int64_t group,
                                         units::Window chunk, std::int64_t to_seconds) {
  const units::Seconds to(static_cast<double>(to_seconds));
  Chunk<GpuCell> gpus(slot_seconds, to_seconds);
  Chunk<JobCell> jobs(slot_seconds, to_seconds);
  FLOPSIGHT_ASSIGN_OR_RETURN(
      Statement select,
      database_.prepare("SELECT id, bytes FROM blocks WHERE kind = ? AND slot_seconds = ? AND entity_group = ? AND "
                        "start_unix_milliseconds >= ? AND start_unix_milliseconds < ?"));
  select.bind(1, static_cast<std::int64_t>(kind));
  select.bind(2, slot_seconds);
  select.bind(3, group);
  select.bind(4, chunk.start.unix_milliseconds);
  select.bind(5, chunk.end.unix_milliseconds);
  std::vector<std::int64_t> replaced;
  for (;;) {
    FLOPSIGHT_ASSIGN_OR_RETURN(const bool row, select.step());
    if (!row) break;
    // One that cannot be read stays, and is noted when somebody asks for it.
    if (kind == BlockKind::kGpu ? gpus.add(select.blob(1)) : jobs.add(select.blob(1))) replaced.push_back(select.integer(0));
  }
  FLOPSIGHT_ASSIGN_OR_RETURN(Statement remove, database_.prepare("DELETE FROM blocks WHERE id = ?"));
  for (const std::int64_t id : replaced) {
    remove.bind(1, id);
    FLOPSIGHT_RETURN_IF_ERROR(remove.run());
  }
  if (const std::vector<GpuCell> cells = gpus.take(); !cells.empty()) {
    return write_block(kind, to_seconds, group, window_of(cells, to_seconds), cells.size(), encode_gpu_block(cells, to));
  }
  if (const std::vector<JobCell> cells = jobs.take(); !cells.empty()) {
    return write_block(kind, to_seconds, group, window_of(cells, to_seconds), cells.size(), encode_job_block(cells, to));
  }
  return {};
}

base::Result<bool> SqliteStore::merge_one_chunk(units::Instant now, const Retention& retention) {
  struct Step {
    const char* kinds;
    std::int64_t from_seconds;
    std::int64_t to_seconds;
    std::int64_t chunk_seconds;
    double age_seconds;
    int blocks_min;
  };
  // Small blocks of an hour to one; then old ones to coarser slots, an hour to an hour and a day to a day. Those of jobs to ten minutes at
  // first: minutes of jobs are what questions read at the ends of their windows.
  const Step steps[] = {
      {"0", slot_seconds_, slot_seconds_, kCoarseSeconds, static_cast<double>(kSettledSeconds), 2},
      {"1, 4", slot_seconds_, slot_seconds_, std::max(kMiddleSeconds, slot_seconds_), static_cast<double>(kSettledSeconds), 2},
      {"0, 1, 4", slot_seconds_, kMiddleSeconds, kCoarseSeconds, retention.fine.value, 1},
      {"0, 1, 4", kMiddleSeconds, kMiddleSeconds, 24 * kCoarseSeconds, retention.fine.value + 2 * 86'400, 2},
      {"0, 1, 4", kMiddleSeconds, kCoarseSeconds, 24 * kCoarseSeconds, retention.middle.value, 1},
  };
  for (const Step& step : steps) {
    if (step.from_seconds == kMiddleSeconds && slot_seconds_ >= kMiddleSeconds) continue;
    const std::int64_t chunk = milliseconds(step.chunk_seconds);
    const std::int64_t before =
        (now.unix_milliseconds - milliseconds(units::Seconds(step.age_seconds))) / chunk * chunk;
    FLOPSIGHT_ASSIGN_OR_RETURN(
        Statement find,
        database_.prepare(std::string("SELECT kind, entity_group, start_unix_milliseconds / ?1 AS chunk FROM blocks "
                          "WHERE kind IN (") + step.kinds + ") AND slot_seconds = ?2 AND start_unix_milliseconds < ?3 "
                          "GROUP BY kind, entity_group, chunk HAVING count(*) >= ?4 LIMIT 1"));
    find.bind(1, chunk);
    find.bind(2, step.from_seconds);
    find.bind(3, before);
    find.bind(4, step.blocks_min);
    FLOPSIGHT_ASSIGN_OR_RETURN(const bool row, find.step());
    if (!row) continue;
    const auto kind = static_cast<BlockKind>(find.integer(0));
    const std::int64_t group = find.integer(1), index = find.integer(2);
    find.reset();
    FLOPSIGHT_RETURN_IF_ERROR(database_.execute("BEGIN IMMEDIATE"));
    base::Status done = replace_blocks(kind, step.from_seconds, group, {{index * chunk}, {(index + 1) * chunk}}, step.to_seconds);
    if (done.ok()) done = database_.execute("COMMIT");
    if (!done.ok()) {
      static_cast<void>(database_.execute("ROLLBACK"));
      return done.error();
    }
    return true;
  }
  return false;
}

// One batch of what is too old.
base::Result<bool> SqliteStore::forget_aged(std::int64_t oldest, std::int64_t middle) {
  constexpr int kBatch = 50;
  const auto forget = [&](const std::string& where) -> base::Result<bool> {
    FLOPSIGHT_RETURN_IF_ERROR(database_.execute(
        "DELETE FROM blocks WHERE id IN (SELECT id FROM blocks WHERE " + where + " LIMIT " + std::to_string(kBatch) + ")"));
    return database_.changes() > 0;
  };
  FLOPSIGHT_ASSIGN_OR_RETURN(const bool aged, forget("end_unix_milliseconds < " + std::to_string(oldest)));
  if (aged) return true;
  const std::string before = std::to_string(middle);
  const std::string ten_minutes = "slot_seconds = " + std::to_string(kMiddleSeconds);
  FLOPSIGHT_ASSIGN_OR_RETURN(const bool summed, forget("kind IN (2, 3, 5) AND " + ten_minutes + " AND end_unix_milliseconds <= " + before));
  if (summed) return true;
  FLOPSIGHT_RETURN_IF_ERROR(database_.execute(
      "DELETE FROM job_cells WHERE (slot_seconds = " + std::to_string(kCoarseSeconds) + " AND start_unix_milliseconds < " +
      std::to_string(oldest) + ") OR (" + ten_minutes + " AND start_unix_milliseconds < " + before + ")"));
  return database_.changes() > 0;
}

// A batch of what lies wholly before what answers still tell of, in every form.
base::Result<bool> SqliteStore::remove_forgotten() {
  if (forgotten_until_ == 0) return false;
  const std::string until = std::to_string(forgotten_until_);
  for (const std::string& statement :
       {"DELETE FROM blocks WHERE id IN (SELECT id FROM blocks WHERE end_unix_milliseconds <= " + until + " LIMIT 200)",
        "DELETE FROM job_cells WHERE slot_seconds = " + std::to_string(kMiddleSeconds) + " AND start_unix_milliseconds < " + until,
        "DELETE FROM job_cells WHERE slot_seconds = " + std::to_string(kCoarseSeconds) + " AND start_unix_milliseconds < " + until,
        "DELETE FROM spans WHERE is_open = 0 AND end_unix_milliseconds <= " + until}) {
    FLOPSIGHT_RETURN_IF_ERROR(database_.execute(statement));
    if (database_.changes() > 0) return true;
  }
  return false;
}

// Past the size that it may have: the oldest hour is told of no more. By the hour for all forms at once, so that whoever asks by job, by host or
// over time is told of the same hours; a form in longer slots is removed when its last hour has gone.
base::Result<bool> SqliteStore::forget_oldest_hour(std::uint64_t bytes_max) {
  FLOPSIGHT_ASSIGN_OR_RETURN(const StoreSize now_size, size());
  if (now_size.bytes <= bytes_max) return false;
  FLOPSIGHT_ASSIGN_OR_RETURN(Statement oldest, database_.prepare("SELECT min(start_unix_milliseconds) FROM blocks WHERE kind IN (0, 1)"));
  FLOPSIGHT_ASSIGN_OR_RETURN(const bool row, oldest.step());
  const std::int64_t hour = milliseconds(kCoarseSeconds);
  const std::int64_t first = row && !oldest.is_null(0) ? std::max(oldest.integer(0), forgotten_until_) : newest_end().unix_milliseconds;
  oldest.reset();
  const std::int64_t until = (first / hour + 1) * hour;
  const std::int64_t newest_hour = (newest_end().unix_milliseconds - 1) / hour * hour;
  if (until > newest_hour) {
    if (!said_too_large_) {
      note(path_ + ": " + std::to_string(now_size.bytes) + " bytes, over its limit of " + std::to_string(bytes_max) +
           " (retention.bytes), with nothing left to forget but the newest hour");
    }
    said_too_large_ = true;
    return false;
  }
  FLOPSIGHT_RETURN_IF_ERROR(database_.execute("INSERT OR REPLACE INTO meta VALUES('forgotten_until_unix_milliseconds', " + std::to_string(until) + ")"));
  forgotten_until_ = until;
  said_too_large_ = false;
  note(path_ + ": over its limit of " + std::to_string(bytes_max) + " bytes (retention.bytes); rollups before " +
       units::to_rfc3339({until}) + " were forgotten");
  return true;
}

base::Result<bool> SqliteStore::forget_one(units::Instant now, const Retention& retention) {
  // What merge_one_chunk() makes hours of, and not more: by whole days. What is not hours yet is read in sums of ten minutes.
  const std::int64_t day = milliseconds(24 * kCoarseSeconds);
  const std::int64_t middle = (now.unix_milliseconds - milliseconds(retention.middle)) / day * day;
  FLOPSIGHT_ASSIGN_OR_RETURN(const bool aged, forget_aged(now.unix_milliseconds - milliseconds(retention.coarse), middle));
  if (aged) return true;
  FLOPSIGHT_ASSIGN_OR_RETURN(const bool removed, remove_forgotten());
  if (removed || retention.bytes_max == 0) return removed;
  return forget_oldest_hour(retention.bytes_max);
}

base::Result<bool> SqliteStore::maintain(units::Instant now, const Retention& retention) {
  FLOPSIGHT_ASSIGN_OR_RETURN(const bool merged, merge_one_chunk(now, retention));
  if (merged) return true;
  FLOPSIGHT_ASSIGN_OR_RETURN(const bool forgotten, forget_one(now, retention));
  if (forgotten) return true;
  return give_back();
}

// Pages that merged and forgotten blocks left go back to the file system, but for some that the next flush will want.
base::Result<bool> SqliteStore::give_back() {
  constexpr std::int64_t kFreeKept = 512;
  constexpr std::int64_t kAtOnce = 2'048;
  FLOPSIGHT_ASSIGN_OR_RETURN(Statement free, database_.prepare("PRAGMA freelist_count"));
  FLOPSIGHT_ASSIGN_OR_RETURN(const bool row, free.step());
  const std::int64_t pages = row ? free.integer(0) : 0;
  free.reset();
  if (pages <= kFreeKept) return false;
  const std::int64_t count = std::min(kAtOnce, pages - kFreeKept);
  FLOPSIGHT_ASSIGN_OR_RETURN(Statement vacuum, database_.prepare("PRAGMA incremental_vacuum(" + std::to_string(count) + ")"));
  for (;;) {
    FLOPSIGHT_ASSIGN_OR_RETURN(const bool more, vacuum.step());
    if (!more) break;
  }
  return pages - count > kFreeKept;
}

}  // namespace flopsight::store
