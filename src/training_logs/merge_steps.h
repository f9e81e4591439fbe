#pragma once
// Several tellings of one step, by ranks, pods or series, as one. Threads: pure.

#include <optional>
#include <span>
#include <vector>

#include "training_logs/report.h"

namespace flopsight::training_logs {

// The median of each figure; number, time, loss and all else are those of the first that has them. `same` is not empty. `ranks` is how many
// told the figure that most told; no rank where there are several.
Step merge_steps(std::span<const Step> same);

// Why figures that were told, and not read from a log, cannot be used: one is negative or zero (kNotYetKnown), or the MFU is
// above 1 (kAbovePeak). Nothing where they can.
std::optional<Exclusion> exclusion_of_figures(const Step& step);

// Steps of several tellers, each ascending by attempt and number (or time, where they have none), as if one had told them: what is told of one
// step more than once is merged. What a teller excluded is not mixed with what others did not.
std::vector<Step> merge_tellers(std::vector<std::vector<Step>> tellers);

}  // namespace flopsight::training_logs
