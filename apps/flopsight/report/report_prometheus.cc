#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "progress_bar.h"
#include "report/report_sources.h"
#include "report/reported_mfu_query.h"
#include "rollups/pushed.h"
#include "rollups/screen.h"
#include "sources/collector.h"
#include "sources/contradiction_query.h"
#include "sources/gpu_list.h"
#include "sources/pod_owner_query.h"
#include "sources/prometheus_client.h"
#include "sources/pushdown.h"

namespace flopsight::app {
namespace {

using base::Status;

// Raw samples of so many GPUs are in memory at once.
constexpr std::size_t kRawGpusPerBatch = 64;
// Pods whose owner the server is asked for: with 200 a query, 100 queries.
constexpr std::size_t kPodsMax = 20'000;

struct Context {
  const ReportArguments& arguments;
  const ReportSettings& settings;
  sources::PrometheusClient& client;
  const sources::Plan& plan;
  units::Window window;
  ProgressBar& bar;
  SourceResult& out;
};

Status collect_answer(const wire::ApiAnswer& answer, sources::Collector& collector,
                      samples::QualityLog& quality) {
  std::vector<jobs::LabelView> labels;
  for (const wire::ApiSeries& series : answer.series) {
    labels.clear();
    std::string_view name;
    for (const auto& [label, value] : series.labels) {
      if (label == "__name__") name = value;
      labels.push_back({label, value});
    }
    const auto binding = collector.bind(labels, "");
    for (const wire::ApiPoint& point : series.points) {
      collector.add(binding, name, units::Instant{point.unix_milliseconds}, true, point.value);
    }
  }
  sources::note_answer(answer, quality);
  return {};
}

// Some GPUs over the whole window: fetched, rolled, forgotten.
Status roll_raw_batch(const Context& c, const std::vector<std::string>& selectors, std::size_t batch, std::size_t batches) {
  sources::Collector collector(c.settings.rules, c.out.holders, c.out.quality);
  for (const std::string& selector : selectors) {
    FLOPSIGHT_RETURN_IF_ERROR(c.client.raw(
        selector, c.window,
        [&](const wire::ApiAnswer& answer) { return collect_answer(answer, collector, c.out.quality); },
        [&](sources::PrometheusProgress progress) {
          c.bar.show("raw samples", batch * progress.total + progress.done, batches * progress.total);
        }));
  }
  rollups::FleetOptions options = c.settings.fleet;
  options.integrate.window = c.window;
  options.integrate.step_default = c.plan.interval;
  c.out.fleet.append(
      rollups::roll_fleet(collector.take(), options, c.settings.jobs, c.out.holders, c.out.quality));
  return {};
}

Status roll_raw(const Context& c, const sources::GpuList& list) {
  const auto batches = sources::raw_batches(list, c.plan, c.arguments.match, c.settings.rules, kRawGpusPerBatch);
  // Without a GPU there is still a window.
  if (batches.empty()) return roll_raw_batch(c, {}, 0, 1);
  for (std::size_t i = 0; i < batches.size(); ++i) FLOPSIGHT_RETURN_IF_ERROR(roll_raw_batch(c, batches[i], i, batches.size()));
  return {};
}

// Maximum clocks are only needed for models that the catalogue does not know.
Status add_scraped_maxima(const Context& c, std::vector<samples::PushedSpan>& spans) {
  const bool wanted = std::any_of(spans.begin(), spans.end(), [&](const samples::PushedSpan& span) {
    const catalog::Device* device = c.settings.catalog.find(span.gpu.model_raw);
    return device == nullptr || !device->tensor_peak_clock ||
           c.settings.fleet.policy == model::ReferencePolicy::kNvmlMax;
  });
  if (!wanted || c.plan.clock_max_names.empty()) return {};
  const std::string query = "max by (" + c.plan.gpu_label + ") (last_over_time({__name__=~\"" +
                            c.plan.clock_max_names + "\"" +
                            (c.arguments.match.empty() ? "" : "," + c.arguments.match) + "}[" +
                            std::to_string(std::llround(c.window.length().value)) + "s]))";
  FLOPSIGHT_ASSIGN_OR_RETURN(const wire::ApiAnswer answer,
                             c.client.query(query, c.window.end - units::Seconds(0.001)));
  std::map<std::string, double> maxima;
  for (const wire::ApiSeries& series : answer.series) {
    if (!series.labels.empty() && !series.points.empty()) {
      maxima[samples::normalized_uuid(series.labels.front().second)] =
          series.points.back().value * c.plan.clock_max_scale;
    }
  }
  for (samples::PushedSpan& span : spans) {
    const auto at = maxima.find(samples::normalized_uuid(span.gpu.uuid));
    if (at != maxima.end() && at->second > 0) span.clock_max_hertz = at->second;
  }
  return {};
}

// GPUs whose readings contradict each other: their time is not measured, and sums would book it as lost.
base::Result<std::set<std::string>> contradicted_gpus(const Context& c, const sources::PushdownOptions& options,
                                                      const std::vector<samples::PushedSpan>& spans) {
  FLOPSIGHT_ASSIGN_OR_RETURN(
      const sources::Suspects suspects,
      sources::ask_contradictions(c.client, c.plan, options, {rollups::kContradictingUtilizationRatio, rollups::kContradictingPowerRatio}));
  std::set<std::string> out;
  for (const samples::PushedSpan& span : spans) {
    if (!span.gpu.mig_instance.empty()) continue;  // these readings are of all instances and contradict none
    const std::string uuid = samples::normalized_uuid(span.gpu.uuid);
    const catalog::Device* device = c.settings.catalog.find(span.gpu.model_raw);
    const auto idle = suspects.power_while_idle.find(uuid);
    const bool works = idle != suspects.power_while_idle.end() && device != nullptr && device->board_power &&
                       idle->second.value > rollups::kContradictingPowerRatio * device->board_power->value;
    if (works || suspects.gpus.count(uuid) > 0) out.insert(uuid);
  }
  return out;
}

// What the push-down could not say everything of, and what it did not see: series that name their GPU by another label or not at all,
// and GPUs with other metrics only.
base::Result<sources::GpuList> gpus_to_read_raw(const Context& c, const sources::PushdownOptions& options, sources::PushdownResult& pushed) {
  const std::string& match = c.arguments.match;
  FLOPSIGHT_ASSIGN_OR_RETURN(const sources::GpuList beside,
                             sources::list_gpus(c.client, c.plan, match, c.settings.rules, c.window, c.plan.gpu_label));
  FLOPSIGHT_ASSIGN_OR_RETURN(const std::set<std::string> others,
                             sources::gpus_with_other_metrics(c.client, c.plan, match, c.settings.rules, c.window));
  // Although sums say everything of one of its labels.
  FLOPSIGHT_ASSIGN_OR_RETURN(std::set<std::string> wanted, contradicted_gpus(c, options, pushed.spans));
  for (const auto& [uuid, gpu] : beside.gpus) {
    if (gpu.has_holder) wanted.insert(uuid);
  }
  for (const samples::PushedSpan& span : pushed.spans) {
    const std::string uuid = samples::normalized_uuid(span.gpu.uuid);
    const bool is_told_more = (span.gpu.model_raw.empty() || span.gpu.host.empty()) && beside.gpus.count(uuid) > 0;
    if (is_told_more || beside.hosts_without_names.count(span.gpu.host) > 0) wanted.insert(uuid);
  }
  pushed.read_raw(wanted);
  std::set<std::string> seen;
  for (const samples::PushedSpan& span : pushed.spans) seen.insert(samples::normalized_uuid(span.gpu.uuid));
  sources::GpuList raw;
  raw.has_unnamed = beside.has_unnamed;
  raw.hosts_without_names = beside.hosts_without_names;
  for (const auto& [uuid, names] : pushed.need_raw) {
    sources::ListedGpu& gpu = raw.gpus[uuid];
    gpu.host = names.host;
    gpu.names[c.plan.gpu_label] = names.values;
  }
  for (const auto& [uuid, gpu] : beside.gpus) {
    if (seen.count(uuid) > 0) continue;
    sources::ListedGpu& listed = raw.gpus[uuid];
    if (listed.host.empty()) listed.host = gpu.host;
    listed.names.insert(gpu.names.begin(), gpu.names.end());
  }
  for (const std::string& value : others) {
    const std::string uuid = samples::normalized_uuid(value);
    if (seen.count(uuid) == 0) raw.gpus[uuid].names[c.plan.gpu_label].insert(value);
  }
  return raw;
}

Status roll_pushed(const Context& c, units::Seconds step) {
  sources::PushdownOptions options;
  options.match = c.arguments.match;
  options.window = c.window;
  options.step = step;
  FLOPSIGHT_ASSIGN_OR_RETURN(
      sources::PushdownResult pushed,
      sources::push_down(c.client, c.plan, options, c.settings.rules, c.out.holders, c.out.quality,
                         [&](sources::PrometheusProgress progress) {
                           c.bar.show("arithmetic on the server", progress.done, progress.total);
                         }));
  FLOPSIGHT_ASSIGN_OR_RETURN(const sources::GpuList raw, gpus_to_read_raw(c, options, pushed));
  FLOPSIGHT_RETURN_IF_ERROR(add_scraped_maxima(c, pushed.spans));
  rollups::FleetOptions fleet_options = c.settings.fleet;
  fleet_options.integrate.window = c.window;
  c.out.fleet.append(rollups::fleet_of_spans(pushed.spans, step, fleet_options, c.out.quality));
  c.out.assumptions.push_back("arithmetic pushed down to the server as PromQL, evaluated every " +
                              std::to_string(std::llround(step.value)) + " s; samples come every " +
                              std::to_string(std::llround(c.plan.interval.value)) +
                              " s; frozen readings are found only with --raw, and bad copies of good samples counted only there");
  const units::Seconds looked = sources::coarse_step(c.window, step);
  if (looked > step) {
    c.out.assumptions.push_back("readings that contradict each other were looked for every " + std::to_string(std::llround(looked.value)) +
                                " s; shorter ones are found only with --raw");
  }
  if (!raw.gpus.empty()) {
    c.out.assumptions.push_back(std::to_string(raw.gpus.size()) +
                                " GPUs from raw samples: several jobs, holes in their labels, time that was not measured, contradicting readings, or other labels than most");
  }
  if (raw.has_unnamed) c.out.assumptions.push_back("GPUs without a UUID from raw samples");
  return roll_raw(c, raw);
}

// Whose the pods on GPUs are, where the server has kube-state-metrics. Without it, or when it is not told, they stay apart.
void add_owners(const Context& c) {
  if (!c.plan.has_pod_owners) return;
  std::vector<sources::PodName> pods;
  for (samples::HolderId id = 0; id < c.out.holders.size(); ++id) {
    const samples::Holder& holder = c.out.holders.at(id);
    if (!holder.name_space.empty()) pods.push_back({holder.name_space, holder.job});
  }
  std::sort(pods.begin(), pods.end());
  pods.erase(std::unique(pods.begin(), pods.end()), pods.end());
  if (pods.size() > kPodsMax) {
    c.out.assumptions.push_back("the server was asked whose the first " + std::to_string(kPodsMax) + " of " + std::to_string(pods.size()) +
                                " pods are; the others are shown apart");
    pods.resize(kPodsMax);
  }
  const Status asked = sources::ask_pod_owners(c.client, std::move(pods), c.window, c.out.owners, [&](sources::PrometheusProgress progress) {
    c.bar.show("owners of pods", progress.done, progress.total);
  });
  if (!asked.ok()) c.out.quality.add("owners_not_told", asked.error().message);
}

}  // namespace

Status roll_prometheus(const ReportArguments& a, units::Window window, const ReportSettings& settings,
                       const Env& env, SourceResult& out) {
  sources::PrometheusOptions options;
  options.url = a.prometheus;
  options.http = settings.http;
  FLOPSIGHT_ASSIGN_OR_RETURN(auto client, sources::PrometheusClient::create(options));
  out.name = net::url_without_credentials(a.prometheus);
  if (const auto name = client.server_name(); name.ok()) out.name += " (" + *name + ")";
  FLOPSIGHT_ASSIGN_OR_RETURN(const sources::Plan plan,
                             sources::make_plan(client, a.match, settings.rules, window));
  if (plan.simulated) out.quality.add("simulated", out.name);
  ProgressBar bar(env, a.quiet);
  const bool push = plan.can_push_down && !a.raw && settings.jobs.empty();
  units::Seconds step = a.step;
  if (!a.step_given) step = std::max(step, plan.interval);
  if (push) {
    // Steps are absolute multiples on the server; the window is cut to whole ones.
    const auto step_milliseconds = static_cast<std::int64_t>(std::llround(step.value * 1000));
    window.start.unix_milliseconds -= window.start.unix_milliseconds % step_milliseconds;
    window.end.unix_milliseconds -= window.end.unix_milliseconds % step_milliseconds;
    if (window.end <= window.start) {
      return base::Error{base::ErrorCode::kInvalid,
                         "--step: longer than the window, expected a shorter step or --raw"};
    }
  }
  const Context context{a, settings, client, plan, window, bar, out};
  if (push) {
    FLOPSIGHT_RETURN_IF_ERROR(roll_pushed(context, step));
  } else {
    out.assumptions.push_back("raw samples, because " +
                              (a.raw ? std::string("--raw was given")
                               : !settings.jobs.empty() ? std::string("a jobs file was given")
                                                         : plan.reason));
    FLOPSIGHT_ASSIGN_OR_RETURN(const sources::GpuList gpus, sources::list_gpus(client, plan, a.match, settings.rules, window));
    FLOPSIGHT_RETURN_IF_ERROR(roll_raw(context, gpus));
  }
  add_owners(context);
  if (a.by == analysis::GroupBy::kJob) ask_reported_mfu(client, settings, window, out);
  return {};
}

}  // namespace flopsight::app
