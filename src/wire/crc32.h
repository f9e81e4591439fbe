#pragma once
// CRC-32 (ISO 3309, that of gzip): the checksum of the log's records and of stored blocks.

#include <cstdint>
#include <string_view>

namespace flopsight::wire {

// `before` is that of the bytes that go before.
std::uint32_t crc32(std::string_view bytes, std::uint32_t before = 0);

}  // namespace flopsight::wire
