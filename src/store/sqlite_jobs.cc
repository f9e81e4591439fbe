// Jobs in the embedded store: minutes in small blocks, and sums of ten minutes and of hours in blocks that are quick to add up. And the fleet, as
// one more of them that has all their time.
#include <algorithm>

#include "store/group_totals.h"
#include "store/sqlite_store_internal.h"
#include "store/sqlite_transaction.h"

namespace flopsight::store {
namespace {

using rollups::CellField;

std::int64_t floor_to(std::int64_t value, std::int64_t step) { return value / step * step; }
std::int64_t ceil_to(std::int64_t value, std::int64_t step) { return (value + step - 1) / step * step; }

units::Seconds seconds(std::int64_t count) { return units::Seconds(static_cast<double>(count)); }

std::tuple<JobId, ModelId, units::Instant> order_of(const JobCell& cell) { return {cell.job, cell.model, cell.slot_start}; }

void sort_cells(std::vector<JobCell>& cells) {
  std::sort(cells.begin(), cells.end(), [](const JobCell& a, const JobCell& b) { return order_of(a) < order_of(b); });
}

void merge(JobCell& into, const JobCell& cell) {
  into.cell.merge(cell.cell);
  into.spread.merge(cell.spread);
}

// Cells of longer slots: those of one slot, job and model become one.
std::vector<JobCell> coarsened(const std::vector<JobCell>& cells, std::int64_t slot_seconds) {
  std::vector<JobCell> out = cells;
  for (JobCell& cell : out) {
    cell.slot_start = units::Instant{floor_to(cell.slot_start.unix_milliseconds, milliseconds(slot_seconds))};
  }
  sort_cells(out);
  std::size_t kept = 0;
  for (std::size_t i = 0; i < out.size(); ++i) {
    if (kept > 0 && order_of(out[kept - 1]) == order_of(out[i])) {
      merge(out[kept - 1], out[i]);
    } else if (kept++ != i) {
      out[kept - 1] = std::move(out[i]);
    }
  }
  out.resize(kept);
  return out;
}

// Two lists in order as one.
std::vector<JobCell> merged(std::vector<JobCell> a, std::vector<JobCell> b) {
  a.insert(a.end(), std::make_move_iterator(b.begin()), std::make_move_iterator(b.end()));
  std::stable_sort(a.begin(), a.end(), [](const JobCell& x, const JobCell& y) { return order_of(x) < order_of(y); });
  std::size_t kept = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (kept > 0 && order_of(a[kept - 1]) == order_of(a[i])) {
      merge(a[kept - 1], a[i]);
    } else if (kept++ != i) {
      a[kept - 1] = std::move(a[i]);
    }
  }
  a.resize(kept);
  return a;
}

}  // namespace

base::Status SqliteStore::write_jobs() {
  FLOPSIGHT_RETURN_IF_ERROR(write_fleet());
  // By hour and group, so that blocks do not cross either. Each cell is there once.
  std::map<std::pair<std::int64_t, std::int64_t>, std::vector<JobCell>> parts;
  while (!job_cells_.empty()) {
    JobCell& cell = job_cells_.begin()->second;
    parts[{cell.slot_start.unix_milliseconds / milliseconds(kCoarseSeconds), cell.job / kGroupSize}].push_back(std::move(cell));
    job_cells_.erase(job_cells_.begin());
  }
  for (; !parts.empty(); parts.erase(parts.begin())) {
    auto& [key, cells] = *parts.begin();
    sort_cells(cells);
    FLOPSIGHT_RETURN_IF_ERROR(write_closed(BlockKind::kJob, key.second, cells));
    const std::vector<JobCell> hours = coarsened(cells, kCoarseSeconds);
    FLOPSIGHT_RETURN_IF_ERROR(write_sums(BlockKind::kJobSums, kCoarseSeconds, key.second, hours));
    FLOPSIGHT_RETURN_IF_ERROR(write_job_rows(kCoarseSeconds, hours));
    FLOPSIGHT_RETURN_IF_ERROR(write_sums(BlockKind::kJobSums, kWideSeconds, key.second, coarsened(hours, kWideSeconds)));
    std::map<units::Instant, std::vector<JobCell>> by_slot;
    for (JobCell& cell : coarsened(cells, kMiddleSeconds)) by_slot[cell.slot_start].push_back(std::move(cell));
    for (const auto& [start, middle] : by_slot) {
      FLOPSIGHT_RETURN_IF_ERROR(write_sums(BlockKind::kJobSums, kMiddleSeconds, key.second, middle));
      FLOPSIGHT_RETURN_IF_ERROR(write_job_rows(kMiddleSeconds, middle));
    }
  }
  return {};
}

