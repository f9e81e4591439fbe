#pragma once
// Settings of `flopsight validate`.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cuda/library.h"
#include "http_arguments.h"
#include "validation/sweep.h"

namespace flopsight::app {

struct ValidateArguments : HttpArguments {
  validation::SweepOptions sweep;
  units::Seconds interval{0};  // between readings of the counters
  units::Seconds settle{1};
  bool simulated = false;
  std::string gpu;  // of a simulated run
  std::string exporter;
  int gpu_index = 0;
  cuda::LibraryPaths libraries;
  std::string nvml_library;
  std::string catalog_path;
  std::string out;
  bool force = false;
  bool json = false;
  bool quiet = false;
};

struct ValidateTexts : HttpTexts {
  std::vector<std::string> precisions;
  std::vector<std::string> durations;
  std::string sizes;
  std::optional<std::int64_t> unaligned;
  std::string seed;
  std::string interval;
  std::string settle;
  std::string format = "table";
};

void add_validate(CLI::App& app, ValidateArguments& arguments, ValidateTexts& texts);
std::optional<std::string> set_validate(ValidateArguments& arguments, const ValidateTexts& texts);

}  // namespace flopsight::app
