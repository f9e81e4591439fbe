#include <algorithm>
#include <cmath>
#include <map>

#include "rollups/cadence.h"
#include "rollups/pieces_internal.h"
#include "rollups/screen.h"

namespace flopsight::rollups {
namespace {

using catalog::Metric;
using samples::Absent;
using samples::AbsentReason;
using samples::GpuScrape;
using samples::Reading;

bool has_counters(const GpuScrape& s) {
  return s.reading(Metric::kSmCyclesElapsed).present() &&
         s.reading(Metric::kMmaCyclesActive).present();
}

// Two neighbouring scrapes with counters, and what they say.
struct CounterStep {
  bool usable = false;
  double elapsed_cycles = 0;
  double mma_cycles = 0;
  units::Seconds seconds;
};

CounterStep counter_step(const GpuScrape& a, const GpuScrape& b, units::Window noted, const std::string& label,
                         samples::QualityLog& quality) {
  CounterStep step;
  if (!has_counters(a) || !has_counters(b)) return step;
  step.seconds = b.time - a.time;
  step.elapsed_cycles =
      b.reading(Metric::kSmCyclesElapsed).value() - a.reading(Metric::kSmCyclesElapsed).value();
  step.mma_cycles =
      b.reading(Metric::kMmaCyclesActive).value() - a.reading(Metric::kMmaCyclesActive).value();
  if (step.elapsed_cycles < 0 || step.mma_cycles < 0) {
    quality.add("counter_reset", label, noted.contains(b.time) ? 1 : 0);
    return step;
  }
  // The same bound that a tensor ratio has.
  const double ratio_max = catalog::info(Metric::kTensorActive).value_max;
  step.usable = step.seconds.value > 0 && step.elapsed_cycles > 0 &&
                step.mma_cycles <= step.elapsed_cycles * ratio_max;
  return step;
}

// The clock of each scrape that lacks one, from the nearest scrape at most one step older (or, failing that, newer):
// exporters that are scraped apart do not share timestamps.
std::vector<Reading> clocks(const std::vector<GpuScrape>& scrapes, const Frame& frame, const std::string& label,
                            samples::QualityLog& quality) {
  const std::vector<units::Seconds>& steps = frame.steps;
  std::vector<Reading> out;
  out.reserve(scrapes.size());
  std::uint64_t borrowed = 0;
  const GpuScrape* last = nullptr;
  for (std::size_t i = 0; i < scrapes.size(); ++i) {
    const GpuScrape& s = scrapes[i];
    Reading clock = s.reading(Metric::kSmClock);
    if (clock.present()) {
      last = &s;
    } else if (!s.saw(Metric::kSmClock)) {
      const GpuScrape* next = nullptr;
      for (std::size_t j = i + 1; j < scrapes.size() && next == nullptr; ++j) {
        if ((scrapes[j].time - s.time).value > steps[i].value) break;
        if (scrapes[j].reading(Metric::kSmClock).present()) next = &scrapes[j];
      }
      const bool recent = last != nullptr && (s.time - last->time).value <= steps[i].value * 1.5;
      if (const GpuScrape* from = recent ? last : next) {
        clock = from->reading(Metric::kSmClock);
        borrowed += s.saw(Metric::kTensorActive) && frame.window.contains(s.time);
      }
    }
    out.push_back(clock);
  }
  quality.add("clock_from_other_scrape", label, borrowed);
  return out;
}

// One multiplicity for the GPU's whole series, by vote of its steps.
std::optional<double> vote_multiplicity(const std::vector<CounterStep>& steps,
                                        const std::vector<Reading>& clock, const GpuTime& gpu) {
  std::optional<int> sm_count;
  std::optional<units::Hertz> clock_max;
  if (gpu.device != nullptr) {
    // Of a MIG instance the number of SMs is not in the catalogue.
    if (gpu.gpu.mig_instance.empty()) sm_count = gpu.device->sm_count;
    clock_max = gpu.device->nvml_max_sm_clock;
  }
  std::map<double, std::size_t> votes;
  std::size_t cast = 0;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    if (!steps[i].usable) continue;
    std::optional<units::Hertz> sample;
    if (clock[i + 1].present()) sample = units::Hertz(clock[i + 1].value());
    if (const auto s = model::sm_multiplicity(steps[i].elapsed_cycles, steps[i].seconds, sample,
                                              sm_count, clock_max)) {
      ++votes[*s];
      ++cast;
    }
  }
  for (const auto& [multiplicity, count] : votes) {
    if (count * 5 >= cast * 4) return multiplicity;
  }
  return std::nullopt;
}

MeasuredPiece counter_piece(const CounterStep& step, double multiplicity, const GpuScrape& from,
                            const GpuTime& gpu) {
  MeasuredPiece piece;
  piece.from_counters = true;
  piece.tensor = Reading(step.mma_cycles / step.elapsed_cycles);
  piece.clock = Reading(step.elapsed_cycles / (multiplicity * step.seconds.value));
  piece.sm_active = from.reading(Metric::kSmActive);
  piece.ofu = gpu.reference
                  ? Reading(model::ofu_from_cycles(step.mma_cycles, multiplicity,
                                                   gpu.reference->clock, step.seconds)
                                .value)
                  : Reading(Absent{AbsentReason::kNoReferenceClock});
  return piece;
}

// Steps between the scrapes at `rows`, or none of them usable: unknown multiplicity, or both routes disagree.
std::vector<CounterStep> trusted_steps(const std::vector<const GpuScrape*>& rows,
                                       const std::vector<Reading>& clock, const Frame& frame, GpuTime& out,
                                       double& multiplicity, samples::QualityLog& quality) {
  const std::string label = gpu_label(out.gpu);
  std::vector<CounterStep> steps;
  bool any = false;
  // Most exporters have none, and every GPU comes by here each minute.
  if (std::none_of(rows.begin(), rows.end(), [](const GpuScrape* s) { return has_counters(*s); })) return {};
  for (std::size_t i = 0; i + 1 < rows.size(); ++i) {
    steps.push_back(counter_step(*rows[i], *rows[i + 1], frame.window, label, quality));
    any = any || steps.back().usable;
  }
  if (!any) return {};
  const auto voted = vote_multiplicity(steps, clock, out);
  if (!voted) {
    quality.add("counter_multiplicity_unknown", label);
    return {};
  }
  multiplicity = *voted;
  for (std::size_t i = 0; i < steps.size(); ++i) {
    // The gauge at the end of a step is the mean over the sample that ends there.
    const Reading& tensor = rows[i + 1]->reading(Metric::kTensorActive);
    if (!steps[i].usable || !tensor.present() || !clock[i + 1].present() || !out.reference) continue;
    ++out.both_routes_count;
    out.counter_route_ratio_sum += model::ofu_from_cycles(steps[i].mma_cycles, multiplicity,
                                                    out.reference->clock, steps[i].seconds)
                                 .value;
    out.gauge_route_ratio_sum += model::ofu(units::Ratio(tensor.value()), units::Hertz(clock[i + 1].value()),
                                      out.reference->clock)
                               .value;
  }
  // Below a hundredth of a percent a ratio of the two says nothing.
  if (out.gauge_route_ratio_sum > 1e-4 * static_cast<double>(out.both_routes_count) &&
      std::abs(out.counter_route_ratio_sum / out.gauge_route_ratio_sum - 1) > 0.25) {
    quality.add("counter_uncalibrated", label);
    return {};
  }
  return steps;
}

void extend_to_window(std::vector<MeasuredPiece>& pieces, const Frame& frame,
                      units::Seconds first_step) {
  std::vector<MeasuredPiece> kept;
  kept.reserve(pieces.size());
  if (!pieces.empty()) {
    const units::Seconds before = pieces.front().start - frame.window.start;
    if (before.value > 0 && before <= first_step) pieces.front().start = frame.window.start;
  }
  for (MeasuredPiece& piece : pieces) {
    piece.start = std::max(piece.start, frame.window.start);
    piece.end = std::min(piece.end, frame.window.end);
    if (piece.start < piece.end) kept.push_back(piece);
  }
  pieces = std::move(kept);
}

}  // namespace

