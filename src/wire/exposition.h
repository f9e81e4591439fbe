#pragma once
// The text that exporters serve: Prometheus text format 0.0.4 and OpenMetrics 1.0, from bytes to
// samples. No packaged C++ parser of it exists, and ingest speed is part of the product, so this
// one is ours.
//
// Cost: one pass; a label block whose bytes were seen before in the same parser (a dcgm-exporter
// repeats one block per GPU for every metric) is recognised by its hash and a byte comparison, and
// not parsed again. The parser keeps those blocks between calls, so one Parser per target is the
// fast way to use it.
//
// Bad input: a malformed line is reported with line and column (both from 1, the column in bytes)
// and skipped; every other line is used. Nothing throws.
//
// Formats: both grammars are accepted in one pass, as exporters mix them: `# EOF`, `# UNIT`,
// exemplars (` # {...} value [timestamp]` after a sample, checked and dropped), quoted names
// (`{"name", "label"="x"}`, and `"label"="x"` after a plain name), CRLF line ends, tabs and repeated
// blanks, a trailing comma in a block, values nan and inf in any case. HELP and UNIT lines carry
// nothing we use and are not checked. Options::format decides how a timestamp is read (whole
// milliseconds in text, seconds with a fraction in OpenMetrics) and what `# EOF` means: in text it
// is only noted; in OpenMetrics its lack is reported, and so is the first line after it, where
// reading stops.
//
// Threads: one Parser, one thread. Lifetime: string_views handed to the sink live for that call
// only, except those reached through a kept LabelSet, which live as long as the Parser (until
// clear()). A sink must not call the Parser that calls it.

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace flopsight::wire {

struct Label {
  std::string_view name;
  std::string_view value;  // escapes resolved, any UTF-8
};

// One distinct label block. Labels stand in the order of the text; the names are distinct (a
// repeated name is malformed). Id 0 is the empty set, of a sample without a block or with `{}`; the
// others count from 1 in order of first sight within one Parser, and are stable until clear(): a
// caller may keep an array by id of what it derived from the labels. Blocks that differ in any byte
// are distinct, even if they say the same, so a caller that compares sets compares labels.
struct LabelSet {
  // The id of a set that found the Parser full (Options::label_sets_max): it lives for one call of
  // the sink only, and nothing may be kept by its id.
  static constexpr std::uint32_t kNotKept = 0xFFFFFFFF;

  std::uint32_t id = 0;
  std::span<const Label> labels;

  bool kept() const { return id != kNotKept; }
};

struct ExpositionSample {
  std::string_view metric;
  const LabelSet* labels = nullptr;  // never null; a sample without a block has the empty set
  double value = 0;  // NaN (quiet) and infinities as written; judging is not done here
  std::optional<std::int64_t> timestamp_milliseconds;
};

struct ExpositionError {
  std::uint64_t line = 0;
  std::uint64_t column = 0;
  // "a label name", "'=' after the label name", "a number", …: one line, and no input in it.
  std::string expected;
};

enum class ExpositionFormat { kPrometheusText, kOpenMetrics };

// Told of each thing found, in the order of the text.
class ExpositionSink {
 public:
  virtual ~ExpositionSink() = default;
  virtual void sample(const ExpositionSample& sample) = 0;
  virtual void malformed(const ExpositionError& error) = 0;
  // `# TYPE metric type`. Units are never taken from HELP or UNIT text (exporters' are wrong).
  virtual void type(std::string_view metric, std::string_view type) { (void)metric, (void)type; }
};

struct ExpositionTotals {
  std::uint64_t lines = 0;  // of the text, blank ones and comments included
  std::uint64_t samples = 0;
  std::uint64_t malformed = 0;
  bool saw_eof_marker = false;
};

class ExpositionParser {
 public:
  struct Options {
    ExpositionFormat format = ExpositionFormat::kPrometheusText;
    // Limits; a line past one is malformed ("at most N labels"), and the rest is used.
    std::uint32_t labels_per_sample_max = 128;
    std::uint32_t label_value_bytes_max = 64 * 1024;
    std::uint32_t line_bytes_max = 1024 * 1024;
    // Distinct blocks kept, at the cost of their bytes and 32 more per label; past it, blocks are
    // parsed anew. Blocks of pods long gone stay, so a Parser that lives for weeks is cleared now
    // and then.
    std::uint32_t label_sets_max = 4'000'000;
  };

  ExpositionParser();
  explicit ExpositionParser(Options options);
  ~ExpositionParser();
  ExpositionParser(ExpositionParser&&) noexcept;
  ExpositionParser& operator=(ExpositionParser&&) noexcept;

  // Parses the whole text. A last line without a newline is accepted.
  ExpositionTotals parse(std::string_view text, ExpositionSink& sink);

  // Forgets all label sets and frees their memory.
  void clear();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// What an HTTP Content-Type header says, or, without one, what the text itself looks like:
// OpenMetrics if it ends with `# EOF`.
ExpositionFormat exposition_format(std::string_view content_type, std::string_view text);

}  // namespace flopsight::wire
