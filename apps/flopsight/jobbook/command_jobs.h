#pragma once
// `flopsight jobs`: jobs of a scheduler into the book of jobs, and what is known of jobs out of it and the store. Also while the
// service runs on the same folder, which sees new jobs with its next flush.

#include "env.h"
#include "jobbook/jobs_options.h"

namespace flopsight::app {

int run_jobs(const JobsArguments& arguments, const Env& env);

}  // namespace flopsight::app
