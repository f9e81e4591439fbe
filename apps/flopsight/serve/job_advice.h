#pragma once
// What to change about a job next: the advisor's rules (tuning/advice.h) over what is told of its model and training, put right by what was measured of
// it. Only for a job of which both are told; for another the answer says what is missing. Threads: any.

#include <string>
#include <vector>

#include "analysis/job_answer.h"
#include "base/result.h"
#include "serve/answer.h"
#include "serve/job_service.h"
#include "tuning/advice.h"
#include "tuning/rates.h"
#include "views/advice_json.h"

namespace flopsight::app {

// The shares of the job's measured time; tokens a second are of one GPU.
tuning::Measured measured_of(const analysis::JobAnswer& job);

// Which rates a prediction rests on, a line each.
void say_rates(const tuning::Rates& rates, const tuning::TrainSettings& settings, std::vector<std::string>& out);

// Errors: of the book of jobs. What cannot be predicted is not an error: it is said in `missing`.
base::Result<views::AdviceOfJob> advise_job(JobService& jobs, const AnswerSettings& settings, const analysis::JobAnswer& job);

}  // namespace flopsight::app
