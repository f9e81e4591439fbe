// What drivers have had since 2019: MIG, GPM, later versions of lists and layouts.

#include "fake_state.h"

using namespace flopsight::fake_nvml;  // NOLINT: the functions below are C's

namespace {

std::vector<unsigned> instances(unsigned gpu) {
  std::vector<unsigned> out;
  for (const unsigned instance : fake().script.numbers_after(gpu_fact(gpu, "instance"), seconds())) {
    if (fake().script.text(gpu_fact(gpu, "instance " + std::to_string(instance) + " name"), seconds())) out.push_back(instance);
  }
  return out;
}

int gpm_sample(abi::Device device, const char* function, unsigned instance, abi::GpmSample sample) {
  if (const int code = device_state(device, function); code != abi::kSuccess) return code;
  if (sample == nullptr) return abi::kInvalidArgument;
  if (fake().script.text(gpu_fact(device->gpu, "gpm"), seconds()).value_or("no") != "yes") return abi::kNotSupported;
  *sample = {true, device->gpu, instance, seconds()};
  return abi::kSuccess;
}

// A cumulative counter: the integral of "gpm_rate ID" from the beginning.
std::optional<double> gpm_value(const abi::OpaqueDevice& device, unsigned id, double from, double to) {
  if (const auto rate = fake().script.mean(fact_of(device, "gpm_rate " + std::to_string(id)), 0, to)) return *rate * to;
  return fake().script.mean(fact_of(device, "gpm " + std::to_string(id)), from, to);
}

}  // namespace

extern "C" {

int nvmlDeviceGetCurrentClocksEventReasons(abi::Device device, unsigned long long* out) {
  FAKE_LOCK;
  return number(device, __func__, "event_reasons", out);
}

int nvmlDeviceGetMemoryInfo_v2(abi::Device device, abi::MemoryV2* out) {
  FAKE_LOCK;
  if (out->version != abi::kMemoryV2Version) return abi::kArgumentVersionMismatch;
  return number(device, __func__, "memory_used_bytes", &out->used);
}

int nvmlDeviceGetComputeRunningProcesses_v3(abi::Device device, unsigned* count, abi::Process* out) {
  FAKE_LOCK;
  return processes(device, __func__, "processes", count, out, [](const abi::Process& p) { return p; });
}

int nvmlDeviceGetMPSComputeRunningProcesses_v3(abi::Device device, unsigned* count, abi::Process* out) {
  FAKE_LOCK;
  return processes(device, __func__, "mps_processes", count, out, [](const abi::Process& p) { return p; });
}

int nvmlDeviceGetGraphicsRunningProcesses_v3(abi::Device device, unsigned* count, abi::Process* out) {
  FAKE_LOCK;
  return processes(device, __func__, "graphics_processes", count, out, [](const abi::Process& p) { return p; });
}

int nvmlDeviceGetMigMode(abi::Device device, unsigned* current, unsigned* pending) {
  FAKE_LOCK;
  if (const int code = device_state(device, __func__); code != abi::kSuccess) return code;
  const auto mode = fake().script.text(gpu_fact(device->gpu, "mig"), seconds());
  if (!mode) return abi::kNotSupported;
  *current = *pending = *mode == "on" ? abi::kFeatureEnabled : 0;
  return abi::kSuccess;
}

int nvmlDeviceGetMaxMigDeviceCount(abi::Device device, unsigned* count) {
  FAKE_LOCK;
  if (const int code = device_state(device, __func__); code != abi::kSuccess) return code;
  *count = 7;
  return abi::kSuccess;
}

int nvmlDeviceGetMigDeviceHandleByIndex(abi::Device device, unsigned index, abi::Device* out) {
  FAKE_LOCK;
  if (const int code = device_state(device, __func__); code != abi::kSuccess) return code;
  const auto all = instances(device->gpu);
  if (index >= all.size()) return abi::kNotFound;
  *out = handle(device->gpu, all[index]);
  return abi::kSuccess;
}

int nvmlDeviceGetGpuInstanceId(abi::Device device, unsigned* out) {
  FAKE_LOCK;
  if (const int code = device_state(device, __func__); code != abi::kSuccess) return code;
  if (device->instance == abi::kNoInstance) return abi::kInvalidArgument;
  // Compute instances of one GPU instance are devices of their own.
  *out = static_cast<unsigned>(fake().script.number(fact_of(*device, "gpu_instance"), seconds()).value_or(device->instance));
  return abi::kSuccess;
}

int nvmlGpmQueryDeviceSupport(abi::Device device, abi::GpmSupport* out) {
  FAKE_LOCK;
  if (const int code = device_state(device, __func__); code != abi::kSuccess) return code;
  if (out->version != 1) return abi::kArgumentVersionMismatch;
  out->is_supported = fake().script.text(gpu_fact(device->gpu, "gpm"), seconds()).value_or("no") == "yes" ? 1 : 0;
  return abi::kSuccess;
}

int nvmlGpmSampleAlloc(abi::GpmSample* out) {
  FAKE_LOCK;
  if (const int code = driver_state(__func__); code != abi::kSuccess) return code;
  *out = new abi::OpaqueGpmSample();
  return abi::kSuccess;
}

int nvmlGpmSampleFree(abi::GpmSample sample) {
  FAKE_LOCK;
  delete sample;
  return abi::kSuccess;
}

int nvmlGpmSampleGet(abi::Device device, abi::GpmSample sample) {
  FAKE_LOCK;
  return gpm_sample(device, __func__, abi::kNoInstance, sample);
}

int nvmlGpmMigSampleGet(abi::Device device, unsigned instance, abi::GpmSample sample) {
  FAKE_LOCK;
  return gpm_sample(device, __func__, instance, sample);
}

int nvmlGpmMetricsGet(abi::GpmMetricsGet* request) {
  FAKE_LOCK;
  if (const int code = driver_state(__func__); code != abi::kSuccess) return code;
  if (request->version != 1) return abi::kArgumentVersionMismatch;
  const abi::OpaqueGpmSample* const before = request->before;
  const abi::OpaqueGpmSample* const after = request->after;
  if (before == nullptr || after == nullptr || !before->taken || !after->taken || before->gpu != after->gpu || before->instance != after->instance) {
    return abi::kInvalidArgument;
  }
  const double id_max = fake().script.number("driver gpm_id_max", seconds()).value_or(333);
  for (unsigned i = 0; i < request->metric_count; ++i) {
    abi::GpmMetric& metric = request->metrics[i];
    if (metric.id >= id_max) return abi::kInvalidArgument;
    const auto value = gpm_value({after->gpu, after->instance}, metric.id, before->seconds, after->seconds);
    metric.result = value ? abi::kSuccess : abi::kNotSupported;
    metric.value = value.value_or(0);
  }
  return abi::kSuccess;
}

}  // extern "C"
