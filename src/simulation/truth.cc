#include "simulation/truth.h"

#include <algorithm>

#include "simulation/text.h"

namespace flopsight::simulation {
namespace {

using base::json::Object;
using base::json::Value;

// Of the attainable share of cycles in which memory moves data, about 0.8, three quarters: nearly all that it can.
constexpr double kMemoryBoundRatio = 0.6;

class Truth {
 public:
  Truth(const Timetable& timetable, const std::function<void(const TrueJob&)>& job,
        const std::function<void(const TrueEvent&)>& event)
      : timetable_(timetable), options_(timetable.options()), meter_(timetable), job_(job), event_(event) {}

  TrueFleet run() {
    fleet_.present_seconds = static_cast<double>(options_.gpus) * options_.window.length().value;
    for (std::uint32_t slot = 0; slot < timetable_.slots().size(); ++slot) {
      for (std::int64_t t = options_.start_milliseconds(); t < options_.end_milliseconds();) {
        const Segment segment = meter_.segment(slot, t);
        if (segment.held) add_job(segment);
        add_events(segment);
        t = segment.end;
      }
      flush();
    }
    return fleet_;
  }

 private:
  std::int64_t from_of(const Segment& s) const { return std::max(s.start, options_.start_milliseconds()); }
  std::int64_t to_of(const Segment& s) const { return std::min(s.end, options_.end_milliseconds()); }

  // One job for each pod, which is one for each host; under Slurm one for all hosts.
  void add_job(const Segment& segment) {
    const Slot& slot = timetable_.slots()[segment.slot];
    const bool slurm = options_.labels == LabelStyle::kSlurm;
    const bool goes_on = !open_.empty() && !segment.is_first();
    if (!goes_on) flush();
    std::size_t at = 0;
    for (std::uint32_t gpu = slot.gpu_first; gpu < slot.gpu_first + slot.gpu_count; ++gpu) {
      const std::uint32_t host = gpu / options_.gpus_per_host;
      const bool is_next = gpu == slot.gpu_first || (!slurm && gpu % options_.gpus_per_host == 0);
      if (is_next && gpu != slot.gpu_first) ++at;
      if (!goes_on && is_next) {
        open_.push_back({names_of(timetable_, segment, host), {host}, 0, mistake_of(segment), from_of(segment), 0, {}});
      }
      TrueJob& job = open_[at];
      job.end = to_of(segment);
      if (job.hosts.back() < host) job.hosts.push_back(host);
      if (!goes_on) ++job.gpus;
      job.time.add(time_of(gpu, segment));
    }
  }

  std::string mistake_of(const Segment& segment) const {
    if (!timetable_.is_subject(segment.slot)) return "";
    return segment.kind == JobKind::kMoePretrain      ? "latent_ignored"
           : segment.kind == JobKind::kHybridPretrain ? "hybrid_as_attention"
                                                      : "";
  }

  void flush() {
    for (const TrueJob& job : open_) {
      fleet_.held.add(job.time);
      ++fleet_.jobs;
      job_(job);
    }
    open_.clear();
  }

  // Time of a GPU that is shared counts by its equal part among the pods at once.
  double allocated_seconds(std::uint32_t gpu, std::int64_t from, std::int64_t to) {
    const std::uint32_t first = timetable_.first_slot(gpu), seats = timetable_.seats(gpu);
    double seconds = 0;
    for (std::int64_t t = from; t < to;) {
      std::int64_t next = to;
      int holders = 0;
      for (std::uint32_t i = 0; i < seats; ++i) {
        const Segment& seat = meter_.segment(first + i, t);
        holders += seat.held ? 1 : 0;
        next = std::min(next, seat.end);
      }
      seconds += static_cast<double>(next - t) / 1000 / holders;
      t = next;
    }
    return seconds;
  }

