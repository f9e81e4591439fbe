#include "sources/pushdown.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "catalog/metrics.h"
#include "sources/collector.h"
#include "sources/promql_parts.h"

namespace flopsight::sources {
namespace {

using samples::PushedSpan;

std::string join(const std::vector<std::string>& names) {
  std::string out;
  for (const std::string& name : names) out += (out.empty() ? "" : ",") + name;
  return out;
}

// Builds the expressions of one plan.
class Expressions {
 public:
  Expressions(const Plan& plan, const PushdownOptions& options, const jobs::LabelRules& rules)
      : plan_(plan), reading_{options.match, sample_hold(plan.interval)} {
    // Everything that names GPU and holder; not `instance`, which differs between replicas of a scrape, unless
    // it is the only name of the host.
    std::vector<std::string> names = rules.label_names();
    std::erase(names, "instance");
    std::erase(names, "exported_instance");
    by_ = "avg by (" + join(names) + ")";
    tensor_ = held_in_range(by_, {catalog::Metric::kTensorActive, plan.tensor_names, plan.tensor_scale}, reading_);
    const MetricNames clock{catalog::Metric::kSmClock, plan.clock_names, plan.clock_scale};
    clock_ = held_in_range(by_, clock, reading_);
    clock_of_gpu_ = held_in_range("avg by (" + plan.gpu_label + ")", clock, reading_);
  }

  std::string on() const { return " on(" + plan_.gpu_label + ") "; }
  std::string tensor_clock() const { return activity_times_clock(tensor_, clock_of_gpu_, plan_.gpu_label); }
  std::string tensor_measured() const { return tensor_ + " and" + on() + clock_of_gpu_; }
  std::string clock_megahertz() const { return clock_ + " * " + promql_number(plan_.clock_scale / 1e6); }
  // One selector over all names: `or` between three would read the labels three times over.
  std::string presence() const {
    if (plan_.clock_tells) return clock_;
    std::string names = plan_.clock_names + "|" + plan_.tensor_names;
    if (!plan_.presence_names.empty()) names += "|" + plan_.presence_names;
    return held(by_, names, reading_);
  }
  std::string busy_clock() const {
    return clock_of_gpu_ + " and" + on() + "(avg by (" + plan_.gpu_label + ")(" + tensor_ + ") >= 0.01)";
  }

 private:
  const Plan& plan_;
  Reading reading_;
  std::string by_, tensor_, clock_, clock_of_gpu_;
};

// Spans by their labels, gathered over queries and pieces.
class Gatherer {
 public:
  Gatherer(const jobs::LabelRules& rules, jobs::HolderTable& holders) : rules_(rules), holders_(holders) {}

  PushedSpan& span(const wire::ApiSeries& series) {
    std::vector<jobs::LabelView> labels;
    for (const auto& [name, value] : series.labels) labels.push_back({name, value});
    const jobs::LabelFacts facts = rules_.apply(labels);
    std::optional<samples::HolderId> holder;
    if (!facts.holder.unallocated()) holder = holders_.intern(facts.holder);
    const Key key{samples::normalized_uuid(facts.gpu.uuid), facts.gpu.mig_instance, holder ? *holder + 1 : 0};
    const auto [at, is_new] = spans_.emplace(key, PushedSpan{});
    if (is_new) {
      at->second.gpu = facts.gpu;
      at->second.holder = holder;
    } else {
      samples::GpuIdentity& gpu = at->second.gpu;
      if (gpu.model_raw.empty()) gpu.model_raw = facts.gpu.model_raw;
      if (gpu.host.empty()) gpu.host = facts.gpu.host;
    }
    return at->second;
  }
  void add_variance(const std::string& uuid, double hertz2) {
    Variance& variance = variances_[samples::normalized_uuid(uuid)];
    variance.hertz2_sum += hertz2;
    variance.pieces += 1;
  }
  std::vector<PushedSpan> take() {
    std::vector<PushedSpan> out;
    for (auto& [key, span] : spans_) {
      // The variance belongs to the GPU and is given to each of its spans.
      if (const auto at = variances_.find(key.uuid); at != variances_.end()) {
        span.clock_variance_hertz2 = at->second.hertz2_sum / at->second.pieces;
      }
      out.push_back(std::move(span));
    }
    return out;
  }

