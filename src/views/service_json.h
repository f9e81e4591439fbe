#pragma once
// Answers of the service's API as JSON: jobs, one job, its course, its GPUs. The same keys as in a report.
// Threads: pure.

#include <optional>
#include <string>
#include <vector>

#include "analysis/job_answer.h"
#include "analysis/mfu_comparison.h"
#include "analysis/report.h"

namespace flopsight::views {

struct AnswerHead {
  units::Window window;
  bool simulated = false;  // said in every answer
  std::vector<samples::QualityEntry> quality;
};

std::string jobs_json(const AnswerHead& head, const std::vector<analysis::JobAnswer>& jobs,
                      const std::optional<std::string>& next_cursor);
// With the whole audit of what it reports, where its model is known.
std::string job_json(const AnswerHead& head, const analysis::JobAnswer& job);
std::string series_json(const AnswerHead& head, const std::string& id, const analysis::JobSeries& series);
std::string gpus_json(const AnswerHead& head, const std::string& id, const std::vector<analysis::GpuRow>& gpus,
                      const std::optional<std::string>& next_cursor);
// The comparison of reported MFU with OFU; what is left out is counted beside it.
std::string mfu_json(const AnswerHead& head, const analysis::MfuComparison& comparison, std::uint64_t jobs_without_mfu,
                     std::uint64_t jobs_without_ofu);
// {"error": …}
std::string error_json(std::string_view message);

}  // namespace flopsight::views
