// A libnvidia-ml.so.1 of the same binary interface, which answers from a script (script.h) instead of from a driver. The program
// loads it with dlopen as it loads NVIDIA's, so that everything but the driver itself is tested.
//
// FLOPSIGHT_FAKE_NVML_SCRIPT names the script; it is read by nvmlInit_v2. Time is that of the machine since the first nvmlInit_v2 with
// this script, or, where FLOPSIGHT_FAKE_NVML_CLOCK names a file, the number of seconds in it.
// Here are the functions that a driver of 2019 had, which alone make libfake_nvml_old; fake_newer.cc has those that came later.

#include <cstdio>
#include <cstdlib>

#include "base/file.h"
#include "base/text.h"
#include "fake_state.h"

using namespace flopsight::fake_nvml;  // NOLINT: the functions below are C's
namespace base = flopsight::base;

extern "C" {

int nvmlInit_v2() {
  FAKE_LOCK;
  const char* path = std::getenv("FLOPSIGHT_FAKE_NVML_SCRIPT");
  if (path == nullptr) return abi::kDriverNotLoaded;
  const auto bytes = base::read_file(path);
  auto script = bytes.ok() ? Script::parse(*bytes) : base::Result<Script>(bytes.error());
  if (!script.ok()) {
    std::fprintf(stderr, "fake_nvml: %s: %s\n", path, script.error().message.c_str());
    return abi::kUnknown;
  }
  fake().path = path;
  fake().first_seconds.emplace(path, machine_seconds());
  fake().script = std::move(script).value();
  fake().initialised = true;
  fake().initialised_seconds = seconds();
  return driver_state("nvmlInit_v2");
}

int nvmlShutdown() {
  FAKE_LOCK;
  const bool was = fake().initialised;
  fake().initialised = false;
  return was ? abi::kSuccess : abi::kUninitialized;
}

int nvmlSystemGetDriverVersion(char* out, unsigned size) {
  FAKE_LOCK;
  if (const int code = driver_state(__func__); code != abi::kSuccess) return code;
  return copy(fake().script.text("driver version", seconds()).value_or("0.0"), out, size);
}

int nvmlDeviceGetCount_v2(unsigned* count) {
  FAKE_LOCK;
  if (const int code = driver_state(__func__); code != abi::kSuccess) return code;
  *count = static_cast<unsigned>(gpus().size());
  return abi::kSuccess;
}

int nvmlDeviceGetHandleByIndex_v2(unsigned index, abi::Device* device) {
  FAKE_LOCK;
  if (const int code = driver_state(__func__); code != abi::kSuccess) return code;
  const auto all = gpus();
  if (index >= all.size()) return abi::kInvalidArgument;
  *device = handle(all[index], abi::kNoInstance);
  return scripted_failure("gpu " + std::to_string(all[index]), __func__, seconds());
}

int nvmlDeviceGetUUID(abi::Device device, char* out, unsigned size) {
  FAKE_LOCK;
  return text(device, __func__, "uuid", out, size);
}

int nvmlDeviceGetName(abi::Device device, char* out, unsigned size) {
  FAKE_LOCK;
  return text(device, __func__, "name", out, size);
}

int nvmlDeviceGetPciInfo_v3(abi::Device device, abi::PciInfo* out) {
  FAKE_LOCK;
  return text(device, __func__, "pci", out->bus_id, sizeof out->bus_id);
}

int nvmlDeviceGetMinorNumber(abi::Device device, unsigned* out) {
  FAKE_LOCK;
  return number(device, __func__, "minor", out);
}

int nvmlDeviceGetClockInfo(abi::Device device, unsigned type, unsigned* out) {
  FAKE_LOCK;
  return type == abi::kClockSm ? number(device, __func__, "sm_clock_mhz", out) : abi::kInvalidArgument;
}

int nvmlDeviceGetMaxClockInfo(abi::Device device, unsigned type, unsigned* out) {
  FAKE_LOCK;
  return type == abi::kClockSm ? number(device, __func__, "sm_clock_max_mhz", out) : abi::kInvalidArgument;
}

int nvmlDeviceGetCurrentClocksThrottleReasons(abi::Device device, unsigned long long* out) {
  FAKE_LOCK;
  return number(device, __func__, "event_reasons", out);
}

int nvmlDeviceGetUtilizationRates(abi::Device device, abi::Utilization* out) {
  FAKE_LOCK;
  out->memory = 0;
  return number(device, __func__, "utilization_percent", &out->gpu);
}

int nvmlDeviceGetPowerUsage(abi::Device device, unsigned* out) {
  FAKE_LOCK;
  return number(device, __func__, "power_milliwatts", out);
}

int nvmlDeviceGetEnforcedPowerLimit(abi::Device device, unsigned* out) {
  FAKE_LOCK;
  return number(device, __func__, "power_limit_milliwatts", out);
}

int nvmlDeviceGetTotalEnergyConsumption(abi::Device device, unsigned long long* out) {
  FAKE_LOCK;
  return number(device, __func__, "energy_millijoules", out);
}

int nvmlDeviceGetTemperature(abi::Device device, unsigned sensor, unsigned* out) {
  FAKE_LOCK;
  return sensor == abi::kTemperatureGpu ? number(device, __func__, "temperature_celsius", out) : abi::kInvalidArgument;
}

// As NVIDIA's first version has it, with what the driver keeps for itself.
int nvmlDeviceGetMemoryInfo(abi::Device device, abi::Memory* out) {
  FAKE_LOCK;
  const int code = number(device, __func__, "memory_used_bytes", &out->used);
  std::uint64_t reserved = 0;
  if (code == abi::kSuccess && number(device, __func__, "memory_reserved_bytes", &reserved) == abi::kSuccess) out->used += reserved;
  return code;
}

int nvmlDeviceGetComputeRunningProcesses(abi::Device device, unsigned* count, abi::ProcessV1* out) {
  FAKE_LOCK;
  return processes(device, __func__, "processes", count, out, [](const abi::Process& p) { return abi::ProcessV1{p.pid, p.used_bytes}; });
}

int nvmlEventSetCreate(abi::EventSet* out) {
  FAKE_LOCK;
  if (const int code = driver_state(__func__); code != abi::kSuccess) return code;
  *out = new abi::OpaqueEventSet();
  return abi::kSuccess;
}

int nvmlEventSetFree(abi::EventSet set) {
  FAKE_LOCK;
  delete set;
  return abi::kSuccess;
}

int nvmlDeviceRegisterEvents(abi::Device device, unsigned long long types, abi::EventSet set) {
  FAKE_LOCK;
  if (const int code = device_state(device, __func__); code != abi::kSuccess) return code;
  if (types != abi::kEventXid || set == nullptr) return abi::kInvalidArgument;
  set->gpus.push_back(device->gpu);
  set->told_seconds.emplace(device->gpu, seconds());
  return abi::kSuccess;
}

int nvmlEventSetWait_v2(abi::EventSet set, abi::EventData* out, unsigned) {
  FAKE_LOCK;
  if (const int code = driver_state(__func__); code != abi::kSuccess) return code;
  for (const unsigned gpu : set->gpus) {
    const auto events = fake().script.settings(gpu_fact(gpu, "xid"), set->told_seconds[gpu], seconds());
    if (events.empty()) continue;
    set->told_seconds[gpu] = events.front().first;
    *out = {handle(gpu, abi::kNoInstance), abi::kEventXid, static_cast<std::uint64_t>(base::parse_number(events.front().second).value_or(999)),
            abi::kNoInstance, abi::kNoInstance};
    return abi::kSuccess;
  }
  return abi::kTimeout;
}

}  // extern "C"
