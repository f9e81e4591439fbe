#pragma once
// What a finding is called where people are told of it: the name of its alert, a line, a few lines.
//
// Names of jobs, users and hosts come from strangers: control characters and what is no UTF-8 become '?', and what is too long is cut.
// Threads: pure functions.

#include <cstddef>
#include <string>
#include <string_view>

#include "findings/record.h"

namespace flopsight::notify {

inline constexpr std::size_t kNameBytesMax = 200;    // of a job, user, host in a message
inline constexpr std::size_t kTextBytesMax = 2'000;  // of a sentence
inline constexpr std::string_view kTestKind = "test";  // of a finding that nobody keeps (`flopsight notify test`)
inline constexpr std::size_t kListedMax = 20;        // figures and suspects of a finding

// For one line, at most bytes_max bytes and "...".
std::string clean(std::string_view text, std::size_t bytes_max = kNameBytesMax);

// "FlopsightGpuHung": that of `flopsight rules` where it has an alert for the same matter, else made of the kind.
std::string alert_name(std::string_view kind);

// "job ml/train, GPU GPU-1 of host n1"; "the fleet" without any.
std::string subject_of(const findings::Record& record);

// "hang: job ml/train"; a simulated fleet is said to be one.
std::string summary_of(const findings::Record& record);

// The sentence of the finding, then its figures, its suspects.
std::string description_of(const findings::Record& record);

// "12.5 GPU-hours, $37.50 since 2026-11-30T10:00:00Z"; empty where nothing is known.
std::string cost_of(const findings::Record& record);

}  // namespace flopsight::notify
