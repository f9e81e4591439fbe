#pragma once
// Text in HTML, SVG and XML. Threads: pure.

#include <string>
#include <string_view>

namespace flopsight::base {

// With no character that is markup, in an element or in a quoted attribute. Control characters stay: printable() is for these.
inline std::string html_escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&': out += "&amp;"; break;
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      case '"': out += "&quot;"; break;
      case '\'': out += "&#39;"; break;
      default: out += c;
    }
  }
  return out;
}

}  // namespace flopsight::base
