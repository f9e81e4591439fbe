#pragma once
// Who a GPU is, what one scrape said of it, and all scrapes of one GPU in order of time.
//
// Identity is (UUID, MIG instance). Where no UUID is scraped it is (scope, host, index): an index alone is
// not one thing (minor number, NVML index and the index inside a cgroup differ), so the report says so.

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "catalog/metrics.h"
#include "samples/absent.h"
#include "units/time.h"

namespace flopsight::samples {

struct GpuIdentity {
  std::string uuid;          // as scraped; empty when unknown (also when masked)
  std::string mig_instance;  // GPU instance id, or the instance's own UUID where only that is known; empty for a whole GPU
  std::string mig_profile;   // "1g.5gb"
  std::string host;
  std::string index;
  std::string pci_bus_id;
  std::string model_raw;
  std::string driver_version;

  // Compute slices of the instance: 1 of "1g.5gb". Absent for a whole GPU or an unreadable profile.
  std::optional<int> mig_slices() const;
};

// To whom a GPU belongs. Empty means unknown. Two holders are one when all fields but `rule` agree.
struct Holder {
  std::string job;  // Slurm job id or pod name
  std::string name_space;
  std::string container;
  std::string user;
  std::string team;
  std::string rule;  // which rule said so: "hpc_job", "exported_pod", "jobs_file", …

  bool unallocated() const { return job.empty(); }
  bool same_as(const Holder& other) const {
    return job == other.job && name_space == other.name_space && container == other.container &&
           user == other.user && team == other.team;
  }
};

// Identity without spelling: "GPU-AB" and "ab" are one.
std::string normalized_uuid(std::string_view uuid);
// Whether it names a MIG instance and not a GPU.
bool is_instance_uuid(std::string_view uuid);
// What is said of a GPU beside its identity, where nothing was known yet.
void fill_attributes(GpuIdentity& known, const GpuIdentity& seen);
// The same for all instances of one GPU and for that GPU: its UUID, else its host and index. Empty where they do not say which it is.
std::string whole_gpu_key(const GpuIdentity& gpu);
// The GPU that a MIG instance is part of, as far as what is said of the instance names it.
GpuIdentity whole_gpu(const GpuIdentity& instance);
// "00000000:53:00.0" and "0000:53:00.0" are one.
std::string normalized_bus_id(std::string_view bus_id);

using HolderId = std::uint32_t;  // index into a table of Holder

// What one scrape said of one GPU (or MIG instance).
struct GpuScrape {
  units::Instant time;  // when; meaningless where the timeline says has_times == false
  std::array<Reading, catalog::kMetricCount> readings;  // Absent{kNotSeen} where the scrape had nothing
  std::vector<HolderId> holders;  // distinct; empty: no job label. More than one: the GPU is shared

  const Reading& reading(catalog::Metric metric) const {
    return readings[static_cast<std::size_t>(metric)];
  }
  Reading& reading(catalog::Metric metric) { return readings[static_cast<std::size_t>(metric)]; }
  // Something was scraped under this metric, even if it was no value.
  bool saw(catalog::Metric metric) const {
    const Reading& r = reading(metric);
    return r.present() || r.reason() != AbsentReason::kNotSeen;
  }
};

struct GpuTimeline {
  GpuIdentity gpu;
  std::vector<GpuScrape> scrapes;  // ascending in time
  bool has_times = true;           // false: scrapes without timestamps, each an instant of its own
  bool tensor_calibrated = true;   // false: AMD
};

}  // namespace flopsight::samples
