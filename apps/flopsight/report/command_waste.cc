#include "report/command_waste.h"

#include <ostream>

#include "base/json.h"
#include "base/text.h"
#include "parse_file.h"
#include "report/report_sources.h"
#include "serve/answer.h"
#include "serve/open_folder.h"
#include "views/waste_views.h"
#include "error_line.h"
#include "number_options.h"

namespace flopsight::app {
namespace {

using base::Result;

// One ratio for every GPU, or a percentage with its sign, or a file.
Result<analysis::ModelTable> read_targets(const std::string& text) {
  if (text.empty()) return analysis::ModelTable();
  if (const auto ratio = ratio_of(text)) {
    auto targets = analysis::parse_targets("model,attainable_ofu_ratio\n*," + base::json::number_text(*ratio) + "\n");
    if (!targets.ok()) return base::Error{base::ErrorCode::kInvalid, "--attainable " + text + ": expected a ratio from 0 to 1, a percentage with its sign, or a file"};
    return targets;
  }
  return parse_file(text, analysis::parse_targets);
}

// In messages --top is of the jobs of each user, all of which count.
std::optional<std::uint64_t> rows_max(const WasteArguments& a) { return a.format == WasteFormat::kMessages ? std::nullopt : a.report.top; }

Result<analysis::WasteAccount> of_store(const WasteArguments& a, const ReportSettings& settings, analysis::ModelTable targets,
                                        units::Window window, samples::QualityLog& quality, const Env& env) {
  std::unique_ptr<store::Reader> stored;
  std::unique_ptr<JobService> jobs;
  FLOPSIGHT_RETURN_IF_ERROR(open_folder(a.report.store_path, stored, jobs));
  if (jobs != nullptr) jobs->use_clock(env.now);
  AnswerSettings answers;
  answers.fleet = settings.fleet;
  answers.prices = settings.prices;
  answers.targets = std::move(targets);
  answers.simulated = stored->simulated();
  answers.grouping = std::make_shared<const jobs::Grouping>();
  answers.families = std::make_shared<const analysis::FamilyRule>(analysis::FamilyRule::builtin());
  const Caller everybody{"", true, true, true, {}, {}};
  window = stored->answered(window);
  FLOPSIGHT_ASSIGN_OR_RETURN(analysis::WasteAccount account,
                             answer_waste(*stored, answers, window, a.by, rows_max(a), everybody, jobs.get(), quality));
  if (account.rows.empty()) {
    return base::Error{base::ErrorCode::kNotFound, a.report.store_path + ": nothing stored between " + units::to_rfc3339(window.start) +
                                                       " and " + units::to_rfc3339(window.end)};
  }
  account.source += " " + a.report.store_path;
  return account;
}

Result<analysis::WasteAccount> of_source(const WasteArguments& a, const ReportSettings& settings, analysis::ModelTable targets,
                                         const std::optional<units::Window>& window, const Env& env, samples::QualityLog& quality) {
  SourceResult source;
  FLOPSIGHT_RETURN_IF_ERROR(roll_source(a.report, settings, window, env, source));
  if (!source.fleet.has_times) {
    return base::Error{base::ErrorCode::kInvalid, source.name + ": no timestamps, expected some, as an instant has no hours to account for"};
  }
  const analysis::FamilyRule families = analysis::FamilyRule::builtin();
  analysis::WasteOptions options;
  options.by = a.by;
  options.top = rows_max(a);
  options.prices = settings.prices;
  options.targets = std::move(targets);
  options.families = &families;
  options.source = source.name;
  options.assumptions = source.assumptions;
  const jobs::HolderTable holders = source.holders.mapped([&](const samples::Holder& holder) { return source.group_of(holder); });
  analysis::WasteBuilder builder([&](samples::HolderId id) -> const samples::Holder& { return holders.at(id); }, options);
  for (const rollups::GpuTime& gpu : source.fleet.gpus) builder.add(gpu);
  for (const rollups::GpuTime& rest : source.fleet.rests) builder.add(rest);
  analysis::WasteAccount account = builder.finish(source.fleet.window);
  quality = std::move(source.quality);
  account.simulated = quality.count("simulated") > 0;
  if (account.simulated) account.source = "SIMULATED fleet, " + account.source;
  return account;
}

// One after another, each under its user's name.
std::optional<std::string> messages(const analysis::WasteAccount& account, const std::string& user, std::uint64_t jobs_max) {
  std::string out;
  for (const views::UserMessage& message : views::waste_messages(account, jobs_max)) {
    if (!user.empty() && message.user != user) continue;
    out += (user.empty() ? "To: " + base::printable(message.user, 200) + "\n" : std::string()) + message.text + "\n";
  }
  return out.empty() ? std::nullopt : std::optional(out);
}

}  // namespace

int run_waste(const WasteArguments& a, const Env& env) {
  const auto fail = [&](const base::Error& error) { return app::fail(env, "waste", error); };
  ReportSettings settings;
  if (const base::Status status = read_settings(a.report, settings); !status.ok()) return fail(status.error());
  auto targets = read_targets(a.attainable);
  if (!targets.ok()) return fail(targets.error());
  targets->say_unknown(settings.catalog, "--attainable", settings.notes);
  for (const std::string& note : settings.notes) env.err << error_line("waste", note);
  const auto window = window_of(a.report, env);
  if (window && window->end <= window->start) return fail({base::ErrorCode::kInvalid, "the window ends before it starts"});
  settings.fleet.integrate.window = window;
  samples::QualityLog quality;
  const auto account = a.report.store_path.empty() ? of_source(a, settings, std::move(targets).value(), window, env, quality)
                                                   : of_store(a, settings, std::move(targets).value(), *window, quality, env);
  if (!account.ok()) return fail(account.error());
  switch (a.format) {
    case WasteFormat::kTable: env.out << views::waste_table(*account); break;
    case WasteFormat::kJson:
      env.out << views::waste_json(*account, {account->window.value_or(units::Window{}), account->simulated, quality.entries()});
      break;
    case WasteFormat::kCsv: env.out << views::waste_csv(*account); break;
    case WasteFormat::kMarkdown: env.out << views::waste_markdown(*account); break;
    case WasteFormat::kHtml: env.out << views::waste_html(*account); break;
    case WasteFormat::kMessages: {
      const auto text = messages(*account, a.user, a.report.top.value_or(views::kMessageJobs));
      if (!text) return fail({base::ErrorCode::kNotFound, a.user.empty() ? "no job has a user in the window" : "no job of user " + a.user + " in the window"});
      env.out << *text;
    }
  }
  return kExitDone;
}

}  // namespace flopsight::app
