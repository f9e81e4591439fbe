#pragma once
// The part of NVML's binary interface that we call, in our own declarations, so that nothing of CUDA is needed to build. Layouts
// are those of a 64-bit Linux and are checked below; the fake library of the tests is written against the same file.
//
// Sources, read in November 2026: docs.nvidia.com/deploy/nvml-api (functions, return codes, GPM enums); the header nvml.h as
// NVIDIA publishes it in github.com/NVIDIA/go-nvml (12.2 and its history up to 13.2). What a field holds is said where it is read.

#include <cstddef>
#include <cstdint>

namespace flopsight::nvml::abi {

// nvmlReturn_t
enum Return : int {
  kSuccess = 0,
  kUninitialized = 1,
  kInvalidArgument = 2,
  kNotSupported = 3,
  kNoPermission = 4,
  kNotFound = 6,
  kInsufficientSize = 7,
  kDriverNotLoaded = 9,
  kTimeout = 10,
  kLibraryNotFound = 12,
  kFunctionNotFound = 13,
  kGpuIsLost = 15,
  kResetRequired = 16,
  kOperatingSystem = 17,
  kLibRmVersionMismatch = 18,
  kNoData = 21,
  kArgumentVersionMismatch = 25,
  kUnknown = 999,
};

using Device = struct OpaqueDevice*;
using GpmSample = struct OpaqueGpmSample*;
using EventSet = struct OpaqueEventSet*;

inline constexpr unsigned kClockSm = 1;          // nvmlClockType_t
inline constexpr unsigned kTemperatureGpu = 0;   // nvmlTemperatureSensors_t
inline constexpr unsigned kFeatureEnabled = 1;   // nvmlEnableState_t
inline constexpr std::uint32_t kNoInstance = 0xFFFFFFFF;  // instance ids where MIG is off
inline constexpr std::uint64_t kEventXid = 0x8;
inline constexpr std::size_t kNameBytes = 96;    // enough for names, UUIDs and versions (NVML_DEVICE_…_V2_BUFFER_SIZE)

struct PciInfo {  // nvmlPciInfo_t, for …_v3
  char bus_id_legacy[16];
  std::uint32_t domain, bus, device, pci_device_id, pci_subsystem_id;
  char bus_id[32];
};
static_assert(sizeof(PciInfo) == 68 && offsetof(PciInfo, bus_id) == 36);

struct Utilization {  // percent of NVML's last sample period, 1/6 to 1 s
  std::uint32_t gpu, memory;
};
static_assert(sizeof(Utilization) == 8);

struct Memory {  // nvmlMemory_t: `used` includes what the driver reserves
  std::uint64_t total, free, used;
};
struct MemoryV2 {  // `used` is without `reserved`
  std::uint32_t version;
  std::uint64_t total, reserved, free, used;
};
static_assert(sizeof(Memory) == 24 && sizeof(MemoryV2) == 40);
inline constexpr std::uint32_t kMemoryV2Version = sizeof(MemoryV2) | (2U << 24U);  // NVML_STRUCT_VERSION(Memory, 2)

struct ProcessV1 {
  std::uint32_t pid;
  std::uint64_t used_bytes;
};
struct Process {  // nvmlProcessInfo_v2_t, of the functions …_v2 and …_v3
  std::uint32_t pid;
  std::uint64_t used_bytes;  // all ones: not available
  std::uint32_t gpu_instance, compute_instance;
};
static_assert(sizeof(ProcessV1) == 16 && sizeof(Process) == 24 && offsetof(Process, gpu_instance) == 16);

struct DeviceAttributes {  // of a MIG device
  std::uint32_t multiprocessor_count, copy_engines, decoders, encoders, jpegs, ofas, gpu_instance_slices, compute_instance_slices;
  std::uint64_t memory_mebibytes;
};
static_assert(sizeof(DeviceAttributes) == 40);

struct EventData {  // nvmlEventData_t of nvmlEventSetWait_v2
  Device device;
  std::uint64_t type;
  std::uint64_t data;  // the Xid; 999 for one that NVML does not know
  std::uint32_t gpu_instance, compute_instance;
};
static_assert(sizeof(EventData) == 32);

struct GpmSupport {
  std::uint32_t version;  // 1
  std::uint32_t is_supported;
};
struct GpmMetric {
  std::uint32_t id;
  std::int32_t result;  // of this metric; `value` holds only where it is 0
  double value;
  char* short_name;
  char* long_name;
  char* unit;
};
static_assert(sizeof(GpmMetric) == 40 && offsetof(GpmMetric, value) == 8 && offsetof(GpmMetric, unit) == 32);
// nvmlGpmMetricsGet_t ends in an array whose bound (NVML_GPM_METRIC_MAX) grew with the headers: 98, 210, 333 of CUDA 13.2; its version
// stayed 1. Only the first `metric_count` entries are said to be touched, but a driver that copies the whole has to find it.
inline constexpr std::uint32_t kGpmRequestMax = 333;
struct GpmMetricsGet {
  std::uint32_t version;  // 1
  std::uint32_t metric_count;
  GpmSample before;
  GpmSample after;
  GpmMetric metrics[kGpmRequestMax];
};
static_assert(offsetof(GpmMetricsGet, before) == 8 && offsetof(GpmMetricsGet, metrics) == 24);

// nvmlGpmMetricId_t. Activities are percent, rates MiB/s, both over the time between two samples; totals count since the start.
enum GpmId : std::uint32_t {
  kGpmGraphicsUtil = 1,
  kGpmSmUtil = 2,
  kGpmSmOccupancy = 3,
  kGpmAnyTensorUtil = 5,
  kGpmDramUtil = 10,
  kGpmFp64Util = 11,
  kGpmFp32Util = 12,
  kGpmFp16Util = 13,
  kGpmPcieTx = 20,
  kGpmPcieRx = 21,
  kGpmNvlinkRx = 60,  // received first, unlike PCIe
  kGpmNvlinkTx = 61,
  kGpmSmCyclesElapsed = 248,  // from here on: headers of CUDA 13.2 and newer
  kGpmSmCyclesActive = 249,
  kGpmMmaCyclesActive = 250,
};

}  // namespace flopsight::nvml::abi

