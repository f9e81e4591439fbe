// Ids of jobs in paths: whatever is taken is the one text of its job.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "jobs/job_name.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace flopsight;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (const auto holder = jobs::parse_job_text(text)) FLOPSIGHT_CHECK(jobs::job_text(*holder) == text);
  samples::Holder any;
  any.job = text.substr(0, size / 2);
  any.name_space = text.substr(size / 2);
  if (any.job.empty()) return 0;
  const auto back = jobs::parse_job_text(jobs::job_text(any));
  FLOPSIGHT_CHECK(back && back->job == any.job && back->name_space == any.name_space);
  return 0;
}
