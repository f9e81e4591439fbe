#include <algorithm>
#include <deque>
#include <utility>

#include "base/text.h"
#include "training_logs/bars_internal.h"
#include "training_logs/documents_internal.h"
#include "training_logs/formats_internal.h"
#include "training_logs/line_internal.h"
#include "training_logs/line_reader_internal.h"
#include "training_logs/patterns_internal.h"
#include "training_logs/runs_internal.h"
#include "training_logs/step_book_internal.h"

namespace flopsight::training_logs {
namespace {

constexpr std::size_t kHeadBytes = 1 << 20;  // kept of a text that may be a document, unless it begins like JSON
constexpr std::size_t kColumnsMax = 4096;

const Words& words() {
  static const Words kBuilt{telling_words()};
  return kBuilt;
}

struct Column {
  std::optional<Field> field;
};

// Lines that go on with the same steps: those of one framework, or of one library beside it.
struct Lines {
  std::string name;
  bool beside = false;
  StepBook book;
  bool has_steps_of_its_own = false;  // and not only averages over many, which would count them twice
  std::string_view silent;            // why lines of it had no figure
  std::vector<std::pair<std::uint32_t, std::size_t>> run_starts;
};

constexpr Format kMlperf{"mlperf", {}, {}, {}, false, false, nullptr, {}, true};
constexpr Format kCsv{"csv", {}, {}, {}};
constexpr Format kBar{"progress-bar", {}, {}, {}, false, false, nullptr, {}, true, "the times are those of a progress bar, which it smooths over the last steps"};
constexpr std::string_view kPatterns = "patterns";
constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

}  // namespace

struct Reader::State {
  explicit State(Options given) : options(std::move(given)), lines([this](std::string_view text, SourceLine at) { line(text, at); }) {
    lines.pick(options.patterns ? nullptr : &words());
  }

  void line(std::string_view raw, SourceLine at);
  void text_line(std::string_view raw, SourceLine at, const std::optional<PrintedTime>& recorded);
  bool header(std::string_view text);
  void row(std::string_view text, SourceLine at);
  bool user_pattern(const Line& line, SourceLine at);
  bool known_format(const Line& line, SourceLine at);
  void found(const Format& format, Extract extract, const Line& line, SourceLine at);
  bool printed(std::string_view text);
  void miss(int score, SourceLine at, std::string_view text, const std::string& why);
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

