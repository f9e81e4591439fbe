#pragma once
// The findings of a store folder: the open ones in memory (findings/book.h), all of them on the disk (findings/ledger.h), and what people say
// of them. What a person does is durable when the call returns.
//
// A round writes what was opened, resolved or changed; the figures of all that is open as well while these are at most kFiguresAtOnce, and
// otherwise every tenth minute of data.
// Threads: any. `told` is called by the thread that caused the change, with no lock held.

#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "analysis/finding_mention.h"
#include "base/result.h"
#include "findings/book.h"
#include "findings/ledger.h"

namespace flopsight::app {

// A record in a few words.
analysis::FindingMention mention_of(const findings::Record& record);

class FindingService {
 public:
  static constexpr std::size_t kFiguresAtOnce = 1'000;

  // `now`: silences that are over are not read.
  static base::Result<std::unique_ptr<FindingService>> open(const std::string& folder, findings::BookOptions book,
                                                            findings::LedgerOptions ledger, units::Instant now);
  void set_options(const findings::BookOptions& options);
  // Called with changes; before the first round.
  void set_told(std::function<void(const std::vector<findings::Transition>&)> told) { told_ = std::move(told); }

  // Up to which minute of data was looked, exclusive; nothing: never.
  std::optional<units::Instant> looked_until() const;
  void replay(std::span<const findings::Sighting> seen);
  // An error means that it was not written; it is known, and written with the next round. Of a minute that more follow at once, and that changed
  // nothing, nothing is written: after a crash it is looked at again.
  base::Status round(std::span<const findings::Sighting> seen, units::Instant minute, units::Instant now, bool more_follow = false);
  // Drops what was resolved and over before it.
  base::Status forget(units::Instant before) { return ledger_->forget(before); }

  enum class Act { kAcknowledge, kUnacknowledge, kResolve };
  // Of the word in a path or a command: "acknowledge", "unacknowledge" or "resolve".
  static Act act_of(std::string_view word) { return word == "acknowledge" ? Act::kAcknowledge : word == "unacknowledge" ? Act::kUnacknowledge : Act::kResolve; }
  base::Result<findings::Record> act(Act act, std::string_view id, std::string_view author, std::string_view note, units::Instant now);
  base::Status add_silence(const findings::Silence& silence, units::Instant now);
  base::Status remove_silence(std::string_view id, units::Instant now);
  std::vector<findings::Silence> silences(units::Instant now);

  base::Result<findings::Page> find(const findings::Query& query) { return ledger_->find(query); }
  base::Result<std::optional<findings::Record>> record(std::string_view id) { return ledger_->record(id); }
  base::Result<std::vector<findings::Count>> counts() { return ledger_->counts(); }
  // Of now, also in figures that are not written yet.
  std::vector<findings::Record> open_records() const;
  // The same in a few words, of those that are wanted: the most severe first, then those that cost most.
  std::vector<analysis::FindingMention> open_mentions(const std::function<bool(const findings::Record&)>& wanted) const;
  std::uint64_t dropped_total() const;
  const std::string& damage() const { return ledger_->damage(); }

 private:
  FindingService(findings::BookOptions options, std::unique_ptr<findings::Ledger> ledger) : book_(options), ledger_(std::move(ledger)) {}
  std::vector<findings::Record> changed_records(bool figures);  // mutex_ held

  mutable std::mutex mutex_;  // of the book, and of the order in which the ledger is written
  findings::Book book_;
  std::unique_ptr<findings::Ledger> ledger_;
  std::optional<units::Instant> looked_until_;
  std::vector<findings::Record> unwritten_;  // of rounds that could not be written, by the record's last state
  std::function<void(const std::vector<findings::Transition>&)> told_;
};

}  // namespace flopsight::app
