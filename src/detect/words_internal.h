#pragma once
// Numbers in the sentences of findings. Threads: pure.

#include <cmath>
#include <cstdio>
#include <string>

namespace flopsight::detect {

inline std::string in_words(const char* format, double value) {
  char text[64];
  std::snprintf(text, sizeof text, format, value);
  return text;
}
inline std::string percent(double ratio) { return in_words("%.1f %%", 100 * ratio); }
inline std::string megahertz_text(double hertz) { return in_words("%.0f MHz", hertz / 1e6); }

}  // namespace flopsight::detect
