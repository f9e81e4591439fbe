#pragma once
// A reader of nothing: where jobs were told of and no sample ever came. Threads: any.

#include "store/store.h"

namespace flopsight::store {

class NoRollups : public Reader {
 public:
  const std::string& model_name(ModelId id) const override;
  samples::Holder holder(JobId id) const override;
  base::Result<std::vector<JobId>> find_job(std::string_view text) override;
  base::Result<std::vector<JobTotal>> job_totals(units::Window window, std::optional<JobId> job) override;
  base::Result<std::vector<JobCell>> job_series(JobId job, units::Window window, units::Seconds step) override;
  base::Result<std::vector<GpuTotal>> gpu_totals(units::Window window, std::optional<JobId> job) override;
  base::Result<std::vector<GpuRecord>> gpus(const std::vector<GpuId>& ids) override;
  base::Result<std::vector<Member>> members(units::Window window, std::optional<JobId> job) override;
  void make_whole(std::vector<GpuId>&) const override {}
  bool simulated() const override { return false; }
};

}  // namespace flopsight::store
