// Any bytes as a jobs file, and as a host expression. A record that is read names a job and where it ran; a host
// expression stays under its limit.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/check.h"
#include "jobs/holder_table.h"
#include "jobs/job_file.h"

namespace {

using flopsight::jobs::JobRecord;
using flopsight::jobs::JobTable;
using flopsight::samples::GpuIdentity;

void check_error(const flopsight::base::Error& error) {
  FLOPSIGHT_CHECK(!error.message.empty());
  FLOPSIGHT_CHECK(error.message.find('\n') == std::string::npos);
}

// The record is found again by each of the GPUs that it names.
void check_record(const JobRecord& record, const JobTable& table) {
  FLOPSIGHT_CHECK(!record.job.empty() && !table.named(record.job).empty());
  FLOPSIGHT_CHECK(!record.hosts.empty() || !record.gpu_uuids.empty());
  FLOPSIGHT_CHECK(!record.start || !record.end || *record.start <= *record.end);
  if (record.start && record.end && *record.start < *record.end) {
    FLOPSIGHT_CHECK(record.running_at(*record.start) && !record.running_at(*record.end));
  }
  GpuIdentity gpu;
  if (!record.gpu_uuids.empty()) {
    gpu.uuid = record.gpu_uuids.front();
  } else {
    gpu.host = record.hosts.front();
    if (!record.gpu_indices.empty()) {
      gpu.index = record.gpu_indices.front();
    } else if (!record.gpu_bus_ids.empty()) {
      gpu.pci_bus_id = record.gpu_bus_ids.front();
    }
  }
  FLOPSIGHT_CHECK(record.holds(gpu));
  FLOPSIGHT_CHECK(!table.holding(gpu).empty());
  FLOPSIGHT_CHECK(record.holder().job == record.job);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto hosts = flopsight::jobs::expand_hosts(text);
  if (!hosts.ok()) check_error(hosts.error());
  if (hosts.ok()) FLOPSIGHT_CHECK(hosts->size() <= 65'536);
  const auto records = flopsight::jobs::parse_jobs(text);
  if (!records.ok()) {
    check_error(records.error());
    return 0;
  }
  const JobTable table(*records);
  FLOPSIGHT_CHECK(table.records().size() == records->size());
  for (const JobRecord& record : table.records()) check_record(record, table);
  return 0;
}
