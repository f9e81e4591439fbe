#pragma once
// What the fake libnvidia-ml answers, as text with a time line. One fact a line; a fact holds until it is set again.
//
//   # seconds since the library was first initialised
//   at 0
//   driver version = 550.54.15
//   gpu 0 name = NVIDIA H100 80GB HBM3
//   gpu 0 sm_clock_mhz = 1755
//   gpu 0 gpm 5 = 52.5
//   at 10
//   gpu 0 state = lost
//
// The words before '=' name the fact; README.md beside this lists those that the library asks for. Another one is kept and asked for by nobody.
// Errors: "line N: …". Threads: immutable after parsing.

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"

namespace flopsight::fake_nvml {

class Script {
 public:
  static base::Result<Script> parse(std::string_view text);

  // What holds at `seconds`; nothing where it was never set. "-" takes a fact back.
  std::optional<std::string> text(const std::string& fact, double seconds) const;
  std::optional<double> number(const std::string& fact, double seconds) const;
  // Mean of a number over [from, to); its value at `to` where these are one.
  std::optional<double> mean(const std::string& fact, double from_seconds, double to_seconds) const;
  // Each setting of the fact in (after, until], in order.
  std::vector<std::pair<double, std::string>> settings(const std::string& fact, double after_seconds, double until_seconds) const;
  // The numbers N of "BEFORE N …" among facts that were set until `seconds`, ascending.
  std::vector<unsigned> numbers_after(const std::string& before, double seconds) const;

 private:
  std::map<std::string, std::vector<std::pair<double, std::string>>> facts_;
};

}  // namespace flopsight::fake_nvml
