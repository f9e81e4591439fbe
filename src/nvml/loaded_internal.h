#pragma once
// What a session holds of the loaded library.

#include "nvml/functions_internal.h"
#include "nvml/session.h"

namespace flopsight::nvml {

struct Session::Loaded {
  void* library = nullptr;
  Functions functions;
  bool initialised = false;
  abi::EventSet events = nullptr;
  ~Loaded();
};

}  // namespace flopsight::nvml
