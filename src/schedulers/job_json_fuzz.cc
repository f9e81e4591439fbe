#include <cstddef>
#include <cstdint>
#include <string_view>

#include "schedulers/job_json.h"

// What is read can be written, and read again the same.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace flopsight;
  const auto jobs = schedulers::parse_told_jobs({reinterpret_cast<const char*>(data), size});
  if (!jobs.ok()) {
    if (jobs.error().message.empty()) __builtin_trap();
    return 0;
  }
  for (const schedulers::Job& job : *jobs) {
    const auto again = schedulers::job_from_json(schedulers::to_json(job));
    if (!again.ok() ||
        base::json::dump(schedulers::to_json(*again)) != base::json::dump(schedulers::to_json(job)))
      __builtin_trap();
  }
  return 0;
}