  Options options;
  LineReader lines;
  std::deque<Lines> series;  // in the order in which they appear
  std::vector<Settings> settings = std::vector<Settings>(1);  // of each run
  Settings recent;           // printed since the last step
  Settings of_line;
  std::vector<FormatSeen> formats_seen;
  std::optional<double> peak;
  std::optional<std::int64_t> block_step;
  std::optional<units::Instant> last_time;
  std::vector<Column> columns;  // of a CSV file; empty otherwise
  std::string head;             // of a text that may be a document
  bool head_whole = true;
  bool several_runs = false;
  bool context_only = false;
  bool in_the_middle = false;
  // A line that is drawn anew counts once, however many times it was.
  void matches_line(SourceLine at) { matched += std::exchange(last_matched, at.line) != at.line ? 1U : 0U; }
  std::uint64_t last_matched = 0, matched = 0, unparsable = 0, unknown_unit = 0, times_without_zone = 0;
  std::string about_unit, about_number, buffer;
  Bars bars;
  int miss_score = 0;
  std::optional<NearestMiss> nearest;
};

// What a user's patterns find is of one run: he says what they are.
Lines& Reader::State::lines_of(const Format& format) {
  const std::string_view name = options.patterns ? kPatterns : !format.series.empty() ? format.series : format.name;
  for (Lines& known : series) {
    if (known.name == name) return known;
  }
  series.push_back({std::string(name), format.beside, StepBook(options.peak_flops_per_second, options.warm_up_steps), false, {}, {}});
  if (in_the_middle) series.back().book.start_in_the_middle();
  return series.back();
}

// Whose steps are given out while the text grows: those of every framework, or where none has any, of what stands for it.
std::vector<Lines*> Reader::State::given() {
  std::vector<Lines*> out;
  Lines* beside = nullptr;
  for (Lines& one : series) {
    if (!one.beside && !one.book.empty()) out.push_back(&one);
    if (one.beside && beside == nullptr && !one.book.empty()) beside = &one;
  }
  if (out.empty() && beside != nullptr) out.push_back(beside);
  return out;
}

std::vector<Taken> Reader::State::take() {
  std::vector<Taken> out;
  for (Lines* const one : given()) {
    std::vector<Step> steps = one->book.take();
    if (!steps.empty()) out.push_back({format(one), std::move(steps)});
  }
  return out;
}

void Reader::State::miss(int score, SourceLine at, std::string_view text, const std::string& why) {
  if (matched > 0 || score <= miss_score) return;
  miss_score = score;
  nearest = NearestMiss{at.line, base::printable(text, 200), why};
}

void Reader::State::found(const Format& format, Extract extract, const Line& line, SourceLine at) {
  unparsable += extract.unparsable;
  unknown_unit += extract.unknown_unit;
  if (extract.unparsable > 0) about_number = extract.about;
  if (extract.unknown_unit > 0) about_unit = extract.about;
  Step& step = extract.step;
  if (format.block) {
    if (step.step) block_step = step.step;
    step.step = block_step;
  }
  const bool silent = extract.figures == 0 && !extract.silent.empty();
  if (extract.figures == 0 && !silent && !(format.block && step.loss && step.step)) {
    if (format.block && step.step) {
      matches_line(at);
      return;
    }
    miss(3, at, line.text,
         "a line of " + std::string(format.name) +
             (extract.about.empty() ? ", and none of its figures" : ", and the figure after '" + extract.about + "' cannot be used"));
    return;
  }
  matches_line(at);
  Lines& of = lines_of(format);
  const auto known = std::find_if(formats_seen.begin(), formats_seen.end(), [&](const FormatSeen& f) { return f.name == format.name; });
  if (known == formats_seen.end()) {
    formats_seen.push_back({std::string(format.name), of.name, format.note, 1});
  } else {
    ++known->lines;
  }
  if (silent) of.silent = extract.silent;
  if (silent || context_only || (extract.average && of.has_steps_of_its_own)) return;
  of.has_steps_of_its_own |= !extract.average;
  recent.clear();
  step.source = at;
  step.batch_samples = batch_beside(line.text);
  if (!step.rank) step.rank = line.rank;
  if (!step.peak_flops_per_second) step.peak_flops_per_second = peak;
  if (!step.time && line.time) {
    step.time = instant_of(*line.time, options.zone, last_time);
    step.is_zone_assumed = step.time && !line.time->offset_seconds;
    if (!step.time) ++times_without_zone;
  }
  if (step.time) last_time = step.time;
  if (format.before_numbered && !step.step) {
    of.book.add_before(std::move(step));
  } else {
    of.book.add(std::move(step));
  }
}

// What the line prints about the job. Other sizes of the model, or another number of GPUs, after steps were printed: another run.
bool Reader::State::printed(std::string_view text) {
  of_line.clear();
  const bool any = read_settings(text, of_line, peak);
  if (of_line.empty()) return any;
  for (const auto& [name, value] : of_line) set(recent, name, value);
  const bool has_steps = std::any_of(series.begin(), series.end(), [](const Lines& one) {
    return !one.book.empty() && (one.run_starts.empty() || one.book.has_steps_since(one.run_starts.back().first));
  });
  if (has_steps && !context_only && is_of_another_run(settings.back(), of_line)) {
    settings.push_back(recent);
    for (Lines& one : series) {
      if (one.book.empty()) continue;
      one.book.begin_run();
      one.run_starts.emplace_back(one.book.attempt(), settings.size() - 1);
    }
  }
  for (const auto& [name, value] : of_line) set(settings.back(), name, value);
  return any;
}

bool Reader::State::user_pattern(const Line& line, SourceLine at) {
  if (!options.patterns) return false;
  std::optional<PatternMatch> match = training_logs::match(*options.patterns, line.text);
  if (!match) return false;
  Line said = line;
  if (match->time) said.time = match->time;
  if (match->rank) said.rank = match->rank;
  Format format;
  format.name = options.patterns->name(match->pattern);
  found(format, std::move(match->extract), said, at);
  return true;
}

bool Reader::State::known_format(const Line& line, SourceLine at) {
  const bool any = options.format.empty();
  if (any || options.format == kMlperf.name) {
    Extract extract;
    const std::size_t before = settings.back().size();
    if (read_mllog(line.text, settings.back(), extract)) {
      if (extract.figures > 0 || extract.unparsable > 0) {
        found(kMlperf, std::move(extract), line, at);
      } else if (settings.back().size() > before) {
        matches_line(at);
      }
      return true;
    }
  }
  std::optional<Extract> bar = any || options.format == kBar.name ? bars.take(line.text, !any) : std::nullopt;
  for (const Format& format : formats()) {
    if ((!any && format.name != options.format) || !matches(format, line.text)) continue;
    Extract extract;
    training_logs::extract(format, line.text, extract);
    if (format.told_by_trainer) extract.average ? bars.training_ended() : bars.loss_told();
    found(format, std::move(extract), line, at);
    return true;
  }
  if (!bar || bar->figures == 0) return false;
  found(kBar, std::move(*bar), line, at);
  return true;
}

// A table of a logger: names of columns that are known, and a column for the step.
bool Reader::State::header(std::string_view text) {
  const std::vector<std::string> names = base::split(text, ',');
  if (names.size() < 2 || names.size() > kColumnsMax) return false;
  bool step = false;
  bool figure = false;
  std::vector<Column> found_columns;
  for (const std::string& name : names) {
    const Field* field = column_field(base::trim(name));
    found_columns.push_back({field == nullptr ? std::optional<Field>() : *field});
    if (field == nullptr) continue;
    (field->meaning == Meaning::kStep ? step : figure) = true;
  }
  if (!step || !figure) return false;
  columns = std::move(found_columns);
  lines.pick(nullptr);
  return true;
}

void Reader::State::row(std::string_view text, SourceLine at) {
  Extract extract;
  std::size_t column = 0;
  for (std::size_t begin = 0; begin <= text.size() && column < columns.size(); ++column) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    const std::string_view cell = base::trim(text.substr(begin, end - begin));
    begin = end + 1;
    const std::optional<Field>& field = columns[column].field;
    if (!field || cell.empty()) continue;
    const Printed number = read_number(cell);
    if (number.value && number.size == cell.size() &&
        put(extract.step, field->meaning, *number.value, *parse_unit(field->unit))) {
      if (field->meaning != Meaning::kStep) ++extract.figures;
    } else {
      ++extract.unparsable;
      extract.about = std::string(field->key);
    }
  }
  // Loggers write a row for each kind of metric: one without a figure of ours is not a mistake.
  if (extract.figures > 0 || extract.unparsable > 0) found(kCsv, std::move(extract), Line{text, {}, {}}, at);
}

