#pragma once
// Courses over time beyond one job: of the fleet and of single GPUs; all GPUs of a window; and names that contain a text. What a page draws
// its charts and its map from.
//
// What a caller may not see is left out before anything is summed, as in answer.h.
// Errors: kLimit over limits.query-cells, kNotFound where nothing has the name. Threads: the caller holds the reader.

#include <string>
#include <vector>

#include "analysis/job_answer.h"
#include "serve/answer.h"
#include "serve/job_service.h"

namespace flopsight::app {

// Without percentiles and without what jobs report. GPU time that schedulers gave and nobody saw is not in it.
base::Result<analysis::JobSeries> answer_fleet_series(store::Reader& reader, units::Window window, units::Seconds step,
                                                      const Caller& caller);

// Every GPU of which there is time in the window, one row each, as in a report.
base::Result<std::vector<analysis::GpuRow>> answer_all_gpus(store::Reader& reader, const AnswerSettings& settings, JobService* jobs,
                                                            units::Window window, std::uint64_t cells_max, const Caller& caller,
                                                            samples::QualityLog& quality);

// Whose course is asked for: exactly one is not empty.
struct CourseOf {
  std::string job;   // an id as find_known_job() takes it; then only the time in which the job held its GPUs
  std::string host;
  std::string uuid;  // all MIG instances of the GPU
};
base::Result<std::vector<analysis::GpuCourse>> answer_gpu_courses(store::Reader& reader, const AnswerSettings& settings,
                                                                  JobService* jobs, const CourseOf& of, units::Window window,
                                                                  units::Seconds step, std::uint64_t cells_max,
                                                                  const Caller& caller);

// A name that was found: what it is, the name itself, and what else helps to tell it apart.
struct Match {
  std::string kind;    // "job", "user", "team", "host", "gpu", "model"
  std::string name;    // the id of a job, the UUID of a GPU
  std::string detail;  // may be empty
};
// At most `count` of each kind, in order of kind and name. Hosts and GPUs are looked up only for callers that see all jobs.
base::Result<std::vector<Match>> answer_search(store::Reader& reader, const AnswerSettings& settings, JobService* jobs,
                                               const std::string& text, units::Window window, std::size_t count,
                                               const Caller& caller);

}  // namespace flopsight::app
