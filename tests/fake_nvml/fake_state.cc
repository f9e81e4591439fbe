#include "fake_state.h"

#include <cstdlib>
#include <cstring>
#include <ctime>

#include "base/file.h"
#include "base/text.h"

namespace flopsight::fake_nvml {

Fake& fake() {
  // Never destroyed: a thread of the program may hang in here when the process ends.
  static Fake* const one = new Fake();
  return *one;
}

double machine_seconds() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) * 1e-9;
}

double seconds() {
  const char* clock = std::getenv("FLOPSIGHT_FAKE_NVML_CLOCK");
  if (clock == nullptr) return machine_seconds() - fake().first_seconds[fake().path];
  const auto text = base::read_file(clock);
  return text.ok() ? base::parse_number(base::trim(*text)).value_or(0) : 0;
}

std::string gpu_fact(unsigned gpu, const std::string& fact) { return "gpu " + std::to_string(gpu) + " " + fact; }

// "driver fails NAME = CODE", "gpu N fails NAME = CODE".
int scripted_failure(const std::string& who, const char* function, double now) {
  return static_cast<int>(fake().script.number(who + " fails " + function, now).value_or(abi::kSuccess));
}

int driver_state(const char* function) {
  while (fake().script.text("driver hang", seconds()).value_or("off") == "on") {
    const timespec moment{0, 10'000'000};
    nanosleep(&moment, nullptr);
  }
  const double now = seconds();
  const std::string state = fake().script.text("driver state", now).value_or("ready");
  if (state == "not_loaded") return abi::kDriverNotLoaded;
  if (state == "mismatch") return abi::kLibRmVersionMismatch;
  if (!fake().initialised) return abi::kUninitialized;
  // A restart between two calls: whoever was initialised before is not any more.
  if (!fake().script.settings("driver restart", fake().initialised_seconds, now).empty()) return abi::kUninitialized;
  return scripted_failure("driver", function, now);
}

// GPUs that have a name now, in order; "gpu N state = absent" takes one away.
std::vector<unsigned> gpus() {
  std::vector<unsigned> out;
  const double now = seconds();
  for (const unsigned gpu : fake().script.numbers_after("gpu", now)) {
    if (fake().script.text(gpu_fact(gpu, "state"), now).value_or("ok") != "absent") out.push_back(gpu);
  }
  return out;
}

int gpu_state(unsigned gpu, const char* function) {
  const double now = seconds();
  const std::string state = fake().script.text(gpu_fact(gpu, "state"), now).value_or("ok");
  if (state == "lost" || state == "absent") return abi::kGpuIsLost;
  if (state == "reset_required") return abi::kResetRequired;
  return scripted_failure("gpu " + std::to_string(gpu), function, now);
}

int device_state(abi::Device device, const char* function) {
  if (const int code = driver_state(function); code != abi::kSuccess) return code;
  return device == nullptr ? abi::kInvalidArgument : gpu_state(device->gpu, function);
}

std::string fact_of(const abi::OpaqueDevice& device, const std::string& fact) {
  if (device.instance == abi::kNoInstance) return gpu_fact(device.gpu, fact);
  return gpu_fact(device.gpu, "instance " + std::to_string(device.instance) + " " + fact);
}

int number(abi::Device device, const char* function, const std::string& fact, double& out) {
  if (const int code = device_state(device, function); code != abi::kSuccess) return code;
  const auto value = fake().script.number(fact_of(*device, fact), seconds());
  if (!value) return abi::kNotSupported;
  out = *value;
  return abi::kSuccess;
}


int copy(const std::string& text, char* out, unsigned size) {
  if (text.size() + 1 > size) return abi::kInsufficientSize;
  std::memcpy(out, text.c_str(), text.size() + 1);
  return abi::kSuccess;
}

int text(abi::Device device, const char* function, const std::string& fact, char* out, unsigned size) {
  if (const int code = device_state(device, function); code != abi::kSuccess) return code;
  const auto value = fake().script.text(fact_of(*device, fact), seconds());
  return value ? copy(*value, out, size) : abi::kNotSupported;
}

// "PID:BYTES:INSTANCE PID:BYTES …"; bytes and instance may be left out.
std::vector<abi::Process> scripted_processes(abi::Device device, const std::string& fact) {
  std::vector<abi::Process> out;
  for (const std::string& item : base::split(fake().script.text(gpu_fact(device->gpu, fact), seconds()).value_or(""), ' ')) {
    if (item.empty()) continue;
    const auto parts = base::split(item, ':');
    const auto part = [&](std::size_t i) { return i < parts.size() ? base::parse_number(parts[i]) : std::nullopt; };
    abi::Process process{static_cast<std::uint32_t>(part(0).value_or(0)), ~std::uint64_t{0}, abi::kNoInstance, abi::kNoInstance};
    if (part(1)) process.used_bytes = static_cast<std::uint64_t>(*part(1));
    if (part(2)) process.gpu_instance = static_cast<std::uint32_t>(*part(2));
    out.push_back(process);
  }
  return out;
}



abi::Device handle(unsigned gpu, unsigned instance) {
  auto& slot = fake().handles[{gpu, instance}];
  if (!slot) slot.reset(new abi::OpaqueDevice{gpu, instance});
  return slot.get();
}

}  // namespace flopsight::fake_nvml
