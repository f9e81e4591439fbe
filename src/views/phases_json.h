#pragma once
// The phases of a job and its goodput as JSON. Threads: pure.

#include <string>
#include <vector>

#include "analysis/goodput.h"
#include "views/service_json.h"

namespace flopsight::views {

std::string phases_json(const AnswerHead& head, const std::string& id, units::Seconds slot, const analysis::Phases& phases,
                        const analysis::Goodput& goodput, const std::vector<units::Instant>& precision_switches);

}  // namespace flopsight::views
