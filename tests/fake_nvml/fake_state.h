#pragma once
// What all functions of the fake library stand on: the script, the clock, the handles. One lock, held by each function.

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "nvml/abi.h"
#include "script.h"

// What a handle points to: a GPU, or a MIG device of it.
struct flopsight::nvml::abi::OpaqueDevice {
  unsigned gpu = 0;
  unsigned instance = flopsight::nvml::abi::kNoInstance;
};
struct flopsight::nvml::abi::OpaqueGpmSample {
  bool taken = false;
  unsigned gpu = 0;
  unsigned instance = flopsight::nvml::abi::kNoInstance;
  double seconds = 0;
};
struct flopsight::nvml::abi::OpaqueEventSet {
  std::vector<unsigned> gpus;
  std::map<unsigned, double> told_seconds;  // until when events of a GPU were handed out
};

namespace flopsight::fake_nvml {

namespace abi = nvml::abi;

struct Fake {
  std::mutex mutex;
  std::string path;
  Script script;
  std::map<std::string, double> first_seconds;  // by script, of the machine's clock
  bool initialised = false;
  double initialised_seconds = 0;
  std::map<std::pair<unsigned, unsigned>, std::unique_ptr<abi::OpaqueDevice>> handles;
};

Fake& fake();
double machine_seconds();
// Of the time line.
double seconds();
std::string gpu_fact(unsigned gpu, const std::string& fact);
std::string fact_of(const abi::OpaqueDevice& device, const std::string& fact);
// What a function has to answer before it looks at its own fact: 0, or the error that the script tells.
int driver_state(const char* function);
int device_state(abi::Device device, const char* function);
int scripted_failure(const std::string& who, const char* function, double now);
std::vector<unsigned> gpus();
abi::Device handle(unsigned gpu, unsigned instance);
std::vector<abi::Process> scripted_processes(abi::Device device, const std::string& fact);
int number(abi::Device device, const char* function, const std::string& fact, double& out);
int copy(const std::string& text, char* out, unsigned size);
int text(abi::Device device, const char* function, const std::string& fact, char* out, unsigned size);

template <typename Out>
int number(abi::Device device, const char* function, const std::string& fact, Out* out) {
  double value = 0;
  const int code = number(device, function, fact, value);
  if (code == abi::kSuccess) *out = static_cast<Out>(value);
  return code;
}

template <typename Item, typename Convert>
int processes(abi::Device device, const char* function, const std::string& fact, unsigned* count, Item* out, Convert convert) {
  if (const int code = device_state(device, function); code != abi::kSuccess) return code;
  const auto all = scripted_processes(device, fact);
  const bool fits = all.size() <= *count;
  *count = static_cast<unsigned>(all.size());
  if (!fits) return abi::kInsufficientSize;
  for (const abi::Process& process : all) *out++ = convert(process);
  return abi::kSuccess;
}

}  // namespace flopsight::fake_nvml

#define FAKE_LOCK const std::scoped_lock lock(flopsight::fake_nvml::fake().mutex)
