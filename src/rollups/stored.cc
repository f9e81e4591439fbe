#include "rollups/stored.h"

#include <algorithm>

namespace flopsight::rollups {
namespace {

constexpr double kMicrosecondsPerSecond = 1e6;

void add_portion(GpuTime& out, std::optional<samples::HolderId> holder, const Cell& cell) {
  Portion& portion = out.portions.emplace_back();
  portion.holder = holder;
  portion.totals = totals_of(cell);
  portion.shared_delivered_seconds = static_cast<double>(cell[CellField::kSharedDelivered]) / kMicrosecondsPerSecond;
  portion.bridged_seconds = static_cast<double>(cell[CellField::kBridged]) / kMicrosecondsPerSecond;
  portion.ends_total = out.is_many ? 0 : 2;  // of many GPUs, members say how many
  out.spread.merge(spread_of(cell));
  if (cell.has(CellField::kHoldersMax)) {
    out.holders_at_once_max = std::max(out.holders_at_once_max, static_cast<std::uint32_t>(cell[CellField::kHoldersMax]));
  }
}

void begin_job(GpuTime& entry) {
  entry.portions.clear();
  entry.spread = {};
  entry.holders_at_once_max = 0;
  entry.is_many = true;
}

// Between samples, by how many there were; 0 where none were counted.
double step_of(double allocated_seconds, std::int64_t samples) {
  return samples > 0 ? allocated_seconds / static_cast<double>(samples) : 0;
}

}  // namespace

GpuTime time_of_gpu(const samples::GpuIdentity& gpu, std::span<const StoredPortion> portions,
                    const FleetOptions& options, samples::QualityLog& quality) {
  GpuTime out;
  out.gpu = gpu;
  resolve_device(out, options, std::nullopt, quality);
  double allocated_seconds = 0;
  std::int64_t samples = 0;
  for (const StoredPortion& portion : portions) {
    add_portion(out, portion.holder, portion.cell);
    allocated_seconds += out.portions.back().totals.allocated_seconds;
    samples += portion.cell[CellField::kSampleCount];
  }
  out.step_seconds = step_of(allocated_seconds, samples);
  return out;
}

GpuTime time_of_model(const std::string& model_raw, const FleetOptions& options, samples::QualityLog& quality) {
  GpuTime out;
  out.gpu.model_raw = model_raw;
  resolve_device(out, options, std::nullopt, quality);
  return out;
}

GpuTime time_of_job(const GpuTime& model, const StoredPortion& portion, std::vector<std::uint32_t> members) {
  GpuTime out = model;
  become_job(out, portion.holder, portion.cell);
  out.members = std::move(members);
  return out;
}

void become_job(GpuTime& entry, std::optional<samples::HolderId> holder, const Cell& cell) {
  begin_job(entry);
  add_portion(entry, holder, cell);
  entry.step_seconds = step_of(entry.portions.back().totals.allocated_seconds, cell[CellField::kSampleCount]);
}

void become_outline(GpuTime& entry, std::optional<samples::HolderId> holder, const Cell& cell) {
  begin_job(entry);
  Portion& portion = entry.portions.emplace_back();
  portion.holder = holder;
  portion.totals.measured_seconds = static_cast<double>(cell[CellField::kMeasured]) / kMicrosecondsPerSecond;
  portion.totals.delivered_seconds = static_cast<double>(cell[CellField::kDelivered]) / kMicrosecondsPerSecond;
  entry.spread = spread_of(cell);
  entry.step_seconds = 0;
}

}  // namespace flopsight::rollups