void Reader::State::line(std::string_view raw, SourceLine at) {
  if (!columns.empty()) return row(raw, at);
  if (at.offset_bytes == 0 && raw.starts_with(kByteOrderMark)) raw.remove_prefix(kByteOrderMark.size());
  if (at.offset_bytes == 0 && options.format.empty() && header(raw)) return;
  // A user's own patterns are for the text as it is.
  const std::optional<Recorded> record = options.patterns ? std::nullopt : recorded_line(raw);
  if (!record) return text_line(raw, at, std::nullopt);
  std::string_view rest = record->text;
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find_first_of("\n\r"), rest.size());
    if (end > 0) text_line(rest.substr(0, end), at, record->time);
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
}

void Reader::State::text_line(std::string_view raw, SourceLine at, const std::optional<PrintedTime>& recorded) {
  Line cleaned = clean_line(raw, buffer);
  if (recorded && (!cleaned.time || !cleaned.time->offset_seconds)) cleaned.time = recorded;
  const bool said = user_pattern(cleaned, at) || known_format(cleaned, at);
  if (printed(cleaned.text) && !said) matches_line(at);
  if (said || matched > 0) return;
  for (const Format& format : formats()) {
    for (const std::string_view word : format.all) {
      if (word.size() > 3 && cleaned.text.find(word) != std::string_view::npos) {
        miss(2, at, cleaned.text, "it has '" + std::string(word) + "' as lines of " + std::string(format.name) + " have, and not the rest of one");
      }
    }
  }
  const std::string lower = base::to_lower(cleaned.text);
  for (const std::string_view word : telling_words()) {
    if (lower.find(word) != std::string::npos) {
      miss(1, at, cleaned.text, "it speaks of '" + std::string(word) + "' in a wording that is not known; a pattern file can read it");
      break;
    }
  }
}

