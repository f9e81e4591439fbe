#pragma once
// For tests: holders in a line. Not part of the program.

#include <string>

#include "samples/gpu.h"

namespace flopsight::jobs {

inline samples::Holder holder(const std::string& job, const std::string& name_space = "", const std::string& user = "") {
  samples::Holder out;
  out.job = job;
  out.name_space = name_space;
  out.user = user;
  return out;
}

}  // namespace flopsight::jobs
