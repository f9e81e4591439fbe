#include "logs/command_logs.h"

#include <ostream>

#include "base/text.h"
#include "parse_file.h"
#include "serve/log_file.h"
#include "training_logs/patterns.h"
#include "views/text_table.h"
#include "error_line.h"

namespace flopsight::app {
namespace {

namespace json = base::json;
using training_logs::Exclusion;
using training_logs::Reported;
using training_logs::Step;
using training_logs::Summary;
using views::text_table::number;

json::Value count_value(std::uint64_t count) { return json::Value(count); }

json::Value step_json(const Step& step) {
  json::Object out{
      {"step", step.step},
      {"time", step.time ? json::Value(units::to_rfc3339(*step.time)) : json::Value()},
      {"attempt", static_cast<std::int64_t>(step.attempt)},
      {"rank", step.rank},
      {"ranks", static_cast<std::int64_t>(step.ranks)},
      {"mfu_ratio", step.mfu_ratio},
      {"flops_per_second_per_gpu", step.flops_per_second_per_gpu},
      {"tokens_per_second_per_gpu", step.tokens_per_second_per_gpu},
      {"tokens_per_second", step.tokens_per_second},
      {"samples_per_second", step.samples_per_second},
      {"step_seconds", step.step_seconds},
      {"peak_flops_per_second", step.peak_flops_per_second},
      {"loss", step.loss ? json::Value(step.loss->value) : json::Value()},
      {"excluded", step.excluded ? json::Value(exclusion_name(*step.excluded)) : json::Value()},
      {"line", count_value(step.source.line)},
      {"offset_bytes", count_value(step.source.offset_bytes)},
  };
  if (!step.label.empty()) out.insert(out.begin(), {"label", step.label});
  return out;
}

json::Value summary_json(const Summary& summary) {
  return json::Object{
      {"mfu_ratio", summary.mfu_ratio},
      {"flops_per_second_per_gpu", summary.flops_per_second_per_gpu},
      {"tokens_per_second_per_gpu", summary.tokens_per_second_per_gpu},
      {"tokens_per_second", summary.tokens_per_second},
      {"samples_per_second", summary.samples_per_second},
      {"step_seconds", summary.step_seconds},
      {"implied_peak_flops_per_second", summary.implied_peak_flops_per_second},
      {"implied_peak_printed", summary.implied_peak_printed},
  };
}

void table_line(std::ostream& out, std::string_view name, const std::string& value) {
  out << "  " << name << std::string(name.size() < 22 ? 22 - name.size() : 1, ' ') << value << '\n';
}

void figures(std::ostream& out, const std::optional<double>& mfu_ratio, const std::optional<double>& flops_per_second_per_gpu,
             const std::optional<double>& tokens_per_second_per_gpu, const std::optional<double>& step_seconds) {
  if (mfu_ratio) table_line(out, "MFU", number(*mfu_ratio * 100, "%.2f %%"));
  if (flops_per_second_per_gpu) table_line(out, "per GPU", number(*flops_per_second_per_gpu / 1e12, "%.2f TFLOP/s"));
  if (tokens_per_second_per_gpu) table_line(out, "tokens per GPU", number(*tokens_per_second_per_gpu, "%.1f /s"));
  if (step_seconds) table_line(out, "step", number(*step_seconds, "%.4g s"));
}

// What a run prints and not all of them do.
void own_settings(std::ostream& out, const training_logs::LoggedRun& run, const Reported& of_all) {
  for (const auto& [name, value] : run.settings) {
    if (of_all.setting(name) == nullptr) table_line(out, "printed", name + " " + value);
  }
}

void table(std::ostream& out, const std::string& path, const Reported& reported) {
  out << base::printable(path) << '\n';
  table_line(out, "format", reported.format.empty() ? "nothing matched" : reported.runs.empty() ? reported.format : "several runs");
  table_line(out, "lines", std::to_string(reported.lines_total) + ", " + std::to_string(reported.lines_matched) + " matched");
  if (reported.nearest_miss) {
    table_line(out, "nearest miss", "line " + std::to_string(reported.nearest_miss->line) + ": " + reported.nearest_miss->text);
    table_line(out, "", reported.nearest_miss->why);
  }
  if (reported.several_runs) {
    for (const Step& step : reported.steps) {
      out << "  " << base::printable(step.label) << '\n';
      figures(out, step.mfu_ratio, step.flops_per_second_per_gpu, step.tokens_per_second_per_gpu, step.step_seconds);
      for (const training_logs::LoggedRun& run : reported.runs) {
        if (run.label == step.label) own_settings(out, run, reported);
      }
    }
  } else if (reported.steps_total > 0) {
    const Summary& summary = reported.summary;
    table_line(out, "steps", std::to_string(reported.steps_total) + ", " + std::to_string(summary.steps_used) + " used" +
                                 (reported.attempts > 1 ? ", " + std::to_string(reported.attempts) + " attempts" : ""));
    figures(out, summary.mfu_ratio, summary.flops_per_second_per_gpu, summary.tokens_per_second_per_gpu, summary.step_seconds);
    if (summary.tokens_per_second) table_line(out, "tokens", number(*summary.tokens_per_second, "%.1f /s"));
    if (summary.samples_per_second) table_line(out, "samples", number(*summary.samples_per_second, "%.2f /s"));
    if (summary.implied_peak_flops_per_second) {
      table_line(out, "peak it divides by", number(*summary.implied_peak_flops_per_second / 1e12, "%.1f TFLOP/s") +
                                               (summary.implied_peak_printed ? " (printed)" : " (rate / MFU)"));
    }
  }
  for (std::size_t i = 0; i < training_logs::kExclusionCount; ++i) {
    if (reported.excluded[i] == 0) continue;
    const auto exclusion = static_cast<Exclusion>(i);
    table_line(out, "left out", std::to_string(reported.excluded[i]) + " " + std::string(exclusion_name(exclusion)) + ": " +
                                    std::string(exclusion_meaning(exclusion)));
  }
  for (const auto& [name, value] : reported.settings) table_line(out, "printed", name + " " + value);
  for (const std::string& note : reported.notes) table_line(out, "note", note);
}

}  // namespace

json::Value reported_json(const Reported& reported, bool steps) {
  json::Object excluded;
  for (std::size_t i = 0; i < training_logs::kExclusionCount; ++i) {
    excluded.emplace_back(std::string(exclusion_name(static_cast<Exclusion>(i))), count_value(reported.excluded[i]));
  }
  json::Object settings;
  for (const auto& [name, value] : reported.settings) settings.emplace_back(name, value);
  json::Array notes(reported.notes.begin(), reported.notes.end());
  json::Value miss;
  if (reported.nearest_miss) {
    miss = json::Object{{"line", count_value(reported.nearest_miss->line)},
                        {"text", reported.nearest_miss->text},
                        {"why", reported.nearest_miss->why}};
  }
  json::Object out{
      {"format", reported.format.empty() ? json::Value() : json::Value(reported.format)},
      {"bytes_total", count_value(reported.bytes_total)},
      {"lines_total", count_value(reported.lines_total)},
      {"lines_matched", count_value(reported.lines_matched)},
      {"steps_total", count_value(reported.steps_total)},
      {"steps_used", count_value(reported.summary.steps_used)},
      {"attempts", count_value(reported.attempts)},
      {"times_without_zone", count_value(reported.times_without_zone)},
      {"several_runs", reported.several_runs},
      {"summary", summary_json(reported.summary)},
      {"excluded", std::move(excluded)},
      {"settings", std::move(settings)},
      {"notes", std::move(notes)},
      {"nearest_miss", std::move(miss)},
  };
  if (!reported.runs.empty()) {
    json::Array runs;
    for (const training_logs::LoggedRun& run : reported.runs) {
      json::Object printed;
      for (const auto& [name, value] : run.settings) printed.emplace_back(name, value);
      runs.push_back(json::Object{{"label", run.label},
                                  {"steps_total", count_value(run.steps_total)},
                                  {"steps_used", count_value(run.steps_used)},
                                  {"settings", std::move(printed)}});
    }
    out.emplace_back("runs", std::move(runs));
  }
  if (steps || reported.several_runs) {
    json::Array list;
    for (const Step& step : reported.steps) list.push_back(step_json(step));
    out.emplace_back("steps", std::move(list));
  }
  return out;
}

base::Result<training_logs::Options> log_options(const LogsArguments& arguments) {
  training_logs::Options options;
  options.format = arguments.log_format;
  options.warm_up_steps = arguments.warm_up_steps;
  if (!arguments.zone.empty()) {
    FLOPSIGHT_ASSIGN_OR_RETURN(base::Zone zone, base::Zone::find(arguments.zone));
    options.zone = std::move(zone);
  }
  if (!arguments.patterns_path.empty()) {
    FLOPSIGHT_ASSIGN_OR_RETURN(training_logs::PatternFile patterns,
                               parse_file(arguments.patterns_path, &training_logs::PatternFile::parse));
    options.patterns = std::make_shared<const training_logs::PatternFile>(std::move(patterns));
  }
  return options;
}

base::Result<Reported> read_log_file(const std::string& path, const training_logs::Options& options) {
  FLOPSIGHT_ASSIGN_OR_RETURN(LogFile file, LogFile::open(path, true));
  training_logs::Reader reader(options);
  std::string damage;
  while (true) {
    const base::Result<std::size_t> got = file.read(LogFile::kReadBytes, [&](std::string_view bytes) { reader.feed(bytes); });
    if (!got.ok() && got.error().code != base::ErrorCode::kCorrupt) return got.error();
    if (!got.ok()) damage = got.error().message;
    if (!got.ok() || *got == 0) break;
  }
  if (const base::Status whole = file.finish(); damage.empty() && !whole.ok()) damage = whole.error().message;
  if (!damage.empty()) reader.drop_tail();
  Reported reported = reader.finish();
  if (!damage.empty()) reported.notes.push_back("read up to the damage: " + damage);
  return reported;
}

int run_logs(const LogsArguments& arguments, const Env& env) {
  const base::Result<training_logs::Options> options = log_options(arguments);
  if (!options.ok()) return fail(env, "logs", options.error());
  json::Array files;
  bool all_matched = true;
  for (const std::string& path : arguments.files) {
    const base::Result<Reported> reported = read_log_file(path, *options);
    if (!reported.ok()) return fail(env, "logs", reported.error());
    if (reported->format.empty()) {
      all_matched = false;
      std::string nothing = base::printable(path) + ": nothing matched in " + std::to_string(reported->lines_total) + " lines";
      if (reported->nearest_miss) nothing += "; nearest: line " + std::to_string(reported->nearest_miss->line) + ", " + reported->nearest_miss->why;
      env.err << error_line("logs", nothing);
    }
    if (!arguments.json) {
      table(env.out, path, *reported);
      continue;
    }
    json::Value value = reported_json(*reported, arguments.steps);
    json::Object object = *value.as_object();
    object.insert(object.begin(), {"path", path});
    files.emplace_back(std::move(object));
  }
  if (arguments.json) env.out << json::dump(json::Object{{"files", std::move(files)}}) << '\n';
  return all_matched ? kExitDone : kExitFailure;
}

}  // namespace flopsight::app