  TrueTime time_of(std::uint32_t gpu, const Segment& segment) {
    const Slot& slot = timetable_.slots()[segment.slot];
    const std::int64_t from = from_of(segment), to = to_of(segment);
    const double reference = options_.device->tensor_peak_clock->value;
    const Integral all = meter_.integral(gpu, segment.slot, from, to);
    const double weight = slot.weight();
    TrueTime out;
    out.allocated_seconds = slot.seats > 1 && slot.mig_slices == 0 ? allocated_seconds(gpu, from, to) : weight * all.seconds;
    out.delivered_seconds = weight * all.tensor_cycles_total / reference;
    out.clock_loss_seconds = weight * all.of(Rate::kTensor) - out.delivered_seconds;
    out.tensor_idle_seconds = weight * (all.of(Rate::kSm) - all.of(Rate::kTensor));
    out.sm_idle_seconds = out.allocated_seconds - weight * all.of(Rate::kSm);
    split(all, weight, meter_.workload(segment.slot, from), out);
    const std::int64_t host = gpu / options_.gpus_per_host;
    const Timetable::Silence quiet = timetable_.silence(segment);
    if (quiet.host != host) return out;
    // From the first scrape that is missing to the first that is whole again.
    const std::int64_t first = scrape_from(host, quiet.start);
    const std::int64_t last = scrape_from(host, quiet.end + options_.interval_milliseconds());
    const std::int64_t blind_from = std::max(first, from), blind_to = std::min(last, to);
    if (blind_from < blind_to) {
      const Integral blind = meter_.integral(gpu, segment.slot, blind_from, blind_to);
      out.unmeasured_seconds = weight * blind.seconds;
      out.unmeasured_delivered_seconds = weight * blind.tensor_cycles_total / reference;
    }
    return out;
  }

  // What is behind each loss. What a mode is says why its SMs are idle; where SMs are busy without tensor work they are bound by memory if that is
  // active for more than 0.6 of their time.
  void split(const Integral& all, double weight, const Workload& workload, TrueTime& out) const {
    const double reference = options_.device->tensor_peak_clock->value;
    const auto clock_loss = [&](ClockCause cause) {
      const auto i = static_cast<std::size_t>(cause);
      return weight * (all.tensor_seconds_by_cause[i] - all.tensor_cycles_by_cause[i] / reference);
    };
    out.clock_power_seconds = clock_loss(ClockCause::kPower);
    out.clock_thermal_seconds = clock_loss(ClockCause::kThermal);
    out.clock_setting_seconds = clock_loss(ClockCause::kSetting);
    const auto mode_seconds = [&](Mode mode) { return weight * all.mode_seconds[static_cast<std::size_t>(mode)]; };
    const auto idle_seconds = [&](Mode mode) {
      return mode_seconds(mode) - weight * all.mode_sm_seconds[static_cast<std::size_t>(mode)];
    };
    out.host_seconds = idle_seconds(Mode::kStartUp) + idle_seconds(Mode::kCheckpoint) + idle_seconds(Mode::kInput);
    out.stalled_seconds = idle_seconds(Mode::kHung);
    double& waits = is_training(workload.kind)             ? out.communication_seconds
                    : workload.kind == JobKind::kInference ? out.host_seconds
                                                           : out.stalled_seconds;
    waits += idle_seconds(Mode::kWait);
    for (std::size_t m = 1; m < kModeCount; ++m) {
      const Level& level = workload.levels[m];
      if (level.rate(Rate::kDram) < kMemoryBoundRatio * level.rate(Rate::kSm)) continue;
      out.memory_bound_seconds += weight * (all.mode_sm_seconds[m] - all.mode_tensor_seconds[m]);
    }
    out.start_up_seconds = mode_seconds(Mode::kStartUp);
    out.training_seconds = mode_seconds(Mode::kInput) + mode_seconds(Mode::kCompute) + mode_seconds(Mode::kWait);
    out.evaluation_seconds = mode_seconds(Mode::kEvaluate);
    out.checkpoint_seconds = mode_seconds(Mode::kCheckpoint);
    out.hung_seconds = mode_seconds(Mode::kHung);
    if (workload.reported_mfu_ratio <= 0) return;
    out.mfu_known_seconds = out.training_seconds;
    out.mfu_seconds = out.training_seconds * workload.mfu_ratio;
    out.reported_mfu_seconds = out.training_seconds * workload.reported_mfu_ratio;
  }

