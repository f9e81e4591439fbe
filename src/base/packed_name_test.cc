#include "base/packed_name.h"

#include <gtest/gtest.h>

namespace flopsight::base {
namespace {

constexpr std::string_view kUuid = "GPU-0123abcd-4567-89ef-0a1b-c2d3e4f50617";

TEST(PackedName, a_uuid_takes_seventeen_bytes_and_comes_back) {
  EXPECT_EQ(packed_name(kUuid).size(), kPackedUuidBytes);
  EXPECT_EQ(unpacked_name(packed_name(kUuid)), kUuid);
}

TEST(PackedName, every_other_text_comes_back_as_well) {
  using namespace std::string_literals;
  for (const std::string& name : {""s, "n0/0"s, "GPU-0123ABCD-4567-89ef-0a1b-c2d3e4f50617"s, "MIG-0123abcd-4567-89ef-0a1b-c2d3e4f50617"s, "GPU-0123abcd"s,
                                  "GPU-0123abcd-4567-89ef-0a1b-c2d3e4f5061g"s, "GPU-0123abcd-4567-89ef-0a1b-c2d3e4f50617/3"s, "\1x"s, "\2"s, "\0a"s,
                                  "\1" "234567890123456"s, "GPU_0123abcd-4567-89ef-0a1b-c2d3e4f50617"s}) {
    EXPECT_EQ(unpacked_name(packed_name(name)), name);
    EXPECT_LE(packed_name(name).size(), name.size() + 1);
  }
}

}  // namespace
}  // namespace flopsight::base
