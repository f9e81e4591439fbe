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
#include "detect/series.h"

namespace flopsight::detect {

struct LabelChange {
  units::Instant time;
  std::string name;
  std::string before;
  std::string after;
};

// `history`: minutes on both sides of `moment`. `same_job`: other findings about the job's GPUs and hosts.
std::vector<Suspect> rank_suspects(std::span<const MinutePoint> history, units::Instant moment, std::span<const Finding> same_job,
                                   std::span<const LabelChange> changes);

}  // namespace flopsight::detect