// All cells of each slot as one, kept as those of jobs are.
base::Status SqliteStore::write_fleet() {
  std::map<std::int64_t, std::map<units::Instant, JobCell>> by_hour;
  for (const auto& [key, cell] : job_cells_) {
    JobCell& sum = by_hour[cell.slot_start.unix_milliseconds / milliseconds(kCoarseSeconds)][cell.slot_start];
    sum.slot_start = cell.slot_start;
    sum.cell.merge(cell.cell);
  }
  for (const auto& [hour, by_slot] : by_hour) {
    std::vector<JobCell> closed;
    for (const auto& [start, cell] : by_slot) closed.push_back(cell);
    FLOPSIGHT_RETURN_IF_ERROR(write_closed(BlockKind::kFleet, 0, closed));
    for (const std::int64_t level : {kMiddleSeconds, kCoarseSeconds, kWideSeconds}) {
      for (const JobCell& sum : coarsened(closed, level)) FLOPSIGHT_RETURN_IF_ERROR(write_sums(BlockKind::kFleetSums, level, 0, {sum}));
    }
  }
  return {};
}

// A block of cells as they were closed, all of one hour, in order.
base::Status SqliteStore::write_closed(BlockKind kind, std::int64_t group, const std::vector<JobCell>& cells) {
  units::Window window{cells.front().slot_start, cells.front().slot_start};
  for (const JobCell& cell : cells) {
    window.start = std::min(window.start, cell.slot_start);
    window.end = std::max(window.end, cell.slot_start + options_.slot);
  }
  return write_block(kind, slot_seconds_, group, window, cells.size(), encode_job_block(cells, options_.slot));
}

// Adds to the block that there is of a slot and a group; `cells` are of one slot, in order. Those of jobs have spreads.
base::Status SqliteStore::write_sums(BlockKind sums, std::int64_t slot_seconds, std::int64_t group, std::vector<JobCell> cells) {
  const std::int64_t start = cells.front().slot_start.unix_milliseconds;
  const units::Seconds slot = seconds(slot_seconds);
  FLOPSIGHT_ASSIGN_OR_RETURN(Statement find, database_.prepare(
      "SELECT id, bytes FROM blocks INDEXED BY blocks_by_time WHERE kind = ? AND slot_seconds = ? AND entity_group = ? AND "
      "start_unix_milliseconds = ?"));
  std::int64_t ids[2] = {0, 0};
  std::vector<JobCell> before;
  for (const BlockKind kind : {sums, BlockKind::kJobSpreads}) {
    if (kind == BlockKind::kJobSpreads && sums != BlockKind::kJobSums) break;
    find.bind(1, static_cast<std::int64_t>(kind));
    find.bind(2, slot_seconds);
    find.bind(3, group);
    find.bind(4, start);
    FLOPSIGHT_ASSIGN_OR_RETURN(const bool row, find.step());
    if (!row) break;
    const std::int64_t id = find.integer(0);
    const bool is_sums = kind == sums;
    const base::Status read = is_sums ? read_sums(find.blob(1), slot, before) : read_spreads(find.blob(1), slot, before);
    find.reset();
    // What cannot be read is left as it is, to be named when somebody asks; what comes now is a block beside it.
    if (read.ok()) {
      ids[is_sums ? 0 : 1] = id;
    } else if (is_sums) {
      break;
    }
  }
  cells = merged(std::move(before), std::move(cells));
  const units::Window window{{start}, units::Instant{start} + slot};
  FLOPSIGHT_RETURN_IF_ERROR(replace_block(ids[0], sums, slot_seconds, group, window, cells.size(), encode_job_sums(cells, slot)));
  if (sums != BlockKind::kJobSums) return {};
  return replace_block(ids[1], BlockKind::kJobSpreads, slot_seconds, group, window, cells.size(), encode_job_spreads(cells, slot));
}

