#pragma once
// The functions of a loaded library, each of which may be missing.

#include "nvml/abi.h"

namespace flopsight::nvml {

struct Functions {
#define FLOPSIGHT_NVML_DECLARE(name, ...) int (*name)(__VA_ARGS__) = nullptr;
  FLOPSIGHT_NVML_FUNCTIONS(FLOPSIGHT_NVML_DECLARE)
#undef FLOPSIGHT_NVML_DECLARE
};

// What a missing function would say.
template <typename Function, typename... Arguments>
int call(Function function, Arguments... arguments) {
  return function == nullptr ? abi::kFunctionNotFound : function(arguments...);
}

}  // namespace flopsight::nvml
