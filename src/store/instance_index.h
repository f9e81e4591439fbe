#pragma once
// Instances of MIG GPUs among the numbers of GPUs, for counting: one GPU is one, however it is cut.
// Threads: one at a time.

#include <functional>
#include <map>
#include <optional>
#include <unordered_map>
#include <vector>

#include "base/hash.h"
#include "samples/gpu.h"
#include "store/block.h"

namespace flopsight::store {

// Of a fleet without instances it is empty and costs nothing.
class InstanceIndex {
 public:
  void add(GpuId id, const samples::GpuIdentity& identity);
  // `whole`: the number of a key, if there is one. See Reader::make_whole().
  void make_whole(std::vector<GpuId>& gpus, const std::function<std::optional<GpuId>(const base::Hash128&)>& whole) const;

  // The key of the GPU that an instance is of; nothing for what is no instance.
  std::optional<base::Hash128> whole_of(GpuId instance) const {
    const auto at = instances_.find(instance);
    return at == instances_.end() ? std::nullopt : std::optional(at->second.whole);
  }
  // Each instance and the key of its GPU, ascending.
  void for_all(const std::function<void(GpuId, const base::Hash128&)>& use) const {
    for (const auto& [id, instance] : instances_) use(id, instance.whole);
  }

 private:
  struct Instance {
    base::Hash128 whole;  // key of the GPU
    GpuId first = 0;      // of its instances
  };
  std::map<GpuId, Instance> instances_;
  std::unordered_map<base::Hash128, GpuId, base::Hash128Hasher> firsts_;
};

}  // namespace flopsight::store
