// What the store knows of GPUs, for a fleet that has not seen them yet.
#include "serve/ingest.h"

namespace flopsight::app {

void Ingest::restore_from_store() {
  restored_.clear();
  // One set of holders for neighbours, which mostly have the same.
  std::vector<store::JobId> jobs;
  live::HolderSetId set = 0;
  for (const auto& [key, time] : store_->closed_until()) {
    if (const auto before = std::exchange(jobs, store_->last_jobs(key)); before != jobs) {
      std::vector<samples::Holder> holders;
      for (const store::JobId job : jobs) holders.push_back(store_->holder(job));
      set = fleet_->holders_of(holders);
    }
    restored_.emplace(key, live::ClosedUntil{time, set});
  }
  fleet_->restore = [this](const samples::GpuIdentity& identity) -> std::optional<live::ClosedUntil> {
    const auto at = restored_.find(store::gpu_key(identity));
    if (at == restored_.end()) return std::nullopt;
    const live::ClosedUntil closed = at->second;
    restored_.erase(at);
    return closed;
  };
  restored_divided_.clear();
  for (auto& [key, divided] : store_->divided()) restored_divided_.emplace(key, std::move(divided));
  fleet_->restore_divided = [this](const samples::GpuIdentity& identity) -> std::optional<rollups::DividedGpu> {
    auto of = restored_divided_.extract(store::gpu_key(identity));
    return of.empty() ? std::nullopt : std::optional(std::move(of.mapped()));
  };
}

}  // namespace flopsight::app
