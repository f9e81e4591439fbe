// Any bytes as an exposition: the lines of the wanted metrics give the samples of those metrics that the whole text gives. The service's log has no
// more of a scrape.
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include "base/check.h"
#include "wire/exposition.h"
#include "wire/exposition_lines.h"

namespace {

using namespace flopsight::wire;

bool is_wanted(std::string_view metric) { return metric.starts_with("DCGM_") || metric.size() % 5 == 0; }

// Samples that are wanted, as bytes, so that NaN equals NaN.
struct Wanted : ExpositionSink {
  void sample(const ExpositionSample& sample) override {
    if (!is_wanted(sample.metric)) return;
    bytes.append(sample.metric).append(1, '\0');
    for (const Label& label : sample.labels->labels) bytes.append(label.name).append(1, '\0').append(label.value).append(1, '\0');
    char value[sizeof sample.value];
    std::memcpy(value, &sample.value, sizeof value);
    bytes.append(value, sizeof value).append(std::to_string(sample.timestamp_milliseconds.value_or(-1)));
  }
  void malformed(const ExpositionError&) override {}

  std::string bytes;
};

std::string wanted_of(std::string_view text, ExpositionFormat format) {
  ExpositionParser::Options options;
  options.format = format;
  ExpositionParser parser(options);
  Wanted wanted;
  parser.parse(text, wanted);
  return wanted.bytes;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  std::string lines;
  append_lines_of(text, is_wanted, lines);
  FLOPSIGHT_CHECK(lines.size() <= text.size() + 1);  // a last line may have had no end
  for (const ExpositionFormat format : {ExpositionFormat::kPrometheusText, ExpositionFormat::kOpenMetrics}) {
    FLOPSIGHT_CHECK(wanted_of(text, format) == wanted_of(lines, format));
  }
  return 0;
}
