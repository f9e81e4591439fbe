#include <algorithm>
#include <utility>

#include "base/text.h"
#include "training_logs/reader_state_internal.h"
#include "training_logs/runs_internal.h"

namespace flopsight::training_logs {
namespace {

constexpr std::size_t kHeadBytes = 1 << 20;  // kept of a text that may be a document, unless it begins like JSON

// What every run prints alike.
Settings settings_of_all(const std::vector<LoggedRun>& runs) {
  Settings out = runs.front().settings;
  std::erase_if(out, [&](const auto& setting) {
    return !std::all_of(runs.begin(), runs.end(),
                        [&](const LoggedRun& run) { return std::find(run.settings.begin(), run.settings.end(), setting) != run.settings.end(); });
  });
  return out;
}

}  // namespace

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
  for (const auto& part : state_->parts) {
    if (!part.text.empty() && part.at.offset_bytes < first.offset_bytes) first = part.at;
  }
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
  for (const auto& part : state.parts) state.is_end_broken |= !part.text.empty();
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
  out.settings = out.runs.empty() ? std::move(state.settings.front()) : settings_of_all(out.runs);
  if (out.runs.empty()) tell_batches(out.steps, out.settings);
  out.format = state.format(main);
  state.say(out);
  if (out.format.empty()) out.nearest_miss = std::move(state.nearest);
  return out;
}

Reported read_log(std::string_view text, const Options& options) {
  Reader reader(options);
  reader.feed(text);
  return reader.finish();
}

}  // namespace flopsight::training_logs
