#pragma once
// argv to settings. The only file that knows the option parser; it checks what can be checked without touching
// a file, and nothing else.

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "agent/agent_options.h"
#include "advisor/tune_options.h"
#include "analysis/report.h"
#include "analysis/waste.h"
#include "serve/command_serve.h"
#include "http_arguments.h"
#include "mfuaudit/audit_options.h"
#include "enginerules/rules_options.h"
#include "findingdesk/findings_options.h"
#include "flopcount/flops_options.h"
#include "import/import_options.h"
#include "logs/logs_options.h"
#include "receivers/notify_options.h"
#include "jobbook/jobs_options.h"
#include "simulate/simulate_options.h"
#include "tiles/gemm_options.h"
#include "validate/validate_options.h"
#include "units/time.h"

namespace flopsight::app {

enum class ReportFormat { kTable, kJson, kCsv };

struct ReportArguments : HttpArguments {
  std::vector<std::string> files;
  std::vector<std::string> scrapes;
  std::string prometheus;
  std::string store_path;
  std::string match;  // further label matchers, e.g. cluster="a"
  std::optional<units::Instant> start;
  std::optional<units::Instant> end;
  std::optional<units::Seconds> since;
  units::Seconds step{60};
  bool step_given = false;
  bool raw = false;  // no push-down
  analysis::GroupBy by = analysis::GroupBy::kJob;
  std::string jobs_path;
  std::string prices_path;
  std::string rules_path;
  std::string catalog_path;
  std::string training_metrics_path;
  std::optional<units::Hertz> reference_clock;
  bool reference_nvml_max = false;
  ReportFormat format = ReportFormat::kTable;
  std::optional<std::uint64_t> top;
  bool errors = false;
  bool quiet = false;
};

enum class WasteFormat { kTable, kJson, kCsv, kMarkdown, kHtml, kMessages };

// Sources, window and what files say are those of a report.
struct WasteArguments {
  ReportArguments report;
  analysis::WasteBy by = analysis::WasteBy::kTeam;
  WasteFormat format = WasteFormat::kTable;
  std::string attainable;  // a ratio for every GPU, or a file
  std::string user;        // of --format messages: only theirs
};

struct DocsArguments {
  std::string page;
};

// A line for stdout (help, version) or stderr, and the exit code.
struct Said {
  int exit_code = 0;
  std::string text;
};

using CommandLine = std::variant<ReportArguments, WasteArguments, DocsArguments, SimulateArguments, ServeArguments, CheckConfigArguments,
                                 ImportArguments, LogsArguments, JobsArguments, FlopsArguments, AuditArguments, GemmArguments, AgentArguments, TuneArguments,
                                 ValidateArguments, RulesArguments, FindingsArguments, NotifyArguments, Said>;

CommandLine parse_command_line(int argc, const char* const* argv);

}  // namespace flopsight::app
