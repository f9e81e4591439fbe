#include "notify/pace.h"

#include <algorithm>
#include <cmath>

namespace flopsight::notify {
namespace {

constexpr double kFirstPauseSeconds = 1;
constexpr units::Seconds kHour{3600};

std::size_t batch_max_of(const Receiver& receiver) {
  switch (receiver.type) {
    case ReceiverType::kAlertmanager: return 100;
    case ReceiverType::kWebhook: return 50;
    case ReceiverType::kCommand: return 1;
  }
  return 1;
}

// Or a time that lies further ahead than it was ever set: the clock was set back meanwhile. An instant is rounded to milliseconds, hence the second.
bool is_over(units::Instant time, units::Instant now, units::Seconds longest) { return now >= time || (time - now).value > longest.value + 1; }

}  // namespace

Pace::Pace(const Receiver& receiver)
    : group_wait_(receiver.group_wait), per_hour_(receiver.per_hour), batch_max_(batch_max_of(receiver)), batch_(batch_max_) {}

units::Instant Pace::ready_at(units::Instant now) {
  if (pause_ends_ && is_over(*pause_ends_, now, pause_)) pause_ends_.reset();
  if (!group_ends_) group_ends_ = now + group_wait_;
  const units::Instant grouped = is_over(*group_ends_, now, group_wait_) ? now : *group_ends_;
  return std::max({grouped, pause_ends_.value_or(now), hour_has_room_at(now)});
}

units::Instant Pace::hour_has_room_at(units::Instant now) {
  while (!sent_.empty() && is_over(sent_.front() + kHour, now, kHour)) sent_.pop_front();
  return per_hour_ == 0 || sent_.size() < per_hour_ ? now : sent_.front() + kHour;
}

void Pace::taken(units::Instant now) {
  group_ends_.reset();
  pause_ends_.reset();
  failing_since_.reset();
  failures_ = 0;
  batch_ = std::min(batch_max_, batch_ * 2);
  if (per_hour_ > 0) sent_.push_back(now);
}

void Pace::failed(units::Instant now, std::optional<units::Seconds> retry_after, double chance) {
  if (!failing_since_) failing_since_ = now;
  failures_ = std::min(failures_ + 1, std::uint32_t{1'000'000});
  const double doubled = std::min(kFirstPauseSeconds * std::exp2(std::min(failures_ - 1, std::uint32_t{20})), kPauseMax.value);
  pause_ = units::Seconds(doubled * (1 - 0.5 * chance));
  if (retry_after) pause_ = units::Seconds(std::max(pause_.value, std::min(retry_after->value, kRetryAfterMax.value)));
  pause_ends_ = now + pause_;
}

bool Pace::halve(std::size_t sent) {
  if (sent <= 1) return false;
  batch_ = std::max<std::size_t>(1, sent / 2);
  return true;
}

units::Seconds Pace::failing_for(units::Instant now) const { return failing_since_ ? now - *failing_since_ : units::Seconds(0); }

}  // namespace flopsight::notify
