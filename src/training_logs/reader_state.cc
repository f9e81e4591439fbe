#include "training_logs/reader_state_internal.h"

#include <algorithm>
#include <utility>

#include "base/text.h"
#include "training_logs/documents_internal.h"
#include "training_logs/patterns_internal.h"

namespace flopsight::training_logs {
namespace {

const Words& words() {
  static const Words kBuilt{telling_words()};
  return kBuilt;
}

constexpr Format kMlperf{"mlperf", {}, {}, {}, false, false, nullptr, {}, true};
constexpr Format kCsv{"csv", {}, {}, {}};
constexpr Format kBar{"progress-bar", {}, {}, {}, false, false, nullptr, {}, true, "the times are those of a progress bar, which it smooths over the last steps"};
constexpr std::string_view kPatterns = "patterns";
constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

// Processes that time the same run differ by less.
constexpr double kSameEndFactor = 1.05;

bool is_same_end(const Step& one, const Step& other) {
  return std::all_of(std::begin(kStepFigures), std::end(kStepFigures), [&](const auto figure) {
    const std::optional<double>&a = one.*figure, &b = other.*figure;
    return a.has_value() == b.has_value() && (!a || (*a <= *b * kSameEndFactor && *b <= *a * kSameEndFactor));
  });
}

// The Trainer says at the end of a run how all of it was: what comes then is of another, unless it is the same end, or the rest of the same run, as
// another process tells it.
bool is_after_end(std::optional<Step>& told_end, const Extract& extract, const Line& line) {
  if (told_end) {
    if (line.rank && told_end->rank && *line.rank != *told_end->rank) return false;
    if (extract.average && is_same_end(*told_end, extract.step)) return false;
  }
  const bool is_after = told_end.has_value();
  told_end = extract.average ? std::optional<Step>(extract.step) : std::nullopt;
  if (told_end) told_end->rank = line.rank;
  return is_after;
}

}  // namespace

Reader::State::State(Options given) : options(std::move(given)), lines([this](std::string_view text, SourceLine at) { line(text, at); }) {
  lines.pick(options.patterns ? nullptr : &words());
}

// What a user's patterns find is of one run: he says what they are.
Lines& Reader::State::lines_of(const Format& format) {
  const std::string_view name = options.patterns ? kPatterns : !format.series.empty() ? format.series : format.name;
  for (Lines& known : series) {
    if (known.name == name) return known;
  }
  series.push_back({std::string(name), format.beside, StepBook(options.peak_flops_per_second, options.warm_up_steps), false, {}, {}, {}});
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
  if (!formats_seen.empty() || score <= miss_score) return;
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
  if (format.told_by_trainer && !context_only && is_after_end(of.told_end, extract, line)) begin_run({});
  if (silent || context_only || (extract.average && of.has_steps_of_its_own)) return;
  of.has_steps_of_its_own |= !extract.average;
  recent.clear();
  step.source = at;
  step.batch_samples = batch_beside(line.text);
  if (!step.rank) step.rank = line.rank;
  if (!step.peak_flops_per_second) step.peak_flops_per_second = peak;
  const bool month_first = line.month_first && (line.is_month_first || format.month_first);
  if (const std::optional<PrintedTime>& printed = month_first ? line.month_first : line.time; !step.time && printed) {
    step.time = instant_of(*printed, options.zone, last_time);
    step.is_zone_assumed = step.time && !printed->offset_seconds;
    if (!step.time) ++times_without_zone;
  } else if (!step.time && line.has_other_time) {
    ++times_in_other_forms;
  }
  if (step.time) last_time = step.time;
  if (format.before_numbered && !step.step) {
    of.book.add_before(std::move(step));
  } else {
    of.book.add(std::move(step));
  }
}

void Reader::State::begin_run(Settings known) {
  settings.push_back(std::move(known));
  for (Lines& one : series) {
    if (one.book.empty()) continue;
    one.book.begin_run();
    one.has_steps_of_its_own = false;
    one.run_starts.emplace_back(one.book.attempt(), settings.size() - 1);
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
    begin_run(recent);
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
    if (extract.validation || is_of_validation(format, line.text)) {
      ++of_validation;
      miss(3, at, line.text, "a line of " + std::string(format.name) + " about a validation, which is no training");
      return true;
    }
    if (format.told_by_trainer) extract.average ? bars.training_ended() : bars.loss_told();
    found(format, std::move(extract), line, at);
    return true;
  }
  if (!bar || bar->figures == 0) return false;
  found(kBar, std::move(*bar), line, at);
  return true;
}

void Reader::State::row(std::string_view text, SourceLine at) {
  // Loggers write a row for each kind of metric: one without a figure of ours is not a mistake.
  if (lines.is_broken_off()) {
    const std::size_t last = text.rfind(',');
    text = text.substr(0, last == std::string_view::npos ? 0 : last + 1);
    is_end_broken = true;
  }
  Extract extract = table.row(text);
  if (extract.figures > 0 || extract.unparsable > 0) found(kCsv, std::move(extract), Line{text, {}, {}, {}}, at);
}

void Reader::State::line(std::string_view raw, SourceLine at) {
  if (!table.empty()) return row(raw, at);
  if (at.offset_bytes == 0 && raw.starts_with(kByteOrderMark)) raw.remove_prefix(kByteOrderMark.size());
  if (at.offset_bytes == 0 && options.format.empty() && table.header(raw)) {
    lines.pick(nullptr);
    return;
  }
  if (joins_part(raw, at)) return;
  whole_line(raw, at);
}

// What a container's runtime cut into parts is read when its last part came; what is between them is of the other stream.
bool Reader::State::joins_part(std::string_view raw, SourceLine at) {
  const std::optional<RuntimeLine> line = runtime_line(raw);
  if (!line) return false;
  Part& part = parts[line->is_error_stream ? 1 : 0];
  if (!line->is_part && part.text.empty()) return false;
  if (part.text.empty()) {
    lines.pick(nullptr);  // the rest of a line may have none of the words
    part.at = at;
    part.text = raw;
  } else if (part.text.size() + line->text.size() <= Limits::line_bytes_max) {
    part.text += line->text;
  }
  if (line->is_part) return true;
  const Part whole = std::move(part);
  part = {};
  whole_line(whole.text, whole.at);
  return true;
}

void Reader::State::whole_line(std::string_view raw, SourceLine at) {
  // A user's own patterns are for the text as it is.
  const std::vector<Recorded> records = options.patterns ? std::vector<Recorded>() : recorded_lines(raw);
  if (records.empty()) {
    const bool is_cut_document = raw.size() >= Limits::line_bytes_max && !options.patterns && (raw.starts_with('{') || raw.starts_with('['));
    if (is_cut_document) {
      ++cut_documents;
      return;
    }
    return text_line(raw, at, nullptr);
  }
  for (const Recorded& record : records) {
    std::string_view rest = record.text;
    while (!rest.empty()) {
      const std::size_t end = std::min(rest.find_first_of("\n\r"), rest.size());
      if (end > 0) text_line(rest.substr(0, end), at, &record);
      rest.remove_prefix(std::min(end + 1, rest.size()));
    }
  }
}

void Reader::State::text_line(std::string_view raw, SourceLine at, const Recorded* record) {
  Line cleaned = clean_line(raw, buffer);
  if (record != nullptr && record->time && (!cleaned.time || !cleaned.time->offset_seconds)) cleaned.time = record->time;
  std::string_view whole_words = cleaned.text;
  if (lines.is_broken_off() && record == nullptr) {
    whole_words = without_last_word(cleaned.text);
    const std::string_view whole = without_broken_figure(cleaned.text);
    is_end_broken = whole.size() < cleaned.text.size();
    cleaned.text = whole;
  }
  const bool said = user_pattern(cleaned, at) || known_format(cleaned, at);
  // With a format that somebody names, a setting alone is no line of it.
  if (printed(whole_words) && !said && options.format.empty()) matches_line(at);
  if (said || !formats_seen.empty()) return;
  tell_miss(at, cleaned.text);
}

// What a line has of those that say something, where none did yet.
void Reader::State::tell_miss(SourceLine at, std::string_view text) {
  const std::string lower = base::to_lower(text);
  const std::span<const std::string_view> all = telling_words();
  // The number of a step alone is what every program prints.
  const auto told = std::find_if(all.begin(), all.end(), [&](std::string_view word) { return word != kStepWord && word != kPartWords[0] && word != kPartWords[1] && lower.find(word) != std::string::npos; });
  if (told == all.end()) return;
  for (const Format& format : formats()) {
    if (!options.format.empty() && format.name != options.format) {
      if (matches(format, text)) miss(2, at, text, "a line of " + std::string(format.name) + ", and those of " + options.format + " were asked for");
      continue;
    }
    for (const std::string_view word : format.all) {
      if (word.size() > 3 && text.find(word) != std::string_view::npos) {
        miss(2, at, text, "it has '" + std::string(word) + "' as lines of " + std::string(format.name) + " have, and not the rest of one");
      }
    }
  }
  miss(1, at, text, "it speaks of '" + std::string(*told) + "' in a wording that is not known; a pattern file can read it");
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

}  // namespace flopsight::training_logs
