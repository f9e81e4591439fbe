#include "wire/snappy.h"

#include <snappy.h>

#include <limits>
#include <string>

#include "base/check.h"

namespace flopsight::wire {
namespace {

// The densest element of the format is a copy: 64 bytes out of 3.
constexpr std::size_t kCopyBytes = 64;
constexpr std::size_t kCopyElementBytes = 3;

base::Error invalid(const std::string& what) { return {base::ErrorCode::kInvalid, what}; }

base::Result<std::size_t> announced_size(std::string_view compressed, std::size_t bytes_max) {
  std::size_t announced = 0;
  if (!snappy::GetUncompressedLength(compressed.data(), compressed.size(), &announced)) {
    return invalid("at byte 0: not the length that a snappy block starts with");
  }
  if (announced > bytes_max) {
    return base::Error{base::ErrorCode::kLimit,
                       "the snappy block announces " + std::to_string(announced) +
                           " bytes, more than " + std::to_string(bytes_max)};
  }
  // A lie about the length is found before memory is taken for it, not after.
  if (announced / kCopyBytes > compressed.size() / kCopyElementBytes) {
    return invalid("the snappy block announces " + std::to_string(announced) + " bytes, which " +
                   std::to_string(compressed.size()) + " compressed ones cannot hold");
  }
  return announced;
}

}  // namespace

base::Status snappy_decompress(std::string_view compressed, std::size_t bytes_max,
                               std::string& into) {
  const base::Result<std::size_t> size = announced_size(compressed, bytes_max);
  if (!size.ok()) {
    into.clear();
    return size.error();
  }
  if (into.capacity() < *size) {  // as much as it takes, where a string by itself would double
    into = std::string();
    into.reserve(*size);
  }
  into.resize(*size);  // not cleared before, or all of it would be zeroed first
  if (!snappy::RawUncompress(compressed.data(), compressed.size(), into.data())) {
    into.clear();
    return invalid("a snappy block that is cut short or damaged");
  }
  return {};
}

std::string snappy_compress(std::string_view bytes) {
  FLOPSIGHT_CHECK(bytes.size() <= std::numeric_limits<std::uint32_t>::max());
  std::string out;
  snappy::Compress(bytes.data(), bytes.size(), &out);
  return out;
}

}  // namespace flopsight::wire
