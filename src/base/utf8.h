#pragma once
// Whether bytes are UTF-8 by the letter, and how many are: no overlong forms, no surrogates, nothing above U+10FFFF; and what to make of such
// that are not.
// Threads: pure functions.

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace flopsight::base {

// Bytes before the first that is not UTF-8; all of them where there is none.
inline std::size_t utf8_bytes(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  std::size_t at = 0;
  while (at < text.size()) {
    // Names and labels are ASCII nearly always: eight bytes at once.
    std::uint64_t eight = 0;
    if (text.size() - at >= sizeof eight) {
      std::memcpy(&eight, text.data() + at, sizeof eight);
      if ((eight & 0x8080808080808080U) == 0) {
        at += sizeof eight;
        continue;
      }
    }
    const unsigned char lead = byte(at);
    if (lead < 0x80) {
      ++at;
      continue;
    }
    const std::size_t more = lead >= 0xF0 ? 3 : lead >= 0xE0 ? 2 : 1;
    if (lead < 0xC2 || lead > 0xF4 || text.size() - at <= more) return at;
    const unsigned char next = byte(at + 1);
    if ((lead == 0xE0 && next < 0xA0) || (lead == 0xED && next > 0x9F) ||
        (lead == 0xF0 && next < 0x90) || (lead == 0xF4 && next > 0x8F)) {
      return at;
    }
    for (std::size_t i = 1; i <= more; ++i) {
      if ((byte(at + i) & 0xC0) != 0x80) return at;
    }
    at += more + 1;
  }
  return at;
}

inline bool is_utf8(std::string_view text) { return utf8_bytes(text) == text.size(); }

// What is said of a text that is_utf8() denies: "a byte 0xff that is not UTF-8, expected text in UTF-8".
inline std::string not_utf8_text(std::string_view text) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  const auto byte = static_cast<unsigned char>(text[std::min(utf8_bytes(text), text.size() - 1)]);
  return std::string("a byte 0x") + kDigits[byte >> 4] + kDigits[byte & 15] + " that is not UTF-8, expected text in UTF-8";
}

// The text with a '?' for every byte that is part of no character.
inline std::string as_utf8(std::string_view text) {
  std::string out;
  while (true) {
    const std::size_t good = utf8_bytes(text);
    out += text.substr(0, good);
    if (good == text.size()) return out;
    out += '?';
    text.remove_prefix(good + 1);
  }
}

}  // namespace flopsight::base