base::Status SqliteStore::read_sums(std::string_view bytes, units::Seconds slot, std::vector<JobCell>& cells) {
  JobColumns columns;
  FLOPSIGHT_RETURN_IF_ERROR(columns.read_sums(bytes, slot));
  for (std::size_t i = 0; i < columns.size(); ++i) {
    cells.push_back({columns.job(i), columns.model(i), columns.slot_start(i), columns.cell(i), {}});
  }
  return {};
}

base::Status SqliteStore::read_spreads(std::string_view bytes, units::Seconds slot, std::vector<JobCell>& cells) {
  FLOPSIGHT_ASSIGN_OR_RETURN(std::vector<JobSpread> spreads, decode_job_spreads(bytes, slot));
  for (JobSpread& spread : spreads) {
    const JobCell key{spread.job, spread.model, spread.slot_start, {}, {}};
    const auto at = std::lower_bound(cells.begin(), cells.end(), key,
                                     [](const JobCell& a, const JobCell& b) { return order_of(a) < order_of(b); });
    if (at != cells.end() && order_of(*at) == order_of(key)) at->spread = std::move(spread.spread);
  }
  return {};
}

base::Status SqliteStore::replace_block(std::int64_t id, BlockKind kind, std::int64_t slot_seconds, std::int64_t group,
                                        units::Window window, std::size_t cells, std::string_view bytes) {
  if (id == 0) return write_block(kind, slot_seconds, group, window, cells, bytes);
  FLOPSIGHT_ASSIGN_OR_RETURN(Statement update, database_.prepare("UPDATE blocks SET bytes = ?, cell_count = ? WHERE id = ?"));
  update.bind_blob(1, bytes);
  update.bind(2, static_cast<std::int64_t>(cells));
  update.bind(3, id);
  return update.run();
}

// What the view job_rollups shows to people.
base::Status SqliteStore::write_job_rows(std::int64_t slot_seconds, const std::vector<JobCell>& cells) {
  FLOPSIGHT_ASSIGN_OR_RETURN(
      Statement upsert,
      database_.prepare("INSERT INTO job_cells VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET "
                        "measured_microseconds = measured_microseconds + excluded.measured_microseconds, "
                        "delivered_microseconds = delivered_microseconds + excluded.delivered_microseconds, "
                        "absent_microseconds = absent_microseconds + excluded.absent_microseconds, "
                        "energy_joules = energy_joules + excluded.energy_joules, "
                        "energy_known_microseconds = energy_known_microseconds + excluded.energy_known_microseconds"));
  for (const JobCell& cell : cells) {
    const std::int64_t measured = cell.cell[CellField::kMeasured];
    const std::int64_t values[] = {slot_seconds, cell.slot_start.unix_milliseconds, cell.job, cell.model, measured,
                                   cell.cell[CellField::kDelivered], cell.cell.allocated_microseconds() - measured,
                                   cell.cell[CellField::kEnergy], cell.cell[CellField::kEnergyKnown]};
    int parameter = 0;
    for (const std::int64_t value : values) upsert.bind(++parameter, value);
    FLOPSIGHT_RETURN_IF_ERROR(upsert.run());
  }
  return {};
}