  // The first scrape of the host at or after `t`.
  std::int64_t scrape_from(std::int64_t host, std::int64_t t) const {
    const std::int64_t first = first_scrape(timetable_, static_cast<std::uint32_t>(host));
    const std::int64_t interval = options_.interval_milliseconds();
    return t <= first ? first : first + (t - first + interval - 1) / interval * interval;
  }

  void add_events(const Segment& segment) {
    const std::uint32_t any_host = timetable_.slots()[segment.slot].gpu_first / options_.gpus_per_host;
    const auto tell = [&](std::string kind, std::int64_t start, std::int64_t end, std::int64_t host) {
      if (end <= options_.start_milliseconds() || start >= options_.end_milliseconds()) return;
      event_({std::move(kind), start, end, names_of(timetable_, segment, any_host).workload,
              host < 0 ? std::string() : host_name(static_cast<std::uint32_t>(host)), xid_of(timetable_, segment), {}, {}, {}, {}});
    };
    if (segment.held && !segment.is_first()) add_happening(segment);
    if (segment.restarting) tell("job_restart", segment.start, segment.end, -1);
    if (const std::int64_t host = timetable_.rebooting_host(segment); host >= 0) {
      tell("host_reboot", segment.start, segment.end, host);
    }
    if (const Timetable::Silence quiet = timetable_.silence(segment); quiet.host >= 0) {
      tell("exporter_restart", quiet.start, quiet.end, quiet.host);
    }
  }

  // A stretch in which something is the matter, or another format is used than before.
  void add_happening(const Segment& segment) {
    const Segment before = timetable_.at(segment.slot, segment.start - 1);
    const bool changes_format = before.format != segment.format;
    if (segment.condition == Condition::kNone && !changes_format) return;
    if (segment.end <= options_.start_milliseconds() || segment.start >= options_.end_milliseconds()) return;
    const std::uint32_t any_host = timetable_.slots()[segment.slot].gpu_first / options_.gpus_per_host;
    const Workload workload = workload_of(timetable_, segment);
    TrueEvent event;
    event.kind = changes_format ? "precision_switch" : std::string(condition_name(segment.condition));
    event.start = segment.start;
    event.end = segment.end;
    event.workload = names_of(timetable_, segment, any_host).workload;
    event.odd = workload.odd;
    if (workload.odd.gpu_count > 0) event.host = host_name(workload.odd.gpu_first / options_.gpus_per_host);
    event.step_ofu_before_ratio = workload_of(timetable_, before).ofu_ratio;
    event.step_ofu_ratio = workload.hung ? 0 : workload.ofu_ratio;
    if (changes_format) event.format = format_name(segment.format);
    event_(event);
  }

