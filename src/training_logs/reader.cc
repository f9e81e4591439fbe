#include <algorithm>

#include "base/median.h"
#include "base/text.h"
#include "training_logs/documents_internal.h"
#include "training_logs/formats_internal.h"
#include "training_logs/line_internal.h"
#include "training_logs/line_reader_internal.h"
#include "training_logs/patterns_internal.h"
#include "training_logs/step_book_internal.h"

namespace flopsight::training_logs {
namespace {

constexpr std::size_t kHeadBytes = 1 << 20;  // kept of a text that may be a document, unless it begins like JSON
constexpr std::size_t kColumnsMax = 4096;

// A line with none of these says nothing that is known here; the last row are words of lines that are not understood but might
// be what the user hopes for.
constexpr std::string_view kWords[] = {
    "elapsed time per iteration", "step time", "job throughput", "train_step_timing", "tflops_per_gpu", "tps:", "mfu",
    "completed step", "samplespersec=", "summary at step", "flops per gpu", "iter latency", "samples/second", "[batch=",
    "train throughput/", "loss/train/total", "it/s", "s/it", ":::mllog ", "peak flops", " ......", "using world size:",
    "# gpus:",
    "tflop", "flop/s", "flops", "tokens/s", "tok/s", "tokens_per_sec", "tokens per sec", "throughput", "samples/s",
    "samples_per_sec", "step_time", "sec/step", "s/step",
};

const Words& words() {
  static const Words kBuilt{kWords};
  return kBuilt;
}

struct Column {
  std::optional<Field> field;
};

}  // namespace

struct Reader::State {
  explicit State(Options given)
      : options(std::move(given)),
        lines([this](std::string_view text, SourceLine at) { line(text, at); }),
        book(options.peak_flops_per_second, options.warm_up_steps) {
    lines.pick(options.patterns ? nullptr : &words());
  }

  void line(std::string_view raw, SourceLine at);
  bool header(std::string_view text);
  void row(std::string_view text, SourceLine at);
  bool user_pattern(const Line& line, SourceLine at);
  bool known_format(const Line& line, SourceLine at);
  void found(std::string_view format, Extract extract, const Line& line, SourceLine at, bool block, bool before_numbered);
  void miss(int score, SourceLine at, std::string_view text, const std::string& why);
  void document();
  Summary summary(const std::vector<Step>& steps) const;
  std::string format() const;

