#pragma once
// Reported MFU beside OFU over the jobs of a window that report: the comparison of analysis/mfu_comparison.h.
//
// A job's OFU is over the time in which its steps were reported, and over the window where they have no times. Jobs whose name
// matches settings.known_wrong are marked. Jobs without an OFU in that time, or whose steps give no MFU, are left out and counted.
// The pods of one job are one.
// Errors: kLimit past 5,000 reporting jobs. Threads: the caller holds the reader.

#include "analysis/mfu_comparison.h"
#include "serve/answer.h"
#include "serve/job_service.h"

namespace flopsight::app {

struct MfuAnswer {
  analysis::MfuComparison comparison;
  std::uint64_t jobs_without_mfu = 0;
  std::uint64_t jobs_without_ofu = 0;
};
base::Result<MfuAnswer> answer_mfu(store::Reader& reader, JobService& jobs, const AnswerSettings& settings, units::Window window,
                                   const Caller& caller);

}  // namespace flopsight::app
