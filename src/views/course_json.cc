#include "views/course_json.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>

#include "views/summary_internal.h"

namespace flopsight::views {
namespace {

using base::json::Array;
using base::json::Object;
using base::json::Value;
using analysis::JobSeries;

Object head_of(const AnswerHead& head) {
  return {{"window", window_json(head.window)}, {"simulated", head.simulated}};
}

std::string finish(Object& out, const AnswerHead& head) {
  out.emplace_back("quality", quality_json(head.quality));
  return base::json::dump(out, 0) + "\n";
}

struct Column {
  const char* name;
  std::vector<std::optional<double>> JobSeries::*values;
  double per_unit;  // 1e5: five decimals
};
constexpr Column kColumns[] = {
    {"ofu_ratio", &JobSeries::ofu_ratio, 1e5},
    {"tensor_active_ratio", &JobSeries::tensor_active_ratio, 1e5},
    {"sm_active_ratio", &JobSeries::sm_active_ratio, 1e5},
    {"dram_active_ratio", &JobSeries::dram_active_ratio, 1e5},
    {"sm_clock_hertz", &JobSeries::sm_clock_hertz, 1},
    {"coverage_ratio", &JobSeries::coverage_ratio, 1e5},
    {"power_watts", &JobSeries::power_watts, 10},
    {"gpu_count", &JobSeries::gpu_count, 1e3},
    {"nvlink_bytes_per_second", &JobSeries::nvlink_bytes_per_second, 1},
    {"pcie_bytes_per_second", &JobSeries::pcie_bytes_per_second, 1},
};
constexpr std::string_view kReason = "absent_reason";

Value rounded(const std::optional<double>& value, double per_unit) {
  return value ? Value(std::round(*value * per_unit) / per_unit) : Value();
}

Array column_of(const std::vector<std::optional<double>>& values, double per_unit) {
  Array out;
  out.reserve(values.size());
  for (const auto& value : values) out.push_back(rounded(value, per_unit));
  return out;
}

void add_columns(Object& out, const JobSeries& series, const CourseColumns& wanted) {
  const auto is_wanted = [&](std::string_view name) {
    return wanted.empty() || std::find(wanted.begin(), wanted.end(), name) != wanted.end();
  };
  for (const Column& column : kColumns) {
    if (is_wanted(column.name)) out.emplace_back(column.name, column_of(series.*column.values, column.per_unit));
  }
  if (!is_wanted(kReason)) return;
  Array reasons;
  for (const std::string& reason : series.absent_reason) reasons.push_back(text_or_null(reason));
  out.emplace_back(std::string(kReason), std::move(reasons));
}

Array times_of(const JobSeries& series) {
  Array times;
  for (const units::Instant t : series.time) times.emplace_back(units::to_rfc3339(t));
  return times;
}

// Names as places in a list, in the order in which they come; none is null.
class Names {
 public:
  Value place_of(const std::string& name) {
    if (name.empty()) return {};
    const auto [at, is_new] = places_.try_emplace(name, list_.size());
    if (is_new) list_.emplace_back(name);
    return static_cast<std::uint64_t>(at->second);
  }
  Array list() { return std::move(list_); }

