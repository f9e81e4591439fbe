#include "serve/finding_service.h"

#include <algorithm>
#include <tuple>

namespace flopsight::app {
namespace {

using base::Result;
using base::Status;
using findings::Record;

// Long enough for what comes back as the same record, whatever its kind.
constexpr double kRecentSeconds = 2 * 86'400;
constexpr std::int64_t kMinuteMilliseconds = 60'000;

// The order of answers.
std::tuple<detect::Severity, double, double> weight_of(const Record& record) {
  return {record.severity, record.cost_usd ? record.cost_usd->value : 0, record.cost ? record.cost->value : 0};
}

}  // namespace

analysis::FindingMention mention_of(const Record& record) {
  analysis::FindingMention mention;
  mention.id = record.id;
  mention.kind = record.kind;
  mention.severity = detect::severity_name(record.severity);
  mention.state = findings::state_name(record.state);
  mention.job = record.job;
  mention.text = record.text;
  if (record.cost) mention.cost_gpu_hours = record.cost->value;
  if (record.cost_usd) mention.cost_usd = record.cost_usd->value;
  return mention;
}

Result<std::unique_ptr<FindingService>> FindingService::open(const std::string& folder, findings::BookOptions book, findings::LedgerOptions ledger,
                                                             units::Instant now) {
  FLOPSIGHT_ASSIGN_OR_RETURN(std::unique_ptr<findings::Ledger> opened, findings::Ledger::open(folder, ledger));
  std::unique_ptr<FindingService> service(new FindingService(book, std::move(opened)));
  FLOPSIGHT_ASSIGN_OR_RETURN(service->looked_until_, service->ledger_->looked_until());
  const units::Instant recent = service->looked_until_.value_or(now) - units::Seconds(std::max(kRecentSeconds, book.reopen.value));
  FLOPSIGHT_ASSIGN_OR_RETURN(std::vector<Record> records, service->ledger_->current(recent));
  FLOPSIGHT_ASSIGN_OR_RETURN(std::vector<findings::Silence> silences, service->ledger_->silences());
  service->book_.restore(std::move(records), std::move(silences));
  service->book_.drop_old_silences(now);
  return service;
}

void FindingService::set_options(const findings::BookOptions& options) {
  const std::scoped_lock lock(mutex_);
  book_.set_options(options);
}

std::optional<units::Instant> FindingService::looked_until() const {
  const std::scoped_lock lock(mutex_);
  return looked_until_;
}

void FindingService::replay(std::span<const findings::Sighting> seen) {
  const std::scoped_lock lock(mutex_);
  book_.replay(seen);
}

std::vector<Record> FindingService::changed_records(bool figures) {
  std::set<std::string> keys = book_.take_changed();
  if (figures) keys.merge(book_.take_updated());
  std::vector<Record> out = std::move(unwritten_);
  unwritten_.clear();
  for (const std::string& key : keys) {
    if (const auto at = book_.records().find(key); at != book_.records().end()) out.push_back(at->second);
  }
  return out;
}

Status FindingService::round(std::span<const findings::Sighting> seen, units::Instant minute, units::Instant now, bool more_follow) {
  std::vector<findings::Transition> transitions;
  Status written;
  {
    const std::scoped_lock lock(mutex_);
    transitions = book_.round(seen, minute, now);
    // One that went, and whose matter began anew in the same minute, is no longer in the book.
    const bool figures = book_.open_count() <= kFiguresAtOnce || minute.unix_milliseconds / kMinuteMilliseconds % 10 == 0;
    std::vector<Record> records = changed_records(figures);
    looked_until_ = units::Instant{minute.unix_milliseconds + kMinuteMilliseconds};
    if (!more_follow || !records.empty()) written = ledger_->put(records, looked_until_);
    if (!written.ok()) unwritten_ = std::move(records);
  }
  if (told_ && !transitions.empty()) told_(transitions);
  return written;
}

Result<Record> FindingService::act(Act act, std::string_view id, std::string_view author, std::string_view note, units::Instant now) {
  std::vector<findings::Transition> transitions;
  {
    const std::scoped_lock lock(mutex_);
    const Record* known = book_.find(id);
    if (known == nullptr) {
      FLOPSIGHT_ASSIGN_OR_RETURN(const std::optional<Record> kept, ledger_->record(id));
      if (kept) return base::Error{base::ErrorCode::kInvalid, "the finding is resolved"};
    }
    auto done = act == Act::kAcknowledge     ? book_.acknowledge(id, author, note, now)
                : act == Act::kUnacknowledge ? book_.unacknowledge(id, now)
                                             : book_.resolve(id, author, note, now);
    if (!done.ok()) return done.error();
    std::vector<Record> records = changed_records(false);
    if (Status written = ledger_->put(records, std::nullopt); !written.ok()) {
      unwritten_ = std::move(records);
      return written.error();
    }
    transitions.push_back(std::move(done).value());
  }
  if (told_) told_(transitions);
  return std::move(transitions.front().record);
}

Status FindingService::add_silence(const findings::Silence& silence, units::Instant now) {
  const std::scoped_lock lock(mutex_);
  FLOPSIGHT_RETURN_IF_ERROR(book_.add_silence(silence, now));
  if (const Status put = ledger_->put_silence(silence); !put.ok()) {
    (void)book_.remove_silence(silence.id, now);
    return put;
  }
  return ledger_->put(changed_records(false), std::nullopt);
}

Status FindingService::remove_silence(std::string_view id, units::Instant now) {
  const std::scoped_lock lock(mutex_);
  FLOPSIGHT_RETURN_IF_ERROR(ledger_->remove_silence(id));
  FLOPSIGHT_RETURN_IF_ERROR(book_.remove_silence(id, now));
  return ledger_->put(changed_records(false), std::nullopt);
}

std::vector<findings::Silence> FindingService::silences(units::Instant now) {
  const std::scoped_lock lock(mutex_);
  book_.drop_old_silences(now);
  return book_.silences();
}

std::vector<Record> FindingService::open_records() const {
  const std::scoped_lock lock(mutex_);
  std::vector<Record> out;
  for (const auto& [key, record] : book_.records()) {
    if (record.is_open()) out.push_back(record);
  }
  return out;
}

std::vector<analysis::FindingMention> FindingService::open_mentions(const std::function<bool(const Record&)>& wanted) const {
  std::vector<const Record*> chosen;
  std::vector<analysis::FindingMention> out;
  const std::scoped_lock lock(mutex_);
  for (const auto& [key, record] : book_.records()) {
    if (record.is_open() && wanted(record)) chosen.push_back(&record);
  }
  std::stable_sort(chosen.begin(), chosen.end(), [](const Record* a, const Record* b) { return weight_of(*a) > weight_of(*b); });
  for (const Record* record : chosen) out.push_back(mention_of(*record));
  return out;
}

std::uint64_t FindingService::dropped_total() const {
  const std::scoped_lock lock(mutex_);
  return book_.dropped_total();
}

}  // namespace flopsight::app