 private:
  struct Key {
    std::string uuid, instance;
    std::uint64_t holder;
    auto operator<=>(const Key&) const = default;
  };
  const jobs::LabelRules& rules_;
  jobs::HolderTable& holders_;
  struct Variance {
    double hertz2_sum = 0;
    double pieces = 0;
  };
  std::map<Key, PushedSpan> spans_;
  std::map<std::string, Variance> variances_;
};

std::string label_of(const wire::ApiSeries& series, const std::string& name) {
  for (const auto& [label, value] : series.labels) {
    if (label == name) return value;
  }
  return {};
}

// One number per series, as an instant query over [start, end) in steps.
struct Question {
  std::string function;  // "sum_over_time"
  std::string inside;
  std::function<void(const wire::ApiSeries&, double value)> take;
};

// Sum and count in one query: each value has a power of two added that the sum of a piece's values stays below, so
// that the sum's high part counts the steps. Exact for steps_max steps: 102 (a percentage) and 5,000 (MHz) times
// that are below the units, and 2^34 * 2^12 leaves seven bits behind the comma of a megahertz.
constexpr double kPieceStepsMax = 4096;
constexpr double kTensorUnit = 1048576;       // 2^20
constexpr double kClockUnit = 17179869184.0;  // 2^34
std::string packed(const std::string& inside, double unit) { return "(" + inside + ") + " + promql_number(unit); }

std::vector<Question> questions(const Expressions& e, const Plan& plan, Gatherer& into) {
  const double tensor_scale = plan.tensor_scale, clock_scale = plan.clock_scale;
  const auto count = [](double value) { return static_cast<std::uint64_t>(std::llround(value)); };
  const auto instant = [](double seconds) {
    return units::Instant{static_cast<std::int64_t>(std::llround(seconds * 1000))};
  };
  const bool clock_tells = plan.clock_tells;
  std::vector<Question> out = {
      {"min_over_time", "time() + 0 * (" + e.presence() + ")",
       [&into, instant](const auto& s, double v) {
         PushedSpan& span = into.span(s);
         span.first = span.first ? std::min(*span.first, instant(v)) : instant(v);
       }},
      {"max_over_time", "time() + 0 * (" + e.presence() + ")",
       [&into, instant](const auto& s, double v) {
         PushedSpan& span = into.span(s);
         span.last = span.last ? std::max(*span.last, instant(v)) : instant(v);
       }},
      {"sum_over_time", e.tensor_clock(),
       [&into, tensor_scale, clock_scale](const auto& s, double v) {
         into.span(s).tensor_clock_hertz_sum += v * tensor_scale * clock_scale;
       }},
      {"sum_over_time", packed(e.tensor_measured(), kTensorUnit),
       [&into, count, tensor_scale](const auto& s, double v) {
         const double steps = std::floor(v / kTensorUnit);
         into.span(s).measured_steps += count(steps);
         into.span(s).tensor_ratio_sum += (v - steps * kTensorUnit) * tensor_scale;
       }},
      {"sum_over_time", packed(e.clock_megahertz(), kClockUnit),
       [&into, count, clock_tells](const auto& s, double v) {
         const double steps = std::floor(v / kClockUnit);
         into.span(s).clock_steps += count(steps);
         if (clock_tells) into.span(s).present_steps += count(steps);
         into.span(s).clock_hertz_sum += (v - steps * kClockUnit) * 1e6;
       }},
  };
  if (!clock_tells) {
    out.push_back({"count_over_time", e.presence(), [&into, count](const auto& s, double v) {
                     into.span(s).present_steps += count(v);
                   }});
  }
  return out;
}

base::Status ask_busy_clock(PrometheusClient& client, const Plan& plan, const Expressions& e,
                            const std::string& range, units::Instant at, Gatherer& into) {
  FLOPSIGHT_ASSIGN_OR_RETURN(const wire::ApiAnswer variance,
                             client.query("stdvar_over_time((" + e.busy_clock() + ")" + range + ")", at));
  for (const wire::ApiSeries& series : variance.series) {
    if (series.points.empty()) continue;
    into.add_variance(label_of(series, plan.gpu_label),
                      series.points.back().value * plan.clock_scale * plan.clock_scale);
  }
  return {};
}

// Holders of one GPU that were there at the same time: their steps overlap between first and last, by more than a
// series is held after its last sample.
std::set<std::string> overlapping(const std::vector<PushedSpan>& spans, units::Seconds step,
                                  units::Seconds tolerance) {
  std::map<std::pair<std::string, std::string>, std::vector<const PushedSpan*>> by_gpu;
  for (const PushedSpan& span : spans) {
    if (span.first && span.last) by_gpu[{span.gpu.uuid, span.gpu.mig_instance}].push_back(&span);
  }
  std::set<std::string> out;
  for (auto& [gpu, members] : by_gpu) {
    std::sort(members.begin(), members.end(),
              [](const auto* a, const auto* b) { return *a->first < *b->first; });
    const PushedSpan* before = nullptr;
    for (const PushedSpan* span : members) {
      if (!span->holder) {
        // Idle time around jobs is no overlap; idle steps inside a job that has holes are.
        for (const PushedSpan* other : members) {
          if (!other->holder) continue;
          const double held_steps = (*other->last - *other->first).value / step.value + 1;
          const bool has_holes = static_cast<double>(other->present_steps) < held_steps - 0.5;
          if (has_holes && *span->first + tolerance < *other->last &&
              *other->first + tolerance < *span->last) {
            out.insert(gpu.first);
          }
        }
        continue;
      }
      if (before != nullptr && *span->first + tolerance < *before->last) out.insert(gpu.first);
      if (before == nullptr || *span->last > *before->last) before = span;
    }
  }
  return out;
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
  Gatherer gatherer(rules, holders);
  const std::vector<Question> asked = questions(expressions, plan, gatherer);
  const double total_steps = std::ceil(options.window.length() / options.step);
  const auto pieces = static_cast<std::size_t>(std::ceil(total_steps / piece_steps));
  PrometheusProgress done{0, pieces * (asked.size() + 1)};
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
    FLOPSIGHT_RETURN_IF_ERROR(ask_busy_clock(client, plan, expressions, range, at, gatherer));
    ++done.done;
    if (progress) progress(done);
  }
  PushdownResult result;
  result.spans = gatherer.take();
  result.need_raw = overlapping(result.spans, options.step, sample_hold(plan.interval));
  return result;
}

}  // namespace

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