// Up to where there is anything: up to there an hour that is not over is as good as its minutes.
units::Instant SqliteStore::newest_end() const {
  std::int64_t newest = 0;
  for (const Gpu& gpu : gpus_) newest = std::max(newest, gpu.closed_until);
  return units::Instant{newest};
}

// The window in the longest slots that fit into it, and shorter ones at its ends.
std::vector<SqliteStore::Part> SqliteStore::parts_of(units::Window window, std::int64_t coarsest_seconds) const {
  window = kept(window);
  if (!(window.start < window.end)) return {};
  if (coarsest_seconds <= slot_seconds_) return {{0, window}};
  const std::int64_t step = milliseconds(coarsest_seconds);
  std::int64_t finer = slot_seconds_;
  for (const std::int64_t level : {kMiddleSeconds, kCoarseSeconds}) {
    if (level < coarsest_seconds) finer = std::max(finer, level);
  }
  const units::Instant start{ceil_to(window.start.unix_milliseconds, step)};
  const bool is_open = window.end >= newest_end();
  const units::Instant end{is_open ? ceil_to(window.end.unix_milliseconds, step) : floor_to(window.end.unix_milliseconds, step)};
  if (!(start < end)) return parts_of(window, finer);
  std::vector<Part> parts = parts_of({window.start, start}, finer);
  parts.push_back({coarsest_seconds, {start, end}});
  for (const Part& part : parts_of({end, window.end}, finer)) parts.push_back(part);
  return parts;
}

base::Status SqliteStore::find_blocks(BlockKind kind, std::size_t part_index, const Part& part, std::optional<std::int64_t> group,
                                      std::vector<FoundBlock>& found) {
  std::vector<std::int64_t> slots{part.slot_seconds};
  // Minutes, or what housekeeping made of them.
  if (part.slot_seconds == 0) slots = {slot_seconds_, kMiddleSeconds, kCoarseSeconds};
  std::sort(slots.begin(), slots.end());
  slots.erase(std::unique(slots.begin(), slots.end()), slots.end());
  FLOPSIGHT_ASSIGN_OR_RETURN(Statement select, database_.prepare(
      std::string("SELECT entity_group, start_unix_milliseconds, id FROM blocks INDEXED BY ") +
      (group ? "blocks_by_time" : "blocks_by_start") + " WHERE kind = ?1 AND slot_seconds = ?2 AND start_unix_milliseconds < ?4 AND "
      "start_unix_milliseconds >= ?5 AND end_unix_milliseconds > ?3" + (group ? " AND entity_group = ?6" : "")));
  for (const std::int64_t slot : slots) {
    select.bind(1, static_cast<std::int64_t>(kind));
    select.bind(2, slot);
    select.bind(3, part.window.start.unix_milliseconds);
    select.bind(4, part.window.end.unix_milliseconds);
    // Blocks do not cross a day, and those of minutes not an hour; the bound on start lets the index find them.
    const std::int64_t longest = part.slot_seconds != 0 ? part.slot_seconds : slot == slot_seconds_ ? kCoarseSeconds : 24 * kCoarseSeconds;
    select.bind(5, part.window.start.unix_milliseconds - milliseconds(longest));
    if (group) select.bind(6, *group);
    for (;;) {
      FLOPSIGHT_ASSIGN_OR_RETURN(const bool row, select.step());
      if (!row) break;
      found.push_back({select.integer(0), part_index, select.integer(1), select.integer(2)});
    }
  }
  return {};
}

