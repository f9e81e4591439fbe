// Any bytes as the segments of a log. The first byte says where they are cut in two, and whether their checksums are put right
// before, so that what checksums guard is reached.
#include <algorithm>
#include <cstdint>
#include <string>

#include "base/check.h"
#include "store/log.h"
#include "store/test_disk.h"
#include "wire/crc32.h"

namespace {

using namespace flopsight::store;

constexpr std::size_t kSegmentHead = 24, kRecordHead = 20;

void set_number(std::string& bytes, std::size_t at, std::uint32_t value) {
  for (std::size_t i = 0; i < 4; ++i) bytes[at + i] = static_cast<char>(value >> (8 * i) & 0xFF);
}
std::uint32_t number(const std::string& bytes, std::size_t at) {
  std::uint32_t value = 0;
  for (std::size_t i = 0; i < 4; ++i) value |= std::uint32_t{static_cast<unsigned char>(bytes[at + i])} << (8 * i);
  return value;
}

void put_checksums_right(std::string& segment) {
  if (segment.size() < kSegmentHead) return;
  segment.replace(0, 8, "FSLOG\n1\n");
  set_number(segment, 20, flopsight::wire::crc32(std::string_view(segment).substr(8, 12)));
  for (std::size_t at = kSegmentHead; at + kRecordHead <= segment.size();) {
    const std::size_t size = number(segment, at);
    if (size > segment.size() - at - kRecordHead) return;
    set_number(segment, at + 4, flopsight::wire::crc32(std::string_view(segment).substr(at + 8, kRecordHead - 8 + size)));
    at += kRecordHead + size;
  }
}

void put(TestDisk& disk, const char* path, const std::string& bytes) {
  FLOPSIGHT_CHECK(disk.create(path).value()->append(bytes, "").ok());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string bytes(reinterpret_cast<const char*>(data) + 1, size - 1);
  const std::size_t cut = bytes.size() * (data[0] & 0x7FU) / 0x7F;
  std::string first = bytes.substr(0, cut), second = bytes.substr(cut);
  if ((data[0] & 0x80U) != 0) {
    put_checksums_right(first);
    put_checksums_right(second);
  }
  TestDisk disk;
  put(disk, "log/0000000001.log", first);
  put(disk, "log/0000000002.log", second);
  std::uint64_t seen = 0, seen_bytes = 0;
  const auto count = [&](std::uint32_t, const LogRecord& record) {
    ++seen;
    seen_bytes += kRecordHead + record.body.size();
  };
  const auto replay = Log::replay(disk, "log", 1, count);
  FLOPSIGHT_CHECK(replay.ok() && replay->records == seen && replay->bytes == seen_bytes);
  FLOPSIGHT_CHECK(seen_bytes <= bytes.size());

  // A log that is begun on top of it tells the same records, and its own.
  auto log = Log::open(disk, "log", {});
  FLOPSIGHT_CHECK(log.ok());
  const auto at = (*log)->append({LogKind::kRemoteWrite1, {1}, "new"});
  FLOPSIGHT_CHECK(at.ok() && (*log)->sync(*at).ok());
  const std::uint64_t before = std::exchange(seen, 0);
  FLOPSIGHT_CHECK(Log::replay(disk, "log", 1, count).ok());
  FLOPSIGHT_CHECK(seen == before + 1);
  return 0;
}
