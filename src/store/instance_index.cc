#include "store/instance_index.h"

#include "store/gpu_runs.h"
#include "store/store.h"

namespace flopsight::store {

void InstanceIndex::add(GpuId id, const samples::GpuIdentity& identity) {
  if (identity.mig_instance.empty()) return;
  samples::GpuIdentity gpu = samples::whole_gpu(identity);
  // An index beside nothing but the instance's UUID may count instances.
  if (identity.mig_instance == identity.uuid) gpu.uuid = identity.uuid;
  const base::Hash128 whole = gpu_key(gpu);
  instances_.emplace(id, Instance{whole, firsts_.emplace(whole, id).first->second});
}

void InstanceIndex::make_whole(std::vector<GpuId>& gpus, const std::function<std::optional<GpuId>(const base::Hash128&)>& whole) const {
  if (instances_.empty()) return;
  bool is_changed = false;
  for (GpuId& gpu : gpus) {
    const auto at = instances_.find(gpu);
    if (at == instances_.end()) continue;
    gpu = whole(at->second.whole).value_or(at->second.first);
    is_changed = true;
  }
  if (is_changed) make_distinct(gpus);
}

}  // namespace flopsight::store
