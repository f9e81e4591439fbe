#pragma once
// Patterns that a user wrote for a trainer that nobody else has: regular expressions with named groups, and the unit of each.
//
//   patterns:
//     - name: ourtrainer
//       regex: 'it (?P<step>\d+) t=(?P<step_time>[\d.]+) mfu=(?P<mfu>[\d.]+)'
//       units: {step_time: ms, mfu: "%"}
//       contains: 'mfu='                # optional: a word that a line must have, looked up first
//       time_format: '%Y-%m-%d %H:%M:%S' # of the group "time"; "unix", "unix_ms" and "rfc3339" are forms as well
//
// Groups: step, rank, time, loss, mfu, flops_per_gpu, tokens_per_gpu, tokens, samples, step_time, batches, peak. All but the first four
// need a unit (docs/training-logs.md has the list).
//
// The expressions are RE2's: their time grows with the text and no faster, whatever a user writes.

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"

namespace flopsight::training_logs {

class PatternFile {
 public:
  static constexpr std::size_t patterns_max = 100;

  // Errors: kInvalid and kLimit with the line, saying what was expected.
  static base::Result<PatternFile> parse(std::string_view text);

  PatternFile(PatternFile&&) noexcept;
  PatternFile& operator=(PatternFile&&) noexcept;
  ~PatternFile();

  std::size_t size() const;
  std::string_view name(std::size_t pattern) const;

  struct Data;
  const Data& data() const { return *data_; }

 private:
  explicit PatternFile(std::unique_ptr<const Data> data);
  std::unique_ptr<const Data> data_;
};

}  // namespace flopsight::training_logs
