#include "simulate/simulate_batch.h"

#include <algorithm>
#include <bit>

namespace flopsight::app {
namespace {

using simulation::Exporter;
using simulation::Row;
using simulation::SimulatedMetric;

constexpr std::uint64_t kStaleBits = 0x7ff0000000000002ULL;

// Of the same series: a trainer that begins to report adds one to those of its labels.
bool same_rows(const std::vector<Row>& a, const std::vector<Row>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const Row& x, const Row& y) { return x.same_labels(y) && x.reports_mfu == y.reports_mfu; });
}

std::vector<const SimulatedMetric*> metrics_of_row(const simulation::Timetable& timetable, const Row& row, bool profiling) {
  const bool instance = timetable.slots()[row.slot].mig_slices > 0;
  std::vector<const SimulatedMetric*> out;
  for (const SimulatedMetric& metric : simulation::metrics_of(timetable.options())) {
    if (row.has(metric, profiling) && (!instance || metric.on_instances)) out.push_back(&metric);
  }
  return out;
}

std::vector<Row> rows_at(const simulation::Timetable& timetable, simulation::Meter& meter, std::uint32_t host,
                         std::int64_t t) {
  std::vector<Row> out;
  if (timetable.exporter(host, t) == Exporter::kDown) return out;
  const std::uint32_t per_host = timetable.options().gpus_per_host;
  const std::uint32_t end = std::min((host + 1) * per_host, timetable.options().gpus);
  for (std::uint32_t gpu = host * per_host; gpu < end; ++gpu) add_rows(meter, timetable, gpu, t, out);
  return out;
}

}  // namespace

bool SimulatedBatch::HostRows::same_series(const HostRows& other) const {
  return profiling == other.profiling && same_rows(now, other.now) && same_rows(gone, other.gone);
}

SimulatedBatch::HostRows SimulatedBatch::look(const simulation::Timetable& timetable, simulation::Meter& meter,
                                              std::uint32_t host, std::int64_t t, const How& how) const {
  HostRows out;
  out.host = host;
  out.now = rows_at(timetable, meter, host, t);
  out.profiling = timetable.exporter(host, t) == Exporter::kUp;
  if (how.first_round) return out;
  for (Row& row : rows_at(timetable, meter, host, t - timetable.options().interval_milliseconds())) {
    const bool goes_on = std::any_of(out.now.begin(), out.now.end(), [&](const Row& r) { return r.same_labels(row); });
    if (!goes_on) out.gone.push_back(std::move(row));
  }
  return out;
}

void SimulatedBatch::build(const simulation::Timetable& timetable, const How& how) {
  message_.emplace(how.version);
  std::vector<std::string_view> names;
  const auto add = [&](const simulation::LabelPairs& pairs) {
    std::vector<wire::Label> labels;
    for (const auto& [name, value] : pairs) labels.push_back({name, value});
    message_->add(labels, names);
  };
  const auto add_row = [&](const Row& row, bool profiling) {
    names.clear();
    for (const SimulatedMetric* metric : metrics_of_row(timetable, row, profiling)) names.push_back(metric->name);
    add(simulation::stored_labels(timetable, row, how.labels_min));
  };
  for (const HostRows& host : rows_) {
    for (const Row& row : host.now) add_row(row, host.profiling);
    for (const Row& row : host.gone) add_row(row, true);
    if (host.now.empty()) continue;
    names = {simulation::kSimulatedMetric};
    add(simulation::stored_host_labels(timetable, host.host));
  }
  message_->finish();
}

void SimulatedBatch::set_values(const simulation::Timetable& timetable, simulation::Meter& meter, std::int64_t round) {
  std::size_t index = 0;
  for (const HostRows& host : rows_) {
    const std::int64_t t = round + timetable.scrape_offset(host.host);
    simulation::Readings readings;
    std::uint32_t gpu_read = ~0U;
    for (const Row& row : host.now) {
      const bool instance = timetable.slots()[row.slot].mig_slices > 0;
      if (instance || gpu_read != row.gpu) readings = meter.read(row.gpu, row.slot, t);
      gpu_read = row.gpu;
      for (const SimulatedMetric& metric : simulation::metrics_of(timetable.options())) {
        if (!row.has(metric, host.profiling) || (instance && !metric.on_instances)) continue;
        message_->set(index++, value_of(metric, row, readings, timetable, meter, t), t);
      }
    }
    for (const Row& row : host.gone) {
      const std::size_t count = metrics_of_row(timetable, row, true).size();
      for (std::size_t i = 0; i < count; ++i) message_->set(index++, std::bit_cast<double>(kStaleBits), t);
    }
    if (!host.now.empty()) message_->set(index++, 1, t);
  }
}

SimulatedBatch::Message SimulatedBatch::fill(const simulation::Timetable& timetable, simulation::Meter& meter,
                                             std::int64_t round, const How& how) {
  std::vector<HostRows> rows;
  for (std::uint32_t host = first_; host < last_; ++host) {
    rows.push_back(look(timetable, meter, host, round + timetable.scrape_offset(host), how));
  }
  const bool same = message_ && std::equal(rows.begin(), rows.end(), rows_.begin(), rows_.end(),
                                           [](const HostRows& a, const HostRows& b) { return a.same_series(b); });
  rows_ = std::move(rows);
  if (!same) build(timetable, how);
  set_values(timetable, meter, round);
  return {&message_->compressed(), message_->series()};
}

void SimulatedBatch::forget() {
  message_.reset();
  rows_.clear();
  rows_.shrink_to_fit();
}

}  // namespace flopsight::app