  Options options;
  LineReader lines;
  StepBook book;
  std::vector<std::pair<std::string, std::string>> settings;
  std::vector<std::pair<std::string, std::uint64_t>> format_lines;
  std::optional<double> peak;
  std::optional<std::int64_t> block_step;
  std::optional<units::Instant> last_time;
  std::vector<Column> columns;  // of a CSV file; empty otherwise
  std::string head;             // of a text that may be a document
  bool head_whole = true;
  bool several_runs = false;
  bool context_only = false;
  bool mllog_steps = false;  // MLPerf records of single steps were seen: its averages would count them twice
  std::uint64_t matched = 0, unparsable = 0, unknown_unit = 0, times_without_zone = 0;
  std::string about_unit, about_number, buffer;
  int miss_score = 0;
  std::optional<NearestMiss> nearest;
};

void Reader::State::miss(int score, SourceLine at, std::string_view text, const std::string& why) {
  if (matched > 0 || score <= miss_score) return;
  miss_score = score;
  nearest = NearestMiss{at.line, base::printable(text, 200), why};
}

void Reader::State::found(std::string_view format, Extract extract, const Line& line, SourceLine at, bool block,
                          bool before_numbered) {
  unparsable += extract.unparsable;
  unknown_unit += extract.unknown_unit;
  if (extract.unparsable > 0) about_number = extract.about;
  if (extract.unknown_unit > 0) about_unit = extract.about;
  Step& step = extract.step;
  if (block) {
    if (step.step) block_step = step.step;
    step.step = block_step;
  }
  if (extract.figures == 0 && !(block && step.loss && step.step)) {
    if (block && step.step) {
      ++matched;
      return;
    }
    miss(3, at, line.text,
         "a line of " + std::string(format) +
             (extract.about.empty() ? ", and none of its figures" : ", and the figure after '" + extract.about + "' cannot be used"));
    return;
  }
  ++matched;
  const auto known = std::find_if(format_lines.begin(), format_lines.end(), [&](const auto& f) { return f.first == format; });
  if (known == format_lines.end()) {
    format_lines.emplace_back(std::string(format), 1);
  } else {
    ++known->second;
  }
  if (context_only) return;
  step.source = at;
  if (!step.rank) step.rank = line.rank;
  if (!step.peak_flops_per_second) step.peak_flops_per_second = peak;
  if (!step.time && line.time) {
    step.time = instant_of(*line.time, options.zone, last_time);
    step.is_zone_assumed = step.time && !line.time->offset_seconds;
    if (!step.time) ++times_without_zone;
  }
  if (step.time) last_time = step.time;
  if (before_numbered && !step.step) {
    book.add_before(std::move(step));
  } else {
    book.add(std::move(step));
  }
}

bool Reader::State::user_pattern(const Line& line, SourceLine at) {
  if (!options.patterns) return false;
  std::optional<PatternMatch> match = training_logs::match(*options.patterns, line.text);
  if (!match) return false;
  Line said = line;
  if (match->time) said.time = match->time;
  if (match->rank) said.rank = match->rank;
  found(options.patterns->name(match->pattern), std::move(match->extract), said, at, false, false);
  return true;
}

bool Reader::State::known_format(const Line& line, SourceLine at) {
  const bool any = options.format.empty();
  if (any || options.format == "mlperf") {
    Extract extract;
    const std::size_t before = settings.size();
    if (read_mllog(line.text, settings, extract)) {
      mllog_steps |= extract.figures > 0 && !extract.average;
      if (extract.average && mllog_steps) {
        ++matched;
      } else if (extract.figures > 0 || extract.unparsable > 0) {
        found("mlperf", std::move(extract), line, at, false, false);
      } else if (settings.size() > before) {
        ++matched;
      }
      return true;
    }
  }
  for (const Format& format : formats()) {
    if ((!any && format.name != options.format) || !matches(format, line.text)) continue;
    Extract extract;
    training_logs::extract(format, line.text, extract);
    found(format.name, std::move(extract), line, at, format.block, format.before_numbered);
    return true;
  }
  return false;
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
  if (extract.figures > 0 || extract.unparsable > 0) found("csv", std::move(extract), Line{text, {}, {}}, at, false, false);
}

void Reader::State::line(std::string_view raw, SourceLine at) {
  if (!columns.empty()) return row(raw, at);
  if (at.offset_bytes == 0 && options.format.empty() && header(raw)) return;
  const Line cleaned = clean_line(raw, buffer);
  const bool said = user_pattern(cleaned, at) || known_format(cleaned, at);
  if (read_settings(cleaned.text, settings, peak) && !said) ++matched;
  if (said || matched > 0) return;
  for (const Format& format : formats()) {
    for (const std::string_view word : format.all) {
      if (word.size() > 3 && cleaned.text.find(word) != std::string_view::npos) {
        miss(2, at, cleaned.text, "it has '" + std::string(word) + "' as lines of " + std::string(format.name) + " have, and not the rest of one");
      }
    }
  }
  const std::string lower = base::to_lower(cleaned.text);
  for (const std::string_view word : kWords) {
    if (lower.find(word) != std::string::npos) {
      miss(1, at, cleaned.text, "it speaks of '" + std::string(word) + "' in a wording that is not known; a pattern file can read it");
      break;
    }
  }
}

void Reader::State::document() {
  if (matched > 0 || !head_whole || !options.format.empty()) return;
  std::optional<Document> read;
  if (base::trim(head).substr(0, 1) == "{") {
    read = read_golden_values(head);
  } else if (head.find("last_10_steps_") != std::string::npos) {
    read = read_verification_card(head);
  }
  if (!read) return;
  matched = read->steps.size();
  several_runs = read->several_runs;
  format_lines.emplace_back(read->format, matched);
  for (const auto& [name, value] : read->settings) set(settings, name, value);
  for (Step& step : read->steps) book.add(std::move(step));
  nearest.reset();
}

Summary Reader::State::summary(const std::vector<Step>& steps) const {
  Summary out;
  if (several_runs) return out;
  std::vector<double> quotients;
  const auto middle = [&](std::optional<double> Step::* figure) {
    std::vector<double> values;
    for (const Step& step : steps) {
      if (!step.excluded && step.*figure) values.push_back(*(step.*figure));
    }
    return base::median(std::move(values));
  };
  for (const Step& step : steps) {
    if (step.excluded) continue;
    ++out.steps_used;
    if (step.mfu_ratio && step.flops_per_second_per_gpu) quotients.push_back(*step.flops_per_second_per_gpu / *step.mfu_ratio);
  }
  out.mfu_ratio = middle(&Step::mfu_ratio);
  out.flops_per_second_per_gpu = middle(&Step::flops_per_second_per_gpu);
  out.tokens_per_second_per_gpu = middle(&Step::tokens_per_second_per_gpu);
  out.tokens_per_second = middle(&Step::tokens_per_second);
  out.samples_per_second = middle(&Step::samples_per_second);
  out.step_seconds = middle(&Step::step_seconds);
  out.implied_peak_flops_per_second = peak ? peak : base::median(std::move(quotients));
  out.implied_peak_printed = peak.has_value();
  return out;
}

// The one that most lines had.
std::string Reader::State::format() const {
  const auto most = std::max_element(format_lines.begin(), format_lines.end(),
                                     [](const auto& a, const auto& b) { return a.second < b.second; });
  return most == format_lines.end() ? std::string() : most->first;
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

std::vector<Step> Reader::take() { return state_->book.take(); }

std::vector<Step> Reader::close_open() {
  state_->book.finish();
  return state_->book.take();
}

SourceLine Reader::resume_at() const {
  return state_->book.resume_at({state_->lines.whole_lines_end_bytes(), state_->lines.lines() + 1});
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
  state.book.start_in_the_middle();
}

std::string Reader::format() const { return state_->format(); }
const std::vector<std::pair<std::string, std::string>>& Reader::settings() const { return state_->settings; }

void Reader::drop_tail() { state_->lines.drop_tail(); }

Reported Reader::finish() {
  State& state = *state_;
  state.lines.finish();
  state.document();
  state.book.finish();
  Reported out;
  out.steps = state.book.take();
  out.summary = state.summary(out.steps);
  out.steps_total = state.book.total();
  out.steps_dropped = state.book.dropped();
  out.attempts = state.book.attempts();
  for (std::size_t i = 0; i < kExclusionCount; ++i) out.excluded[i] = state.book.count(static_cast<Exclusion>(i));
  out.excluded[static_cast<std::size_t>(Exclusion::kUnparsable)] = state.unparsable;
  out.excluded[static_cast<std::size_t>(Exclusion::kUnknownUnit)] = state.unknown_unit;
  out.bytes_total = state.lines.bytes();
  out.lines_total = state.lines.lines();
  out.lines_matched = state.matched;
  out.times_without_zone = state.times_without_zone;
  out.several_runs = state.several_runs;
  out.settings = std::move(state.settings);
  out.format = state.format();
  for (const auto& [name, count] : state.format_lines) {
    if (name != out.format) out.notes.push_back("also " + std::to_string(count) + " lines of " + name);
  }
  if (state.unknown_unit > 0) {
    out.notes.push_back("the figure after '" + state.about_unit + "' has no unit that is known, and is left out");
  }
  if (state.unparsable > 0) out.notes.push_back("the figure after '" + state.about_number + "' could not be read everywhere");
  if (state.book.printed_zero()) out.notes.push_back("a rate printed as 0 is taken as not known");
  if (state.times_without_zone > 0) out.notes.push_back("dates have no offset, and no time zone was given: steps have no time");
  if (state.lines.cut() > 0) out.notes.push_back(std::to_string(state.lines.cut()) + " lines were longer than 64 KiB and cut");
  if (out.steps_dropped > 0) out.notes.push_back("too many steps to keep: the summary is over evenly thinned ones");
  if (out.lines_matched == 0) out.nearest_miss = std::move(state.nearest);
  return out;
}

Reported read_log(std::string_view text, const Options& options) {
  Reader reader(options);
  reader.feed(text);
  return reader.finish();
}

}  // namespace flopsight::training_logs
