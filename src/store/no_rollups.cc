#include "store/no_rollups.h"

#include "base/check.h"
#include "base/text.h"

namespace flopsight::store {

const std::string& NoRollups::model_name(ModelId) const {
  static const std::string kNone;
  return kNone;
}
samples::Holder NoRollups::holder(JobId) const {
  FLOPSIGHT_CHECK(false);  // it names no job
  return {};
}
base::Result<std::vector<JobId>> NoRollups::find_job(std::string_view text) {
  return base::Error{base::ErrorCode::kNotFound, "no job with the id " + base::printable(text, 80)};
}
base::Result<std::vector<JobTotal>> NoRollups::job_totals(units::Window, std::optional<JobId>) { return std::vector<JobTotal>(); }
base::Result<std::vector<JobCell>> NoRollups::job_series(JobId, units::Window, units::Seconds) { return std::vector<JobCell>(); }
base::Result<std::vector<GpuTotal>> NoRollups::gpu_totals(units::Window, std::optional<JobId>) { return std::vector<GpuTotal>(); }
base::Result<std::vector<GpuRecord>> NoRollups::gpus(const std::vector<GpuId>&) { return std::vector<GpuRecord>(); }
base::Result<std::vector<Member>> NoRollups::members(units::Window, std::optional<JobId>) { return std::vector<Member>(); }

}  // namespace flopsight::store