// Every function that is looked up, as X(name, parameters…). All return nvmlReturn_t and all may be missing: which ones there are
// depends on the driver.
#define FLOPSIGHT_NVML_FUNCTIONS(X)                                                                             \
  X(nvmlInit_v2)                                                                                                \
  X(nvmlShutdown)                                                                                               \
  X(nvmlSystemGetDriverVersion, char*, unsigned)                                                                \
  X(nvmlDeviceGetCount_v2, unsigned*)                                                                           \
  X(nvmlDeviceGetHandleByIndex_v2, unsigned, abi::Device*)                                                      \
  X(nvmlDeviceGetUUID, abi::Device, char*, unsigned)                                                            \
  X(nvmlDeviceGetName, abi::Device, char*, unsigned)                                                            \
  X(nvmlDeviceGetPciInfo_v3, abi::Device, abi::PciInfo*)                                                        \
  X(nvmlDeviceGetMinorNumber, abi::Device, unsigned*)                                                           \
  X(nvmlDeviceGetClockInfo, abi::Device, unsigned, unsigned*)                                                   \
  X(nvmlDeviceGetMaxClockInfo, abi::Device, unsigned, unsigned*)                                                \
  X(nvmlDeviceGetCurrentClocksEventReasons, abi::Device, unsigned long long*)                                   \
  X(nvmlDeviceGetCurrentClocksThrottleReasons, abi::Device, unsigned long long*)                                \
  X(nvmlDeviceGetUtilizationRates, abi::Device, abi::Utilization*)                                              \
  X(nvmlDeviceGetPowerUsage, abi::Device, unsigned*)                                                            \
  X(nvmlDeviceGetEnforcedPowerLimit, abi::Device, unsigned*)                                                    \
  X(nvmlDeviceGetTotalEnergyConsumption, abi::Device, unsigned long long*)                                      \
  X(nvmlDeviceGetTemperature, abi::Device, unsigned, unsigned*)                                                 \
  X(nvmlDeviceGetMemoryInfo, abi::Device, abi::Memory*)                                                         \
  X(nvmlDeviceGetMemoryInfo_v2, abi::Device, abi::MemoryV2*)                                                    \
  X(nvmlDeviceGetComputeRunningProcesses_v3, abi::Device, unsigned*, abi::Process*)                             \
  X(nvmlDeviceGetComputeRunningProcesses_v2, abi::Device, unsigned*, abi::Process*)                             \
  X(nvmlDeviceGetComputeRunningProcesses, abi::Device, unsigned*, abi::ProcessV1*)                              \
  X(nvmlDeviceGetMPSComputeRunningProcesses_v3, abi::Device, unsigned*, abi::Process*)                          \
  X(nvmlDeviceGetGraphicsRunningProcesses_v3, abi::Device, unsigned*, abi::Process*)                            \
  X(nvmlDeviceGetMigMode, abi::Device, unsigned*, unsigned*)                                                    \
  X(nvmlDeviceGetMaxMigDeviceCount, abi::Device, unsigned*)                                                     \
  X(nvmlDeviceGetMigDeviceHandleByIndex, abi::Device, unsigned, abi::Device*)                                   \
  X(nvmlDeviceGetGpuInstanceId, abi::Device, unsigned*)                                                         \
  X(nvmlDeviceGetAttributes_v2, abi::Device, abi::DeviceAttributes*)                                            \
  X(nvmlEventSetCreate, abi::EventSet*)                                                                         \
  X(nvmlEventSetFree, abi::EventSet)                                                                            \
  X(nvmlDeviceRegisterEvents, abi::Device, unsigned long long, abi::EventSet)                                   \
  X(nvmlEventSetWait_v2, abi::EventSet, abi::EventData*, unsigned)                                              \
  X(nvmlGpmQueryDeviceSupport, abi::Device, abi::GpmSupport*)                                                   \
  X(nvmlGpmSampleAlloc, abi::GpmSample*)                                                                        \
  X(nvmlGpmSampleFree, abi::GpmSample)                                                                          \
  X(nvmlGpmSampleGet, abi::Device, abi::GpmSample)                                                              \
  X(nvmlGpmMigSampleGet, abi::Device, unsigned, abi::GpmSample)                                                 \
  X(nvmlGpmMetricsGet, abi::GpmMetricsGet*)
