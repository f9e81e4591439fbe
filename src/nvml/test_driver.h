#pragma once
// The fake libnvidia-ml with a script and a clock that the test turns (tests/fake_nvml).

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include <unistd.h>

namespace flopsight::nvml {

class TestDriver {
 public:
  explicit TestDriver(const std::string& script) {
    std::string name = (std::filesystem::temp_directory_path() / "fake_nvml_XXXXXX").string();
    folder_ = mkdtemp(name.data());
    std::ofstream(folder_ / "script") << script;
    set_seconds(0);
    setenv("FLOPSIGHT_FAKE_NVML_SCRIPT", (folder_ / "script").c_str(), 1);
    setenv("FLOPSIGHT_FAKE_NVML_CLOCK", (folder_ / "clock").c_str(), 1);
  }
  ~TestDriver() { std::filesystem::remove_all(folder_); }
  TestDriver(const TestDriver&) = delete;
  TestDriver& operator=(const TestDriver&) = delete;

  void set_seconds(double seconds) const { std::ofstream(folder_ / "clock") << seconds; }
  const std::filesystem::path& folder() const { return folder_; }

 private:
  std::filesystem::path folder_;
};

// An H100 as GPU `index`, busy at 52.5 % tensor activity.
inline std::string hopper(int index) {
  const std::string gpu = "gpu " + std::to_string(index) + " ";
  std::string out;
  for (const char* fact :
       {"name = NVIDIA H100 80GB HBM3", "gpm = yes", "minor = 3", "sm_clock_mhz = 1755", "sm_clock_max_mhz = 1980", "power_milliwatts = 612500",
        "power_limit_milliwatts = 700000", "energy_millijoules = 123456789", "event_reasons = 4", "temperature_celsius = 61",
        "utilization_percent = 99", "memory_used_bytes = 68719476736", "gpm 1 = 99", "gpm 2 = 91", "gpm 3 = 40", "gpm 5 = 52.5", "gpm 10 = 33",
        "gpm 11 = 0", "gpm 12 = 3", "gpm 13 = 1", "gpm 20 = 512", "gpm 21 = 1024", "gpm 60 = 100", "gpm 61 = 200"}) {
    out += gpu + fact + "\n";
  }
  return out + gpu + "uuid = GPU-0000000" + std::to_string(index) + "-1111-2222-3333-444455556666\n" + gpu + "pci = 00000000:1" +
         std::to_string(index) + ":00.0\n";
}

}  // namespace flopsight::nvml
