#include <algorithm>

#include "nvml/loaded_internal.h"

namespace flopsight::nvml {
namespace {

using base::Error;
using base::ErrorCode;
using catalog::Metric;

// All ones: "not available", in fields of 64 bits.
constexpr std::uint64_t kNotAvailable = ~std::uint64_t{0};

Value value_of(int code, Metric metric, double scale, double raw) {
  return code == abi::kSuccess ? judged(metric, scale, raw) : Value(absence_of(code));
}

// NVML's way of handing out lists: asked with room for `count`; too little room is an error that says how much is needed.
template <typename Function, typename Item>
int list(Function function, abi::Device device, std::vector<Item>& items) {
  items.resize(32);
  for (;;) {
    unsigned count = static_cast<unsigned>(items.size());
    const int code = call(function, device, &count, items.data());
    if (code == abi::kInsufficientSize && items.size() < kProcessesMax) {
      // Some more, as processes start between two calls.
      items.resize(std::min<std::size_t>(std::max<std::size_t>(count + 16, items.size() * 2), kProcessesMax));
      continue;
    }
    items.resize(code == abi::kSuccess ? std::min<std::size_t>(count, items.size()) : 0);
    return code;
  }
}

void add(std::vector<Process>& out, std::uint32_t pid, std::uint64_t used_bytes, std::uint32_t gpu_instance) {
  Process process{pid, std::nullopt, std::nullopt};
  if (gpu_instance != abi::kNoInstance) process.gpu_instance = gpu_instance;
  if (used_bytes != kNotAvailable) process.used_bytes = used_bytes;
  const bool known = std::any_of(out.begin(), out.end(), [&](const Process& other) {
    return other.pid == pid && other.gpu_instance == process.gpu_instance;
  });
  if (!known) out.push_back(process);
}

template <typename Function>
int add_list(Function function, abi::Device device, std::vector<Process>& out) {
  std::vector<abi::Process> items;
  const int code = list(function, device, items);
  for (const abi::Process& item : items) add(out, item.pid, item.used_bytes, item.gpu_instance);
  return code;
}

}  // namespace

Values Session::read(const Device& device) {
  const Functions& f = loaded_->functions;
  Values values;
  // Not in one expression: a call has to be over before its output is looked at.
  const auto read_number = [&](Metric metric, double scale, auto function, auto... which) {
    unsigned number = 0;
    const int code = noted(call(function, device.handle, which..., &number));
    values[metric] = value_of(code, metric, scale, number);
  };
  const auto read_wide = [&](Metric metric, double scale, auto function) {
    unsigned long long number = 0;
    const int code = call(function, device.handle, &number);
    values[metric] = value_of(code, metric, scale, static_cast<double>(number));
  };
  read_number(Metric::kSmClock, 1e6, f.nvmlDeviceGetClockInfo, abi::kClockSm);
  values[Metric::kSmClockMax] = device.sm_clock_max ? Value(device.sm_clock_max->value) : Value(Absence::kNotSupported);
  read_number(Metric::kPower, 1e-3, f.nvmlDeviceGetPowerUsage);
  read_number(Metric::kPowerLimit, 1e-3, f.nvmlDeviceGetEnforcedPowerLimit);
  read_wide(Metric::kEnergy, 1e-3, f.nvmlDeviceGetTotalEnergyConsumption);
  read_number(Metric::kTemperature, 1, f.nvmlDeviceGetTemperature, abi::kTemperatureGpu);
  // The second is its name before driver 535.
  const bool named_event = f.nvmlDeviceGetCurrentClocksEventReasons != nullptr;
  read_wide(Metric::kEventReasons, 1, named_event ? f.nvmlDeviceGetCurrentClocksEventReasons : f.nvmlDeviceGetCurrentClocksThrottleReasons);
  abi::Utilization utilization{};
  const int code = call(f.nvmlDeviceGetUtilizationRates, device.handle, &utilization);
  values[Metric::kGpuUtil] = value_of(code, Metric::kGpuUtil, 0.01, utilization.gpu);
  values[Metric::kFramebufferUsed] = memory_used({0, {}, device.handle});
  return values;
}

Value Session::memory_used(const Instance& instance) {
  const Functions& f = loaded_->functions;
  abi::MemoryV2 memory{};
  memory.version = abi::kMemoryV2Version;
  int code = call(f.nvmlDeviceGetMemoryInfo_v2, instance.handle, &memory);
  if (code == abi::kFunctionNotFound) {
    abi::Memory before_510{};
    code = call(f.nvmlDeviceGetMemoryInfo, instance.handle, &before_510);
    memory.used = before_510.used;
  }
  return value_of(code, Metric::kFramebufferUsed, 1, static_cast<double>(memory.used));
}

base::Result<std::vector<Process>> Session::processes(const Device& device) {
  const Functions& f = loaded_->functions;
  std::vector<Process> out;
  int code = add_list(f.nvmlDeviceGetComputeRunningProcesses_v3, device.handle, out);
  if (code == abi::kFunctionNotFound) code = add_list(f.nvmlDeviceGetComputeRunningProcesses_v2, device.handle, out);
  if (code == abi::kFunctionNotFound) {
    std::vector<abi::ProcessV1> items;
    code = list(f.nvmlDeviceGetComputeRunningProcesses, device.handle, items);
    for (const abi::ProcessV1& item : items) add(out, item.pid, item.used_bytes, abi::kNoInstance);
  }
  if (code == abi::kInsufficientSize) {
    return Error{ErrorCode::kLimit, "more than " + std::to_string(kProcessesMax) + " processes on one GPU"};
  }
  if (noted(code) != abi::kSuccess) {
    return Error{ErrorCode::kUnavailable, "the driver does not name the processes of the GPU: " + std::string(absence_meaning(absence_of(code)))};
  }
  // Clients of an MPS server, and what draws: where a driver does not know these lists, there is nothing to add.
  add_list(f.nvmlDeviceGetMPSComputeRunningProcesses_v3, device.handle, out);
  add_list(f.nvmlDeviceGetGraphicsRunningProcesses_v3, device.handle, out);
  return out;
}

}  // namespace flopsight::nvml
