// How far divided GPUs are written, in the checkpoint: five columns, of which the first three have a row for each GPU (an instance of it, up to when it is
// written, how many slots are open) and the last two one for each open slot (its start, microseconds that instances had).
#include "store/sqlite_store_internal.h"
#include "wire/column_codec.h"

namespace flopsight::store {

std::vector<std::pair<base::Hash128, rollups::DividedGpu>> SqliteStore::divided() const {
  std::vector<std::pair<base::Hash128, rollups::DividedGpu>> out;
  for (const auto& [whole, of] : divided_) out.emplace_back(whole, of.second);
  return out;
}

std::string SqliteStore::encode_divided() const {
  if (divided_.empty()) return {};
  std::vector<std::int64_t> columns[5];
  for (const auto& [whole, of] : divided_) {
    const auto& [instance, divided] = of;
    columns[0].push_back(instance);
    columns[1].push_back(divided.rests_until.unix_milliseconds);
    columns[2].push_back(static_cast<std::int64_t>(divided.open_microseconds.size()));
    for (const auto& [start, microseconds] : divided.open_microseconds) {
      columns[3].push_back(start.unix_milliseconds);
      columns[4].push_back(microseconds);
    }
  }
  wire::ColumnWriter writer;
  for (const std::vector<std::int64_t>& column : columns) writer.add(column);
  return writer.finish(kCheckpointCompressionLevel);
}

// One that cannot be read costs the rests of slots that were open, and no more.
base::Status SqliteStore::load_divided() {
  if (options_.read_only) return {};  // only who goes on writing needs it, and an older store has none
  FLOPSIGHT_ASSIGN_OR_RETURN(Statement select, database_.prepare("SELECT divided FROM checkpoint"));
  FLOPSIGHT_ASSIGN_OR_RETURN(const bool row, select.step());
  if (!row || select.blob(0).empty()) return {};
  const auto read = wire::read_columns(select.blob(0), {});
  const auto damaged = [&] {
    divided_.clear();
    miss("divided GPUs", path_ + ": how far divided GPUs are written is damaged: what their instances leave over of the slots that were open may be counted twice");
    return base::Status();
  };
  if (!read.ok() || read->size() != 5) return damaged();
  const auto& columns = *read;
  if (columns[1].size() != columns[0].size() || columns[2].size() != columns[0].size() || columns[4].size() != columns[3].size()) return damaged();
  std::size_t next = 0;
  for (std::size_t i = 0; i < columns[0].size(); ++i) {
    const std::int64_t id = columns[0][i], count = columns[2][i];
    const auto whole = id >= 1 && id <= static_cast<std::int64_t>(gpus_.size()) ? instances_.whole_of(static_cast<GpuId>(id)) : std::nullopt;
    if (!whole || count < 0 || static_cast<std::uint64_t>(count) > columns[3].size() - next) return damaged();
    auto& [instance, divided] = divided_[*whole];
    instance = static_cast<GpuId>(id);
    divided.rests_until = units::Instant{columns[1][i]};
    for (const std::size_t end = next + static_cast<std::size_t>(count); next < end; ++next) {
      divided.open_microseconds.emplace_back(units::Instant{columns[3][next]}, columns[4][next]);
    }
  }
  return next == columns[3].size() ? base::Status() : damaged();
}

}  // namespace flopsight::store
