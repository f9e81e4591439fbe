#include "store/instance_index.h"

#include <gtest/gtest.h>

#include "store/store.h"

namespace flopsight::store {
namespace {

samples::GpuIdentity instance(const std::string& uuid, const std::string& index, const std::string& id) {
  samples::GpuIdentity gpu;
  gpu.uuid = uuid;
  gpu.host = "n1";
  gpu.index = index;
  gpu.mig_instance = id;
  return gpu;
}

TEST(InstanceIndex, instances_of_a_gpu_are_one_number) {
  InstanceIndex index;
  index.add(2, instance("GPU-A", "0", "1"));
  index.add(3, instance("GPU-A", "0", "2"));
  index.add(5, instance("", "1", "1"));
  index.add(6, instance("", "1", "2"));
  index.add(7, instance("GPU-B", "2", ""));
  std::vector<GpuId> gpus = {2, 3, 5, 6, 7};
  index.make_whole(gpus, [](const base::Hash128&) { return std::nullopt; });
  EXPECT_EQ(gpus, (std::vector<GpuId>{2, 5, 7}));
  gpus = {1, 3, 6};
  index.make_whole(gpus, [](const base::Hash128& key) -> std::optional<GpuId> {
    if (key == gpu_key(instance("GPU-a", "0", ""))) return 1;
    return std::nullopt;
  });
  EXPECT_EQ(gpus, (std::vector<GpuId>{1, 5})) << "1 is the GPU that 3 is a part of";
}

}  // namespace
}  // namespace flopsight::store
