#include "findings/book.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace flopsight::findings {
namespace {

using base::Error;
using base::ErrorCode;

constexpr double kMinuteSeconds = 60;
constexpr std::uint32_t kDoublingsMax = 3;

struct Quiet {
  std::string_view kind;
  double minutes = 0;
};
// A hang is over with the first minute of work. What is seen by an hour's level, or once an hour, takes longer to be gone.
constexpr std::array<Quiet, 9> kQuiet = {{{"hang", 5}, {"stall", 10}, {"regression", 30}, {"below_family", 120}, {"profiler_pause", 10},
                                          {"unmeasurable", 60}, {"low_power", 30}, {kAuditKind, 30}, {kWasteKind, 120}}};
constexpr double kQuietMinutes = 15;  // of the others

// What detectors say of a matter, without what people and this book said of it.
void take_facts(Record& record, const Record& seen) {
  record.first = std::min(record.first, seen.first);
  record.last = seen.last;
  if (!seen.holder.job.empty()) {
    record.holder = seen.holder;
    record.job = seen.job;
  }
  if (!seen.host.empty()) record.host = seen.host;
  if (!seen.gpu_model.empty()) record.gpu_model = seen.gpu_model;
  record.text = seen.text;
  record.action = seen.action;
  record.evidence = seen.evidence;
  record.series_name = seen.series_name;
  record.series = seen.series;
  record.suspects = seen.suspects;
  record.simulated = seen.simulated;
}

}  // namespace

units::Seconds quiet_time(std::string_view kind) {
  const auto at = std::find_if(kQuiet.begin(), kQuiet.end(), [&](const Quiet& quiet) { return quiet.kind == kind; });
  return units::Seconds(kMinuteSeconds * (at == kQuiet.end() ? kQuietMinutes : at->minutes));
}

units::Seconds Book::quiet_of(const Record& record) const {
  const double seconds = std::max(quiet_time(record.kind).value, options_.quiet_min.value);
  return units::Seconds(std::ldexp(seconds, static_cast<int>(std::min(record.flap_count, kDoublingsMax))));
}

void Book::restore(std::vector<Record> records, std::vector<Silence> silences) {
  for (Record& record : records) {
    const auto before = records_.find(record.key);
    if (before != records_.end() && before->second.last > record.last) continue;
    courses_[record.key] = {true, 0};
    const std::string key = record.key;
    records_[key] = std::move(record);
  }
  silences_ = std::move(silences);
  open_count_ = static_cast<std::size_t>(std::count_if(records_.begin(), records_.end(), [](const auto& of) { return of.second.is_open(); }));
}

void Book::replay(std::span<const Sighting> seen) {
  for (const Sighting& sighting : seen) {
    const auto at = records_.find(sighting.record.key);
    if (at == records_.end() || !at->second.is_open()) continue;
    Course& course = courses_[at->first];
    // The last minute before the restart that was kept: from here on both count the same.
    if (!course.restored || sighting.record.last < at->second.last) continue;
    update(at->second, course, sighting);
  }
}

void Book::update(Record& record, Course& course, const Sighting& sighting) {
  const Record& seen = sighting.record;
  if (course.restored) {
    if (seen.last < record.last) return;
    const double own_gpu_hours = seen.cost ? seen.cost->value : 0;
    const double kept_gpu_hours = record.cost ? record.cost->value : 0;
    // What began after all that was kept adds to it whole.
    course.cost_before_gpu_hours = seen.first > record.last ? kept_gpu_hours : std::max(0.0, kept_gpu_hours - own_gpu_hours);
    if (record.kind == kWasteKind) course.cost_before_gpu_hours = 0;  // always of a day
    course.restored = false;
  }
  take_facts(record, seen);
  updated_.insert(record.key);
  record.cost.reset();
  record.cost_usd.reset();
  if (record.data_quality) return;
  if (seen.cost) record.cost = units::GpuHours(seen.cost->value + course.cost_before_gpu_hours);
  if (record.cost && sighting.usd_per_gpu_hour) record.cost_usd = *record.cost * *sighting.usd_per_gpu_hour;
}

Transition Book::changed(Change change, Record& record, units::Instant now) {
  record.changed = now;
  changed_.insert(record.key);
  return {change, record};
}

void Book::silence(Record& record, units::Instant now) {
  const bool is_silenced =
      std::any_of(silences_.begin(), silences_.end(), [&](const Silence& silence) { return silence.holds(now) && matches(silence, record); });
  if (is_silenced == record.silenced) return;
  record.silenced = is_silenced;
  record.changed = now;
  changed_.insert(record.key);
}

void Book::open(const Sighting& sighting, units::Instant now, std::vector<Transition>& out) {
  if (open_count_ >= options_.open_max) {
    ++dropped_total_;
    return;
  }
  Record record = sighting.record;
  const KindInfo* kind = find_kind(record.kind);
  record.data_quality = kind != nullptr && kind->data_quality;
  record.id = record_id(record.key, record.first);
  record.state = State::kOpen;
  record.silenced = false;
  record.opened = now;
  record.resolved.reset();
  record.resolved_by.clear();
  record.acknowledged.reset();
  record.acknowledged_by.clear();
  record.note.clear();
  record.flap_count = 0;
  Course course;
  update(record, course, sighting);
  ++open_count_;
  silence(record, now);
  courses_[record.key] = course;
  const std::string key = record.key;
  Record& kept = records_[key] = std::move(record);
  out.push_back(changed(Change::kOpened, kept, now));
}

