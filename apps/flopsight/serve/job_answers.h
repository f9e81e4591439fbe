#pragma once
// Questions about jobs, with what others know of them: pods of one owner as one job, runs of the scheduler, what a job reports of
// itself, and the GPU time that the scheduler gave it and nobody saw (held_time.h).
//
// A group's id is that of a job of its name; the id of a member finds the member. `jobs` may be null: then only rollups speak.
// Threads: the caller holds the reader.

#include <optional>
#include <string>
#include <vector>

#include "serve/answer.h"
#include "serve/job_service.h"

namespace flopsight::app {

// kNotFound, with what could not be read, where it may have been.
base::Error not_found(const store::Reader& reader, const AnswerSettings& settings, std::string what);

// The job that a holder is shown as: itself, or the group that it is a member of.
samples::Holder group_of(const samples::Holder& holder, JobService* jobs, const AnswerSettings& settings);

// Rows of a list: from `first` on, at most `count`.
struct PageOf {
  std::uint64_t first = 0;
  std::uint64_t count = 1'000;
};
// Which jobs a list has: each part that is there has to hold.
struct JobFilter {
  std::optional<std::string> user, team, name_space;
  std::optional<std::string> model;  // a GPU model, as answers name it
  std::optional<std::string> text;   // in the id, the name, the user or the team, letters of either case
};
struct JobPage {
  std::vector<analysis::JobAnswer> jobs;  // by what they lost, most first; then those of which nothing was seen
  std::uint64_t jobs_total = 0;        // that the filter leaves
};
base::Result<JobPage> answer_known_jobs(store::Reader& reader, JobService* jobs, const AnswerSettings& settings,
                                        units::Window window, const Caller& caller, const JobFilter& filter, PageOf page,
                                        samples::QualityLog& quality);
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

// From when to when a job was there at all, by samples and by its scheduler; `now` ends what has no end. Errors as answer_known_job().
base::Result<units::Window> life_of_job(store::Reader& reader, JobService* jobs, const AnswerSettings& settings, const std::string& id,
                                        units::Instant now, const Caller& caller);

// With what the job reported of itself where `jobs` is given.
base::Result<analysis::JobSeries> answer_series(store::Reader& reader, JobService* jobs, const FoundJob& found, units::Window window,
                                                units::Seconds step);
base::Result<std::vector<analysis::GpuRow>> answer_job_gpus(store::Reader& reader, const AnswerSettings& settings,
                                                            const FoundJob& found, units::Window window,
                                                            samples::QualityLog& quality);

}  // namespace flopsight::app