void Reader::State::document() {
  if (matched > 0 || !head_whole || !options.format.empty()) return;
  if (head.starts_with(kByteOrderMark)) head.erase(0, kByteOrderMark.size());
  std::optional<Document> read;
  if (base::trim(head).substr(0, 1) == "{") {
    read = read_golden_values(head);
  } else if (head.find("last_10_steps_") != std::string::npos) {
    read = read_verification_card(head);
  }
  if (!read) return;
  matched = read->steps.size();
  several_runs = read->several_runs;
  Format format;
  format.name = read->format;
  Lines& of = lines_of(format);
  formats_seen.push_back({read->format, of.name, {}, matched});
  for (const auto& [name, value] : read->settings) set(settings.back(), name, value);
  for (Step& step : read->steps) of.book.add(std::move(step));
  nearest.reset();
}

// The one that most lines had.
std::string Reader::State::format(const Lines* of) const {
  const FormatSeen* most = nullptr;
  for (const FormatSeen& seen : formats_seen) {
    if (of != nullptr && seen.series == of->name && (most == nullptr || seen.lines > most->lines)) most = &seen;
  }
  return most == nullptr ? std::string() : most->name;
}

// Sentences for people.
void Reader::State::say(Reported& out) const {
  std::vector<std::string>& notes = out.notes;
  if (!out.runs.empty()) {
    std::string runs;
    for (const LoggedRun& run : out.runs) {
      runs += (runs.empty() ? "" : ", ") + run.label + " (" + std::to_string(run.steps_used) + " of " + std::to_string(run.steps_total) + " steps used)";
    }
    notes.push_back("it holds " + std::to_string(out.runs.size()) + " runs, which are kept apart: " + runs);
  }
  for (const FormatSeen& seen : formats_seen) {
    if (!seen.note.empty()) notes.emplace_back(seen.note);
    if (seen.name != out.format) notes.push_back("also " + std::to_string(seen.lines) + " lines of " + seen.name);
  }
  for (const Lines& one : series) {
    if (one.book.total() == 0 && !one.silent.empty()) notes.emplace_back(one.silent);
  }
  if (unknown_unit > 0) notes.push_back("the figure after '" + about_unit + "' has no unit that is known, and is left out");
  if (unparsable > 0) notes.push_back("the figure after '" + about_number + "' could not be read everywhere");
  if (std::any_of(series.begin(), series.end(), [](const Lines& one) { return one.book.printed_zero(); })) {
    notes.emplace_back("a rate printed as 0 is taken as not known");
  }
  if (times_without_zone > 0) notes.emplace_back("dates have no offset, and no time zone was given: steps have no time");
  if (lines.cut() > 0) notes.push_back(std::to_string(lines.cut()) + " lines were longer than 64 KiB and cut");
  if (out.steps_dropped > 0) notes.emplace_back("too many steps to keep: the summary is over evenly thinned ones");
}

Reader::Reader(Options options) : state_(std::make_unique<State>(std::move(options))) {}
Reader::~Reader() = default;
Reader::Reader(Reader&&) noexcept = default;
Reader& Reader::operator=(Reader&&) noexcept = default;

