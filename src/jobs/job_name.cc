#include "jobs/job_name.h"

namespace flopsight::jobs {
namespace {

constexpr std::string_view kHex = "0123456789ABCDEF";

// Letters, digits and what names of pods, jobs and clusters are made of stay as they are.
bool is_plain(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '.' || c == '_' ||
         c == '~' || c == '+' || c == ':' || c == '[' || c == ']' || static_cast<unsigned char>(c) >= 0x80;
}

void append_encoded(std::string& out, std::string_view text) {
  for (const char c : text) {
    if (is_plain(c)) {
      out += c;
      continue;
    }
    const auto byte = static_cast<unsigned char>(c);
    out += '%';
    out += kHex[byte >> 4];
    out += kHex[byte & 15];
  }
}

std::optional<std::string> decoded(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      out += text[i];
      continue;
    }
    if (i + 2 >= text.size()) return std::nullopt;
    const std::size_t high = kHex.find(text[i + 1]), low = kHex.find(text[i + 2]);
    if (high == kHex.npos || low == kHex.npos) return std::nullopt;
    out += static_cast<char>(high * 16 + low);
    i += 2;
  }
  return out;
}

}  // namespace

std::string job_text(const samples::Holder& holder) {
  std::string out;
  append_encoded(out, holder.job);
  if (holder.name_space.empty()) return out;
  out += '@';
  append_encoded(out, holder.name_space);
  return out;
}

std::optional<samples::Holder> parse_job_text(std::string_view text) {
  const std::size_t at = text.rfind('@');
  const auto job = decoded(text.substr(0, at));
  const auto name_space = at == std::string_view::npos ? std::optional(std::string()) : decoded(text.substr(at + 1));
  if (!job || !name_space || job->empty()) return std::nullopt;
  samples::Holder holder;
  holder.job = *job;
  holder.name_space = *name_space;
  return holder;
}

}  // namespace flopsight::jobs
