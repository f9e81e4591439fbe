#pragma once
// Slurm's two ways of writing resources: TRES ("cpu=10,node=1,gres/gpu=2,gres/gpu:a100=2") and GRES
// ("gpu:a100:2(IDX:0-1)"). Only GPUs are read. Zero is zero; what is not said is absent.
// Limits: 1,024 indices of a host, 4,096 entries of a text.
// Errors: kInvalid, among them a text that was cut off by a column's width.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "schedulers/job.h"

namespace flopsight::schedulers {

struct GpuCounts {
  std::optional<std::uint32_t> count;  // absent: no GPU entry at all
  std::vector<GpuGroup> groups;
  bool untyped = false;  // an entry without a type was there
  bool has_shares = false;  // parts of GPUs (shard, mps), of which nobody says how many GPUs they lie on
  bool contradicts =
      false;  // the types add up to more than the entry without a type; that one stands
};

// Typed entries detail the untyped one and are never added to it; only typed ones present count as
// they are.
base::Result<GpuCounts> gpus_of_tres(std::string_view text);
// The same from entries that are split already ("gres/gpu:a100" or "gpu:a100", 2).
struct TresEntry {
  std::string name;
  std::uint32_t count = 0;
};
GpuCounts gpus_of_entries(const std::vector<TresEntry>& entries);

// Whether the text has an entry of parts of GPUs: "gres/shard=4", "shard:4", "gres:mps:50".
bool names_shares(std::string_view text);

// "gres/gpuutil" of a usage text, in percent; absent when there is none or it is no number.
std::optional<double> gpu_utilization_of_tres(std::string_view text);

struct GresGpus {
  GpuCounts counts;
  std::vector<std::string> indices;  // of whole GPUs; empty: not said
};
// "(null)", "N/A" and nothing are no entry.
base::Result<GresGpus> gpus_of_gres(std::string_view text);

// A MIG profile in a type's name: "1g.10gb", "a100_1g.5gb", "nvidia_h100_80gb_hbm3_1g.10gb",
// "mig-1g.10gb".
bool is_mig_type(std::string_view type);

}  // namespace flopsight::schedulers