 private:
  std::map<std::string, std::size_t> places_;
  Array list_;
};

}  // namespace

bool is_course_column(std::string_view name) {
  return name == kReason || std::any_of(std::begin(kColumns), std::end(kColumns), [&](const Column& c) { return name == c.name; });
}

std::string course_column_names() {
  std::string out;
  for (const Column& column : kColumns) out += std::string(column.name) + ", ";
  return out + std::string(kReason);
}

std::string fleet_series_json(const AnswerHead& head, const JobSeries& series) {
  Object out = head_of(head);
  out.emplace_back("step_seconds", series.step.value);
  out.emplace_back("time", times_of(series));
  add_columns(out, series, {});
  return finish(out, head);
}

std::string gpu_series_json(const AnswerHead& head, const std::vector<analysis::GpuCourse>& courses, units::Seconds step,
                            const CourseColumns& columns) {
  Object out = head_of(head);
  out.emplace_back("step_seconds", step.value);
  out.emplace_back("time", courses.empty() ? Array() : times_of(courses.front().series));
  Array gpus;
  for (const analysis::GpuCourse& course : courses) {
    Object one;
    one.emplace_back("uuid", text_or_null(course.gpu.uuid));
    one.emplace_back("mig_instance", text_or_null(course.gpu.mig_instance));
    one.emplace_back("mig_profile", text_or_null(course.gpu.mig_profile));
    one.emplace_back("host", text_or_null(course.gpu.host));
    one.emplace_back("index", text_or_null(course.gpu.index));
    one.emplace_back("model", text_or_null(course.model));
    one.emplace_back("model_raw", text_or_null(course.gpu.model_raw));
    one.emplace_back("driver_version", text_or_null(course.gpu.driver_version));
    one.emplace_back("jobs", strings(course.jobs));
    add_columns(one, course.series, columns);
    gpus.emplace_back(std::move(one));
  }
  out.emplace_back("gpus", std::move(gpus));
  return finish(out, head);
}

std::string gpu_columns_json(const AnswerHead& head, const std::vector<analysis::GpuRow>& gpus) {
  Names hosts, models, jobs, reasons;
  Array host, index, uuid, mig_instance, model, job, job_count, ofu, tensor, clock, reference, coverage, reason;
  for (Array* column : {&host, &index, &uuid, &mig_instance, &model, &job, &job_count, &ofu, &tensor, &clock, &reference, &coverage, &reason}) {
    column->reserve(gpus.size());
  }
  for (const analysis::GpuRow& row : gpus) {
    host.push_back(hosts.place_of(row.gpu.host));
    index.push_back(text_or_null(row.gpu.index));
    uuid.push_back(row.gpu.host.empty() ? text_or_null(row.gpu.uuid) : Value());
    mig_instance.push_back(text_or_null(row.gpu.mig_instance));
    model.push_back(models.place_of(row.model.empty() ? row.gpu.model_raw : row.model));
    job.push_back(jobs.place_of(row.jobs.empty() ? "" : row.jobs.front()));
    job_count.emplace_back(static_cast<std::uint64_t>(row.jobs.size()));
    ofu.push_back(rounded(row.ofu_ratio, 1e5));
    tensor.push_back(rounded(row.tensor_active_ratio, 1e5));
    clock.push_back(rounded(row.sm_clock_hertz, 1));
    reference.push_back(rounded(row.reference_clock_hertz, 1));
    coverage.push_back(rounded(row.coverage_ratio, 1e5));
    reason.push_back(reasons.place_of(row.absent_reason));
  }
  Object out = head_of(head);
  out.emplace_back("gpu_count", static_cast<std::uint64_t>(gpus.size()));
  out.emplace_back("hosts", hosts.list());
  out.emplace_back("models", models.list());
  out.emplace_back("jobs", jobs.list());
  out.emplace_back("absent_reasons", reasons.list());
  out.emplace_back("gpus", Object{{"host", std::move(host)},
                                  {"index", std::move(index)},
                                  {"uuid", std::move(uuid)},
                                  {"mig_instance", std::move(mig_instance)},
                                  {"model", std::move(model)},
                                  {"job", std::move(job)},
                                  {"job_count", std::move(job_count)},
                                  {"ofu_ratio", std::move(ofu)},
                                  {"tensor_active_ratio", std::move(tensor)},
                                  {"sm_clock_hertz", std::move(clock)},
                                  {"reference_clock_hertz", std::move(reference)},
                                  {"coverage_ratio", std::move(coverage)},
                                  {"absent_reason", std::move(reason)}});
  return finish(out, head);
}

std::string search_json(const AnswerHead& head, const std::vector<std::array<std::string, 3>>& matches) {
  Object out = head_of(head);
  Array rows;
  for (const auto& [kind, name, detail] : matches) {
    rows.emplace_back(Object{{"kind", kind}, {"name", name}, {"detail", text_or_null(detail)}});
  }
  out.emplace_back("matches", std::move(rows));
  return finish(out, head);
}

}  // namespace flopsight::views
