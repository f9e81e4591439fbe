#include "engine/series.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "wire/column_codec.h"

namespace flopsight::engine {
namespace {

using rollups::CellField;
using store::GpuCell;
using store::JobCell;
using units::Instant;

// First byte of a parcel.
constexpr char kJobSlots = 'j', kJobHours = 'J', kGpuSlots = 'g', kGpuHours = 'G', kSeenSlots = 's', kSeenHours = 'S', kUntil = 'u';
constexpr int kCompressionLevel = 3;
constexpr units::Seconds kHour{3600};

using Labels = std::vector<std::pair<std::string, std::string>>;

void add_label(Labels& labels, std::string_view name, std::string value) {
  if (!value.empty()) labels.emplace_back(name, std::move(value));
}

Labels sorted(Labels labels) {
  std::sort(labels.begin(), labels.end());
  return labels;
}

// Strictly inside the slot, and another one for each state of a cell, since engines refuse a second value for one time.
std::int64_t time_of(Instant slot_start, std::int64_t revision, std::int64_t slot_milliseconds) {
  return slot_start.unix_milliseconds + 1 + std::max<std::int64_t>(revision, 0) % (slot_milliseconds - 2);
}

std::string_view kind_of(rollups::Merge merge) {
  switch (merge) {
    case rollups::Merge::kSum: return "sum";
    case rollups::Merge::kMin: return "min";
    case rollups::Merge::kMax: return "max";
    case rollups::Merge::kLatest: break;  // nothing is made of it, and no function of PromQL merges it
  }
  return "";
}

Labels job_labels(const samples::Holder& holder, const std::string& shard) {
  Labels labels;
  add_label(labels, "job", holder.job);
  add_label(labels, "namespace", holder.name_space);
  add_label(labels, "shard", shard);
  return labels;
}

// Only what tells GPUs apart: other names may become known later, and a series must not change its labels.
Labels gpu_labels(const samples::GpuIdentity& gpu) {
  Labels labels;
  if (!gpu.uuid.empty()) {
    add_label(labels, "uuid", gpu.uuid);
  } else {
    add_label(labels, "host", gpu.host);
    add_label(labels, "gpu", gpu.index);
  }
  add_label(labels, "mig_instance", gpu.mig_instance);
  return labels;
}

// The series of one entity: one for each field, with a sample for each cell.
class Fields {
 public:
  Fields(std::string entity, Level level, Labels labels)
      : entity_(std::move(entity)), level_(level), labels_(std::move(labels)) {}

  void add(std::string_view what, std::string field, std::int64_t time, std::int64_t value) {
    const std::string name = metric(entity_, level_, what);
    Series& series = series_[name + field];
    if (series.labels.empty()) {
      series.labels = labels_;
      series.labels.emplace_back("__name__", name);
      add_label(series.labels, "field", std::move(field));
      series.labels = sorted(std::move(series.labels));
    }
    series.samples.push_back({time, static_cast<double>(value)});
  }
  void add(const rollups::Cell& cell, std::int64_t time) {
    for (std::size_t i = 0; i < rollups::kCellFieldCount; ++i) {
      const auto field = static_cast<CellField>(i);
      const rollups::CellFieldInfo& info = rollups::cell_fields()[i];
      const std::string_view what = kind_of(info.merge);
      if (what.empty() || !cell.has(field) || (info.merge == rollups::Merge::kSum && cell[field] == 0)) continue;
      add(what, std::string(info.name), time, cell[field]);
    }
  }
  void add(const rollups::Spread& spread, std::int64_t time) {
    for (const rollups::Spread::Bin& bin : spread.bins()) {
      add("sum", std::string(kBinPrefix) + std::to_string(bin.bin), time, bin.microseconds);
    }
  }
  void take(std::vector<Series>& out) {
    for (auto& [key, series] : series_) out.push_back(std::move(series));
    series_.clear();
  }

