#include "nvml/session.h"

#include <algorithm>

#include <dlfcn.h>

#include "base/text.h"
#include "nvml/loaded_internal.h"

namespace flopsight::nvml {
namespace {

using base::Error;
using base::ErrorCode;

void* look_up(void* library, const char* name) { return dlsym(library, name); }

std::string why_not_initialised(int code) {
  switch (code) {
    case abi::kDriverNotLoaded: return "the NVIDIA kernel driver is not loaded";
    case abi::kLibRmVersionMismatch: return "the library and the loaded kernel driver are of different versions: reboot, or reload the driver";
    case abi::kNoPermission: return "no permission to talk to the NVIDIA driver";
    default: return "nvmlInit_v2 failed with code " + std::to_string(code);
  }
}

// What the loader says names the file already.
Error not_loaded(const std::string& path) {
  const char* said = dlerror();
  return {ErrorCode::kNotFound, base::printable(said == nullptr ? path : said, 400) + " (expected the library of an NVIDIA driver)"};
}

std::string text_of(const char* bytes, std::size_t size) {
  const char* end = std::find(bytes, bytes + size, '\0');
  return base::printable(std::string_view(bytes, static_cast<std::size_t>(end - bytes)), size);
}

template <typename Function>
std::string device_text(Function function, abi::Device device) {
  char bytes[abi::kNameBytes] = {};
  return call(function, device, bytes, static_cast<unsigned>(sizeof bytes)) == abi::kSuccess ? text_of(bytes, sizeof bytes) : "";
}

// "3g.20gb" of "NVIDIA A100-SXM4-40GB MIG 1c.3g.20gb": the profile of the GPU instance, whatever share of it a compute instance has.
std::string profile_of(std::string_view name) {
  constexpr std::string_view kMark = " MIG ";
  const std::size_t at = name.rfind(kMark);
  if (at == std::string_view::npos) return {};
  std::string_view profile = name.substr(at + kMark.size());
  if (const std::size_t dot = profile.find("c."); dot != std::string_view::npos && profile.find('g') > dot) profile.remove_prefix(dot + 2);
  return std::string(profile);
}

}  // namespace

Session::Loaded::~Loaded() {
  if (events != nullptr) call(functions.nvmlEventSetFree, events);
  if (initialised) call(functions.nvmlShutdown);
  // So that a library that was replaced together with its driver is read anew.
  if (library != nullptr) dlclose(library);
}

Session::Session(std::unique_ptr<Loaded> loaded) : loaded_(std::move(loaded)) {}
Session::~Session() = default;

base::Result<std::unique_ptr<Session>> Session::open(const std::string& library_path) {
  const std::string path = library_path.empty() ? kLibraryName : library_path;
  auto loaded = std::make_unique<Loaded>();
  loaded->library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (loaded->library == nullptr) return not_loaded(path);
  Functions& f = loaded->functions;
#define FLOPSIGHT_NVML_LOOK_UP(name, ...) f.name = reinterpret_cast<int (*)(__VA_ARGS__)>(look_up(loaded->library, #name));
  FLOPSIGHT_NVML_FUNCTIONS(FLOPSIGHT_NVML_LOOK_UP)
#undef FLOPSIGHT_NVML_LOOK_UP
  if (f.nvmlInit_v2 == nullptr || f.nvmlDeviceGetCount_v2 == nullptr || f.nvmlDeviceGetHandleByIndex_v2 == nullptr) {
    return Error{ErrorCode::kUnsupported, path + ": no NVML as drivers since 2013 have it (expected nvmlInit_v2)"};
  }
  if (const int code = call(f.nvmlInit_v2); code != abi::kSuccess) {
    return Error{ErrorCode::kUnavailable, path + ": " + why_not_initialised(code)};
  }
  loaded->initialised = true;
  char version[abi::kNameBytes] = {};
  const bool known = call(f.nvmlSystemGetDriverVersion, version, static_cast<unsigned>(sizeof version)) == abi::kSuccess;
  std::unique_ptr<Session> session(new Session(std::move(loaded)));
  if (known) session->driver_version_ = text_of(version, sizeof version);
  return session;
}

int Session::noted(int code) {
  if (absence_of(code) == Absence::kDriverGone && code != abi::kSuccess) driver_gone_ = true;
  return code;
}

std::optional<std::uint32_t> Session::device_count() {
  unsigned count = 0;
  if (noted(call(loaded_->functions.nvmlDeviceGetCount_v2, &count)) != abi::kSuccess) return std::nullopt;
  return count;
}

base::Result<std::vector<Device>> Session::devices() {
  const auto count = device_count();
  if (!count) return Error{ErrorCode::kUnavailable, "the NVIDIA driver does not say how many GPUs there are"};
  if (*count > kDevicesMax) {
    return Error{ErrorCode::kLimit, std::to_string(*count) + " GPUs on one host (expected at most " + std::to_string(kDevicesMax) + ")"};
  }
  std::vector<Device> out;
  for (std::uint32_t i = 0; i < *count; ++i) out.push_back(device_of(i));
  if (driver_gone_) return Error{ErrorCode::kUnavailable, "the NVIDIA driver has gone"};
  return out;
}

Device Session::device_of(std::uint32_t index) {
  const Functions& f = loaded_->functions;
  Device device;
  device.index = index;
  device.gpm_absence = Absence::kNoFunction;
  if (const int code = noted(call(f.nvmlDeviceGetHandleByIndex_v2, index, &device.handle)); code != abi::kSuccess) {
    device.handle = nullptr;
    device.gpm_absence = device.absence = absence_of(code);
    return device;
  }
  device.uuid = device_text(f.nvmlDeviceGetUUID, device.handle);
  device.name = device_text(f.nvmlDeviceGetName, device.handle);
  abi::PciInfo pci{};
  if (call(f.nvmlDeviceGetPciInfo_v3, device.handle, &pci) == abi::kSuccess) device.pci_bus_id = text_of(pci.bus_id, sizeof pci.bus_id);
  unsigned number = 0;
  if (call(f.nvmlDeviceGetMinorNumber, device.handle, &number) == abi::kSuccess) device.minor_number = number;
  const int clock = noted(call(f.nvmlDeviceGetMaxClockInfo, device.handle, abi::kClockSm, &number));
  if (clock == abi::kSuccess && number > 0) device.sm_clock_max = units::megahertz(number);
  // Of the calls so far, this is one that every GPU answers.
  if (absence_of(clock) == Absence::kDeviceLost || absence_of(clock) == Absence::kResetRequired) device.absence = absence_of(clock);
  abi::GpmSupport support{1, 0};
  const int gpm = call(f.nvmlGpmQueryDeviceSupport, device.handle, &support);
  if (gpm != abi::kSuccess) {
    device.gpm_absence = absence_of(gpm);
  } else if (support.is_supported == 0) {
    device.gpm_absence = Absence::kNotSupported;
  } else {
    device.gpm_absence.reset();
  }
  read_instances(device);
  register_xids(device);
  return device;
}

void Session::read_instances(Device& device) {
  const Functions& f = loaded_->functions;
  device.instances.clear();
  unsigned current = 0, pending = 0, most = 0;
  device.mig = noted(call(f.nvmlDeviceGetMigMode, device.handle, &current, &pending)) == abi::kSuccess && current == abi::kFeatureEnabled;
  if (!device.mig || call(f.nvmlDeviceGetMaxMigDeviceCount, device.handle, &most) != abi::kSuccess) return;
  for (unsigned i = 0; i < std::min(most, kInstancesMax); ++i) {
    Instance instance;
    if (call(f.nvmlDeviceGetMigDeviceHandleByIndex, device.handle, i, &instance.handle) != abi::kSuccess) continue;
    if (call(f.nvmlDeviceGetGpuInstanceId, instance.handle, &instance.gpu_instance) != abi::kSuccess) continue;
    // Several compute instances may divide one GPU instance; counters are the GPU instance's.
    const bool known = std::any_of(device.instances.begin(), device.instances.end(),
                                   [&](const Instance& other) { return other.gpu_instance == instance.gpu_instance; });
    if (known) continue;
    instance.profile = profile_of(device_text(f.nvmlDeviceGetName, instance.handle));
    device.instances.push_back(std::move(instance));
  }
  std::sort(device.instances.begin(), device.instances.end(),
            [](const Instance& a, const Instance& b) { return a.gpu_instance < b.gpu_instance; });
}

void Session::register_xids(const Device& device) {
  const Functions& f = loaded_->functions;
  if (reports_xids(device)) return;
  if (loaded_->events == nullptr && call(f.nvmlEventSetCreate, &loaded_->events) != abi::kSuccess) {
    loaded_->events = nullptr;
    return;
  }
  if (call(f.nvmlDeviceRegisterEvents, device.handle, abi::kEventXid, loaded_->events) == abi::kSuccess) reporting_.push_back(device.handle);
}

bool Session::reports_xids(const Device& device) const {
  return std::find(reporting_.begin(), reporting_.end(), device.handle) != reporting_.end();
}

std::vector<XidEvent> Session::take_xids() {
  constexpr int kAtOnce = 256;  // a GPU that floods us is read on at the next call
  std::vector<XidEvent> out;
  abi::EventData event{};
  while (loaded_->events != nullptr && static_cast<int>(out.size()) < kAtOnce &&
         call(loaded_->functions.nvmlEventSetWait_v2, loaded_->events, &event, 0U) == abi::kSuccess) {
    out.push_back({event.device, event.type == abi::kEventXid ? event.data : 0});
  }
  return out;
}

}  // namespace flopsight::nvml
