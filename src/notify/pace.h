#pragma once
// When a receiver may be sent the next message, and how much of what is due goes into it: grouping, back-off, a limit an hour.
//
// After a failure the pause doubles from 1 s to 5 minutes, shortened by up to a half by chance, so that receivers of a fleet are not all asked at
// once when they come back; a Retry-After is kept to, up to an hour. A message that is refused for what is in it is sent in halves, until the one
// finding is found that cannot be told.
// Threads: values; `now` and chance are arguments.

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>

#include "notify/receiver.h"
#include "units/time.h"

namespace flopsight::notify {

inline constexpr units::Seconds kPauseMax{300};
inline constexpr units::Seconds kRetryAfterMax{3600};

class Pace {
 public:
  explicit Pace(const Receiver& receiver);

  // Something is due. When the message may go: now, or later.
  units::Instant ready_at(units::Instant now);
  void nothing_due() { group_ends_.reset(); }

  // Of what is due, how much goes into one message.
  std::size_t batch() const { return batch_; }

  // One message went and was taken.
  void taken(units::Instant now);
  // One attempt went and failed; it is tried again. `chance`: 0 to 1.
  void failed(units::Instant now, std::optional<units::Seconds> retry_after, double chance);
  // The receiver would not take what is in it. True: smaller messages are tried.
  bool halve(std::size_t sent);

  // As many messages went in the last hour as may; of the last ready_at().
  bool is_hour_full() const { return per_hour_ > 0 && sent_.size() >= per_hour_; }
  std::uint32_t failures_in_a_row() const { return failures_; }
  // How long it has failed without a message that was taken.
  units::Seconds failing_for(units::Instant now) const;

 private:
  units::Instant hour_has_room_at(units::Instant now);

  units::Seconds group_wait_;
  std::uint64_t per_hour_;
  std::size_t batch_max_, batch_;
  std::optional<units::Instant> group_ends_;
  std::optional<units::Instant> pause_ends_;
  units::Seconds pause_{0};
  std::optional<units::Instant> failing_since_;
  std::uint32_t failures_ = 0;
  std::deque<units::Instant> sent_;  // within the last hour, at most per_hour_
};

}  // namespace flopsight::notify
