#include "live/identity_table.h"

#include <gtest/gtest.h>

namespace flopsight::live {
namespace {

samples::GpuIdentity gpu(int number, const std::string& driver) {
  samples::GpuIdentity identity;
  identity.uuid = "GPU-" + std::to_string(number);
  identity.host = "n" + std::to_string(number / 8);
  identity.index = std::to_string(number % 8);
  identity.model_raw = "NVIDIA H100 80GB HBM3";
  identity.driver_version = driver;
  return identity;
}

TEST(IdentityTable, gives_back_what_it_was_given_also_after_some_were_replaced) {
  constexpr int kGpus = 30;
  IdentityTable table;
  for (int i = 0; i < kGpus; ++i) table.add(gpu(i, "550"));
  for (const char* driver : {"560", "570"}) {
    for (int i = 0; i < kGpus; i += 2) table.replace(static_cast<std::size_t>(i), gpu(i, driver));
  }
  for (int i = 0; i < kGpus; ++i) {
    const samples::GpuIdentity known = table.at(static_cast<std::size_t>(i)), right = gpu(i, i % 2 == 0 ? "570" : "550");
    EXPECT_EQ(known.uuid, right.uuid);
    EXPECT_EQ(known.host, right.host);
    EXPECT_EQ(known.index, right.index);
    EXPECT_EQ(known.model_raw, right.model_raw);
    EXPECT_EQ(known.driver_version, right.driver_version);
    EXPECT_EQ(known.mig_instance + known.mig_profile + known.pci_bus_id, "");
  }
}

TEST(IdentityTable, zero_bytes_of_a_hostile_name_end_nothing) {
  samples::GpuIdentity identity = gpu(1, "550");
  identity.host = std::string("a\0b", 3);
  IdentityTable table;
  table.add(identity);
  EXPECT_EQ(table.at(0).host, "ab");
  EXPECT_EQ(table.at(0).index, "1");
}

}  // namespace
}  // namespace flopsight::live
