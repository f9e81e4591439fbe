#pragma once
// Courses over time and all GPUs at once, as JSON in columns: one time axis, one array for each quantity, null where it is not known.
//
// Of a hundred thousand GPUs every digit counts: ratios have five decimals in these answers, clocks are whole hertz, and names that repeat
// are numbers into lists.
// Threads: pure.

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "analysis/job_answer.h"
#include "analysis/report.h"
#include "views/service_json.h"

namespace flopsight::views {

std::string fleet_series_json(const AnswerHead& head, const analysis::JobSeries& series);

// Names of columns of gpu_series_json(); empty: all.
using CourseColumns = std::vector<std::string>;
bool is_course_column(std::string_view name);
std::string course_column_names();  // "ofu_ratio, tensor_active_ratio, …"
std::string gpu_series_json(const AnswerHead& head, const std::vector<analysis::GpuCourse>& courses, units::Seconds step,
                            const CourseColumns& columns);

// Columns of one length, a place for each GPU; host, model, job and absent_reason are places in the lists of their names. The UUID is
// given only where there is no host to ask for.
std::string gpu_columns_json(const AnswerHead& head, const std::vector<analysis::GpuRow>& gpus);

// Rows of kind, name and detail.
std::string search_json(const AnswerHead& head, const std::vector<std::array<std::string, 3>>& matches);

}  // namespace flopsight::views
