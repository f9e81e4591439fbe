#include "simulation/timetable.h"

#include <algorithm>
#include <cmath>

#include "simulation/course.h"
#include "simulation/fleet608.h"
#include "simulation/random.h"

namespace flopsight::simulation {
namespace {

// What a hash is for, so that no two purposes share one.
enum Purpose : std::uint64_t { kLayout = 1, kPeriod, kJob, kAttempt, kReboot, kSilence, kPods, kOffset, kSeats };

constexpr double kPeriodSecondsMin = 2400;
constexpr double kPeriodSecondsMax = 12 * 3600.0;
constexpr double kIdlePeriods = 0.07;  // the share of periods without a job
constexpr std::int64_t kGapMillisecondsMax = 600'000;  // a queue of jobs fills what is free
// Retries of restart_storm: about so long, and so long apart.
constexpr double kAttemptSecondsMin = 480, kAttemptSecondsMax = 1500;
constexpr double kDownSecondsMin = 40, kDownSecondsMax = 150;

// MIG layouts in use: slices, and the instance ids that the driver gives them. Not all of them fill the GPU.
struct Layout {
  std::uint8_t count;
  std::uint8_t slices[7];
  std::uint8_t ids[7];
};
constexpr Layout kLayouts[] = {
    {7, {1, 1, 1, 1, 1, 1, 1}, {7, 8, 9, 10, 11, 12, 13}},
    {4, {3, 2, 1, 1}, {2, 3, 9, 10}},
    {2, {4, 3}, {1, 2}},
    {2, {3, 3}, {1, 2}},
    {3, {2, 2, 3}, {3, 5, 2}},
};

}  // namespace

Timetable::Timetable(const Options& options) : options_(options) {
  first_slot_.resize(options.gpus);
  if (options.scenario == Scenario::kSharedGpus || options.scenario == Scenario::kMig) {
    lay_out_seats();
  } else if (options.scenario == Scenario::kFleet608) {
    lay_out_fleet608();
  } else {
    lay_out_jobs();
  }
}

void Timetable::add_slot(Slot slot) {
  for (std::uint32_t i = 0; i < slot.gpu_count && slot.seat == 0; ++i) {
    first_slot_[slot.gpu_first + i] = static_cast<std::uint32_t>(slots_.size());
  }
  slots_.push_back(slot);
}

// Sizes are spread evenly over the powers of two by GPUs, up to half the fleet, so that a fleet of any size
// has several jobs; a job of more than a host takes whole hosts.
void Timetable::lay_out_jobs() {
  const std::uint32_t per_host = options_.gpus_per_host;
  const std::uint32_t most = std::max({1U, std::min(per_host, options_.gpus), options_.gpus / 2});
  const double octaves = std::log2(static_cast<double>(most));
  std::uint32_t gpu = subject_gpus(options_);
  if (gpu > 0) add_slot({0, gpu, 0, 1, 0, 0});
  for (std::uint64_t n = 0; gpu < options_.gpus; ++n) {
    Draws draws(hash_of(options_.seed, kLayout, n));
    // A job of 2^x is drawn 2^(x/2) times rarer than a single GPU.
    const double u = draws.unit();
    const double x = -2 * std::log2(1 - u * (1 - std::exp2(-octaves / 2)));
    auto size = static_cast<std::uint32_t>(std::exp2(std::min(std::round(x), octaves)));
    const std::uint32_t left_on_host = per_host - gpu % per_host;
    if (left_on_host < per_host) {
      size = std::min(size, left_on_host);
    } else if (size > per_host) {
      size -= size % per_host;
    }
    size = std::max(1U, std::min(size, options_.gpus - gpu));
    if (n == 0 && options_.gpus >= 2) size = std::min(per_host, most);  // one whole host at least, in any fleet
    add_slot({gpu, size, 0, 1, 0, 0});
    gpu += size;
  }
}

// As many of its jobs as there are GPUs for; GPUs beyond the last are free.
void Timetable::lay_out_fleet608() {
  std::uint32_t gpu = 0;
  for (std::uint32_t number = 0; gpu < options_.gpus; ++number) {
    const std::uint32_t left = options_.gpus - gpu;
    const std::uint32_t size = number < kFleet608Jobs ? std::min(fleet608_job(options_.seed, number).gpus, left) : left;
    add_slot({gpu, size, 0, 1, 0, 0});
    gpu += size;
  }
}

bool Timetable::is_subject(std::uint32_t slot) const {
  if (options_.scenario == Scenario::kFleet608) return slot < kFleet608Jobs;
  return options_.scenario > Scenario::kMig && slot == 0;
}

void Timetable::lay_out_seats() {
  const bool mig = options_.scenario == Scenario::kMig;
  for (std::uint32_t gpu = 0; gpu < options_.gpus; ++gpu) {
    Draws draws(hash_of(options_.seed, kSeats, gpu));
    const double u = draws.unit();
    if (u < 0.25) {  // some GPUs of such a fleet are whole
      add_slot({gpu, 1, 0, 1, 0, 0});
    } else if (mig) {
      const Layout& layout = kLayouts[draws.below(std::size(kLayouts))];
      for (std::uint8_t i = 0; i < layout.count; ++i) {
        add_slot({gpu, 1, i, layout.count, layout.slices[i], layout.ids[i]});
      }
    } else {
      const auto seats = static_cast<std::uint8_t>(2 + draws.below(3));
      for (std::uint8_t i = 0; i < seats; ++i) add_slot({gpu, 1, i, seats, 0, 0});
    }
  }
}

JobKind Timetable::kind_of(const Slot& slot, std::uint64_t key) const {
  const double u = unit_of(hash_of(key, kJob));
  if (slot.gpu_count >= options_.gpus_per_host) return u < 0.8 ? JobKind::kPretrain : JobKind::kInference;
  if (slot.gpu_count > 1) return u < 0.25 ? JobKind::kPretrain : u < 0.75 ? JobKind::kFinetune : JobKind::kInference;
  return u < 0.4 ? JobKind::kFinetune : u < 0.75 ? JobKind::kInference : JobKind::kNotebook;
}

std::uint64_t Timetable::key(const Segment& segment) const {
  return hash_of(hash_of(options_.seed, kPeriod, segment.slot), static_cast<std::uint64_t>(segment.period));
}
std::uint64_t Timetable::try_key(const Segment& segment) const {
  return hash_of(key(segment), kAttempt, segment.attempt);
}

Segment Timetable::at(std::uint32_t id, std::int64_t t) const {
  if (is_subject(id)) return course_segment(options_, id, t);
  Segment out = period_at(id, t);
  if (options_.scenario == Scenario::kFleet608) out.held = false;  // GPUs that no job of it has
  out.job_start = out.start;
  out.job_end = out.end;
  return out;
}

Segment Timetable::period_at(std::uint32_t id, std::int64_t t) const {
  const Slot& slot = slots_[id];
  Draws slot_draws(hash_of(options_.seed, kPeriod, id));
  // Large jobs run longer.
  const double least = kPeriodSecondsMin * (slot.gpu_count >= options_.gpus_per_host ? 2 : 1);
  const auto length = static_cast<std::int64_t>(slot_draws.log_between(least, kPeriodSecondsMax) * 1000);
  const std::int64_t phase = static_cast<std::int64_t>(slot_draws.unit() * static_cast<double>(length));
  Segment out;
  out.slot = id;
  out.period = (t - phase) / length - ((t - phase) % length < 0 ? 1 : 0);
  const std::int64_t from = phase + out.period * length;
  Draws draws(key(out));
  const bool idle = draws.unit() < kIdlePeriods;
  const auto part = [&](double ratio) { return static_cast<std::int64_t>(ratio * static_cast<double>(length)); };
  const std::int64_t begin = from + std::min(part(draws.between(0, 0.05)), kGapMillisecondsMax);
  const std::int64_t end = from + length - std::min(part(draws.between(0.005, 0.08)), kGapMillisecondsMax);
  out.start = from;
  out.end = from + length;
  if (idle) return out;
  if (t < begin) {
    out.end = begin;
  } else if (t >= end) {
    out.start = end;
  } else {
    out.start = begin;
    out.end = end;
    out.held = true;
    out.kind = kind_of(slot, key(out));
    if (options_.scenario == Scenario::kRestartStorm) return attempt_at(out, t);
  }
  return out;
}

Segment Timetable::attempt_at(Segment job, std::int64_t t) const {
  Draws draws(hash_of(key(job), kAttempt));
  const auto length = static_cast<double>(job.end - job.start);
  const double attempts =
      std::max(1.0, std::floor(length / 1000 / draws.between(kAttemptSecondsMin, kAttemptSecondsMax)));
  // The nth try begins in the first half of the nth part.
  const auto begins = [&](double n) {
    if (n <= 0) return job.start;
    if (n >= attempts) return job.end;
    const double late = 0.5 * unit_of(hash_of(key(job), kAttempt, static_cast<std::uint64_t>(n)));
    return job.start + static_cast<std::int64_t>(length * (n + late) / attempts);
  };
  double n = std::min(std::floor(static_cast<double>(t - job.start) * attempts / length), attempts - 1);
  if (t < begins(n)) n -= 1;
  job.attempt = static_cast<std::uint32_t>(n);
  const std::int64_t next = begins(n + 1);
  job.start = begins(n);
  if (n + 1 >= attempts) {
    job.end = next;
    return job;
  }
  Draws down(hash_of(try_key(job), kAttempt));
  const std::int64_t dies = next - static_cast<std::int64_t>(down.between(kDownSecondsMin, kDownSecondsMax) * 1000);
  if (t < dies) {
    job.end = dies;
    return job;
  }
  job.start = dies;
  job.end = next;
  job.held = false;
  job.restarting = true;
  return job;
}

// Only jobs of whole hosts take a host down with them: of a host with several jobs the others go on.
std::int64_t Timetable::rebooting_host(const Segment& segment) const {
  const Slot& slot = slots_[segment.slot];
  if (!segment.restarting || slot.gpu_count < options_.gpus_per_host) return -1;
  Draws draws(hash_of(try_key(segment), kReboot));
  if (draws.unit() > 0.4) return -1;
  return slot.gpu_first / options_.gpus_per_host +
         static_cast<std::int64_t>(draws.below(slot.gpu_count / options_.gpus_per_host));
}

Timetable::Silence Timetable::silence(const Segment& segment) const {
  const Slot& slot = slots_[segment.slot];
  if (options_.scenario != Scenario::kRestartStorm || !segment.held || slot.gpu_count < options_.gpus_per_host) {
    return {};
  }
  Draws draws(hash_of(try_key(segment), kSilence));
  const std::int64_t interval = options_.interval_milliseconds();
  const std::int64_t length = segment.end - segment.start;
  if (draws.unit() > 0.5 || length < 20 * interval) return {};
  Silence out;
  out.host = slot.gpu_first / options_.gpus_per_host +
             static_cast<std::int64_t>(draws.below(slot.gpu_count / options_.gpus_per_host));
  out.start = segment.start + static_cast<std::int64_t>(draws.between(0.3, 0.5) * static_cast<double>(length));
  out.end = out.start + static_cast<std::int64_t>(3 + draws.below(4)) * interval;
  return out;
}

Exporter Timetable::exporter(std::uint32_t host, std::int64_t t) const {
  if (options_.scenario != Scenario::kRestartStorm) return Exporter::kUp;
  const Segment segment = at(first_slot_[host * options_.gpus_per_host], t);
  if (rebooting_host(segment) == host) return Exporter::kDown;
  const Silence quiet = silence(segment);
  if (quiet.host != host || t < quiet.start) return Exporter::kUp;
  if (t < quiet.end) return Exporter::kDown;
  return t < quiet.end + options_.interval_milliseconds() ? Exporter::kWithoutProfiling : Exporter::kUp;
}

bool Timetable::without_pods(std::uint32_t host, std::int64_t t) const {
  if (options_.scenario != Scenario::kRestartStorm) return false;
  const std::int64_t interval = options_.interval_milliseconds();
  return unit_of(hash_of(hash_of(options_.seed, kPods, host), static_cast<std::uint64_t>(t / interval))) < 0.004;
}

std::int64_t Timetable::scrape_offset(std::uint32_t host) const {
  return static_cast<std::int64_t>(hash_of(options_.seed, kOffset, host) %
                                   static_cast<std::uint64_t>(options_.interval_milliseconds()));
}

}  // namespace flopsight::simulation
