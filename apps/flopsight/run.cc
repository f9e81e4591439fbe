#include "run.h"

#include <ostream>

#include "agent/command_agent.h"
#include "advisor/command_tune.h"
#include "mfuaudit/command_audit.h"
#include "command_docs.h"
#include "import/command_import.h"
#include "jobbook/command_jobs.h"
#include "command_line.h"
#include "enginerules/command_rules.h"
#include "findingdesk/command_findings.h"
#include "flopcount/command_flops.h"
#include "logs/command_logs.h"
#include "receivers/command_notify.h"
#include "report/command_report.h"
#include "report/command_waste.h"
#include "simulate/command_simulate.h"
#include "tiles/command_gemm.h"
#include "validate/command_validate.h"

namespace flopsight::app {

int run(int argc, const char* const* argv, const Env& env) {
  const CommandLine line = parse_command_line(argc, argv);
  if (const Said* said = std::get_if<Said>(&line)) {
    (said->exit_code == kExitDone ? env.out : env.err) << said->text;
    return said->exit_code;
  }
  if (const DocsArguments* docs = std::get_if<DocsArguments>(&line)) return run_docs(*docs, env);
  if (const WasteArguments* waste = std::get_if<WasteArguments>(&line)) return run_waste(*waste, env);
  if (const SimulateArguments* simulate = std::get_if<SimulateArguments>(&line)) return run_simulate(*simulate, env);
  if (const ServeArguments* serve = std::get_if<ServeArguments>(&line)) return run_serve(*serve, env);
  if (const CheckConfigArguments* check = std::get_if<CheckConfigArguments>(&line)) return run_check_config(*check, env);
  if (const ImportArguments* import = std::get_if<ImportArguments>(&line)) return run_import(*import, env);
  if (const LogsArguments* logs = std::get_if<LogsArguments>(&line)) return run_logs(*logs, env);
  if (const JobsArguments* jobs = std::get_if<JobsArguments>(&line)) return run_jobs(*jobs, env);
  if (const FlopsArguments* flops = std::get_if<FlopsArguments>(&line)) return run_flops(*flops, env);
  if (const AuditArguments* audit = std::get_if<AuditArguments>(&line)) return run_audit(*audit, env);
  if (const GemmArguments* gemm = std::get_if<GemmArguments>(&line)) return run_gemm(*gemm, env);
  if (const AgentArguments* agent = std::get_if<AgentArguments>(&line)) return run_agent(*agent, env);
  if (const TuneArguments* tune = std::get_if<TuneArguments>(&line)) return run_tune(*tune, env);
  if (const ValidateArguments* validate = std::get_if<ValidateArguments>(&line)) return run_validate(*validate, env);
  if (const RulesArguments* rules = std::get_if<RulesArguments>(&line)) return run_rules(*rules, env);
  if (const FindingsArguments* findings = std::get_if<FindingsArguments>(&line)) return run_findings(*findings, env);
  if (const NotifyArguments* notify = std::get_if<NotifyArguments>(&line)) return run_notify(*notify, env);
  return run_report(*std::get_if<ReportArguments>(&line), env);
}

}  // namespace flopsight::app
