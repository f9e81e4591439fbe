#include "simulation/truth.h"

#include <algorithm>

#include "simulation/text.h"

namespace flopsight::simulation {
namespace {

using base::json::Object;
using base::json::Value;

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
    flush();
    for (std::uint32_t gpu = slot.gpu_first; gpu < slot.gpu_first + slot.gpu_count; ++gpu) {
      const std::uint32_t host = gpu / options_.gpus_per_host;
      if (open_.empty() || (!slurm && open_.back().hosts.back() != host)) {
        open_.push_back({names_of(timetable_, segment, host), {host}, 0, from_of(segment), to_of(segment), {}});
      }
      TrueJob& job = open_.back();
      if (job.hosts.back() < host) job.hosts.push_back(host);
      ++job.gpus;
      job.time.add(time_of(gpu, segment));
    }
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
              host < 0 ? std::string() : host_name(static_cast<std::uint32_t>(host)), xid_of(timetable_, segment)});
    };
    if (segment.restarting) tell("job_restart", segment.start, segment.end, -1);
    if (const std::int64_t host = timetable_.rebooting_host(segment); host >= 0) {
      tell("host_reboot", segment.start, segment.end, host);
    }
    if (const Timetable::Silence quiet = timetable_.silence(segment); quiet.host >= 0) {
      tell("exporter_restart", quiet.start, quiet.end, quiet.host);
    }
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
  out.emplace_back("mfu_ratio", Value());
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
