#include "sources/pushdown.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "catalog/metrics.h"
#include "sources/collector.h"
#include "sources/promql_parts.h"
#include "sources/pushdown_gather.h"

namespace flopsight::sources {
namespace {

using samples::PushedSpan;
using units::Seconds;

std::string join(const std::vector<std::string>& names) {
  std::string out;
  for (const std::string& name : names) out += (out.empty() ? "" : ",") + name;
  return out;
}

// Builds the expressions of one plan.
class Expressions {
 public:
  Expressions(const Plan& plan, const PushdownOptions& options, const jobs::LabelRules& rules)
      : plan_(plan), rules_(rules), reading_{options.match, sample_hold(plan.interval)} {
    const std::string by = "avg by (" + join(holder_label_names(plan, rules)) + ")";
    // Everything that names GPU and holder; not `instance`, which differs between replicas of a scrape, unless
    // it is the only name of the host.
    std::vector<std::string> names = rules.label_names();
    std::erase(names, "instance");
    std::erase(names, "exported_instance");
    const MetricNames clock{catalog::Metric::kSmClock, plan.clock_names, plan.clock_scale};
    tensor_ = held_in_range(by, {catalog::Metric::kTensorActive, plan.tensor_names, plan.tensor_scale}, reading_);
    clock_ = held_in_range(by, clock, reading_);
    named_clock_ = held_in_range("avg by (" + join(names) + ")", clock, reading_);
    clock_of_gpu_ = held_in_range("avg by (" + plan.gpu_label + ")", clock, reading_);
  }

  const std::string& tensor() const { return tensor_; }
  const std::string& named_clock() const { return named_clock_; }
  std::string tensor_clock_megahertz() const {
    return activity_times_clock(tensor_, clock_of_gpu_, plan_.gpu_label) + " * " +
           promql_number(plan_.tensor_scale * plan_.clock_scale / 1e6);
  }
  std::string clock_megahertz() const { return clock_ + " * " + promql_number(plan_.clock_scale / 1e6); }
  // Samples with a value or not, for blank ones also say that the GPU is there. By the GPU alone, whose exporters need not all know
  // its job.
  std::string presence() const {
    const auto instances = rules_.names_of("mig_instance");
    std::vector<std::string> by(instances.begin(), instances.end());
    by.insert(by.begin(), plan_.gpu_label);
    const std::string names = plan_.clock_names + (plan_.presence_names.empty() ? "" : "|" + plan_.presence_names);
    return held("group by (" + join(by) + ")", names, reading_);
  }
  std::string busy_clock() const {
    const std::string on = " on(" + plan_.gpu_label + ") ";
    return clock_of_gpu_ + " and" + on + "(avg by (" + plan_.gpu_label + ")(" + tensor_ + ") >= 0.01)";
  }

