// Any bytes as an exposition. The parser that remembers blocks, cold and warm, must say the same as
// one that may keep none, and every complaint must point into its line. The first byte chooses the
// options.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "base/check.h"
#include "wire/exposition.h"

namespace {

using flopsight::wire::ExpositionError;
using flopsight::wire::ExpositionFormat;
using flopsight::wire::ExpositionParser;
using flopsight::wire::ExpositionSample;
using flopsight::wire::ExpositionSink;
using flopsight::wire::ExpositionTotals;
using flopsight::wire::Label;

// All that was said, as bytes, so that NaN equals NaN.
struct Transcript : ExpositionSink {
  void sample(const ExpositionSample& sample) override {
    ++samples;
    add("sample", sample.metric);
    for (const Label& label : sample.labels->labels) {
      FLOPSIGHT_CHECK(!label.name.empty());
      add(label.name, label.value);
    }
    number(&sample.value, sizeof sample.value);
    const std::int64_t time = sample.timestamp_milliseconds.value_or(-1);
    number(&time, sizeof time);
  }
  void malformed(const ExpositionError& error) override {
    add("malformed", error.expected);
    number(&error.line, sizeof error.line);
    number(&error.column, sizeof error.column);
    errors.push_back(error);
  }
  void type(std::string_view metric, std::string_view type) override {
    add("type", metric);
    add("", type);
  }
  void add(std::string_view a, std::string_view b) {
    bytes.append(a).append(1, '\0').append(b).append(1, '\0');
  }
  void number(const void* data, std::size_t size) {
    bytes.append(static_cast<const char*>(data), size);
  }

  std::string bytes;
  std::size_t samples = 0;
  std::vector<ExpositionError> errors;
};

void check_places(std::string_view text, const Transcript& transcript,
                  const ExpositionTotals& totals) {
  std::vector<std::size_t> line_bytes;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t newline = std::min(text.find('\n', at), text.size());
    line_bytes.push_back(newline - at);
    at = newline + 1;
  }
  line_bytes.push_back(0);  // where a missing `# EOF` is reported
  std::uint64_t last_line = 0;
  for (const ExpositionError& error : transcript.errors) {
    FLOPSIGHT_CHECK(error.line > last_line && error.line <= line_bytes.size());
    FLOPSIGHT_CHECK(error.column >= 1 && error.column <= line_bytes[error.line - 1] + 1);
    FLOPSIGHT_CHECK(!error.expected.empty());
    FLOPSIGHT_CHECK(error.expected.find_first_of("%\n") == std::string::npos);
    last_line = error.line;
  }
  FLOPSIGHT_CHECK(totals.malformed == transcript.errors.size());
  FLOPSIGHT_CHECK(totals.samples == transcript.samples);
  FLOPSIGHT_CHECK(totals.lines <= line_bytes.size() - 1);
}

// Every line that is neither blank nor a comment is either a sample or malformed, and only one of
// them.
void check_accounts(std::string_view text, const Transcript& transcript,
                    const ExpositionTotals& totals) {
  std::size_t content_lines = 0;
  std::size_t content_errors = 0;
  auto error = transcript.errors.begin();
  for (std::uint64_t number = 1; number <= totals.lines; ++number) {
    const std::size_t newline = text.find('\n');
    std::string_view line = text.substr(0, newline);
    text.remove_prefix(newline == std::string_view::npos ? text.size() : newline + 1);
    if (line.ends_with('\r')) line.remove_suffix(1);
    const std::size_t first = line.find_first_not_of(" \t");
    const bool content = first != std::string_view::npos && line[first] != '#';
    const bool wrong = error != transcript.errors.end() && error->line == number;
    if (content) ++content_lines;
    if (content && wrong) ++content_errors;
    if (wrong) ++error;
  }
  FLOPSIGHT_CHECK(totals.samples + content_errors == content_lines);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::uint8_t choice = data[0];
  // An own copy of exactly this size, so that a read past the end is seen.
  const std::vector<char> copy(data + 1, data + size);
  const std::string_view text(copy.data(), copy.size());

  ExpositionParser::Options options;
  if ((choice & 1) != 0) options.format = ExpositionFormat::kOpenMetrics;
  if ((choice & 2) != 0) options.labels_per_sample_max = 2;
  if ((choice & 4) != 0) options.label_value_bytes_max = 4;
  if ((choice & 8) != 0) options.line_bytes_max = 60;
  if ((choice & 16) != 0) options.label_sets_max = 2;
  ExpositionParser::Options forgetful = options;
  forgetful.label_sets_max = 0;

  Transcript slow;
  const ExpositionTotals totals = ExpositionParser(forgetful).parse(text, slow);
  check_places(text, slow, totals);
  check_accounts(text, slow, totals);

  ExpositionParser parser(options);
  for (int scrape = 0; scrape < 3; ++scrape) {
    Transcript fast;
    const ExpositionTotals again = parser.parse(text, fast);
    FLOPSIGHT_CHECK(fast.bytes == slow.bytes);
    FLOPSIGHT_CHECK(again.lines == totals.lines && again.samples == totals.samples);
    FLOPSIGHT_CHECK(again.saw_eof_marker == totals.saw_eof_marker);
  }
  return 0;
}
