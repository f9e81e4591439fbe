#pragma once
// Why a job delivers less: what changed with it, most likely first.
//
// OFU is SM activity x (tensor activity / SM activity) x (clock / peak clock), so the logarithm of a drop is the exact sum of three logarithms
// (as means over minutes of medians, nearly): idle SMs, other kernels or waiting ones, the clock. Each is a suspect by its share of that sum.
//   clock               the SM clock fell; the text says under which event reasons
//   host_or_input       SMs idle more: no kernel runs while the host, the loader or storage is waited for
//   communication       as many SMs busy with less tensor work, while bytes on links a unit of work rose by 30 %
//   kernels             the same without more bytes: other kernels, shapes or number format, or kernels that wait for a slow peer
//   slow_gpu            a finding about a GPU or host of the job that began within ten minutes of the moment
//   label_change        a label of the job (image, commit, flag, library) changed within ten minutes of it. This is coincidence in time,
//                       and said to be: it has no share
// A part under 15 % of the drop, or that rose, is no suspect. Quantities that were not measured on both sides accuse nobody.
// Threads: pure.

#include <span>
#include <string>
#include <vector>

#include "detect/finding.h"
#include "detect/recent.h"
#include "detect/series.h"

namespace flopsight::detect {

struct LabelChange {
  units::Instant time;
  std::string name;
  std::string before;
  std::string after;
};

// What has a share, the largest first. `history`: minutes on both sides of `moment`.
std::vector<Suspect> parts_of_drop(std::span<const MinutePoint> history, units::Instant moment);

// What coincides in time, each with what it is the same by when it is seen again. `same_job`: other findings about the job's GPUs and hosts.
struct Coincidence {
  std::string key;
  Suspect suspect;
};
std::vector<Coincidence> coincidences(units::Instant moment, std::span<const Finding> same_job, std::span<const LabelChange> changes);

// The suspects of one open regression. What was seen of it stays: minutes before the moment leave the history, a slow GPU is mended, and neither changes
// what happened at the moment. Threads: values.
class KeptSuspects {
 public:
  explicit KeptSuspects(units::Instant moment) : moment_(moment) {}

  units::Instant moment() const { return moment_; }
  // Ranks the parts anew while there is as much of the time before as at first, or half an hour.
  void see(const Recent<KeptMinute>& history);
  void see(std::vector<Coincidence> coinciding);
  // What coincides in time goes first, in the order in which it was seen.
  std::vector<Suspect> all() const;
  bool coincide() const { return !coinciding_.empty(); }

 private:
  static constexpr std::size_t kBeforeMinutes = 30;
  units::Instant moment_;
  std::size_t before_minutes_ = 0;
  std::vector<Suspect> parts_;
  std::vector<Coincidence> coinciding_;
};

}  // namespace flopsight::detect
