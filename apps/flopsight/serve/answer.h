#pragma once
// Questions to the store and their answers: store to analysis, as one straight line each. What a caller may not see is left
// out here, before anything is summed.
// Threads: the caller holds the store.

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "serve/access.h"
#include "serve/holder_index.h"
#include "serve/job_service.h"
#include "analysis/job_answer.h"
#include "analysis/families.h"
#include "analysis/report.h"
#include "analysis/waste.h"
#include "base/regex.h"
#include "jobs/grouping.h"
#include "store/store.h"

namespace flopsight::app {

class JobModels;  // job_models.h

// What answers need besides the store.
struct AnswerSettings {
  rollups::FleetOptions fleet;  // its catalogue is borrowed
  analysis::Prices prices;
  bool simulated = false;
  samples::QualityLog log_unreadable;  // what Ingest::log_unreadable() says
  std::shared_ptr<const jobs::Grouping> grouping;                 // may be null: pods and names as they are
  std::shared_ptr<const analysis::FamilyRule> families;           // may be null
  analysis::ModelTable targets;                                   // attainable OFU, where set
  std::shared_ptr<const std::vector<base::Regex>> known_wrong;    // may be null
  std::shared_ptr<const JobModels> models;                        // may be null
  HolderIndex* holders = nullptr;  // from question to question; borrowed, used while the caller has the store; may be null
};

// What answers say of what could not be read for them; after they were read.
void note_unreadable(const store::Reader& store, const AnswerSettings& settings, samples::QualityLog& quality);

// The report of stored cells, by any grouping. `with_gpus`: also a row for each GPU, which reads every GPU's cells.
// `jobs` may be null; with it, pods of one owner are one job, and GPU time that schedulers gave and nobody saw is unmeasured.
base::Result<analysis::Report> answer_fleet(store::Reader& store, const AnswerSettings& settings, units::Window window,
                                            analysis::GroupBy by, std::optional<std::uint64_t> top, bool with_gpus,
                                            const Caller& caller, JobService* jobs);

// The waste account of the same cells.
base::Result<analysis::WasteAccount> answer_waste(store::Reader& store, const AnswerSettings& settings, units::Window window,
                                                  analysis::WasteBy by, std::optional<std::uint64_t> top, const Caller& caller,
                                                  JobService* jobs, samples::QualityLog& quality);

}  // namespace flopsight::app