 private:
  const Plan& plan_;
  const jobs::LabelRules& rules_;
  Reading reading_;
  std::string tensor_, clock_, named_clock_, clock_of_gpu_;
};

// One number per series, as an instant query over [start, end) in steps.
struct Question {
  std::string function;  // "sum_over_time"
  std::string inside;
  std::function<void(const wire::ApiSeries&, double value)> take;
};

// Sum and count in one query: each value has a power of two added that the sum of a piece's values stays below, so
// that the sum's high part counts the steps. Exact for kPieceStepsMax steps: 102 (a percentage) and 5,000 (MHz) times
// that are below the units, and 2^25 * 2^12 leaves fifteen bits behind the comma of a megahertz.
constexpr double kPieceStepsMax = 4096;
constexpr double kTensorUnit = 1048576;  // 2^20
constexpr double kClockUnit = 33554432;  // 2^25
std::string packed(const std::string& inside, double unit) { return "(" + inside + ") + " + promql_number(unit); }

struct Unpacked {
  Unpacked(double value, double unit) : steps(static_cast<std::uint64_t>(std::llround(std::floor(value / unit)))),
                                        sum(value - std::floor(value / unit) * unit) {}
  std::uint64_t steps;
  double sum;
};

std::vector<Question> questions(const Expressions& e, const Plan& plan, PushedGather& into) {
  using Sums = PushedGather::Sums;
  const double tensor_scale = plan.tensor_scale;
  const auto instant = [](double seconds) {
    return units::Instant{static_cast<std::int64_t>(std::llround(seconds * 1000))};
  };
  // Not a number has no place in a sum, and of the GPU then nothing is counted: it is read raw.
  const auto question = [&into](std::string function, std::string inside, auto take) {
    return Question{std::move(function), std::move(inside), [&into, take](const wire::ApiSeries& series, double value) {
                      Sums* sums = into.sums_of(series);
                      if (sums != nullptr && std::isfinite(value)) take(*sums, value);
                    }};
  };
  return {
      question("min_over_time", "time() + 0 * " + e.named_clock(),
               [instant](Sums& s, double v) { s.span.first = s.span.first ? std::min(*s.span.first, instant(v)) : instant(v); }),
      question("max_over_time", "time() + 0 * " + e.named_clock(),
               [instant](Sums& s, double v) { s.span.last = s.span.last ? std::max(*s.span.last, instant(v)) : instant(v); }),
      question("sum_over_time", packed(e.tensor_clock_megahertz(), kClockUnit),
               [](Sums& s, double v) {
                 const Unpacked both(v, kClockUnit);
                 s.measured_steps += both.steps;
                 s.span.tensor_clock_hertz_sum += both.sum * 1e6;
               }),
      question("sum_over_time", packed(e.tensor(), kTensorUnit),
               [tensor_scale](Sums& s, double v) {
                 const Unpacked both(v, kTensorUnit);
                 s.tensor_steps += both.steps;
                 s.span.tensor_ratio_sum += both.sum * tensor_scale;
               }),
      question("sum_over_time", packed(e.clock_megahertz(), kClockUnit),
               [](Sums& s, double v) {
                 const Unpacked both(v, kClockUnit);
                 s.clock_steps += both.steps;
                 s.span.clock_hertz_sum += both.sum * 1e6;
               }),
      {"count_over_time", e.presence(),
       [&into](const wire::ApiSeries& series, double v) { into.add_presence(series, static_cast<std::uint64_t>(std::llround(v))); }},
      {"stdvar_over_time", e.busy_clock(),
       [&into, scale = plan.clock_scale](const wire::ApiSeries& series, double v) { into.add_variance(series, v * scale * scale); }},
  };
}

// GPUs of which no step was measured although they have a tensor counter: why not is in raw samples only.
base::Status need_raw_with_tensor(PrometheusClient& client, const Plan& plan, const PushdownOptions& options, PushdownResult& result) {
  std::set<std::string> silent, found;  // normalized UUIDs
  for (const PushedSpan& span : result.spans) {
    if (span.measured_steps == 0) silent.insert(samples::normalized_uuid(span.gpu.uuid));
  }
  if (silent.empty()) return {};
  const std::string selector = "{__name__=~\"" + plan.tensor_names + "\"" + (options.match.empty() ? "" : "," + options.match) + "}";
  const auto query = [&](const std::string& range) {
    return "group by (" + plan.gpu_label + ") (last_over_time(" + selector + "[" + range + "]))";
  };
  FLOPSIGHT_RETURN_IF_ERROR(client.query_halved(options.window, query, [&](const wire::ApiAnswer& answer) {
    for (const wire::ApiSeries& series : answer.series) {
      for (const auto& [label, value] : series.labels) {
        const std::string uuid = samples::normalized_uuid(value);
        if (label == plan.gpu_label && silent.count(uuid) > 0) found.insert(uuid);
      }
    }
  }));
  result.read_raw(found);
  return {};
}

// GPUs of which some series comes less often than a sample is held, while those that the interval was taken from come more often: at most
// steps there is nothing, and that looks like a gap. Such a series was there shortly before, again and again; one that has ended only once.
base::Status need_raw_of_slow_series(PrometheusClient& client, const Plan& plan, const PushdownOptions& options, const jobs::LabelRules& rules,
                                     PushdownResult& result) {
  const Seconds hold = sample_hold(plan.interval), longer(std::max(300.0, 4 * hold.value)), step = coarse_step(options.window, options.step);
  const std::string by = "group by (" + join(holder_label_names(plan, rules)) + ")";
  const std::string inside = held(by, plan.clock_names, {options.match, longer}) + " unless " + held(by, plan.clock_names, {options.match, hold});
  std::map<std::vector<std::pair<std::string, std::string>>, double> lapses;  // steps, by labels
  const auto query = [&](const std::string& range) {
    return "count_over_time((" + inside + ")[" + range + ":" + std::to_string(std::llround(step.value * 1000)) + "ms])";
  };
  FLOPSIGHT_RETURN_IF_ERROR(client.query_halved(options.window, query, [&](const wire::ApiAnswer& answer) {
    for (const wire::ApiSeries& series : answer.series) {
      if (!series.points.empty()) lapses[series.labels] += series.points.back().value;
    }
  }));
  std::set<std::string> slow;
  for (const auto& [labels, steps] : lapses) {
    if (step * steps <= longer * 2 + options.window.length() * 0.01) continue;
    for (const auto& [label, value] : labels) {
      const jobs::LabelView view{label, value};
      if (label != plan.gpu_label || rules.apply({&view, 1}).gpu.uuid.empty()) continue;
      const std::string uuid = samples::normalized_uuid(value);
      slow.insert(uuid);
      result.need_raw[uuid].values.insert(value);
    }
  }
  result.read_raw(slow);
  return {};
}

// How many series the window holds, as seen at a few moments of it.
base::Result<double> series_count(PrometheusClient& client, const Plan& plan, const PushdownOptions& options) {
  const units::Seconds look(std::clamp(options.window.length().value, 1.0, 1800.0));
  const std::string query = "count(last_over_time({__name__=~\"" + plan.clock_names + "|" +
                            plan.tensor_names + "\"" + (options.match.empty() ? "" : "," + options.match) +
                            "}[" + std::to_string(std::llround(look.value)) + "s]))";
  double most = 1;
  for (const double back_ratio : {0.0, 0.33, 0.67}) {
    const units::Instant at = options.window.end - options.window.length() * back_ratio;
    FLOPSIGHT_ASSIGN_OR_RETURN(const wire::ApiAnswer counted, client.query(query, at - units::Seconds(0.001)));
    if (!counted.series.empty() && !counted.series[0].points.empty()) {
      most = std::max(most, counted.series[0].points.back().value);
    }
  }
  return most;
}

// All questions over pieces of at most `piece_steps` steps.
base::Result<PushdownResult> ask_in_pieces(PrometheusClient& client, const Plan& plan,
                                           const PushdownOptions& options, double piece_steps,
                                           const jobs::LabelRules& rules, jobs::HolderTable& holders,
                                           samples::QualityLog& quality,
                                           const std::function<void(PrometheusProgress)>& progress) {
  const Expressions expressions(plan, options, rules);
  PushedGather gather(plan, rules);
  const std::vector<Question> asked = questions(expressions, plan, gather);
  const double total_steps = std::ceil(options.window.length() / options.step);
  const auto pieces = static_cast<std::size_t>(std::ceil(total_steps / piece_steps));
  PrometheusProgress done{0, pieces * asked.size()};
  for (std::size_t i = 0; i < pieces; ++i) {
    const units::Instant start =
        options.window.start + options.step * (static_cast<double>(i) * piece_steps);
    const units::Instant end = std::min(start + options.step * piece_steps, options.window.end);
    if (end <= start) break;
    // Subqueries evaluate at absolute multiples of the step; Prometheus from at - range on, VictoriaMetrics after
    // it. A millisecond before the end both see start, start + step, …, end - step.
    const units::Instant at = end - units::Seconds(0.001);
    const std::string range =
        "[" + std::to_string(std::llround((end - start).value * 1000)) + "ms:" +
        std::to_string(std::llround(options.step.value * 1000)) + "ms]";
    for (const Question& question : asked) {
      FLOPSIGHT_ASSIGN_OR_RETURN(
          const wire::ApiAnswer answer,
          client.query(question.function + "((" + question.inside + ")" + range + ")", at));
      note_answer(answer, quality);
      for (const wire::ApiSeries& one : answer.series) {
        if (!one.points.empty()) question.take(one, one.points.back().value);
      }
      ++done.done;
      if (progress) progress(done);
    }
  }
  PushdownResult result = gather.take(holders, options.step, sample_hold(plan.interval));
  FLOPSIGHT_RETURN_IF_ERROR(need_raw_of_slow_series(client, plan, options, rules, result));
  FLOPSIGHT_RETURN_IF_ERROR(need_raw_with_tensor(client, plan, options, result));
  return result;
}

}  // namespace

void PushdownResult::read_raw(const std::set<std::string>& uuids) {
  if (uuids.empty()) return;
  std::erase_if(spans, [&](const PushedSpan& span) {
    const std::string uuid = samples::normalized_uuid(span.gpu.uuid);
    if (uuids.count(uuid) == 0) return false;
    GpuNames& names = need_raw[uuid];
    names.host = span.gpu.host;
    names.values.insert(span.gpu.uuid);
    return true;
  });
}

void note_answer(const wire::ApiAnswer& answer, samples::QualityLog& quality) {
  for (const std::string& warning : answer.warnings) quality.add("server_warning", warning);
  if (answer.is_partial) quality.add("partial_answer", "metrics server");
}

base::Result<PushdownResult> push_down(PrometheusClient& client, const Plan& plan,
                                       const PushdownOptions& options, const jobs::LabelRules& rules,
                                       jobs::HolderTable& holders, samples::QualityLog& quality,
                                       const std::function<void(PrometheusProgress)>& progress) {
  // How many series there are decides how long a piece of the window one query may cover; a server that allows
  // less is asked again in shorter pieces.
  FLOPSIGHT_ASSIGN_OR_RETURN(const double series, series_count(client, plan, options));
  const double total_steps = std::ceil(options.window.length() / options.step);
  double piece_steps =
      std::min({total_steps, kPieceStepsMax, std::max(10.0, std::floor(options.series_steps_max / series))});
  while (true) {
    auto result = ask_in_pieces(client, plan, options, piece_steps, rules, holders, quality, progress);
    if (result.ok() || result.error().code != base::ErrorCode::kLimit || piece_steps <= 1) return result;
    piece_steps = std::max(1.0, std::floor(piece_steps / 4));
  }
}

}  // namespace flopsight::sources
