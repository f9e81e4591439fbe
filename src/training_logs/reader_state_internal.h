#pragma once
// What a Reader keeps: the lines of each framework, what was printed about the job, and what is told of it all. Knows what a line means for
// the steps; not how lines or figures are read.

#include <array>
#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "training_logs/bars_internal.h"
#include "training_logs/formats_internal.h"
#include "training_logs/line_internal.h"
#include "training_logs/line_reader_internal.h"
#include "training_logs/report.h"
#include "training_logs/step_book_internal.h"
#include "training_logs/table_internal.h"

namespace flopsight::training_logs {

// Lines that go on with the same steps: those of one framework, or of one library beside it.
struct Lines {
  std::string name;
  bool beside = false;
  StepBook book;
  bool has_steps_of_its_own = false;  // and not only averages over many, which would count them twice
  std::string_view silent;            // why lines of it had no figure
  std::vector<std::pair<std::uint32_t, std::size_t>> run_starts;
  std::optional<Step> told_end;  // what the Trainer said at the end of a run, where nothing came since
};

struct Reader::State {
  explicit State(Options given);

  void line(std::string_view raw, SourceLine at);
  bool joins_part(std::string_view raw, SourceLine at);
  void whole_line(std::string_view raw, SourceLine at);
  void text_line(std::string_view raw, SourceLine at, const Recorded* record);
  void row(std::string_view text, SourceLine at);
  bool user_pattern(const Line& line, SourceLine at);
  bool known_format(const Line& line, SourceLine at);
  void found(const Format& format, Extract extract, const Line& line, SourceLine at);
  bool printed(std::string_view text);
  // What comes now is of another run, of which these settings are known.
  void begin_run(Settings known);
  void miss(int score, SourceLine at, std::string_view text, const std::string& why);
  void tell_miss(SourceLine at, std::string_view text);
  void document();
  Lines& lines_of(const Format& format);
  std::vector<Lines*> given();
  std::vector<Taken> take();
  std::string format(const Lines* of) const;
  void say(Reported& out) const;

  struct FormatSeen {
    std::string name;
    std::string series;
    std::string_view note;
    std::uint64_t lines = 0;
  };

  // A line of a container's runtime that goes on.
  struct Part {
    std::string text;
    SourceLine at;
  };

  Options options;
  std::array<Part, 2> parts;  // of standard output and of standard error
  std::uint64_t cut_documents = 0;
  LineReader lines;
  std::deque<Lines> series;  // in the order in which they appear
  std::vector<Settings> settings = std::vector<Settings>(1);  // of each run
  Settings recent;           // printed since the last step
  Settings of_line;
  std::vector<FormatSeen> formats_seen;
  std::optional<double> peak;
  std::optional<std::int64_t> block_step;
  std::optional<units::Instant> last_time;
  Table table;                  // of a CSV file; empty otherwise
  std::string head;             // of a text that may be a document
  bool head_whole = true;
  bool several_runs = false;
  bool is_end_broken = false;  // a figure or setting was left out, as the last line has no end
  bool context_only = false;
  bool in_the_middle = false;
  // A line that is drawn anew counts once, however many times it was.
  void matches_line(SourceLine at) { matched += std::exchange(last_matched, at.line) != at.line ? 1U : 0U; }
  std::uint64_t last_matched = 0, matched = 0, of_validation = 0, unparsable = 0, unknown_unit = 0, times_without_zone = 0, times_in_other_forms = 0;
  std::string about_unit, about_number, buffer;
  Bars bars;
  int miss_score = 0;
  std::optional<NearestMiss> nearest;
};

}  // namespace flopsight::training_logs
