// Control groups, environments and names of log folders are whatever users and runtimes make them.

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/check.h"
#include "jobs/cgroup.h"

using namespace flopsight;  // NOLINT: a fuzz target

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const jobs::CgroupOwner owner = jobs::parse_cgroup(text);
  // These become labels, so nothing but what ids are made of may come out.
  FLOPSIGHT_CHECK(owner.slurm_job.find_first_not_of("0123456789ABCDEFGHJKMNPQRSTVWXYZs") == std::string::npos);
  FLOPSIGHT_CHECK(owner.slurm_step.empty() || !owner.slurm_job.empty());
  FLOPSIGHT_CHECK(owner.pod_uid.size() <= 36 && owner.pod_uid.find_first_not_of("0123456789abcdef-") == std::string::npos);
  FLOPSIGHT_CHECK(owner.container_id.size() <= 64 && owner.container_id.find_first_not_of("0123456789abcdef") == std::string::npos);
  if (const auto value = jobs::environment_value(text, "SLURM_JOB_ID")) FLOPSIGHT_CHECK(!value->empty());
  const std::string_view id = text.substr(0, size / 2);
  if (const auto pod = jobs::pod_of_container_log(text.substr(size / 2), id)) FLOPSIGHT_CHECK(!pod->pod.empty());
  if (const auto pod = jobs::pod_of_log_folder(text.substr(size / 2), id)) FLOPSIGHT_CHECK(!pod->pod.empty());
  return 0;
}
