#include "simulation/course.h"

#include <algorithm>
#include <array>

#include "simulation/fleet608.h"
#include "simulation/random.h"

namespace flopsight::simulation {
namespace {

constexpr double kJobFrom = 0.02, kJobTo = 0.97;
constexpr double kHappensFrom = 0.40, kHappensTo = 0.75;
constexpr double kHangsFrom = 0.50, kHangsTo = 0.70;
constexpr std::int64_t kChain = 12;  // jobs of mixed_precision in a course
constexpr std::uint32_t kMoeGpus = 288, kMixedGpus = 6144;

enum Purpose : std::uint64_t { kCause = 501, kWhich, kHowMuch };

// Moments of a job, as shares of the course, at which a stretch begins.
struct Mark {
  double at = 0;
  Condition condition = Condition::kNone;
  Format format = Format::kBf16;
  bool starts_up = false;
};

Condition condition_of(const Options& options, std::int64_t course) {
  switch (options.scenario) {
    case Scenario::kDebugFlagRegression: return Condition::kDebugFlag;
    case Scenario::kInputStarved: return Condition::kInputStarved;
    case Scenario::kThermal: return Condition::kThermal;
    case Scenario::kStraggler:
      return hash_of(options.seed, kCause, static_cast<std::uint64_t>(course)) % 2 == 0 ? Condition::kSlowClock
                                                                                        : Condition::kSlowMemory;
    default: return Condition::kNone;
  }
}

std::vector<Mark> marks_of(const Options& options, std::int64_t course) {
  if (options.scenario == Scenario::kHang) {
    return {{kHangsFrom, Condition::kHung, Format::kBf16, false}, {kHangsTo, Condition::kNone, Format::kBf16, true}};
  }
  const Condition condition = condition_of(options, course);
  if (condition == Condition::kNone) return {};
  return {{kHappensFrom, condition, Format::kBf16, false}, {kHappensTo, Condition::kNone, Format::kBf16, false}};
}

// The chain: NVFP4 first, then FP8, then BF16, and some jobs change on their way.
constexpr std::array<std::array<Format, 2>, kChain> kFormats = {{
    {Format::kNvfp4, Format::kNvfp4}, {Format::kNvfp4, Format::kNvfp4}, {Format::kNvfp4, Format::kFp8},
    {Format::kNvfp4, Format::kNvfp4}, {Format::kFp8, Format::kFp8},     {Format::kFp8, Format::kFp8},
    {Format::kFp8, Format::kFp8},     {Format::kNvfp4, Format::kNvfp4}, {Format::kFp8, Format::kBf16},
    {Format::kBf16, Format::kBf16},   {Format::kBf16, Format::kBf16},   {Format::kBf16, Format::kBf16},
}};

std::int64_t floor_divided(std::int64_t a, std::int64_t b) { return a / b - (a % b < 0 ? 1 : 0); }

// Cuts the job [from, to) at its marks and returns the part at `t`, which lies in it.
Segment part_at(Segment job, std::int64_t origin, std::int64_t length, const std::vector<Mark>& marks, std::int64_t t) {
  job.job_start = job.start;
  job.job_end = job.end;
  for (const Mark& mark : marks) {
    const std::int64_t at = origin + static_cast<std::int64_t>(mark.at * static_cast<double>(length));
    if (t < at) {
      job.end = at;
      return job;
    }
    job.start = at;
    job.condition = mark.condition;
    job.format = mark.format;
    job.starts_up = mark.starts_up;
    ++job.stretch;
  }
  return job;
}

JobKind kind_of(const Options& options, std::uint32_t slot) {
  switch (options.scenario) {
    case Scenario::kMoeMiscount: return JobKind::kMoePretrain;
    case Scenario::kHybridMiscount: return JobKind::kHybridPretrain;
    case Scenario::kFleet608:
      switch (fleet608_miscount(options.seed, slot)) {
        case Miscount::kLatentExperts: return JobKind::kMoePretrain;
        case Miscount::kHybridAsAttention: return JobKind::kHybridPretrain;
        case Miscount::kNone: return JobKind::kPretrain;
      }
      return JobKind::kPretrain;
    default: return JobKind::kPretrain;
  }
}

}  // namespace

std::uint32_t subject_gpus(const Options& options) {
  if (!options.reports_mfu() || options.scenario == Scenario::kFleet608) return 0;
  const std::uint32_t per_host = options.gpus_per_host;
  const auto published = [&](std::uint32_t gpus) { return options.gpus >= gpus && gpus % per_host == 0; };
  if (options.scenario == Scenario::kMoeMiscount && published(kMoeGpus)) return kMoeGpus;
  if (options.scenario == Scenario::kMixedPrecision) {
    return published(kMixedGpus) ? kMixedGpus : std::max(options.gpus / per_host, 1U) * std::min(per_host, options.gpus);
  }
  if (options.gpus <= per_host) return options.gpus;
  return std::max(options.gpus / 2 / per_host, 1U) * per_host;
}

Segment course_segment(const Options& options, std::uint32_t slot, std::int64_t t) {
  const std::int64_t whole = options.course_milliseconds();
  const std::int64_t course = floor_divided(t - options.start_milliseconds(), whole);
  const bool chain = options.scenario == Scenario::kMixedPrecision;
  std::int64_t origin = options.start_milliseconds() + course * whole;
  std::int64_t length = whole;
  Segment out;
  out.slot = slot;
  out.kind = kind_of(options, slot);
  out.period = course;
  if (chain) {
    length = whole / kChain;
    const std::int64_t link = std::min((t - origin) / length, kChain - 1);
    origin += link * length;
    if (link == kChain - 1) length = whole - link * length;
    out.period = course * kChain + link;
  }
  const auto at = [&](double part) { return origin + static_cast<std::int64_t>(part * static_cast<double>(length)); };
  // Nobody holds it between two jobs.
  out.start = out.job_start = origin;
  out.end = out.job_end = at(kJobFrom);
  if (t < out.end) return out;
  out.start = out.job_start = at(kJobTo);
  out.end = out.job_end = origin + length;
  if (t >= out.start) return out;
  out.held = true;
  out.start = at(kJobFrom);
  out.end = at(kJobTo);
  if (!chain) return part_at(out, origin, length, marks_of(options, course), t);
  const auto& formats = kFormats[static_cast<std::size_t>(out.period - course * kChain)];
  out.format = formats[0];
  std::vector<Mark> marks;
  if (formats[1] != formats[0]) marks.push_back({0.75, Condition::kNone, formats[1], false});
  return part_at(out, origin, length, marks, t);
}

Odd odd_gpus(const Timetable& timetable, const Segment& segment) {
  const Slot& slot = timetable.slots()[segment.slot];
  const std::uint32_t per_host = timetable.options().gpus_per_host;
  Draws draws(hash_of(timetable.key(segment), kWhich));
  Odd odd;
  switch (segment.condition) {
    case Condition::kSlowClock:
    case Condition::kSlowMemory:
      odd.gpu_first = slot.gpu_first + static_cast<std::uint32_t>(draws.below(slot.gpu_count));
      odd.gpu_count = 1;
      odd.speed_ratio = draws.between(0.55, 0.75);
      // Clocks that somebody has locked.
      if (segment.condition == Condition::kSlowClock) odd.event_reasons = 0x2;
      break;
    case Condition::kThermal:
      odd.gpu_count = slot.gpu_count > per_host ? per_host : std::max(slot.gpu_count / 2, 1U);
      odd.gpu_first = slot.gpu_first +
                      static_cast<std::uint32_t>(draws.below(slot.gpu_count / odd.gpu_count)) * odd.gpu_count;
      odd.speed_ratio = draws.between(0.6, 0.8);
      // Software slows a GPU down first; hardware does it below about 70 % here.
      odd.event_reasons = odd.speed_ratio < 0.7 ? 0x8U | 0x40U : 0x20U;
      odd.celsius = 87;  // about where H100 begins to slow down
      break;
    default: break;
  }
  return odd;
}

double step_stretch(Condition condition) {
  return condition == Condition::kDebugFlag ? 2.5 : condition == Condition::kInputStarved ? 1.8 : 1;
}

std::string_view condition_name(Condition condition) {
  switch (condition) {
    case Condition::kNone: return "";
    case Condition::kDebugFlag: return "debug_flag";
    case Condition::kInputStarved: return "input_starvation";
    case Condition::kHung: return "hang";
    case Condition::kSlowClock: return "slow_gpu_clock";
    case Condition::kSlowMemory: return "slow_gpu_memory";
    case Condition::kThermal: return "thermal_throttling";
  }
  return "";
}

std::string_view format_name(Format format) {
  return format == Format::kBf16 ? "bf16" : format == Format::kFp8 ? "fp8" : "nvfp4";
}

}  // namespace flopsight::simulation