void Book::see(const Sighting& sighting, units::Instant minute, units::Instant now, std::vector<Transition>& out) {
  const Record& seen = sighting.record;
  const auto at = records_.find(seen.key);
  if (at == records_.end()) {
    // Detectors keep what they saw last; that is not to be found anew when it is long over.
    if ((minute - seen.last).value < quiet_time(seen.kind).value) open(sighting, now, out);
    return;
  }
  Record& record = at->second;
  Course& course = courses_[at->first];
  if (record.is_open()) {
    if (seen.last < record.last) return;
    update(record, course, sighting);
    silence(record, now);
    if (seen.severity > record.severity) {
      record.severity = seen.severity;
      out.push_back(changed(Change::kWorsened, record, now));
    }
    return;
  }
  if (seen.last <= record.last) return;
  const double since_seconds = (seen.last - record.last).value;
  if (!record.resolved_by.empty() && since_seconds <= quiet_of(record).value) {
    // Done, said somebody: it is still the same matter.
    record.last = seen.last;
    updated_.insert(record.key);
    return;
  }
  if (!record.resolved_by.empty() || since_seconds > options_.reopen.value) {
    open(sighting, now, out);
    return;
  }
  if (open_count_ >= options_.open_max) {
    ++dropped_total_;
    return;
  }
  course.restored = false;
  course.cost_before_gpu_hours = record.cost && record.kind != kWasteKind ? record.cost->value : 0;
  ++record.flap_count;
  ++open_count_;
  record.resolved.reset();
  record.state = record.acknowledged ? State::kAcknowledged : State::kOpen;
  update(record, course, sighting);
  silence(record, now);
  out.push_back(changed(Change::kReopened, record, now));
}

std::vector<Transition> Book::round(std::span<const Sighting> seen, units::Instant minute, units::Instant now) {
  std::vector<Transition> out;
  drop_old_silences(now);
  for (const Sighting& sighting : seen) see(sighting, minute, now, out);
  for (auto at = records_.begin(); at != records_.end();) {
    Record& record = at->second;
    const double quiet_seconds = (minute - record.last).value;
    if (record.is_open()) {
      silence(record, now);
      if (quiet_seconds >= quiet_of(record).value) {
        record.state = State::kResolved;
        record.resolved = now;
        --open_count_;
        out.push_back(changed(Change::kResolved, record, now));
      }
    } else if (quiet_seconds > std::max(options_.reopen.value, quiet_of(record).value) &&
               !changed_.contains(at->first) && !updated_.contains(at->first)) {
      courses_.erase(at->first);
      at = records_.erase(at);
      continue;
    }
    ++at;
  }
  return out;
}

const Record* Book::find(std::string_view id) const {
  const auto at = std::find_if(records_.begin(), records_.end(), [&](const auto& of) { return of.second.id == id; });
  return at == records_.end() ? nullptr : &at->second;
}

base::Result<Record*> Book::unresolved(std::string_view id) {
  const auto at = std::find_if(records_.begin(), records_.end(), [&](const auto& of) { return of.second.id == id; });
  if (at == records_.end()) return Error{ErrorCode::kNotFound, "no open finding has this id"};
  if (!at->second.is_open()) return Error{ErrorCode::kInvalid, "the finding is resolved"};
  return &at->second;
}

base::Result<Transition> Book::acknowledge(std::string_view id, std::string_view author, std::string_view note, units::Instant now) {
  FLOPSIGHT_ASSIGN_OR_RETURN(Record* const record, unresolved(id));
  record->state = State::kAcknowledged;
  record->acknowledged = now;
  record->acknowledged_by = author;
  record->note = note;
  return changed(Change::kAcknowledged, *record, now);
}

base::Result<Transition> Book::unacknowledge(std::string_view id, units::Instant now) {
  FLOPSIGHT_ASSIGN_OR_RETURN(Record* const record, unresolved(id));
  if (record->state != State::kAcknowledged) return Error{ErrorCode::kInvalid, "the finding is not acknowledged"};
  record->state = State::kOpen;
  record->acknowledged.reset();
  record->acknowledged_by.clear();
  record->note.clear();
  return changed(Change::kUnacknowledged, *record, now);
}

base::Result<Transition> Book::resolve(std::string_view id, std::string_view author, std::string_view note, units::Instant now) {
  FLOPSIGHT_ASSIGN_OR_RETURN(Record* const record, unresolved(id));
  record->state = State::kResolved;
  record->resolved = now;
  record->resolved_by = author;
  if (!note.empty()) record->note = note;
  --open_count_;
  return changed(Change::kResolved, *record, now);
}

base::Status Book::add_silence(Silence silence, units::Instant now) {
  drop_old_silences(now);
  const bool is_there = std::any_of(silences_.begin(), silences_.end(), [&](const Silence& other) { return other.id == silence.id; });
  if (is_there) return {};
  if (silences_.size() >= options_.silences_max) {
    return Error{ErrorCode::kLimit, "there are " + std::to_string(silences_.size()) + " silences, expected at most that many; remove one"};
  }
  silences_.push_back(std::move(silence));
  for (auto& [key, record] : records_) {
    if (record.is_open()) this->silence(record, now);
  }
  return {};
}

base::Status Book::remove_silence(std::string_view id, units::Instant now) {
  const auto at = std::find_if(silences_.begin(), silences_.end(), [&](const Silence& other) { return other.id == id; });
  if (at == silences_.end()) return Error{ErrorCode::kNotFound, "no silence has this id"};
  silences_.erase(at);
  for (auto& [key, record] : records_) {
    if (record.is_open()) silence(record, now);
  }
  return {};
}

void Book::drop_old_silences(units::Instant now) {
  std::erase_if(silences_, [&](const Silence& silence) { return now >= silence.end; });
}

}  // namespace flopsight::findings
