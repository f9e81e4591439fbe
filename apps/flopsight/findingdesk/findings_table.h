#pragma once
// Findings and silences for a terminal, and as CSV. Threads: pure.

#include <span>
#include <string>

#include "findings/record.h"
#include "findings/silence.h"

namespace flopsight::app {

std::string findings_table(std::span<const findings::Record> records);
std::string findings_csv(std::span<const findings::Record> records);
std::string finding_text(const findings::Record& record);
std::string silences_table(std::span<const findings::Silence> silences);

}  // namespace flopsight::app
