// The second half of LiveFleet: rows to cells.
#include <algorithm>
#include <cmath>
#include <tuple>

#include "live/live_fleet.h"
#include "rollups/screen.h"
#include "units/milliseconds.h"

namespace flopsight::live {
namespace {

using catalog::Metric;

// Rows after a slot that can still say something of it: the next sample, the other end of a bridged label gap,
// and enough steps to tell the cadence.
constexpr std::size_t kRowsAfter = 9;
// Rows before it: the one that holds into it, and those that a label gap or a borrowed clock may reach back to.
constexpr std::size_t kRowsBefore = 3;
// By which the wait for late samples is shorter in a hurry.
constexpr std::int64_t kHurry = 4;
// As rollups/cadence.h looks back.
constexpr std::size_t kCadenceSteps = 8;

units::Seconds step_of(const PendingRows& rows, units::Seconds otherwise) {
  // Rows that are gone count too: of a GPU that was away, one is left, and how long it was away is no step.
  std::vector<std::int64_t> times = rows.size() > kCadenceSteps ? std::vector<std::int64_t>() : rows.earlier();
  for (std::size_t i = rows.size() - std::min(rows.size(), kCadenceSteps + 1); i < rows.size(); ++i) times.push_back(rows.at(i).unix_milliseconds());
  if (times.size() < 2) return otherwise;
  std::vector<std::int64_t> steps;
  for (std::size_t i = times.size() - std::min(times.size() - 1, kCadenceSteps); i < times.size(); ++i) steps.push_back(times[i] - times[i - 1]);
  const auto pick = steps.begin() + static_cast<std::ptrdiff_t>((steps.size() - 1) * 3 / 4);
  std::nth_element(steps.begin(), pick, steps.end());
  return units::Seconds(static_cast<double>(*pick) / 1000);
}

// What one of several holders of a slot has of the readings of the clock: an equal part in whole numbers, which add up to the GPU's. `turn` says who
// gets what is left over.
rollups::ClockSpread part_of(const rollups::ClockSpread& whole, std::size_t part, std::size_t part_count, std::int64_t turn) {
  if (part_count == 1) return whole;
  const std::uint64_t place = (part + static_cast<std::uint64_t>(turn)) % part_count;
  const auto share = [&](std::uint64_t count) { return count / part_count + (place < count % part_count ? 1 : 0); };
  rollups::ClockSpread out;
  out.count = share(whole.count);
  out.difference_count = share(whole.difference_count);
  if (out.difference_count > 0) {
    out.difference_sum_hertz2 =
        whole.difference_sum_hertz2 * static_cast<double>(out.difference_count) / static_cast<double>(whole.difference_count);
  }
  return out;
}

}  // namespace

void LiveFleet::resolve(Gpu& gpu) {
  rollups::GpuTime known;
  known.gpu = identity_of(gpu);
  std::optional<units::Hertz> max_clock;
  if (gpu.scraped_max_clock_hertz > 0) max_clock = units::Hertz(static_cast<double>(gpu.scraped_max_clock_hertz));
  Kind kind;
  kind.weight = rollups::resolve_device(known, options_.fleet, max_clock, quality_);
  kind.device = known.device;
  kind.reference = known.reference;
  const auto facts = [](const Kind& of) {
    return std::tuple(of.device, of.weight, of.reference ? of.reference->clock.value : 0.0, of.reference ? of.reference->source : model::ReferenceSource{});
  };
  auto at = std::find_if(kinds_.begin() + 1, kinds_.end(), [&](const Kind& other) { return facts(other) == facts(kind); });
  if (at == kinds_.end()) at = kinds_.insert(kinds_.end(), kind);
  gpu.kind = static_cast<std::uint32_t>(at - kinds_.begin());
}

samples::GpuTimeline LiveFleet::timeline_of(const Gpu& gpu, units::Window window) const {
  samples::GpuTimeline timeline;
  timeline.gpu = identity_of(gpu);
  timeline.tensor_calibrated = gpu.calibrated;
  const std::size_t from = gpu.rows.first_at_or_after(window.start.unix_milliseconds);
  const std::size_t to = gpu.rows.first_at_or_after(window.end.unix_milliseconds);
  const std::size_t first = from - std::min(from, kRowsBefore);
  const std::size_t last = std::min(gpu.rows.size(), to + kRowsAfter);
  // Of what was there before the rows only the times are left; they tell the cadence and lie outside the window.
  std::vector<std::int64_t> earlier = gpu.rows.earlier();
  timeline.scrapes.reserve(kRowsAfter + (last - first));
  for (std::size_t i = 0; i < first; ++i) earlier.push_back(gpu.rows.at(i).unix_milliseconds());
  for (std::size_t i = earlier.size() - std::min<std::size_t>(earlier.size(), kRowsAfter); i < earlier.size(); ++i) {
    samples::GpuScrape bare;
    bare.time = units::Instant{earlier[i]};
    if (gpu.has_tensor) bare.reading(Metric::kTensorActive) = samples::Absent{samples::AbsentReason::kGap};
    timeline.scrapes.push_back(std::move(bare));
  }
  for (std::size_t i = first; i < last; ++i) {
    samples::GpuScrape scrape = gpu.rows.scrape(i, holder_sets_[gpu.rows.at(i).holders]);
    if (gpu.is_instance && !scrape.reading(Metric::kSmClock).present()) {
      // Of the whole GPU, where the exporter says it only there.
      const PendingRows& whole = gpus_[gpu.parent].rows;
      const std::size_t at = whole.first_at_or_after(gpu.rows.at(i).unix_milliseconds());
      if (at < whole.size() && whole.at(at).unix_milliseconds() == gpu.rows.at(i).unix_milliseconds()) {
        const samples::GpuScrape parent = whole.scrape(at, {});
        for (const catalog::MetricInfo& metric : catalog::metrics()) {
          if (metric.whole_gpu && !scrape.saw(metric.metric)) {
            scrape.reading(metric.metric) = parent.reading(metric.metric);
          }
        }
      }
    }
    timeline.scrapes.push_back(std::move(scrape));
  }
  return timeline;
}

void LiveFleet::close_slot(GpuIndex index, units::Window window, const CellSink& sink) {
  Gpu& gpu = gpus_[index];
  samples::GpuTimeline timeline = timeline_of(gpu, window);
  const std::size_t in_slot = static_cast<std::size_t>(
      std::count_if(timeline.scrapes.begin(), timeline.scrapes.end(),
                    [&](const samples::GpuScrape& s) { return window.contains(s.time); }));
  // The slot a scrape stands in decides what it is noted for, so that nothing is noted twice.
  const Kind& kind = kinds_[gpu.kind];
  rollups::screen_gpu(timeline, kind.device, quality_, window);
  samples::QualityLog noted;
  rollups::IntegrateOptions how = options_.fleet.integrate;
  how.window = window;
  rollups::GpuTime rolled = rollups::integrate(timeline, kind.device, kind.reference, kind.weight, how, jobs_,
                                               holders_, noted);
  explain_by_host(index, window, rolled);
  if (!gpu.has_tensor) {
    const samples::GpuIdentity& who = timeline.gpu;
    quality_.add("no_tensor_counter", who.host.empty() ? rollups::gpu_label(who) : who.host);
  }
  if (rolled.holders_at_once_max > 1) quality_.add("shared_gpu", rollups::gpu_label(timeline.gpu));
  const rollups::ClockSpread spread = rollups::clock_spread(timeline.scrapes, window);
  const std::int64_t turn = window.start.unix_milliseconds / units::milliseconds(options_.slot);
  std::size_t part = 0;
  for (const rollups::Portion& portion : rolled.portions) {
    const bool is_first = part == 0;
    ClosedCell closed;
    closed.gpu = index;
    closed.slot_start = units::Instant{window.start.unix_milliseconds / units::milliseconds(options_.slot) *
                                       units::milliseconds(options_.slot)};
    closed.holder = portion.holder;
    closed.cell = rollups::cell_of(portion.totals, part_of(spread, part, rolled.portions.size(), turn));
    using rollups::CellField;
    closed.cell[CellField::kSharedDelivered] =
        rollups::to_fixed(CellField::kSharedDelivered, portion.shared_delivered_seconds * 1e6);
    closed.cell[CellField::kBridged] = rollups::to_fixed(CellField::kBridged, portion.bridged_seconds * 1e6);
    closed.cell[CellField::kHoldersMax] = rolled.holders_at_once_max;
    closed.cell[CellField::kSampleCount] = is_first ? static_cast<std::int64_t>(in_slot) : 0;
    ++part;
    if (gpu.is_instance) {
      sink_of_instance(closed, sink);
    } else {
      sink(closed);
    }
  }
  // It was taken for whole, so that nothing is left over for anybody.
  if (!gpu.has_instances) return;
  Divided& divided = divided_.at(index);
  divided.rests_until = std::max(divided.rests_until, (turn + 1) * units::milliseconds(options_.slot));
}

// What is in no instance of a slot is known once all of them have closed it, and written then (close_rests()). An instance that was taken for gone
// may have more of a slot whose rest is written. As far as it says something, the rest is that much less; that it was silent, the rest says already.
void LiveFleet::sink_of_instance(const ClosedCell& closed, const CellSink& sink) {
  Divided& divided = divided_.at(gpus_[closed.gpu].parent);
  if (closed.slot_start.unix_milliseconds >= divided.rests_until) {
    divided.open_microseconds[closed.slot_start.unix_milliseconds] += closed.cell.allocated_microseconds();
    sink(closed);
    return;
  }
  if (closed.cell[rollups::CellField::kMeasured] == 0) return;
  const GpuIndex parent = gpus_[closed.gpu].parent;
  if (options_.rests_are_final) {
    quality_.add("late_instance", rollups::gpu_label(identity(closed.gpu)));
    return;
  }
  sink(closed);
  ClosedCell less;
  less.gpu = parent;
  less.slot_start = closed.slot_start;
  less.cell.absent(samples::AbsentReason::kUnsplitInstances) = -closed.cell.allocated_microseconds();
  sink(less);
}

bool LiveFleet::is_divided_at(GpuIndex index, units::Instant start) const {
  if (!gpus_[index].has_instances) return false;
  const Divided& divided = divided_.at(index);
  return divided.newest >= start.unix_milliseconds || start.unix_milliseconds < divided.rests_until;
}

void LiveFleet::close_gpu(GpuIndex index, units::Instant now, const CellSink& sink, bool everything) {
  Gpu& gpu = gpus_[index];
  if (gpu.rows.empty() || gpu.away) return;
  const std::int64_t slot = units::milliseconds(options_.slot);
  const bool is_idle = everything || now.unix_milliseconds - std::int64_t{gpu.arrived_seconds} * 1000 > units::milliseconds(options_.idle);
  const std::int64_t newest = gpu.rows.back().unix_milliseconds();
  const std::int64_t step = units::milliseconds(step_of(gpu.rows, options_.fleet.integrate.step_default));
  // Closed out: the last sample holds for one step, in a slot of its own length.
  const std::int64_t last = newest + step;
  std::int64_t limit = is_idle ? (last + slot - 1) / slot * slot : (newest - units::milliseconds(options_.late) / (hurried_ ? kHurry : 1)) / slot * slot;
  if (options_.closed_max) limit = std::min(limit, options_.closed_max->unix_milliseconds / slot * slot);
  if (gpu.closed_until >= limit) {
    if (is_idle) gpu.away = true;
    return;
  }
  if (gpu.kind == 0) resolve(gpu);
  std::int64_t left = slots_at_once_;
  while (gpu.closed_until < limit) {
    if (slots_at_once_ != 0 && left-- == 0) {
      more_ = true;
      break;
    }
    units::Window window{{gpu.closed_until}, {gpu.closed_until + slot}};
    const std::size_t next = gpu.rows.first_at_or_after(window.start.unix_milliseconds);
    if (next == 0) {
      // Before its first sample a GPU is not known to have been there.
      const std::int64_t first = gpu.rows.front().unix_milliseconds();
      if (first >= window.end.unix_milliseconds) {
        gpu.closed_until = first / slot * slot;
        continue;
      }
      window.start.unix_milliseconds = std::max(window.start.unix_milliseconds, first);
    }
    const std::size_t beyond = gpu.rows.first_at_or_after(window.end.unix_milliseconds);
    if (beyond > 0 && beyond < gpu.rows.size()) {
      const std::int64_t before = gpu.rows.at(beyond - 1).unix_milliseconds();
      const std::int64_t after = gpu.rows.at(beyond).unix_milliseconds();
      if (after - before > units::milliseconds(options_.gap_attribution_max)) {
        // It was away. Up to one step its last sample holds; then nothing, until the next one.
        if (window.start.unix_milliseconds >= before + step) {
          gpu.rows.drop_before(beyond);
          gpu.closed_until = after / slot * slot;
          continue;
        }
        window.end.unix_milliseconds = std::min(window.end.unix_milliseconds, before + step);
      }
    }
    if (is_idle) window.end.unix_milliseconds = std::min(window.end.unix_milliseconds, last);
    if (!is_divided_at(index, window.start) && window.start < window.end) close_slot(index, window, sink);
    gpu.closed_until += slot;
  }
  drop_closed(gpu);
  if (is_idle && gpu.closed_until >= limit) gpu.away = true;
}

void LiveFleet::set_replaying(bool replaying) {
  replaying_ = replaying;
  if (replaying) return;
  for (Gpu& gpu : gpus_) drop_closed(gpu);
}

void LiveFleet::drop_closed(Gpu& gpu) {
  const std::size_t open = gpu.rows.first_at_or_after(gpu.closed_until);
  const std::size_t kept = gpu.rows.last_says_all(open - std::min(open, kRowsBefore), open) ? 1 : kRowsBefore;
  if (open > kept) gpu.rows.drop_before(open - kept);
}

void LiveFleet::close_rests(const CellSink& sink) {
  end_pause_round();
  const std::int64_t slot = units::milliseconds(options_.slot);
  for (auto& [parent, divided] : divided_) {
    std::int64_t complete = std::numeric_limits<std::int64_t>::max();
    for (const GpuIndex instance : divided.instances) {
      const Gpu& gpu = gpus_[instance];
      // One of which every sample was refused has nothing to wait for.
      if (!gpu.away && !gpu.rows.empty()) complete = std::min(complete, gpu.closed_until);
    }
    std::map<std::int64_t, std::int64_t>& open = divided.open_microseconds;
    for (; !open.empty() && (open.begin()->first + slot <= complete || open.size() > kOpenSlotsMax); open.erase(open.begin())) {
      const auto [start, microseconds] = *open.begin();
      divided.rests_until = std::max(divided.rests_until, start + slot);
      const std::int64_t rest = slot * 1000 - microseconds;
      // Below a microsecond per instance it is rounding.
      if (rest <= 16) continue;
      ClosedCell closed;
      closed.gpu = parent;
      closed.slot_start = units::Instant{start};
      closed.cell.absent(samples::AbsentReason::kUnsplitInstances) = rest;
      closed.cell[rollups::CellField::kCellCount] = 1;
      sink(closed);
    }
  }
}

void LiveFleet::for_divided(const std::function<void(std::span<const GpuIndex>, const rollups::DividedGpu&)>& use) const {
  for (const auto& [parent, divided] : divided_) {
    if (divided.rests_until == 0 && divided.open_microseconds.empty()) continue;
    rollups::DividedGpu one{units::Instant{divided.rests_until}, {}};
    for (const auto& [start, microseconds] : divided.open_microseconds) one.open_microseconds.emplace_back(units::Instant{start}, microseconds);
    use(divided.instances, one);
  }
}

// Instances first: they read rows of their GPU that closing it would drop.
void LiveFleet::close_instances(units::Instant now, const CellSink& sink, bool everything) {
  for (const auto& [parent, divided] : divided_) {
    for (const GpuIndex index : divided.instances) close_gpu(index, now, sink, everything);
  }
}

void LiveFleet::close_range(GpuIndex first, GpuIndex last, units::Instant now, const CellSink& sink,
                            bool everything) {
  for (GpuIndex i = first; i < last && i < gpus_.size(); ++i) {
    if (!gpus_[i].is_instance) close_gpu(i, now, sink, everything);
  }
}

void LiveFleet::close(units::Instant now, const CellSink& sink, bool everything) {
  close_instances(now, sink, everything);
  close_range(0, static_cast<GpuIndex>(gpus_.size()), now, sink, everything);
  close_rests(sink);
}

}  // namespace flopsight::live
