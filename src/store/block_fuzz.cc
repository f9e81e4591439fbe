// Any bytes as a block of GPU cells, of job cells, or as a spread, as the first byte says (from 128 on: of the newer version). Version and checksum are put before a
// block's bytes, so that decoding gets past them; what decodes is encoded and read again.
#include <cstdint>
#include <string>

#include "base/check.h"
#include "store/block.h"
#include "wire/crc32.h"

namespace {

using namespace flopsight::store;
using flopsight::base::ErrorCode;
using flopsight::units::Seconds;

std::string with_head(std::string_view payload, char version) {
  std::string block(1, version);
  const std::uint32_t checksum = flopsight::wire::crc32(payload);
  for (int i = 0; i < 4; ++i) block.push_back(static_cast<char>(checksum >> (8 * i) & 0xFF));
  return block.append(payload);
}

// A block says what it holds or that it is none; nothing else.
template <typename Result>
bool is_read(const Result& result) {
  FLOPSIGHT_CHECK(result.ok() || result.error().code == ErrorCode::kCorrupt || result.error().code == ErrorCode::kLimit);
  return result.ok();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  const Seconds slot(60);
  const char version = data[0] < 128 ? 1 : 3;
  switch (data[0] % 4) {
    case 0:
      if (const auto cells = decode_gpu_block(with_head(bytes, version), slot); is_read(cells)) {
        FLOPSIGHT_CHECK(cells->size() <= kBlockCellsMax);
        const auto again = decode_gpu_block(encode_gpu_block(*cells, slot), slot);
        FLOPSIGHT_CHECK(again.ok() && again->size() == cells->size());
        for (std::size_t i = 0; i < cells->size(); ++i) FLOPSIGHT_CHECK((*again)[i].cell == (*cells)[i].cell);
      }
      break;
    case 1:
      if (const auto cells = decode_job_block(with_head(bytes, version), slot); is_read(cells)) {
        FLOPSIGHT_CHECK(cells->size() <= kBlockCellsMax);
        const auto again = decode_job_block(encode_job_block(*cells, slot), slot);
        FLOPSIGHT_CHECK(again.ok() && again->size() == cells->size());
        for (std::size_t i = 0; i < cells->size(); ++i) FLOPSIGHT_CHECK((*again)[i].cell == (*cells)[i].cell);
      }
      break;
    case 2:
      if (const auto spread = decode_spread(bytes); is_read(spread)) FLOPSIGHT_CHECK(decode_spread(encode_spread(*spread)).ok());
      break;
    default:
      is_read(decode_gpu_block(bytes, slot));
      is_read(decode_job_block(bytes, slot));
  }
  return 0;
}
