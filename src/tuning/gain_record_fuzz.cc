// Any bytes as a record of gains. What is read is written and read again the same.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/check.h"
#include "tuning/gain_record.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto records = flopsight::tuning::read_records({reinterpret_cast<const char*>(data), size});
  if (!records.ok()) {
    FLOPSIGHT_CHECK(!records.error().message.empty());
    return 0;
  }
  std::string written;
  for (const auto& record : records->records) written += flopsight::tuning::record_line(record);
  const auto again = flopsight::tuning::read_records(written);
  FLOPSIGHT_CHECK(again.ok() && again->records.size() == records->records.size() && again->unread_total == 0);
  FLOPSIGHT_CHECK(flopsight::tuning::summary_of(again->records).verified_total <= again->records.size());
  return 0;
}
