#include "wire/crc32.h"

#include <libdeflate.h>

namespace flopsight::wire {

std::uint32_t crc32(std::string_view bytes, std::uint32_t before) { return libdeflate_crc32(before, bytes.data(), bytes.size()); }

}  // namespace flopsight::wire
