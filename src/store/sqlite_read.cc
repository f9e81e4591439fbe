#include <algorithm>

#include "store/group_totals.h"
#include "store/sqlite_store_internal.h"
#include "store/sqlite_transaction.h"

namespace flopsight::store {
namespace {

std::int64_t floor_to(std::int64_t value, std::int64_t step) { return value / step * step; }
std::int64_t ceil_to(std::int64_t value, std::int64_t step) { return (value + step - 1) / step * step; }

}  // namespace

base::Status SqliteStore::find_gpu_blocks(const GpuChoice& choice, units::Window window, std::vector<FoundBlock>& found) {
  const Part part{0, window};
  if (choice.job || choice.gpus) {
    std::vector<std::int64_t> groups;
    const auto take_group = [&](GpuId gpu) { groups.push_back(gpu / kGroupSize); };
    if (choice.gpus) {
      std::for_each(choice.gpus->begin(), choice.gpus->end(), take_group);
    } else {
      FLOPSIGHT_ASSIGN_OR_RETURN(const std::vector<Held> spans, held(choice.job, window));
      for (const Held& span : spans) std::for_each(span.gpus.begin(), span.gpus.end(), take_group);
    }
    std::sort(groups.begin(), groups.end());
    groups.erase(std::unique(groups.begin(), groups.end()), groups.end());
    for (const std::int64_t group : groups) {
      FLOPSIGHT_RETURN_IF_ERROR(find_blocks(BlockKind::kGpu, 0, part, group, found));
    }
  } else {
    FLOPSIGHT_RETURN_IF_ERROR(find_blocks(BlockKind::kGpu, 0, part, std::nullopt, found));
  }
  return {};
}

base::Status SqliteStore::for_gpu_cells(const GpuChoice& choice, units::Window window,
                                        const std::function<void(const GpuCell&)>& sink) {
  window = kept(window);
  std::vector<FoundBlock> found;
  FLOPSIGHT_RETURN_IF_ERROR(find_gpu_blocks(choice, window, found));
  return read_found(std::move(found), [&](const BlockRow& block, std::size_t) -> base::Status {
    FLOPSIGHT_ASSIGN_OR_RETURN(const std::vector<GpuCell> cells,
                               decode_gpu_block(block.bytes, units::Seconds(static_cast<double>(block.slot_seconds))));
    for (const GpuCell& cell : cells) {
      if (!window.contains(cell.slot_start) || (choice.job && cell.job != *choice.job)) continue;
      if (choice.gpus && !std::binary_search(choice.gpus->begin(), choice.gpus->end(), cell.gpu)) continue;
      sink(cell);
    }
    return {};
  });
}

base::Result<std::vector<GpuTotal>> SqliteStore::gpu_totals(units::Window window, std::optional<JobId> job) {
  const std::int64_t slot = milliseconds(slot_seconds_);
  window = kept({{floor_to(window.start.unix_milliseconds, slot)}, {ceil_to(window.end.unix_milliseconds, slot)}});
  std::vector<FoundBlock> found;
  FLOPSIGHT_RETURN_IF_ERROR(find_gpu_blocks({job, std::nullopt}, window, found));
  GroupTotals<GpuTotal, &GpuTotal::gpu, &GpuTotal::job> groups(0);
  JobColumns columns;
  FLOPSIGHT_RETURN_IF_ERROR(read_found(std::move(found), [&](const BlockRow& block, std::size_t) {
    const base::Status read = columns.read_gpu_block(block.bytes, units::Seconds(static_cast<double>(block.slot_seconds)));
    if (!read.ok()) return read;
    groups.add(block.group, columns, [&](std::size_t i) { return window.contains(columns.slot_start(i)) && (!job || columns.second_id(i) == *job); });
    return read;
  }));
  std::vector<GpuTotal> totals = groups.take();
  // What was nobody's and is a job's now.
  std::erase_if(totals, [](const GpuTotal& total) {
    return total.job == 0 && total.cell.allocated_microseconds() == 0 && total.cell[rollups::CellField::kCellCount] == 0;
  });
  return totals;
}

std::vector<std::pair<GpuId, units::Window>> SqliteStore::present(units::Window window) const {
  std::vector<std::pair<GpuId, units::Window>> out;
  window = kept(window);
  for (std::size_t i = 0; i < gpus_.size(); ++i) {
    if (gpus_[i].first == 0) continue;
    const units::Window seen{std::max(window.start, units::Instant{gpus_[i].first}),
                             std::min(window.end, units::Instant{gpus_[i].closed_until})};
    if (seen.start < seen.end) out.emplace_back(static_cast<GpuId>(i + 1), seen);
  }
  return out;
}

base::Result<std::vector<GpuRecord>> SqliteStore::gpus() {
  FLOPSIGHT_ASSIGN_OR_RETURN(Statement select, database_.prepare("SELECT id FROM gpus ORDER BY id"));
  return gpus_of(select);
}

base::Result<std::vector<GpuRecord>> SqliteStore::gpus_of(Statement& select) {
  std::vector<GpuId> ids;
  for (;;) {
    FLOPSIGHT_ASSIGN_OR_RETURN(const bool row, select.step());
    if (!row) break;
    ids.push_back(static_cast<GpuId>(select.integer(0)));
  }
  return gpus(ids);
}

base::Result<std::vector<GpuRecord>> SqliteStore::gpus(const std::vector<GpuId>& ids) {
  std::vector<GpuRecord> records;
  if (ids.empty()) return records;
  records.reserve(ids.size());
  const ReadTransaction transaction(database_);
  FLOPSIGHT_ASSIGN_OR_RETURN(Statement select, select_names());
  for (const GpuId id : ids) {
    if (id < 1 || id > gpus_.size() || gpus_[id - 1].first == 0) continue;
    FLOPSIGHT_ASSIGN_OR_RETURN(samples::GpuIdentity identity, names_of(select, id));
    records.push_back({id, std::move(identity), {gpus_[id - 1].first}, {gpus_[id - 1].closed_until}});
  }
  return records;
}

base::Result<std::int64_t> SqliteStore::longest_slot_over(units::Window window) {
  for (const std::int64_t slot : {kCoarseSeconds, kMiddleSeconds}) {
    if (slot <= slot_seconds_) break;
    // Housekeeping makes all kinds coarser, one block after another: one is enough.
    FLOPSIGHT_ASSIGN_OR_RETURN(Statement find, database_.prepare(
        "SELECT 1 FROM blocks INDEXED BY blocks_by_start WHERE kind = ?1 AND slot_seconds = ?2 AND start_unix_milliseconds < ?4 AND "
        "start_unix_milliseconds > ?3 - 86400000 AND end_unix_milliseconds > ?3 LIMIT 1"));
    for (const BlockKind kind : {BlockKind::kFleet, BlockKind::kJob, BlockKind::kGpu}) {
      find.bind(1, static_cast<std::int64_t>(kind));
      find.bind(2, slot);
      find.bind(3, window.start.unix_milliseconds);
      find.bind(4, window.end.unix_milliseconds);
      FLOPSIGHT_ASSIGN_OR_RETURN(const bool is_there, find.step());
      find.reset();
      if (is_there) return slot;
    }
  }
  return slot_seconds_;
}

base::Result<units::Seconds> SqliteStore::longest_slot(units::Window window) {
  FLOPSIGHT_ASSIGN_OR_RETURN(const std::int64_t slot, longest_slot_over(window));
  return units::Seconds(static_cast<double>(slot));
}

units::Window SqliteStore::answered(units::Window window, units::Seconds step) {
  const auto length_at = [&](units::Instant instant) {
    // What cannot be looked up is told by the question itself.
    const auto slot = longest_slot_over({instant, instant + units::Seconds(0.001)});
    return milliseconds(std::max(slot.ok() ? *slot : slot_seconds_, static_cast<std::int64_t>(step.value + 0.5)));
  };
  units::Window whole = window;
  whole.start.unix_milliseconds = floor_to(window.start.unix_milliseconds, length_at(window.start));
  // Where there is nothing yet, nothing more is taken in.
  if (window.end < newest_end()) whole.end.unix_milliseconds = ceil_to(window.end.unix_milliseconds, length_at(window.end));
  const units::Window known = kept(whole);
  return known.start < known.end ? known : whole;
}

base::Result<StoreSize> SqliteStore::size() {
  const auto number = [&](const std::string& sql) -> base::Result<std::uint64_t> {
    FLOPSIGHT_ASSIGN_OR_RETURN(Statement statement, database_.prepare(sql));
    FLOPSIGHT_ASSIGN_OR_RETURN(const bool row, statement.step());
    return row ? static_cast<std::uint64_t>(statement.integer(0)) : std::uint64_t{0};
  };
  StoreSize size;
  FLOPSIGHT_ASSIGN_OR_RETURN(const std::uint64_t pages, number("PRAGMA page_count"));
  FLOPSIGHT_ASSIGN_OR_RETURN(const std::uint64_t free, number("PRAGMA freelist_count"));
  FLOPSIGHT_ASSIGN_OR_RETURN(const std::uint64_t page_bytes, number("PRAGMA page_size"));
  size.bytes = (pages - free) * page_bytes;
  return size;
}

}  // namespace flopsight::store