 private:
  std::string entity_;
  Level level_;
  Labels labels_;
  std::map<std::string, Series> series_;
};

Series job_info(const samples::Holder& holder, const std::string& shard, std::int64_t time) {
  Labels labels = job_labels(holder, shard);
  labels.emplace_back("__name__", kJobInfo);
  add_label(labels, "container", holder.container);
  add_label(labels, "user", holder.user);
  add_label(labels, "team", holder.team);
  add_label(labels, "attributed_by", holder.rule);
  return {sorted(std::move(labels)), {{time, 1}}};
}

Series gpu_info(const samples::GpuIdentity& gpu, const std::string& shard, std::int64_t time) {
  Labels labels = gpu_labels(gpu);
  labels.emplace_back("__name__", kGpuInfo);
  add_label(labels, "shard", shard);
  add_label(labels, "mig_profile", gpu.mig_profile);
  // Not `host` and `gpu`, which tell GPUs without UUID apart.
  add_label(labels, "hostname", gpu.host);
  add_label(labels, "gpu_index", gpu.index);
  add_label(labels, "pci_bus_id", gpu.pci_bus_id);
  add_label(labels, "model", gpu.model_raw);
  add_label(labels, "driver_version", gpu.driver_version);
  return {sorted(std::move(labels)), {{time, 1}}};
}

void add_jobs(Level level, const std::vector<JobCell>& cells, const Names& names, const WriteOptions& options,
              std::vector<Series>& out) {
  const std::int64_t length = level == Level::kHour ? kHourMilliseconds : std::llround(options.slot.value * 1000);
  for (std::size_t i = 0; i < cells.size();) {
    const samples::Holder holder = cells[i].job == 0 ? samples::Holder{} : names.holder(cells[i].job);
    Labels labels = job_labels(holder, options.shard);
    add_label(labels, "model", names.model(cells[i].model));
    Fields fields("job", level, std::move(labels));
    const JobCell& first = cells[i];
    for (; i < cells.size() && cells[i].job == first.job && cells[i].model == first.model; ++i) {
      if (first.job != 0 && level == Level::kSlot && names.job_info_due(first.job, cells[i].slot_start)) {
        out.push_back(job_info(holder, options.shard, cells[i].slot_start.unix_milliseconds + 1));
      }
      const std::int64_t time = time_of(cells[i].slot_start, cells[i].cell[CellField::kCellCount] - 1, length);
      fields.add(cells[i].cell, time);
      fields.add(cells[i].spread, time);
    }
    fields.take(out);
  }
}

void add_gpus(Level level, const std::vector<GpuCell>& cells, const Names& names, const WriteOptions& options,
              std::vector<Series>& out) {
  for (std::size_t i = 0; i < cells.size();) {
    const GpuCell& first = cells[i];
    const samples::GpuIdentity gpu = names.gpu(first.gpu);
    std::map<store::JobId, Fields> by_job;
    for (; i < cells.size() && cells[i].gpu == first.gpu; ++i) {
      if (level == Level::kSlot && names.gpu_info_due(first.gpu, cells[i].slot_start)) {
        out.push_back(gpu_info(gpu, options.shard, cells[i].slot_start.unix_milliseconds + 1));
      }
      auto at = by_job.find(cells[i].job);
      if (at == by_job.end()) {
        Labels labels = gpu_labels(gpu);
        const Labels job = job_labels(cells[i].job == 0 ? samples::Holder{} : names.holder(cells[i].job), options.shard);
        labels.insert(labels.end(), job.begin(), job.end());
        at = by_job.emplace(cells[i].job, Fields("gpu", level, std::move(labels))).first;
      }
      const std::int64_t time = cells[i].slot_start.unix_milliseconds + 1;
      at->second.add("held", "", time, 1);
      if (level == Level::kSlot && options.gpu_cells) at->second.add(cells[i].cell, time);
    }
    for (auto& [job, fields] : by_job) fields.take(out);
  }
}

base::Error no_parcel() { return {base::ErrorCode::kCorrupt, "a parcel of the outbox cannot be read"}; }

base::Status add_seen(Level level, std::string_view bytes, const Names& names, const WriteOptions& options,
                      std::vector<Series>& out) {
  FLOPSIGHT_ASSIGN_OR_RETURN(const auto columns, wire::read_columns(bytes));
  if (columns.size() != 4) return no_parcel();
  for (const auto& column : columns) {
    if (column.size() != columns[0].size()) return no_parcel();
  }
  for (std::size_t i = 0; i < columns[0].size();) {
    const auto job = static_cast<store::JobId>(columns[0][i]);
    Fields fields("job", level, job_labels(names.holder(job), options.shard));
    for (; i < columns[0].size() && static_cast<store::JobId>(columns[0][i]) == job; ++i) {
      // A later end is another time, as with cells.
      const std::int64_t time = columns[1][i] + 1 + (columns[3][i] - columns[1][i]) / 1000;
      fields.add("first_seconds", "", time, columns[2][i] / 1000);
      fields.add("last_seconds", "", time, columns[3][i] / 1000);
    }
    fields.take(out);
  }
  return {};
}

base::Status add_until(std::string_view bytes, const WriteOptions& options, std::vector<Series>& out) {
  FLOPSIGHT_ASSIGN_OR_RETURN(const auto columns, wire::read_columns(bytes));
  if (columns.size() != 1 || columns[0].size() != 3) return no_parcel();
  Labels labels{{"__name__", std::string(kHoursUntil)}, {"shard", options.shard}};
  if (columns[0][2] != 0) labels.emplace_back("simulated", "true");
  out.push_back({sorted(std::move(labels)), {{columns[0][1], static_cast<double>(columns[0][0] / 1000)}}});
  return {};
}

std::string columns_of(char kind, std::initializer_list<std::vector<std::int64_t>> columns) {
  wire::ColumnWriter writer;
  for (const auto& column : columns) writer.add(column);
  return std::string(1, kind) + writer.finish(kCompressionLevel);
}

}  // namespace

std::string text_of(const Series& series) {
  std::string text = "{";
  for (const auto& [name, value] : series.labels) text += (text.size() > 1 ? ", " : "") + name + "=\"" + value + "\"";
  return text + "}";
}

std::string job_parcel(Level level, std::span<const JobCell> cells, units::Seconds slot) {
  return level == Level::kHour ? kJobHours + store::encode_job_block(cells, kHour)
                               : kJobSlots + store::encode_job_block(cells, slot);
}
std::string gpu_parcel(std::span<const GpuCell> cells, units::Seconds slot) {
  return kGpuSlots + store::encode_gpu_block(cells, slot);
}
std::string held_parcel(std::span<const GpuCell> pairs) { return kGpuHours + store::encode_gpu_block(pairs, kHour); }

std::string seen_parcel(Level level, std::span<const JobSeen> seen) {
  std::vector<std::int64_t> jobs, slots, firsts, lasts;
  for (const JobSeen& one : seen) {
    jobs.push_back(one.job);
    slots.push_back(one.slot_start.unix_milliseconds);
    firsts.push_back(one.first.unix_milliseconds);
    lasts.push_back(one.last.unix_milliseconds);
  }
  return columns_of(level == Level::kHour ? kSeenHours : kSeenSlots, {jobs, slots, firsts, lasts});
}

std::string until_parcel(const HoursUntil& until) {
  return columns_of(kUntil, {{until.time.unix_milliseconds, until.sample_time.unix_milliseconds, until.is_simulated ? 1 : 0}});
}

base::Result<std::vector<Series>> series_of(std::string_view parcel, const Names& names, const WriteOptions& options) {
  if (parcel.empty()) return no_parcel();
  std::vector<Series> out;
  const char kind = parcel[0];
  parcel.remove_prefix(1);
  switch (kind) {
    case kJobSlots:
    case kJobHours: {
      const Level level = kind == kJobHours ? Level::kHour : Level::kSlot;
      FLOPSIGHT_ASSIGN_OR_RETURN(const auto cells,
                                 store::decode_job_block(parcel, level == Level::kHour ? kHour : options.slot));
      add_jobs(level, cells, names, options, out);
      return out;
    }
    case kGpuSlots:
    case kGpuHours: {
      const Level level = kind == kGpuHours ? Level::kHour : Level::kSlot;
      FLOPSIGHT_ASSIGN_OR_RETURN(const auto cells,
                                 store::decode_gpu_block(parcel, level == Level::kHour ? kHour : options.slot));
      add_gpus(level, cells, names, options, out);
      return out;
    }
    case kSeenSlots:
    case kSeenHours:
      FLOPSIGHT_RETURN_IF_ERROR(
          add_seen(kind == kSeenHours ? Level::kHour : Level::kSlot, parcel, names, options, out));
      return out;
    case kUntil: FLOPSIGHT_RETURN_IF_ERROR(add_until(parcel, options, out)); return out;
    default: return no_parcel();
  }
}

}  // namespace flopsight::engine
