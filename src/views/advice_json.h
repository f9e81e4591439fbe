#pragma once
// Tuning advice as JSON: the same in `flopsight tune` and in the service's answer for a job. Threads: pure.

#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "tuning/advice.h"
#include "tuning/compare.h"
#include "views/service_json.h"

namespace flopsight::views {

base::json::Array advice_json(const tuning::Findings& findings);
base::json::Array rejected_json(const tuning::Findings& findings);
// What is predicted beside what was measured, part by part.
base::json::Array parts_json(const std::vector<tuning::PartCompared>& parts);

// Advice for one job: nothing but `missing` where something has to be told first.
struct AdviceOfJob {
  std::string id;
  std::vector<std::string> missing;
  std::string model_from;   // "told of the job", "rule llama3-*"
  std::string gpu, fabric;  // of the catalogue; links in words
  tuning::TrainSettings settings;
  tuning::Step step;
  tuning::Memory memory;
  tuning::Measured measured;
  tuning::Comparison comparison;
  tuning::Findings findings;
  std::vector<std::string> assumptions;
};
std::string job_advice_json(const AnswerHead& head, const AdviceOfJob& advice);

}  // namespace flopsight::views
