#include "detect/suspects.h"

#include <algorithm>
#include <cmath>

#include "base/median.h"
#include "base/text.h"
#include "detect/words_internal.h"

namespace flopsight::detect {
namespace {

constexpr double kShareMin = 0.15;
constexpr double kBytesRiseMin = 1.3;
constexpr units::Seconds kNear{600};

using Column = Quantity MinutePoint::*;

struct Sides {
  double before = 0;
  double after = 0;
  double log_fall() const { return std::log(before / after); }
};

// Medians on both sides; nothing unless both are known and positive.
std::optional<Sides> sides(std::span<const MinutePoint> history, units::Instant moment, Column column) {
  std::vector<double> before, after;
  for (const MinutePoint& point : history) {
    if (const Quantity value = point.*column) (point.start < moment ? before : after).push_back(*value);
  }
  const std::optional<double> b = base::median(std::move(before)), a = base::median(std::move(after));
  if (!a || !b || *a <= 0 || *b <= 0) return std::nullopt;
  return Sides{*b, *a};
}

std::string from_to(const std::string& before, const std::string& after) { return " from " + before + " to " + after; }

std::string reasons_after(std::span<const MinutePoint> history, units::Instant moment) {
  struct Reason {
    Column column;
    const char* name;
  };
  constexpr Reason kReasons[] = {{&MinutePoint::thermal_ratio, "heat"},
                                 {&MinutePoint::power_brake_ratio, "the power brake"},
                                 {&MinutePoint::power_cap_ratio, "the power cap"},
                                 {&MinutePoint::setting_ratio, "a clock setting"}};
  std::string out;
  for (const Reason& reason : kReasons) {
    std::vector<double> shares;
    for (const MinutePoint& point : history) {
      if (point.start >= moment && point.*reason.column) shares.push_back(*(point.*reason.column));
    }
    const double share = base::median(std::move(shares)).value_or(0);
    if (share < 0.05) continue;
    out += out.empty() ? "; " : ", ";
    out += percent(share) + " of the time under " + reason.name;
  }
  return out;
}

class Ranking {
 public:
  Ranking(std::span<const MinutePoint> history, units::Instant moment)
      : history_(history), moment_(moment), ofu_(sides(history, moment, &MinutePoint::ofu_ratio)) {}

  void add_parts() {
    if (!ofu_ || ofu_->log_fall() <= 0) return;
    if (const auto clock = sides(history_, moment_, &MinutePoint::clock_hertz)) {
      add(SuspectKind::kClock, clock->log_fall(),
          "the SM clock went" + from_to(megahertz_text(clock->before), megahertz_text(clock->after)) + reasons_after(history_, moment_));
    }
    const auto sm = sides(history_, moment_, &MinutePoint::sm_ratio);
    const auto tensor = sides(history_, moment_, &MinutePoint::tensor_ratio);
    if (!sm) return;
    add(SuspectKind::kHostOrInput, sm->log_fall(),
        "SMs are busy" + from_to(percent(sm->before), percent(sm->after)) +
            " of the time: the host, the data loader or storage is waited for");
    if (tensor) add_kernels(*sm, *tensor);
  }

  std::vector<Suspect> take() {
    std::stable_sort(suspects_.begin(), suspects_.end(), [](const Suspect& a, const Suspect& b) {
      return *a.explained_ratio > *b.explained_ratio;
    });
    return std::move(suspects_);
  }

 private:
  void add(SuspectKind kind, double log_fall, std::string text) {
    const double share = log_fall / ofu_->log_fall();
    if (share >= kShareMin) suspects_.push_back({kind, share, std::move(text)});
  }

  void add_kernels(const Sides& sm, const Sides& tensor) {
    const Sides density{tensor.before / sm.before, tensor.after / sm.after};
    const std::string text = "tensor work of busy SMs went" + from_to(percent(density.before), percent(density.after));
    const auto links = sides(history_, moment_, &MinutePoint::link_bytes_per_second);
    const double rise = links ? links->after / links->before * (tensor.before / tensor.after) : 0;
    if (rise >= kBytesRiseMin) {
      add(SuspectKind::kCommunication, density.log_fall(),
          text + " while bytes on links a unit of work rose " + in_words("%.1f", rise) + " times");
      return;
    }
    add(SuspectKind::kKernels, density.log_fall(),
        text + (links ? " without more bytes on links" : "") + ": other kernels, shapes or number format, or kernels that wait for a peer");
  }

  std::span<const MinutePoint> history_;
  units::Instant moment_;
  std::optional<Sides> ofu_;
  std::vector<Suspect> suspects_;
};

bool near(units::Instant a, units::Instant b) { return std::abs((a - b).value) <= kNear.value; }

}  // namespace

std::vector<Suspect> parts_of_drop(std::span<const MinutePoint> history, units::Instant moment) {
  Ranking ranking(history, moment);
  ranking.add_parts();
  return ranking.take();
}

std::vector<Coincidence> coincidences(units::Instant moment, std::span<const Finding> same_job, std::span<const LabelChange> changes) {
  std::vector<Coincidence> out;
  for (const LabelChange& change : changes) {
    if (!near(change.time, moment)) continue;
    const std::string text = "label " + base::printable(change.name) + " changed" + from_to("'" + base::printable(change.before) + "'", "'" + base::printable(change.after) + "'") + " at " +
                             units::to_rfc3339(change.time) + " (coincides in time)";
    out.push_back({text, {SuspectKind::kLabelChange, std::nullopt, text}});
  }
  for (const Finding& finding : same_job) {
    if (finding.gpu.empty() && finding.host.empty()) continue;
    if (near(finding.first, moment)) out.push_back({finding_key(finding), {SuspectKind::kSlowGpu, std::nullopt, finding.text}});
  }
  return out;
}

void KeptSuspects::see(const Recent<KeptMinute>& history) {
  std::size_t before = 0;
  while (before < history.size() && history[before].start() < moment_) ++before;
  if (before == 0 || before < std::min(kBeforeMinutes, before_minutes_)) return;
  std::vector<MinutePoint> points;
  for (const KeptMinute& minute : history) points.push_back(minute.point());
  before_minutes_ = std::max(before_minutes_, before);
  parts_ = parts_of_drop(points, moment_);
}

void KeptSuspects::see(std::vector<Coincidence> coinciding) {
  for (Coincidence& one : coinciding) {
    const auto known = std::find_if(coinciding_.begin(), coinciding_.end(), [&](const Coincidence& each) { return each.key == one.key; });
    if (known == coinciding_.end()) {
      coinciding_.push_back(std::move(one));
    } else {
      known->suspect = std::move(one.suspect);
    }
  }
}

std::vector<Suspect> KeptSuspects::all() const {
  std::vector<Suspect> out;
  for (const Coincidence& one : coinciding_) out.push_back(one.suspect);
  out.insert(out.end(), parts_.begin(), parts_.end());
  return out;
}

}  // namespace flopsight::detect
