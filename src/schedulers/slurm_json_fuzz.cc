#include <cstddef>
#include <cstdint>

#include "schedulers/test_parsed.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace flopsight::schedulers;
  return test::check_reader(read_slurm_json, data, size);
}