// By group: what is known of a group's jobs stays in the cache while its blocks are added up.
base::Status SqliteStore::read_found(std::vector<FoundBlock> found, const std::function<base::Status(const BlockRow&, std::size_t)>& sink) {
  std::sort(found.begin(), found.end());
  const ReadTransaction transaction(database_);
  FLOPSIGHT_ASSIGN_OR_RETURN(Statement fetch, database_.prepare(
      "SELECT id, slot_seconds, entity_group, start_unix_milliseconds, end_unix_milliseconds, bytes FROM blocks WHERE id = ?"));
  for (const FoundBlock& one : found) {
    fetch.bind(1, one.id);
    FLOPSIGHT_ASSIGN_OR_RETURN(const bool row, fetch.step());
    if (!row) continue;
    const BlockRow block{fetch.integer(0), fetch.integer(1), fetch.integer(2), {fetch.integer(3)}, {fetch.integer(4)}, fetch.blob(5)};
    const base::Status done = sink(block, one.part_index);
    fetch.reset();
    if (done.ok()) continue;
    if (done.error().code != base::ErrorCode::kCorrupt && done.error().code != base::ErrorCode::kLimit) return done;
    const bool is_new = unreadable_blocks_.size() < kUnreadableBlocksMax && unreadable_blocks_.insert(one.id).second;
    if (!is_new) continue;
    const std::string place = "block " + std::to_string(one.id) + " of " + units::to_rfc3339({one.start});
    miss(place, path_ + ": " + place + " cannot be read (" + done.error().message + "); its cells are missing from answers");
  }
  return {};
}

base::Status SqliteStore::for_job_columns(CellKinds kinds, units::Window window, std::optional<JobId> job, std::int64_t coarsest_seconds,
                                          const std::function<void(std::int64_t, const JobColumns&, units::Window)>& sink) {
  std::optional<std::int64_t> group;
  if (job) group = *job / kGroupSize;
  const std::vector<Part> parts = parts_of(window, coarsest_seconds);
  std::vector<FoundBlock> found;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const BlockKind kind = parts[i].slot_seconds != 0 ? kinds.sums : kinds.closed;
    FLOPSIGHT_RETURN_IF_ERROR(find_blocks(kind, i, parts[i], group, found));
  }
  JobColumns columns;
  return read_found(std::move(found), [&](const BlockRow& block, std::size_t part) {
    const units::Seconds slot = seconds(block.slot_seconds);
    const base::Status read = parts[part].slot_seconds != 0 ? columns.read_sums(block.bytes, slot) : columns.read_block(block.bytes, slot);
    if (read.ok()) sink(block.group, columns, parts[part].window);
    return read;
  });
}

base::Status SqliteStore::for_job_spreads(units::Window window, std::optional<JobId> job, std::int64_t coarsest_seconds,
                                          const std::function<void(JobSpread)>& sink) {
  std::optional<std::int64_t> group;
  if (job) group = *job / kGroupSize;
  const std::vector<Part> parts = parts_of(window, coarsest_seconds);
  std::vector<FoundBlock> found;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const BlockKind kind = parts[i].slot_seconds != 0 ? BlockKind::kJobSpreads : BlockKind::kJob;
    FLOPSIGHT_RETURN_IF_ERROR(find_blocks(kind, i, parts[i], group, found));
  }
  return read_found(std::move(found), [&](const BlockRow& block, std::size_t part) -> base::Status {
    const units::Seconds slot = seconds(block.slot_seconds);
    const auto take = [&](JobSpread spread) {
      if (parts[part].window.contains(spread.slot_start) && (!job || spread.job == *job)) sink(std::move(spread));
    };
    if (parts[part].slot_seconds == 0) {
      FLOPSIGHT_ASSIGN_OR_RETURN(std::vector<JobCell> cells, decode_job_block(block.bytes, slot));
      for (JobCell& cell : cells) take({cell.job, cell.model, cell.slot_start, std::move(cell.spread)});
      return {};
    }
    FLOPSIGHT_ASSIGN_OR_RETURN(std::vector<JobSpread> spreads, decode_job_spreads(block.bytes, slot));
    for (JobSpread& spread : spreads) take(std::move(spread));
    return {};
  });
}

