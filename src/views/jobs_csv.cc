#include "base/csv.h"
#include "base/json.h"
#include "base/text.h"
#include "views/jobs_table.h"

namespace flopsight::views {
namespace {

// A row: cells with commas between them, empty where nothing is known.
class Row {
 public:
  explicit Row(std::string& out) : out_(out) {}
  ~Row() { out_ += '\n'; }
  Row(const Row&) = delete;
  Row& operator=(const Row&) = delete;

  void text(std::string_view value) { put(base::csv_cell(value)); }
  void number(const std::optional<double>& value) { put(value ? base::json::number_text(*value) : ""); }
  void whole(std::uint64_t value) { put(std::to_string(value)); }
  void put(std::string_view cell) {
    if (!first_) out_ += ',';
    first_ = false;
    out_ += cell;
  }

 private:
  std::string& out_;
  bool first_ = true;
};

}  // namespace

std::string jobs_csv(const std::vector<analysis::JobAnswer>& jobs, bool simulated) {
  std::string out =
      "id,job,namespace,user,team,name,state,family,models,first,last,gpu_count,gpu_hours_allocated,gpu_hours_delivered,gpu_hours_lost,"
      "gpu_hours_unmeasured,ofu_ratio,ofu_ratio_low,ofu_ratio_high,coverage_ratio,cost_usd,cost_lost_usd,cost_unmeasured_usd,"
      "reported_mfu_ratio,reported_flops_per_second_per_gpu,reported_tokens_per_second_per_gpu,reported_step_seconds,audit_verdict,"
      "finding_count,absent_reason,simulated\n";
  for (const analysis::JobAnswer& job : jobs) {
    const analysis::Summary& s = job.summary;
    const analysis::Reported reported = job.reported.value_or(analysis::Reported{});
    Row row(out);
    for (const std::string* text : {&job.id, &job.holder.job, &job.holder.name_space, &job.holder.user, &job.holder.team}) row.text(*text);
    row.text(job.runs.empty() ? "" : job.runs.back().name);
    row.text(job.runs.empty() ? "" : job.runs.back().state);
    row.text(job.family);
    row.text(base::joined(job.models, ", "));
    row.put(units::to_rfc3339(job.first));
    row.put(units::to_rfc3339(job.last));
    job.gpu_count_unknown ? row.put("") : row.whole(s.gpu_count);
    for (const auto& value : {s.gpu_hours_allocated, s.gpu_hours_delivered, s.gpu_hours_lost, s.gpu_hours_unmeasured, s.ofu_ratio, s.ofu_ratio_low, s.ofu_ratio_high,
                              s.coverage_ratio, s.cost_usd, s.cost_lost_usd, s.cost_unmeasured_usd, reported.mfu_ratio, reported.flops_per_second_per_gpu,
                              reported.tokens_per_second_per_gpu, reported.step_seconds}) {
      row.number(value);
    }
    row.text(job.audit ? job.audit->verdict : "");
    row.whole(job.finding_count);
    row.text(job.absent_reason);
    row.put(simulated ? "true" : "false");
  }
  return out;
}

}  // namespace flopsight::views
