#include "simulation/training_log.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <ctime>

#include "simulation/rows.h"

namespace flopsight::simulation {
namespace {

constexpr std::uint64_t kLinesMax = 500;

// "2026-01-01 00:10:15".
std::string local_time(std::int64_t t) {
  std::string text = units::to_rfc3339(units::Instant{t / 1000 * 1000});
  text[10] = ' ';
  return text.substr(0, 19);
}

// The peak that the framework divides by: of the format in which it multiplies.
double peak_flops(const catalog::Device& device, Format format) {
  const catalog::Precision precision = format == Format::kNvfp4 ? catalog::Precision::kFp4
                                       : format == Format::kFp8 ? catalog::Precision::kFp8
                                                                : catalog::Precision::kBf16;
  const auto peak = device.peak(precision);
  return peak ? peak->value : 0;
}

class Log {
 public:
  Log(const Timetable& timetable, std::uint32_t gpus) : timetable_(timetable), gpus_(gpus) {}

  void add(const Segment& segment, const Workload& w) {
    // Lost: what was done since the last checkpoint.
    if (segment.starts_up && !segment.is_first()) iteration_ = resume_at_;
    const Options& options = timetable_.options();
    const std::uint64_t steps = w.step_count(), interval = std::max<std::uint64_t>(1, (steps + kLinesMax - 1) / kLinesMax);
    for (std::uint64_t n = interval; n <= steps; n += interval) {
      const std::int64_t t = segment.start + static_cast<std::int64_t>(w.step_begins_seconds(n) * 1000);
      if (t < options.start_milliseconds() || t >= options.end_milliseconds()) continue;
      add_line(t, iteration_ + n, w.step_length_seconds(n - 1), w, segment.format);
    }
    if (!w.hung) resume_at_ = iteration_ + steps_at_last_checkpoint(w);
    iteration_ += steps;
  }

  const std::string& text() const { return text_; }

 private:
  void add_line(std::int64_t t, std::uint64_t iteration, double seconds, const Workload& w, Format format) {
    // The same work in another time.
    const double mfu = w.reported_mfu_ratio * w.step_seconds / seconds;
    const double flops = mfu * peak_flops(*timetable_.options().device, format);
    char line[320];
    const std::uint64_t batch = std::uint64_t{gpus_} * 4;
    std::snprintf(line, sizeof line,
                  " [%s] iteration %8llu/ 1000000 | consumed samples: %12llu | elapsed time per iteration (ms): %.1f | "
                  "throughput per GPU (TFLOP/s/GPU): %.1f | MFU: %.2f%% | global batch size: %5llu | lm loss: %.6E |\n",
                  local_time(t).c_str(), static_cast<unsigned long long>(iteration),
                  static_cast<unsigned long long>(iteration * batch), seconds * 1000, flops / 1e12, mfu * 100,
                  static_cast<unsigned long long>(batch), 1.7 + 9 / std::sqrt(static_cast<double>(iteration) + 1));
    text_ += line;
  }

  const Timetable& timetable_;
  std::uint32_t gpus_;
  std::string text_;
  std::uint64_t iteration_ = 0;
  std::uint64_t resume_at_ = 0;
};

}  // namespace

std::uint64_t steps_at_last_checkpoint(const Workload& w) {
  const std::uint64_t steps = w.step_count();
  const double main_seconds = w.length_seconds - w.final_seconds - w.start_up_seconds;
  // A stretch that ends in order ends with a checkpoint.
  if (w.final_seconds > 0) return steps;
  const double cycles = std::floor(main_seconds / w.cycle_seconds);
  if (cycles < 1) return 0;
  const double trained = cycles * (w.cycle_seconds - w.evaluate_seconds - w.checkpoint_seconds);
  return std::min(steps, static_cast<std::uint64_t>(trained / w.step_seconds));
}

base::Status for_each_training_log(const Timetable& timetable,
                                   const std::function<base::Status(const std::string& name, std::string_view text)>& sink) {
  const Options& options = timetable.options();
  if (!options.reports_mfu()) return {};
  for (std::uint32_t slot = 0; slot < timetable.slots().size(); ++slot) {
    const std::uint32_t host = timetable.slots()[slot].gpu_first / options.gpus_per_host;
    for (std::int64_t t = options.start_milliseconds(); t < options.end_milliseconds();) {
      Segment segment = timetable.at(slot, t);
      if (!segment.held || !is_training(segment.kind)) {
        t = segment.end;
        continue;
      }
      const JobNames names = names_of(timetable, segment, host);
      Log log(timetable, timetable.slots()[slot].gpu_count);
      for (segment = timetable.at(slot, segment.job_start);; segment = timetable.at(slot, segment.end)) {
        log.add(segment, workload_of(timetable, segment));
        t = segment.end;
        if (segment.is_last()) break;
      }
      const bool slurm = options.labels == LabelStyle::kSlurm;
      if (log.text().empty()) continue;
      FLOPSIGHT_RETURN_IF_ERROR(sink(slurm ? "slurm-" + names.job + ".out" : names.workload + ".log", log.text()));
    }
  }
  return {};
}

}  // namespace flopsight::simulation