base::Result<std::vector<JobTotal>> SqliteStore::sums_of(units::Window window, std::optional<JobId> job) {
  const std::int64_t slot = milliseconds(slot_seconds_);
  window = {{floor_to(window.start.unix_milliseconds, slot)}, {ceil_to(window.end.unix_milliseconds, slot)}};
  GroupTotals<JobTotal, &JobTotal::job, &JobTotal::model> groups(job ? 1 : jobs_.size() + 1);
  FLOPSIGHT_RETURN_IF_ERROR(for_job_columns(kOfJobs, window, job, kWideSeconds,
                                            [&](std::int64_t group, const JobColumns& columns, units::Window part) {
                                              groups.add(group, columns, [&](std::size_t i) {
                                                return part.contains(columns.slot_start(i)) && (!job || columns.job(i) == *job);
                                              });
                                            }));
  return groups.take();
}

base::Result<std::vector<JobTotal>> SqliteStore::job_totals(units::Window window, std::optional<JobId> job) {
  const std::int64_t slot = milliseconds(slot_seconds_);
  window = {{floor_to(window.start.unix_milliseconds, slot)}, {ceil_to(window.end.unix_milliseconds, slot)}};
  FLOPSIGHT_ASSIGN_OR_RETURN(std::vector<JobTotal> totals, sums_of(window, job));
  FLOPSIGHT_RETURN_IF_ERROR(for_job_spreads(window, job, kWideSeconds, [&](const JobSpread& spread) {
    const auto at = std::lower_bound(totals.begin(), totals.end(), spread, [](const JobTotal& a, const JobSpread& b) {
      return std::tie(a.job, a.model) < std::tie(b.job, b.model);
    });
    // One whose sums cannot be read has none here either.
    if (at != totals.end() && at->job == spread.job && at->model == spread.model) at->spread.merge(spread.spread);
  }));
  return totals;
}

base::Result<std::vector<JobCell>> SqliteStore::job_series(JobId job, units::Window window, units::Seconds step) {
  return series_of_job(job, window, step, true);
}

base::Result<std::vector<JobCell>> SqliteStore::job_sum_series(JobId job, units::Window window, units::Seconds step) {
  return series_of_job(job, window, step, false);
}

base::Result<std::vector<JobCell>> SqliteStore::series_of_job(JobId job, units::Window window, units::Seconds step, bool with_spreads) {
  const std::int64_t step_seconds = std::max(slot_seconds_, static_cast<std::int64_t>(step.value + 0.5));
  const std::int64_t step_milliseconds = milliseconds(step_seconds);
  const std::int64_t from = step_seconds % kCoarseSeconds == 0   ? kCoarseSeconds
                            : step_seconds % kMiddleSeconds == 0 ? kMiddleSeconds
                                                                 : slot_seconds_;
  window = {{floor_to(window.start.unix_milliseconds, step_milliseconds)},
            {ceil_to(window.end.unix_milliseconds, step_milliseconds)}};
  Merged merged;
  const auto place_of = [&](ModelId model, units::Instant slot_start) -> JobCell& {
    const units::Instant start{floor_to(slot_start.unix_milliseconds, step_milliseconds)};
    JobCell& into = merged[{start.unix_milliseconds, job, model}];
    into.job = job;
    into.model = model;
    into.slot_start = start;
    return into;
  };
  FLOPSIGHT_RETURN_IF_ERROR(for_job_columns(kOfJobs, window, job, from, [&](std::int64_t, const JobColumns& columns, units::Window part) {
    for (std::size_t i = 0; i < columns.size(); ++i) {
      if (columns.job(i) != job || !part.contains(columns.slot_start(i))) continue;
      place_of(columns.model(i), columns.slot_start(i)).cell.merge(columns.cell(i));
    }
  }));
  if (with_spreads) {
    FLOPSIGHT_RETURN_IF_ERROR(for_job_spreads(window, job, from, [&](const JobSpread& spread) {
      place_of(spread.model, spread.slot_start).spread.merge(spread.spread);
    }));
  }
  std::vector<JobCell> series;
  for (auto& [key, cell] : merged) series.push_back(std::move(cell));
  return series;
}

}  // namespace flopsight::store
