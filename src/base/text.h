#pragma once
// Small ASCII text operations that the standard library lacks. Views in, owned strings out.

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace flopsight::base {

inline std::string_view trim(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t\r\n") - first + 1);
}

inline std::string to_lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return out;
}

inline std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  while (true) {
    const std::size_t at = text.find(separator);
    parts.emplace_back(text.substr(0, at));
    if (at == std::string_view::npos) return parts;
    text.remove_prefix(at + 1);
  }
}

// The parts one after another, with `between` between them; nothing before the first that is not empty.
inline std::string joined(const std::vector<std::string>& parts, std::string_view between) {
  std::string out;
  for (const std::string& part : parts) {
    if (!out.empty()) out += between;
    out += part;
  }
  return out;
}

// The whole text as a finite number, or nothing. No leading '+', no spaces, no hexadecimal.
inline std::optional<double> parse_number(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || error != std::errc() || end != text.data() + text.size() || !std::isfinite(value)) {
    return std::nullopt;
  }
  return value;
}

// Whether an escape sequence or an invisible order to the terminal starts here, and how many bytes it has: C0 and C1
// controls, DEL, and the marks that turn the direction of writing (U+200E, U+200F, U+202A to U+202E, U+2066 to
// U+2069).
inline std::size_t control_bytes(std::string_view text) {
  const auto byte = [&](std::size_t i) {
    return i < text.size() ? static_cast<unsigned char>(text[i]) : static_cast<unsigned char>(0);
  };
  if (byte(0) < 0x20 || byte(0) == 0x7f) return 1;
  if (byte(0) == 0xC2 && byte(1) >= 0x80 && byte(1) <= 0x9F) return 2;
  if (byte(0) == 0xE2 && byte(1) == 0x80 &&
      (byte(2) == 0x8E || byte(2) == 0x8F || (byte(2) >= 0xAA && byte(2) <= 0xAE))) {
    return 3;
  }
  if (byte(0) == 0xE2 && byte(1) == 0x81 && byte(2) >= 0xA6 && byte(2) <= 0xA9) return 3;
  return 0;
}

// Text from outside, made safe for one line of a terminal: control characters become '?', and more than
// bytes_max bytes are cut at a character and marked with "...".
inline std::string printable(std::string_view text, std::size_t bytes_max = 200) {
  std::size_t keep = std::min(text.size(), bytes_max);
  while (keep > 0 && keep < text.size() && (static_cast<unsigned char>(text[keep]) & 0xC0) == 0x80) {
    --keep;
  }
  std::string out;
  for (std::size_t i = 0; i < keep;) {
    const std::size_t control = control_bytes(text.substr(i));
    out += control > 0 ? '?' : text[i];
    i += std::max<std::size_t>(control, 1);
  }
  if (keep < text.size()) out += "...";
  return out;
}

}  // namespace flopsight::base
