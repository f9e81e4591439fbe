#include "serve/loaded_config.h"

#include "analysis/waste.h"
#include "base/file.h"
#include "jobs/job_file.h"
#include "parse_file.h"
#include "serve/log_reading.h"

namespace flopsight::app {
namespace {

base::Result<std::string> text_of(const std::string& path) {
  if (path.empty()) return std::string();
  return base::read_file(path);
}

base::Status load_job_rules(const ServeConfig& c, Loaded& loaded) {
  auto grouping = jobs::Grouping::parse(c.groups_patterns);
  if (!grouping.ok()) return grouping.error().within("groups.patterns");
  grouping->use_owners(c.groups_owners);
  loaded.grouping = std::make_shared<const jobs::Grouping>(std::move(grouping).value());
  auto families = c.families_ignore.empty() ? base::Result<analysis::FamilyRule>(analysis::FamilyRule::builtin()) : analysis::FamilyRule::parse(c.families_ignore);
  if (!families.ok()) return families.error().within("families.ignore");
  loaded.families = std::make_shared<const analysis::FamilyRule>(std::move(families).value());
  std::vector<base::Regex> known_wrong;
  for (const std::string& expression : c.mfu_known_wrong) {
    auto regex = base::Regex::parse(expression);
    if (!regex.ok()) return regex.error().within("mfu.known-wrong");
    known_wrong.push_back(std::move(regex).value());
  }
  loaded.known_wrong = std::make_shared<const std::vector<base::Regex>>(std::move(known_wrong));
  return {};
}

// What is wrong with models keeps nobody from measuring: it is said, and the rest is used.
void load_models(Loaded& loaded) {
  if (loaded.config.models.empty()) return;
  auto models = JobModels::read(loaded.config.models, loaded.model_mistakes);
  if (models.ok()) {
    loaded.models = std::make_shared<const JobModels>(std::move(models).value());
  } else {
    loaded.model_mistakes.push_back(models.error().message);
  }
}

base::Status load_files(Loaded& loaded) {
  const ServeConfig& c = loaded.config;
  FLOPSIGHT_RETURN_IF_ERROR(check_config(c));
  loaded.rules = jobs::LabelRules::builtin();
  FLOPSIGHT_RETURN_IF_ERROR(parse_file_if(c.rules, jobs::LabelRules::parse, loaded.rules));
  catalog::DeviceCatalog devices = catalog::DeviceCatalog::builtin();
  if (!c.gpu_catalog.empty()) {
    FLOPSIGHT_ASSIGN_OR_RETURN(devices, parse_file(c.gpu_catalog, catalog::DeviceCatalog::with_user_rows));
  }
  loaded.catalog = std::make_shared<const catalog::DeviceCatalog>(std::move(devices));
  FLOPSIGHT_RETURN_IF_ERROR(parse_file_if(c.training_metrics, training_logs::ExportedMetrics::parse, loaded.metrics));
  if (!c.training_logs.empty()) {
    // For its mistakes; who follows the logs reads it again.
    if (const auto follower = read_log_sources(c.training_logs); !follower.ok()) return follower.error();
  }
  FLOPSIGHT_RETURN_IF_ERROR(parse_file_if(c.prices, analysis::Prices::parse, loaded.prices));
  FLOPSIGHT_RETURN_IF_ERROR(parse_file_if(c.attainable, analysis::parse_targets, loaded.targets));
  loaded.prices.say_unknown(*loaded.catalog, loaded.notes);
  loaded.targets.say_unknown(*loaded.catalog, "attainable", loaded.notes);
  FLOPSIGHT_ASSIGN_OR_RETURN(const std::string web, text_of(c.web_config));
  FLOPSIGHT_ASSIGN_OR_RETURN(const std::string tokens, text_of(c.tokens_file));
  FLOPSIGHT_ASSIGN_OR_RETURN(Access access, Access::parse(c.web_config, web, c.tokens_file, tokens));
  loaded.access = std::make_shared<const Access>(std::move(access));
  FLOPSIGHT_RETURN_IF_ERROR(check_exposure(c, *loaded.access));
  FLOPSIGHT_RETURN_IF_ERROR(load_job_rules(c, loaded));
  std::vector<jobs::JobRecord> jobs;  // for its mistakes; read again at the start and by SIGHUP
  FLOPSIGHT_RETURN_IF_ERROR(parse_file_if(c.jobs, jobs::parse_jobs, jobs));
  load_models(loaded);
  return {};
}

}  // namespace

base::Result<Loaded> load(const std::string& path, const std::vector<Setting>& flags) {
  Loaded loaded;
  FLOPSIGHT_ASSIGN_OR_RETURN(loaded.config, read_config(path, flags));
  if (const base::Status files = load_files(loaded); !files.ok()) return placed(loaded.config, files.error());
  return loaded;
}

base::Status check_exposure(const ServeConfig& c, const Access& access) {
  return check_exposure(c.listen, parse_listen(c.listen)->is_loopback, c.allow_insecure, c.web_config, access);
}

}  // namespace flopsight::app