  const Timetable& timetable_;
  const Options& options_;
  Meter meter_;
  const std::function<void(const TrueJob&)>& job_;
  const std::function<void(const TrueEvent&)>& event_;
  std::vector<TrueJob> open_;
  TrueFleet fleet_;
};

std::string time_text(std::int64_t t) { return units::to_rfc3339(units::Instant{t}); }

void add_time(const TrueTime& time, Object& out) {
  out.emplace_back("ofu_ratio", time.allocated_seconds > 0 ? Value(time.delivered_seconds / time.allocated_seconds) : Value());
  out.emplace_back("allocated_gpu_seconds", time.allocated_seconds);
  out.emplace_back("delivered_gpu_seconds", time.delivered_seconds);
  out.emplace_back("lost_gpu_seconds_by_cause", Object{{"clock", time.clock_loss_seconds},
                                                       {"tensor_idle_sm_busy", time.tensor_idle_seconds},
                                                       {"sm_idle", time.sm_idle_seconds}});
  out.emplace_back("clock_gpu_seconds_by_cause",
                   Object{{"power_cap", time.clock_power_seconds},
                          {"thermal", time.clock_thermal_seconds},
                          {"setting", time.clock_setting_seconds},
                          {"none", time.clock_loss_seconds - time.clock_power_seconds - time.clock_thermal_seconds -
                                       time.clock_setting_seconds}});
  out.emplace_back("tensor_idle_gpu_seconds_by_cause",
                   Object{{"memory_bound", time.memory_bound_seconds},
                          {"other_kernels", time.tensor_idle_seconds - time.memory_bound_seconds}});
  out.emplace_back("sm_idle_gpu_seconds_by_cause",
                   Object{{"stalled", time.stalled_seconds},
                          {"communication", time.communication_seconds},
                          {"host", time.host_seconds},
                          {"kernels", time.sm_idle_seconds - time.stalled_seconds - time.communication_seconds -
                                          time.host_seconds}});
  out.emplace_back("gpu_seconds_by_phase", Object{{"start_up", time.start_up_seconds},
                                                  {"training", time.training_seconds},
                                                  {"evaluation", time.evaluation_seconds},
                                                  {"checkpoint", time.checkpoint_seconds},
                                                  {"hung", time.hung_seconds}});
  out.emplace_back("unmeasured_gpu_seconds", time.unmeasured_seconds);
  out.emplace_back("unmeasured_delivered_gpu_seconds", time.unmeasured_delivered_seconds);
}

Value json_of(const TrueJob& job) {
  base::json::Array hosts;
  for (const std::uint32_t host : job.hosts) hosts.emplace_back(host_name(host));
  Object out = {{"job", job.names.job},
                {"workload", job.names.workload},
                {"namespace", job.names.name_space.empty() ? Value() : Value(job.names.name_space)},
                {"user", job.names.user},
                {"team", job.names.team},
                {"hosts", std::move(hosts)},
                {"gpus", std::uint64_t{job.gpus}},
                {"start", time_text(job.start)},
                {"end", time_text(job.end)}};
  add_time(job.time, out);
  const bool reports = job.time.mfu_known_seconds > 0;
  out.emplace_back("mfu_ratio", reports ? Value(job.time.mfu_seconds / job.time.mfu_known_seconds) : Value());
  out.emplace_back("reported_mfu_ratio", reports ? Value(job.time.reported_mfu_seconds / job.time.mfu_known_seconds) : Value());
  out.emplace_back("mistake", job.mistake.empty() ? Value() : Value(job.mistake));
  return out;
}

Value json_of(const TrueEvent& event, const Options& options) {
  Object out = {{"event", event.kind},
                {"start", time_text(event.start)},
                {"end", time_text(event.end)},
                {"workload", event.workload},
                {"host", event.host.empty() ? Value() : Value(event.host)}};
  out.emplace_back("xid", event.xid.code == 0 ? Value() : Value(std::uint64_t{event.xid.code}));
  out.emplace_back("xid_uuid", event.xid.code == 0 ? Value() : Value(uuid_of(options, event.xid.gpu)));
  if (event.step_ofu_ratio) {
    out.emplace_back("step_ofu_ratio_before", *event.step_ofu_before_ratio);
    out.emplace_back("step_ofu_ratio", *event.step_ofu_ratio);
  }
  if (event.odd.gpu_count > 0) {
    base::json::Array uuids;
    for (std::uint32_t i = 0; i < event.odd.gpu_count; ++i) uuids.emplace_back(uuid_of(options, event.odd.gpu_first + i));
    out.emplace_back("uuids", std::move(uuids));
    out.emplace_back("speed_ratio", event.odd.speed_ratio);
    out.emplace_back("event_reasons", std::uint64_t{event.odd.event_reasons});
  }
  if (!event.format.empty()) out.emplace_back("format", event.format);
  return out;
}

Value json_of(const Options& options) {
  return Object{{"scenario", scenario_name(options.scenario)},
                {"seed", std::to_string(options.seed)},  // text: JSON has no 64-bit numbers
                {"gpus", std::uint64_t{options.gpus}},
                {"gpus_per_host", std::uint64_t{options.gpus_per_host}},
                {"model", options.model},
                {"reference_clock_hertz", options.device->tensor_peak_clock->value},
                {"start", time_text(options.start_milliseconds())},
                {"end", time_text(options.end_milliseconds())},
                {"interval_seconds", options.interval.value},
                {"metrics", std::uint64_t{metrics_of(options).size()}},
                {"labels", options.labels == LabelStyle::kSlurm ? "slurm" : "kubernetes"}};
}

}  // namespace

void TrueTime::add(const TrueTime& other) {
  allocated_seconds += other.allocated_seconds;
  delivered_seconds += other.delivered_seconds;
  clock_loss_seconds += other.clock_loss_seconds;
  tensor_idle_seconds += other.tensor_idle_seconds;
  sm_idle_seconds += other.sm_idle_seconds;
  clock_power_seconds += other.clock_power_seconds;
  clock_thermal_seconds += other.clock_thermal_seconds;
  clock_setting_seconds += other.clock_setting_seconds;
  memory_bound_seconds += other.memory_bound_seconds;
  stalled_seconds += other.stalled_seconds;
  communication_seconds += other.communication_seconds;
  host_seconds += other.host_seconds;
  start_up_seconds += other.start_up_seconds;
  training_seconds += other.training_seconds;
  evaluation_seconds += other.evaluation_seconds;
  checkpoint_seconds += other.checkpoint_seconds;
  hung_seconds += other.hung_seconds;
  mfu_known_seconds += other.mfu_known_seconds;
  mfu_seconds += other.mfu_seconds;
  reported_mfu_seconds += other.reported_mfu_seconds;
  unmeasured_seconds += other.unmeasured_seconds;
  unmeasured_delivered_seconds += other.unmeasured_delivered_seconds;
}

TrueFleet for_each_truth(const Timetable& timetable, const std::function<void(const TrueJob&)>& job,
                         const std::function<void(const TrueEvent&)>& event) {
  return Truth(timetable, job, event).run();
}

base::Status write_truth(const Timetable& timetable, const std::function<base::Status(std::string_view)>& sink) {
  const Options& options = timetable.options();
  base::Status status = sink("{\n\"simulated\": true,\n\"options\": " + base::json::dump(json_of(options)) + ",\n\"jobs\": [");
  bool first = true;
  std::vector<TrueEvent> events;
  const TrueFleet fleet = for_each_truth(
      timetable,
      [&](const TrueJob& job) {
        if (status.ok()) status = sink((first ? "\n" : ",\n") + base::json::dump(json_of(job), 0));
        first = false;
      },
      [&](const TrueEvent& event) { events.push_back(event); });
  std::stable_sort(events.begin(), events.end(), [](const auto& a, const auto& b) { return a.start < b.start; });
  std::string rest = "\n],\n\"events\": [";
  for (std::size_t i = 0; i < events.size(); ++i) {
    rest += (i > 0 ? ",\n" : "\n") + base::json::dump(json_of(events[i], options), 0);
  }
  Object totals = {{"gpus", std::uint64_t{options.gpus}},
                   {"jobs", fleet.jobs},
                   {"present_gpu_seconds", fleet.present_seconds},
                   {"delivered_ratio_of_present", fleet.held.delivered_seconds / fleet.present_seconds}};
  add_time(fleet.held, totals);
  rest += "\n],\n\"fleet\": " + base::json::dump(Value(std::move(totals))) + "\n}\n";
  if (!status.ok()) return status;
  return sink(rest);
}

}  // namespace flopsight::simulation
