// What samples say of jobs beside their GPUs: whose a pod is, and how fast a job says that it trains.
#include "serve/ingest.h"

namespace flopsight::app {

void Ingest::learn_owner(std::string_view metric, std::span<const jobs::LabelView> labels, double value, std::uint64_t samples) {
  owners_.learn(metric, labels, value);
  counters_.samples_of_owners += samples;
}

void Ingest::learn_reported(std::string_view metric, std::span<const jobs::LabelView> labels, TimedValue sample, units::Instant now,
                            std::uint32_t segment) {
  using Added = training_logs::ExportedSteps::Added;
  ++counters_.samples_reported;
  const samples::Holder holder = rules_.apply(labels).holder;
  if (holder.unallocated()) {
    ++counters_.reported_without_job;
    return;
  }
  const auto step = options_.metrics.read(metric, sample.value, sample.time);
  if (!step) {
    ++counters_.reported_no_measurement;
    return;
  }
  switch (reported_.add(holder, *step, now, segment)) {
    case Added::kKept: return;
    case Added::kOutOfTime: ++counters_.reported_out_of_time; return;
    case Added::kLimit: ++counters_.reported_over_limit; return;
  }
}

std::optional<units::Instant> Ingest::oldest_open() const {
  const std::scoped_lock guard(fleet_mutex_);
  return fleet_->oldest_open();
}

std::vector<training_logs::ExportedSteps::OfJob> Ingest::take_reported(units::Instant now) {
  const std::scoped_lock guard(fleet_mutex_);
  const std::optional<std::uint32_t> oldest = reported_.oldest_segment();
  auto steps = reported_.take(now);
  if (!steps.empty() && oldest) reported_unkept_segment_ = std::min(reported_unkept_segment_.value_or(*oldest), *oldest);
  return steps;
}

void Ingest::reported_is_kept() {
  const std::scoped_lock guard(fleet_mutex_);
  reported_unkept_segment_.reset();
}

}  // namespace flopsight::app
