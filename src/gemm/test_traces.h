#pragma once
// For tests: a trace of tests/fixtures/traces, inflated and read.

#include <string>

#include "base/file.h"
#include "gemm/trace.h"
#include "wire/gzip.h"

namespace flopsight::gemm::test {

inline std::string fixture_text(const std::string& name) {
  const auto bytes = base::read_file(FLOPSIGHT_SOURCE_DIR "/tests/fixtures/traces/" + name);
  const auto text = bytes.ok() ? wire::gunzip(*bytes, std::size_t{64} << 20) : base::Result<std::string>(bytes.error());
  return text.ok() ? *text : "";  // of which no trace is read
}

inline base::Result<TraceSummary> read_text(std::string_view text, const catalog::Device* device = nullptr, std::size_t piece = 100'000) {
  TraceReader reader;
  for (std::size_t at = 0; at < text.size(); at += piece) FLOPSIGHT_RETURN_IF_ERROR(reader.feed(text.substr(at, piece)));
  return reader.finish(catalog::DeviceCatalog::builtin(), device);
}

inline constexpr const char* kFitted = "hta-trace_diff__control__control.trimmed.json.gz";
inline constexpr const char* kScored = "hta-timeline_analysis__sampled_rank-0.json.gz";
inline constexpr const char* kAmd = "hta-amd_trace__mi250_minitoy_train_ROCm6_2_kineto.json.gz";

}  // namespace flopsight::gemm::test
