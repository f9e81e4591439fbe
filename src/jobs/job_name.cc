#include "jobs/job_name.h"

#include <charconv>

namespace flopsight::jobs {
namespace {

// What names of pods, jobs and clusters are made of, and what no path gives a meaning to.
bool is_plain(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '_' || c == '.';
}

void append_escaped(std::string& out, std::string_view text) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  for (const char c : text) {
    if (is_plain(c)) {
      out.push_back(c);
    } else {
      const auto byte = static_cast<unsigned char>(c);
      out += {'~', kDigits[byte >> 4], kDigits[byte & 15]};
    }
  }
}

std::optional<std::string> unescaped(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (is_plain(text[i])) {
      out.push_back(text[i]);
      continue;
    }
    unsigned value = 0;
    if (text[i] != '~' || i + 2 >= text.size()) return std::nullopt;
    const auto [end, error] = std::from_chars(text.data() + i + 1, text.data() + i + 3, value, 16);
    if (error != std::errc() || end != text.data() + i + 3) return std::nullopt;
    out.push_back(static_cast<char>(value));
    i += 2;
  }
  return out;
}

}  // namespace

std::string job_text(const samples::Holder& holder) {
  std::string out;
  append_escaped(out, holder.job);
  if (holder.name_space.empty()) return out;
  out += '@';
  append_escaped(out, holder.name_space);
  return out;
}

std::optional<samples::Holder> parse_job_text(std::string_view text) {
  const std::size_t at = text.find('@');
  const auto job = unescaped(text.substr(0, at));
  const auto name_space = at == std::string_view::npos ? std::optional(std::string()) : unescaped(text.substr(at + 1));
  if (!job || !name_space || job->empty()) return std::nullopt;
  samples::Holder holder;
  holder.job = *job;
  holder.name_space = *name_space;
  // One spelling of each.
  return job_text(holder) == text ? std::optional(holder) : std::nullopt;
}

}  // namespace flopsight::jobs
