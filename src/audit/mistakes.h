#pragma once
// Known ways to miscount the FLOPs of a token that are a set of counting rules. Threads: pure.

#include <span>
#include <string_view>

#include "flops/rules.h"

namespace flopsight::audit {

struct Mistake {
  std::string_view id;
  void (*set)(flops::CountingRules& rules);
  std::string_view explanation;
  std::string_view source;
};

// Variants of a mistake share an id.
std::span<const Mistake> mistakes();

// Whether a counter with these rules makes the mistake.
bool makes(const flops::CountingRules& rules, const Mistake& mistake);

}  // namespace flopsight::audit
