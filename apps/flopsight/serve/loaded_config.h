#pragma once
// The configuration of the service with everything that its files say, as it is read at the start, by SIGHUP and by check-config.
// Errors: one line, with the place of the key in the file where one is to blame.

#include <memory>
#include <string>
#include <vector>

#include "analysis/families.h"
#include "analysis/prices.h"
#include "base/regex.h"
#include "base/result.h"
#include "catalog/devices.h"
#include "jobs/grouping.h"
#include "jobs/label_rules.h"
#include "serve/access.h"
#include "serve/job_models.h"
#include "serve/serve_config.h"
#include "training_logs/exported_metrics.h"

namespace flopsight::app {

// Everything that files of the configuration say. The catalogue and rules are borrowed by fleet and answers, so they live here.
struct Loaded {
  ServeConfig config;
  jobs::LabelRules rules;
  std::shared_ptr<const catalog::DeviceCatalog> catalog;
  analysis::Prices prices;
  analysis::ModelTable targets;
  std::shared_ptr<const Access> access;
  std::shared_ptr<const jobs::Grouping> grouping;
  std::shared_ptr<const analysis::FamilyRule> families;
  training_logs::ExportedMetrics metrics = training_logs::ExportedMetrics::builtin();
  std::shared_ptr<const std::vector<base::Regex>> known_wrong;  // jobs whose own MFU is known to be wrong
  std::shared_ptr<const JobModels> models;
  std::vector<std::string> model_mistakes, notes;  // a line each; notes are of what may be meant
};

base::Result<Loaded> load(const std::string& path, const std::vector<Setting>& flags);

// Of the address that is listened on, which need not be the one in the file.
base::Status check_exposure(const ServeConfig& config, const Access& access);

}  // namespace flopsight::app
