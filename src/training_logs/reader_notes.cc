#include "training_logs/reader_state_internal.h"

#include <algorithm>
#include <string>

namespace flopsight::training_logs {

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
  if (of_validation == 1) notes.emplace_back("1 line is of a validation, which is no training, and left out");
  if (of_validation > 1) notes.push_back(std::to_string(of_validation) + " lines are of validations, which are no training, and left out");
  if (unknown_unit > 0) notes.push_back("the figure after '" + about_unit + "' has no unit that is known, and is left out");
  if (unparsable > 0) notes.push_back("the figure after '" + about_number + "' could not be read everywhere");
  if (std::any_of(series.begin(), series.end(), [](const Lines& one) { return one.book.printed_zero(); })) {
    notes.emplace_back("a rate printed as 0 is taken as not known");
  }
  if (times_without_zone > 0) notes.emplace_back("dates have no offset, and no time zone was given: steps have no time");
  if (times_in_other_forms > 0) {
    notes.emplace_back("times of " + std::to_string(times_in_other_forms) +
                       " lines are in a form that is not read (no year, or day and month in an order that nothing tells): those steps have no time");
  }
  if (is_end_broken) notes.emplace_back("the last line has no end: what it breaks off in is left out");
  if (std::any_of(series.begin(), series.end(), [](const Lines& one) { return one.book.runs_backwards(); })) {
    notes.emplace_back("steps run backwards, each an attempt of its own: the newest line is first; turn the log round (tac FILE, logcli --forward, ascending order in an export)");
  }
  if (cut_documents > 0) {
    notes.push_back(std::to_string(cut_documents) + (cut_documents == 1 ? " line is" : " lines are") +
                    " JSON of more than 64 KiB and not read; a record on each line is (jq -c '.[]')");
  }
  if (lines.cut() > 0) notes.push_back(std::to_string(lines.cut()) + " lines were longer than 64 KiB and cut");
  if (out.steps_dropped > 0) notes.emplace_back("too many steps to keep: the summary is over evenly thinned ones");
}

}  // namespace flopsight::training_logs