void Reader::feed(std::string_view bytes) {
  State& state = *state_;
  if (state.head_whole && !state.context_only && !bytes.empty()) {
    const std::string_view begins = base::trim(state.head.empty() ? bytes.substr(0, 64) : std::string_view(state.head).substr(0, 64));
    const std::size_t most = begins.substr(0, 1) == "{" ? Limits::document_bytes_max : kHeadBytes;
    state.head_whole = state.head.size() + bytes.size() <= most;
    if (state.head_whole) {
      state.head.append(bytes);
    } else {
      state.head = std::string();
    }
  }
  state.lines.feed(bytes);
}

std::vector<Taken> Reader::take() { return state_->take(); }

std::vector<Taken> Reader::close_open() {
  for (Lines& one : state_->series) one.book.finish();
  return take();
}

std::vector<Taken> Reader::close() {
  state_->lines.finish();
  state_->document();
  return close_open();
}

SourceLine Reader::resume_at() const {
  SourceLine first{state_->lines.whole_lines_end_bytes(), state_->lines.lines() + 1};
  for (const Lines* const one : state_->given()) first = one->book.resume_at(first);
  return first;
}

void Reader::resume(std::string_view head, SourceLine at) {
  State& state = *state_;
  state.context_only = true;
  state.lines.feed(head);
  state.context_only = false;
  state.head_whole = false;
  state.lines.start_at(at);
  state.block_step.reset();
  state.last_time.reset();
  state.in_the_middle = true;
  for (Lines& one : state.series) one.book.start_in_the_middle();
}

std::string Reader::format() const {
  const std::vector<Lines*> of = state_->given();
  return of.empty() ? state_->format(state_->series.empty() ? nullptr : &state_->series.front()) : state_->format(of.front());
}
const Settings& Reader::settings() const { return state_->settings.back(); }

void Reader::drop_tail() { state_->lines.drop_tail(); }

Reported Reader::finish() {
  State& state = *state_;
  state.lines.finish();
  state.document();
  std::vector<Series> series;
  for (Lines& one : state.series) {
    one.book.finish();
    series.push_back({one.name, one.beside, one.book.take(), one.run_starts});
  }
  Separated separated;
  Reported out;
  if (state.several_runs) {
    out.steps = std::move(series.front().steps);
  } else {
    separated = separate(std::move(series), state.settings, state.peak);
    out.steps = std::move(separated.steps);
  }
  out.runs = std::move(separated.runs);
  out.several_runs = state.several_runs || !out.runs.empty();
  out.summary = separated.summary;
  const Lines* const main = separated.main < state.series.size() ? &state.series[separated.main] : nullptr;
  for (const Lines& one : state.series) {
    const bool counts = out.runs.empty() ? &one == main : !one.beside;
    if (!counts) continue;
    out.steps_total += one.book.total();
    out.steps_dropped += one.book.dropped();
    out.attempts += one.book.attempts();
    for (std::size_t i = 0; i < kExclusionCount; ++i) out.excluded[i] += one.book.count(static_cast<Exclusion>(i));
  }
  if (!out.runs.empty()) {
    out.steps_total = out.runs.size();
    out.steps_dropped = 0;
  }
  out.excluded[static_cast<std::size_t>(Exclusion::kUnparsable)] = state.unparsable;
  out.excluded[static_cast<std::size_t>(Exclusion::kUnknownUnit)] = state.unknown_unit;
  out.bytes_total = state.lines.bytes();
  out.lines_total = state.lines.lines();
  out.lines_matched = state.matched;
  out.times_without_zone = state.times_without_zone;
  out.settings = std::move(state.settings.front());
  if (out.runs.empty()) tell_batches(out.steps, out.settings);
  out.format = state.format(main);
  state.say(out);
  if (out.lines_matched == 0) out.nearest_miss = std::move(state.nearest);
  return out;
}

Reported read_log(std::string_view text, const Options& options) {
  Reader reader(options);
  reader.feed(text);
  return reader.finish();
}

}  // namespace flopsight::training_logs
