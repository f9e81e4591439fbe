#include "notify/plan.h"

#include <algorithm>

#include "notify/alerts.h"

namespace flopsight::notify {
namespace {

using findings::Record;
using store::ToldFinding;

class Planner {
 public:
  Planner(const Receiver& receiver, units::Instant since, units::Instant now) : receiver_(receiver), since_(since), now_(now) {}

  void look_at(const Record& record, const ToldFinding* told) {
    const bool is_told_open = told != nullptr && told->is_open;
    if (receiver_.is_alertmanager()) {
      to_alertmanager(record, told, is_told_open);
    } else if (record.is_open()) {
      if (is_wanted(record)) open(record, told, is_told_open);
    } else if (is_told_open || is_missed(record, told)) {
      add(record, Telling::kResolved);
    }
  }

  Plan take() {
    std::stable_sort(plan_.due.begin(), plan_.due.end(), [](const Due& a, const Due& b) {
      if (a.record->severity != b.record->severity) return a.record->severity > b.record->severity;
      return a.record->changed < b.record->changed;
    });
    return std::move(plan_);
  }

 private:
  bool is_wanted(const Record& record) const { return record.state == findings::State::kOpen && !record.silenced && receiver_.route.takes(record); }

  // It came and went while nobody could be told.
  bool is_missed(const Record& record, const ToldFinding* told) const {
    return told == nullptr && record.resolved && *record.resolved >= since_ && !record.silenced && record.acknowledged_by.empty() && receiver_.route.takes(record);
  }

  void open(const Record& record, const ToldFinding* told, bool is_told_open) {
    if (told == nullptr) return add(record, Telling::kOpened);
    const units::Instant calm = told->told + receiver_.min_interval;
    if (!is_told_open) return add_from(calm, record, Telling::kOpened);
    const auto before = findings::parse_severity(told->severity);
    if (!before || record.severity > *before) return add_from(calm, record, Telling::kChanged);
    if (receiver_.reminder.value > 0) add_from(told->told + receiver_.reminder, record, Telling::kReminder);
  }

  void to_alertmanager(const Record& record, const ToldFinding* told, bool is_told_open) {
    if (is_wanted(record)) {
      if (!is_told_open) return add(record, Telling::kOpened);
      const bool is_same = told->labels == labels_text(alert_labels(record, receiver_));
      if (!is_same) return add(record, Telling::kChanged);
      if (!told->is_given_up) add_from(told->told + receiver_.resend, record, Telling::kResent);
    } else if (is_told_open) {
      add(record, Telling::kEnded);
    } else if (told != nullptr && record.resolved && now_ - *record.resolved < kEndRepeated && !told->is_given_up) {
      add_from(told->told + receiver_.resend, record, Telling::kEnded);
    }
  }

  void add(const Record& record, Telling telling) { plan_.due.push_back({&record, telling}); }

  // A clock that was set back keeps nobody from being told.
  void add_from(units::Instant time, const Record& record, Telling telling) {
    const double longest_seconds = std::max({receiver_.min_interval.value, receiver_.reminder.value, receiver_.resend.value}) + 1;
    if (now_ >= time || (time - now_).value > longest_seconds) return add(record, telling);
    plan_.next = plan_.next ? std::min(*plan_.next, time) : time;
  }

  const Receiver& receiver_;
  units::Instant since_, now_;
  Plan plan_;
};

}  // namespace

std::string_view telling_name(Telling telling) {
  constexpr std::string_view kNames[] = {"opened", "changed", "reminder", "resolved", "resent", "ended"};
  return kNames[static_cast<std::size_t>(telling)];
}

Plan plan(const Receiver& receiver, const Records& records, const store::ToldFindings& told, units::Instant since, units::Instant now) {
  Planner planner(receiver, since, now);
  for (const std::shared_ptr<const Record>& record : records) {
    const auto at = told.find(record->id);
    planner.look_at(*record, at == told.end() ? nullptr : &at->second);
  }
  return planner.take();
}

ToldFinding noted(const Due& due, const Receiver& receiver, const store::ToldFindings& told, units::Instant now, bool is_given_up) {
  ToldFinding out;
  out.finding = due.record->id;
  out.is_open = due.telling != Telling::kResolved && due.telling != Telling::kEnded;
  out.is_given_up = is_given_up;
  out.told = now;
  out.severity = std::string(detect::severity_name(due.record->severity));
  if (!receiver.is_alertmanager()) return out;
  const auto before = told.find(out.finding);
  // An end is told with the labels that it was opened with.
  if (out.is_open) {
    out.labels = labels_text(alert_labels(*due.record, receiver));
  } else if (before != told.end()) {
    out.labels = before->second.labels;
  }
  return out;
}

}  // namespace flopsight::notify