bool has_tensor_signal(const GpuScrape& scrape) {
  return scrape.saw(Metric::kTensorActive) || has_counters(scrape);
}

MeasuredPiece gauge_piece(const GpuScrape& scrape, Reading clock, bool tensor_calibrated,
                          const GpuTime& gpu) {
  MeasuredPiece piece;
  piece.tensor = scrape.reading(Metric::kTensorActive);
  piece.clock = clock;
  piece.sm_active = scrape.reading(Metric::kSmActive);
  if (!piece.tensor.present()) {
    piece.ofu = Absent{piece.tensor.reason()};
  } else if (!tensor_calibrated) {
    piece.ofu = Absent{AbsentReason::kUncalibrated};
  } else if (!clock.present()) {
    piece.ofu = Absent{clock.reason() == AbsentReason::kNotSeen ? AbsentReason::kNoClock
                                                                : clock.reason()};
  } else if (!gpu.reference) {
    piece.ofu = Absent{AbsentReason::kNoReferenceClock};
  } else {
    piece.ofu = Reading(model::ofu(units::Ratio(piece.tensor.value()), units::Hertz(clock.value()),
                                   gpu.reference->clock)
                            .value);
  }
  return piece;
}

std::vector<MeasuredPiece> measured_pieces(const samples::GpuTimeline& timeline, const Frame& frame,
                                           GpuTime& out, samples::QualityLog& quality) {
  const std::vector<Reading> all_clocks =
      clocks(timeline.scrapes, frame, gpu_label(out.gpu), quality);
  std::vector<const GpuScrape*> rows;
  std::vector<Reading> clock;
  std::vector<units::Instant> times;
  rows.reserve(timeline.scrapes.size());
  clock.reserve(timeline.scrapes.size());
  times.reserve(timeline.scrapes.size());
  for (std::size_t i = 0; i < timeline.scrapes.size(); ++i) {
    if (!has_tensor_signal(timeline.scrapes[i])) continue;
    rows.push_back(&timeline.scrapes[i]);
    clock.push_back(all_clocks[i]);
    times.push_back(timeline.scrapes[i].time);
  }
  if (rows.empty()) return {};
  const std::vector<units::Seconds> tensor_steps = local_cadence(times, frame.step_default);
  double multiplicity = 1;
  const std::vector<CounterStep> steps = trusted_steps(rows, clock, frame, out, multiplicity, quality);
  std::vector<MeasuredPiece> pieces;
  pieces.reserve(rows.size());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const bool is_last = i + 1 == rows.size();
    MeasuredPiece piece;
    if (!is_last && i < steps.size() && steps[i].usable) {
      piece = counter_piece(steps[i], multiplicity, *rows[i], out);
      piece.end = rows[i + 1]->time;
      out.from_cycle_counters = true;
    } else if (is_last && !rows[i]->saw(Metric::kTensorActive)) {
      if (!pieces.empty() && pieces.back().end == rows[i]->time) {
        pieces.back().end = rows[i]->time + tensor_steps[i];
      }
      continue;
    } else {
      piece = gauge_piece(*rows[i], clock[i], timeline.tensor_calibrated, out);
      const bool near = !is_last && (rows[i + 1]->time - rows[i]->time).value <=
                                        frame.gap_intervals * tensor_steps[i].value;
      piece.end = near ? rows[i + 1]->time : rows[i]->time + tensor_steps[i];
    }
    piece.start = rows[i]->time;
    pieces.push_back(piece);
  }
  extend_to_window(pieces, frame, tensor_steps.front());
  return pieces;
}

}  // namespace flopsight::rollups
