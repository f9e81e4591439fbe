// A pattern file and, behind the first zero byte, a log for it.

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>

#include "training_logs/patterns.h"
#include "training_logs/report.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace flopsight::training_logs;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  const std::size_t zero = bytes.find('\0');
  auto patterns = PatternFile::parse(bytes.substr(0, zero));
  if (!patterns.ok()) {
    if (patterns.error().message.empty() || patterns.error().message.find('\n') != std::string::npos) __builtin_trap();
    return 0;
  }
  Options options;
  options.patterns = std::make_shared<const PatternFile>(std::move(*patterns));
  const Reported reported = read_log(zero == std::string_view::npos ? std::string_view() : bytes.substr(zero + 1), options);
  if (reported.lines_matched > reported.bytes_total) __builtin_trap();
  return 0;
}
