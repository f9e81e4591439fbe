#pragma once
// NVIDIA's management library as it is found on a machine with a driver, loaded when first asked for: no part of CUDA is needed to
// build or to start. A session is the time between nvmlInit and nvmlShutdown; handles and GPM samples die with it.
//
//   auto session = Session::open();                      // or why there is none
//   auto devices = session->devices();
//   GpmSample before = session->take_sample(device);     // … work …
//   GpmSample after = session->take_sample(device);
//   Values values = session->read(device);               // clocks, power, …: as of now
//   session->add_activity(before, after, values);        // tensor activity, …: means between the samples
//
// Counters are read by GPM, which Hopper and newer have; device.gpm says whether and, if not, why. A value that is not there says
// why (value.h); nothing here is ever 0 for want of knowledge.
// Threads: one session, one thread. Calls may take milliseconds, or hang with a hanging driver.
// Errors of open(): kNotFound without library, kUnavailable without a driver that answers, kUnsupported for a library that lacks
// what all drivers have had since 2013.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "nvml/value.h"
#include "units/units.h"

namespace flopsight::nvml {

namespace abi {
struct OpaqueDevice;
struct OpaqueGpmSample;
}  // namespace abi
struct Functions;

inline constexpr const char* kLibraryName = "libnvidia-ml.so.1";
inline constexpr std::uint32_t kDevicesMax = 64;     // of one host; more are not looked at, and an error
inline constexpr std::uint32_t kInstancesMax = 16;   // of one GPU: NVIDIA's divide by 7
inline constexpr std::uint32_t kProcessesMax = 4096; // of one GPU and kind

// A slice of a GPU under MIG.
struct Instance {
  std::uint32_t gpu_instance = 0;
  std::string profile;  // "1g.10gb"; empty where NVML does not say
  abi::OpaqueDevice* handle = nullptr;
  bool operator==(const Instance&) const = default;
};

struct Device {
  std::uint32_t index = 0;  // NVML's: PCI order, not the number of /dev/nvidiaN
  std::string uuid;         // "GPU-…"; empty where the driver does not say
  std::string name;         // "NVIDIA H100 80GB HBM3"
  std::string pci_bus_id;
  std::optional<std::uint32_t> minor_number;
  std::optional<units::Hertz> sm_clock_max;
  std::optional<Absence> gpm_absence;  // nothing: GPM works
  bool mig = false;                    // MIG is on
  std::vector<Instance> instances;     // in order of gpu_instance
  std::optional<Absence> absence;      // why the GPU cannot be asked at all
  abi::OpaqueDevice* handle = nullptr;

  bool gpm() const { return !gpm_absence.has_value(); }
};

struct Process {
  std::uint32_t pid = 0;  // as the driver sees it: of the host's name space, or 0 from inside another
  std::optional<std::uint32_t> gpu_instance;
  std::optional<std::uint64_t> used_bytes;
};

// Where the GPU's counters stood at a moment. Empty with a reason where they could not be read. Has to go before its session.
class GpmSample {
 public:
  GpmSample() = default;
  explicit GpmSample(Absence absence) : absence_(absence) {}
  GpmSample(const Functions* functions, abi::OpaqueGpmSample* sample) : functions_(functions), sample_(sample) {}
  GpmSample(GpmSample&& other) noexcept { *this = std::move(other); }
  GpmSample& operator=(GpmSample&& other) noexcept;
  GpmSample(const GpmSample&) = delete;
  GpmSample& operator=(const GpmSample&) = delete;
  ~GpmSample();

  bool present() const { return sample_ != nullptr; }
  Absence absence() const { return absence_; }

 private:
  friend class Session;
  const Functions* functions_ = nullptr;
  abi::OpaqueGpmSample* sample_ = nullptr;
  Absence absence_ = Absence::kNotYetSampled;
};

struct XidEvent {
  abi::OpaqueDevice* device = nullptr;
  std::uint64_t xid = 0;
};

class Session {
 public:
  // An empty path: kLibraryName, where the system's loader finds it.
  static base::Result<std::unique_ptr<Session>> open(const std::string& library_path = {});
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  const std::string& driver_version() const { return driver_version_; }  // empty where unknown

  // All GPUs that the driver lists, with their MIG instances. A GPU that cannot be asked is in the list, with its reason.
  // Errors: kUnavailable when the driver has gone, kLimit for more than kDevicesMax.
  base::Result<std::vector<Device>> devices();
  // How many GPUs the driver lists now; nothing when it has gone.
  std::optional<std::uint32_t> device_count();
  // Whether MIG is on, and the instances, as they are now.
  void read_instances(Device& device);

  // What holds at this moment: clocks, power, energy, temperature, memory, event reasons, utilization.
  Values read(const Device& device);
  Value memory_used(const Instance& instance);

  GpmSample take_sample(const Device& device);
  GpmSample take_sample(const Device& device, const Instance& instance);
  // As take_sample, into memory that is there already.
  void retake(const Device& device, const Instance* instance, GpmSample& sample);
  // Sets activity (mean between the samples, which have to be of one GPU or instance), rates of PCIe and NVLink, and cycle
  // counters where the driver has them.
  void add_activity(const GpmSample& before, const GpmSample& after, Values& values);

  // Compute, MPS and graphics processes, each once. Errors: kUnavailable, with the reason.
  base::Result<std::vector<Process>> processes(const Device& device);

  // Xid errors since the last call, oldest first. `true` of reports_xids: none means none.
  bool reports_xids(const Device& device) const;
  std::vector<XidEvent> take_xids();

  // A call has shown that the driver is not there any more: this session can only be closed.
  bool driver_gone() const { return driver_gone_; }

 private:
  struct Loaded;
  explicit Session(std::unique_ptr<Loaded> loaded);
  int noted(int code);
  Device device_of(std::uint32_t index);
  void register_xids(const Device& device);
  void add_metrics(const GpmSample& before, const GpmSample& after, bool totals, Values& values);

  std::unique_ptr<Loaded> loaded_;
  std::string driver_version_;
  bool driver_gone_ = false;
  bool totals_missing_ = false;  // the driver does not know the cycle counters
  std::vector<abi::OpaqueDevice*> reporting_;  // devices whose Xids are reported
};

}  // namespace flopsight::nvml
