#include <algorithm>
#include <utility>

#include "base/json.h"
#include "base/median.h"
#include "training_logs/runs_internal.h"

namespace flopsight::training_logs {
namespace {

// Medians over fewer steps than this say nothing of a change, and ones nearer than the factor are the same speed.
constexpr std::size_t kComparedStepsMin = 4;
constexpr double kSameSpeedFactor = 1.2;

struct Group {
  std::size_t series = 0;
  std::size_t settings = 0;
  std::vector<Step> steps;
};

std::optional<double> median_of(const std::vector<Step>& steps, std::optional<double> Step::*figure, std::size_t values_min = 1) {
  std::vector<double> values;
  for (const Step& step : steps) {
    if (!step.excluded && step.*figure) values.push_back(*(step.*figure));
  }
  return values.size() < values_min ? std::nullopt : base::median(std::move(values));
}

// The least and the most that the used steps print.
std::pair<std::optional<double>, std::optional<double>> batches_of(const std::vector<Step>& steps) {
  std::optional<double> least, most;
  for (const Step& step : steps) {
    if (step.excluded || !step.batch_samples) continue;
    least = std::min(least.value_or(*step.batch_samples), *step.batch_samples);
    most = std::max(most.value_or(*step.batch_samples), *step.batch_samples);
  }
  return {least, most};
}

// The steps of one series by runs: first by what the log prints, then by attempts that begin at the start again at another speed.
void split(Series& series, std::size_t number, std::vector<Group>& groups) {
  const auto settings_of = [&](const Step& step) {
    std::size_t run = 0;
    for (const auto& [attempt, begun] : series.run_starts) {
      if (step.attempt >= attempt) run = begun;
    }
    return run;
  };
  for (std::size_t first = 0; first < series.steps.size();) {
    std::size_t end = first;
    while (end < series.steps.size() && series.steps[end].attempt == series.steps[first].attempt) ++end;
    std::vector<Step> attempt(std::make_move_iterator(series.steps.begin() + static_cast<std::ptrdiff_t>(first)),
                              std::make_move_iterator(series.steps.begin() + static_cast<std::ptrdiff_t>(end)));
    const std::size_t run = settings_of(attempt.front());
    const bool known = !groups.empty() && groups.back().series == number && groups.back().settings == run;
    const bool starts_over = known && attempt.front().step && groups.back().steps.front().step && *attempt.front().step <= *groups.back().steps.front().step;
    if (!known || (starts_over && has_another_speed(groups.back().steps, attempt))) {
      groups.push_back({number, run, std::move(attempt)});
    } else {
      groups.back().steps.insert(groups.back().steps.end(), std::make_move_iterator(attempt.begin()), std::make_move_iterator(attempt.end()));
    }
    first = end;
  }
  series.steps.clear();
}

Step medians_as_step(const Summary& summary, const Group& group, const std::string& label) {
  Step step;
  step.label = label;
  step.mfu_ratio = summary.mfu_ratio;
  step.flops_per_second_per_gpu = summary.flops_per_second_per_gpu;
  step.tokens_per_second_per_gpu = summary.tokens_per_second_per_gpu;
  step.tokens_per_second = summary.tokens_per_second;
  step.samples_per_second = summary.samples_per_second;
  step.step_seconds = summary.step_seconds;
  if (summary.implied_peak_printed) step.peak_flops_per_second = summary.implied_peak_flops_per_second;
  step.source = group.steps.front().source;
  // Such that batch / time is the median of the steps' own, also where the batch changed.
  const auto [least, most] = batches_of(group.steps);
  step.batch_samples = least;
  if (least != most) {
    const std::optional<double> rate = sequences_per_second_of(group.steps);
    step.batch_samples.reset();
    if (rate && step.step_seconds) step.batch_samples = *rate * *step.step_seconds;
  }
  return step;
}

void keep_apart(std::vector<Group> groups, const std::vector<Series>& series, const std::vector<Settings>& settings, Separated& out) {
  for (const Group& group : groups) {
    const std::string& name = series[group.series].name;
    const auto same = std::count_if(groups.begin(), groups.end(), [&](const Group& other) { return other.series == group.series; });
    const auto before = std::count_if(out.runs.begin(), out.runs.end(), [&](const LoggedRun& run) { return run.label.starts_with(name + " "); });
    LoggedRun run;
    run.label = same > 1 ? name + " " + std::to_string(before + 1) : name;
    run.steps_total = group.steps.size();
    if (group.settings < settings.size()) run.settings = settings[group.settings];
    tell_batches(group.steps, run.settings);
    std::optional<double> peak;
    for (const Step& step : group.steps) peak = peak ? peak : step.peak_flops_per_second;
    const Summary summary = summary_of(group.steps, peak);
    run.steps_used = summary.steps_used;
    out.steps.push_back(medians_as_step(summary, group, run.label));
    out.runs.push_back(std::move(run));
  }
}

// What the framework does not print itself, and a library beside it does.
void fill(Summary& summary, const Summary& beside) {
  for (const auto figure : {&Summary::mfu_ratio, &Summary::flops_per_second_per_gpu, &Summary::tokens_per_second_per_gpu,
                            &Summary::tokens_per_second, &Summary::samples_per_second, &Summary::step_seconds}) {
    if (!(summary.*figure)) summary.*figure = beside.*figure;
  }
}

}  // namespace

bool has_another_speed(const std::vector<Step>& before, const std::vector<Step>& after) {
  for (const auto figure : kStepFigures) {
    const auto a = median_of(before, figure, kComparedStepsMin), b = median_of(after, figure, kComparedStepsMin);
    if (a && b && (*a > *b * kSameSpeedFactor || *b > *a * kSameSpeedFactor)) return true;
  }
  return false;
}

std::optional<double> sequences_per_second_of(const std::vector<Step>& steps) {
  std::vector<double> rates;
  for (const Step& step : steps) {
    if (!step.excluded && step.batch_samples && step.step_seconds && *step.step_seconds > 0) rates.push_back(*step.batch_samples / *step.step_seconds);
  }
  return base::median(std::move(rates));
}

void tell_batches(const std::vector<Step>& steps, Settings& settings) {
  const auto [least, most] = batches_of(steps);
  if (!least || *least == *most) return;
  for (auto& entry : settings) {
    if (entry.first == "global_batch_size") entry.second = base::json::number_text(*least) + " … " + base::json::number_text(*most);
  }
}

Summary summary_of(const std::vector<Step>& steps, const std::optional<double>& peak_flops_per_second) {
  Summary out;
  std::vector<double> quotients;
  for (const Step& step : steps) {
    if (step.excluded) continue;
    ++out.steps_used;
    if (step.mfu_ratio && step.flops_per_second_per_gpu) quotients.push_back(*step.flops_per_second_per_gpu / *step.mfu_ratio);
  }
  out.mfu_ratio = median_of(steps, &Step::mfu_ratio);
  out.flops_per_second_per_gpu = median_of(steps, &Step::flops_per_second_per_gpu);
  out.tokens_per_second_per_gpu = median_of(steps, &Step::tokens_per_second_per_gpu);
  out.tokens_per_second = median_of(steps, &Step::tokens_per_second);
  out.samples_per_second = median_of(steps, &Step::samples_per_second);
  out.step_seconds = median_of(steps, &Step::step_seconds);
  out.implied_peak_flops_per_second = peak_flops_per_second ? peak_flops_per_second : base::median(std::move(quotients));
  out.implied_peak_printed = peak_flops_per_second.has_value();
  return out;
}

Separated separate(std::vector<Series> series, const std::vector<Settings>& settings, const std::optional<double>& peak_flops_per_second) {
  Separated out;
  const auto frameworks = std::count_if(series.begin(), series.end(), [](const Series& s) { return !s.beside && !s.steps.empty(); });
  const auto longest = std::max_element(series.begin(), series.end(), [](const Series& a, const Series& b) { return a.steps.size() < b.steps.size(); });
  std::vector<Group> groups;
  for (std::size_t i = 0; i < series.size(); ++i) {
    const bool counts = frameworks > 0 ? !series[i].beside : &series[i] == &*longest;
    if (!counts || series[i].steps.empty()) continue;
    out.main = i;
    split(series[i], i, groups);
  }
  if (groups.size() > 1) {
    keep_apart(std::move(groups), series, settings, out);
    return out;
  }
  if (!groups.empty()) out.steps = std::move(groups.front().steps);
  out.summary = summary_of(out.steps, peak_flops_per_second);
  for (const Series& other : series) {
    if (!other.steps.empty()) fill(out.summary, summary_of(other.steps, {}));
  }
  return out;
}

}  // namespace flopsight::training_logs
