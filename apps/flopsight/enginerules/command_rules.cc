#include "enginerules/command_rules.h"

#include <ostream>

#include "base/file.h"
#include "base/text.h"
#include "new_files.h"
#include "parse_file.h"
#include "rules/rules.h"
#include "error_line.h"

namespace flopsight::app {
namespace {

base::Result<rules::Options> options_of(const RulesArguments& a) {
  rules::Options options;
  options.interval = a.interval;
  options.scrape_interval = a.scrape_interval;
  options.match = a.match;
  options.group_by = a.group_by;
  options.gpu_label = a.gpu_label;
  options.model_label = a.model_label;
  options.has_alerts = a.has_alerts;
  if (!a.rules_path.empty()) {
    FLOPSIGHT_ASSIGN_OR_RETURN(options.labels, parse_file(a.rules_path, &jobs::LabelRules::parse));
  }
  catalog::DeviceCatalog devices = catalog::DeviceCatalog::builtin();
  std::string user_csv;
  if (!a.catalog_path.empty()) {
    FLOPSIGHT_ASSIGN_OR_RETURN(user_csv, base::read_file(a.catalog_path));
    FLOPSIGHT_ASSIGN_OR_RETURN(devices, catalog::DeviceCatalog::with_user_rows(user_csv).within(a.catalog_path));
  }
  FLOPSIGHT_ASSIGN_OR_RETURN(options.models, rules::model_facts(devices, user_csv, a.gpus, a.clocks));
  FLOPSIGHT_RETURN_IF_ERROR(rules::check(options));
  return options;
}

base::Status write_rules(const RulesArguments& a, const Env& env) {
  FLOPSIGHT_ASSIGN_OR_RETURN(const rules::Options options, options_of(a));
  const std::string text = a.grafana ? rules::grafana_dashboard(options) : rules::prometheus_yaml(options);
  if (a.out.empty()) {
    env.out << text;
    return {};
  }
  FLOPSIGHT_RETURN_IF_ERROR(prepare_file(a.out, a.force));
  NewFile file(a.out);
  FLOPSIGHT_RETURN_IF_ERROR(file.write(text));
  FLOPSIGHT_RETURN_IF_ERROR(file.close());
  env.out << a.out << "\n";
  return {};
}

}  // namespace

int run_rules(const RulesArguments& arguments, const Env& env) {
  if (const base::Status status = write_rules(arguments, env); !status.ok()) return fail(env, "rules", status.error());
  return kExitDone;
}

}  // namespace flopsight::app
