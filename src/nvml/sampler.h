#pragma once
// All GPUs of this machine, sample after sample, through whatever happens to them: a GPU that falls off the bus and comes back, one
// that is pulled, MIG that is switched or divided anew, a driver that is unloaded, restarted or replaced.
//
// Every tick gives one snapshot. Activity is the mean since the last tick; the rest is as of now. A GPU that was seen once stays in
// the snapshots with the reason why nothing is known of it, so that it is not taken for one that does not exist; one that the
// driver does not list any more is forgotten after SamplerOptions::forget.
// Time is an argument. Threads: one sampler, one thread.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "nvml/session.h"
#include "samples/gpu.h"
#include "units/time.h"

namespace flopsight::nvml {

struct SamplerOptions {
  std::string library_path;       // empty: the system's
  units::Seconds reopen{5};       // between attempts to reach a driver that has gone
  units::Seconds look_again{60};  // for GPUs that came or came back, which a session does not see while one is lost
  units::Seconds forget{3600};
};

// One GPU, or one instance of a GPU under MIG.
struct GpuSample {
  samples::GpuIdentity gpu;  // without host
  std::optional<std::uint32_t> minor_number;  // of /dev/nvidiaN
  Values values;
  std::optional<Absence> absence;  // nothing is known of the GPU, and why
  // Why there is no tensor activity, and so no OFU; kNotYetSampled passes.
  std::optional<Absence> activity_absence;
  units::Seconds window{0};  // that activity is the mean of
  std::vector<Process> processes;
};

struct Snapshot {
  units::Instant time;
  bool driver = false;    // answers
  std::string problem;    // why not
  std::string driver_version;  // of the last session
  std::vector<GpuSample> gpus;  // by index, then instance
  std::string processes_problem;  // of the first GPU that names none
  std::uint64_t driver_restarts = 0;  // sessions that ended because the driver went
};

class Sampler {
 public:
  // Errors: as Session::open, for the first session only.
  static base::Result<std::unique_ptr<Sampler>> open(SamplerOptions options);
  ~Sampler();

  // `now` must not be before that of the last call. The snapshot is valid until the next.
  const Snapshot& sample(units::Instant now);

 private:
  struct Entity;  // what is kept of a GPU or instance from tick to tick
  struct Xid {
    std::string uuid;
    std::uint64_t last = 0;
  };
  explicit Sampler(SamplerOptions options);
  bool ensure_session(units::Instant now);
  void close_session(units::Instant now, std::string problem);
  void driver_went(units::Instant now);
  bool look(units::Instant now);
  void recall(Device& device) const;
  void sample_device(Device& device, units::Instant now);
  void sample_entity(const Device& device, const Instance* instance, const Values& values, units::Instant now);
  void read_activity(const Device& device, const Instance* instance, Entity& entity, GpuSample& out, units::Instant now);
  void note_xids();
  Value xid_of(const Device& device) const;
  Entity& entity_of(samples::GpuIdentity gpu);
  void add_unseen(units::Instant now);

  SamplerOptions options_;
  Snapshot snapshot_;
  std::unique_ptr<Session> session_;
  std::vector<Device> devices_;
  std::vector<Xid> xids_;  // by UUID, as handles end with a session
  std::vector<std::unique_ptr<Entity>> entities_;  // after session_, so that their samples go before it
  std::optional<units::Instant> closed_;
  units::Instant looked_;
};

}  // namespace flopsight::nvml
