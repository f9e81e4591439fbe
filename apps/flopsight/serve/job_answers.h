#pragma once
// Questions about jobs, with what others know of them: pods of one owner as one job, runs of the scheduler, what a job reports of
// itself, and the GPU time that the scheduler gave it and nobody saw.
//
// A group's id is that of a job of its name; the id of a member finds the member. `jobs` may be null: then only rollups speak.
// Held and never seen: where a scheduler says that a run held GPUs and the rollups have less of that time, the rest is unmeasured with
// the reason not_seen. It is counted only where the scheduler named the hosts and none of them has GPUs that nobody held at the
// time; otherwise it may be in there already, and the quality entry `held_not_attributed` says so.
// Threads: the caller holds the reader.

#include <string>
#include <vector>

#include "serve/answer.h"
#include "serve/job_service.h"

namespace flopsight::app {

// Rows of a list: from `first` on, at most `count`.
struct PageOf {
  std::uint64_t first = 0;
  std::uint64_t count = 1'000;
};
struct JobPage {
  std::vector<analysis::JobAnswer> jobs;  // by what they lost, most first; then those of which nothing was seen
  std::uint64_t jobs_total = 0;
};
base::Result<JobPage> answer_known_jobs(store::Reader& reader, JobService* jobs, const AnswerSettings& settings,
                                        units::Window window, const Caller& caller, PageOf page, samples::QualityLog& quality);
// kNotFound for an id that is not there or not the caller's to see.
base::Result<analysis::JobAnswer> answer_known_job(store::Reader& reader, JobService* jobs, const AnswerSettings& settings,
                                                   const std::string& id, units::Window window, const Caller& caller,
                                                   samples::QualityLog& quality);

// The jobs of the store behind an id: one, or the members of a group in the window.
struct FoundJob {
  std::string id;
  samples::Holder holder;           // of the group
  std::vector<store::JobId> jobs;   // ascending
};
base::Result<FoundJob> find_known_job(store::Reader& reader, JobService* jobs, const AnswerSettings& settings,
                                      const std::string& id, units::Window window, const Caller& caller);

}  // namespace flopsight::app
