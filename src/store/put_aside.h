#pragma once
// A damaged database moves out of the way, with its companions, so that a new one can begin and
// nothing is thrown away.

#include <string>

#include "base/result.h"

namespace flopsight::store {

// PATH becomes PATH.damaged-N, the first N that is free; returns that name.
base::Result<std::string> put_aside(const std::string& path);

}  // namespace flopsight::store
