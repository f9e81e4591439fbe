#include <CLI/CLI.hpp>

#include "advisor/verify_answer.h"
#include "base/text.h"
#include "new_files.h"
#include "number_options.h"

namespace flopsight::app {
namespace {

// Tokens a second of a job: far below and above any, so that their ratio is a number.
constexpr double kRateLeast = 1e-9;
constexpr double kRateMost = 1e15;

}  // namespace

void add_tune_verify(CLI::App& app, TuneVerifyArguments& a, TuneVerifyTexts& t) {
  app.add_option("--record", a.record_path, std::string("file that results are kept in, one JSON line each").append(kFoldersAreMade))->required();
  app.add_flag("--list", a.list, "only show what is kept");
  app.add_option("--change", a.change, "what was changed, in words or as the advice's id");
  in_range(app.add_option("--predicted-gain", a.predicted_gain_ratio, "gain_ratio of the advice: tokens a second, new / old - 1"), -1.0, 1000.0);
  app.add_option("--store", a.store_path, "store folder that knows both runs")->group("From a store");
  app.add_option("--before", a.before.job, "job before the change")->group("From a store");
  app.add_option("--before-start", t.before.start, "RFC 3339 with an offset, or Unix seconds")->group("From a store");
  app.add_option("--before-end", t.before.end, "exclusive; default: now")->group("From a store");
  app.add_option("--before-since", t.before.since, "length up to the end (default: 24h)")->group("From a store");
  app.add_option("--after", a.after.job, "job after it; the same one with other times for a change in the middle")->group("From a store");
  app.add_option("--after-start", t.after.start, "as --before-start")->group("From a store");
  app.add_option("--after-end", t.after.end, "as --before-end")->group("From a store");
  app.add_option("--after-since", t.after.since, "as --before-since")->group("From a store");
  in_range(app.add_option("--before-tokens-per-second", a.before_tokens_per_second, "measured, instead of a store"), kRateLeast, kRateMost)->group("By hand");
  in_range(app.add_option("--after-tokens-per-second", a.after_tokens_per_second, "measured, instead of a store"), kRateLeast, kRateMost)->group("By hand");
  app.add_option("--format", t.format, "table|json")->capture_default_str();
}

std::optional<std::string> set_tune_verify(TuneVerifyArguments& a, const TuneVerifyTexts& t) {
  if (t.format != "table" && t.format != "json") return "--format " + base::printable(t.format, 40) + ": expected table or json";
  a.json = t.format == "json";
  const bool by_hand = a.before_tokens_per_second || a.after_tokens_per_second;
  const bool by_store = !a.store_path.empty() || !a.before.job.empty() || !a.after.job.empty();
  if (a.list) return by_hand || by_store ? std::optional<std::string>("--list shows what is kept and takes no runs") : std::nullopt;
  if (by_hand == by_store) return "expected --store with --before and --after, or --before-tokens-per-second and --after-tokens-per-second";
  if (by_hand && (!a.before_tokens_per_second || !a.after_tokens_per_second)) return "--before-tokens-per-second and --after-tokens-per-second go together";
  if (by_store && (a.store_path.empty() || a.before.job.empty() || a.after.job.empty())) return "--store, --before and --after go together";
  if (a.change.empty()) return "--change: expected what was changed";
  if (auto mistake = set_job_window("--before-", t.before, a.before)) return mistake;
  return set_job_window("--after-", t.after, a.after);
}

}  // namespace flopsight::app
