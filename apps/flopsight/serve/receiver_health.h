#pragma once
// How it goes with one receiver of findings, since the service started or its settings changed. Threads: plain values.

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "notify/plan.h"
#include "notify/receiver.h"

namespace flopsight::app {

struct ReceiverHealth {
  std::string name;
  notify::ReceiverType type = notify::ReceiverType::kWebhook;
  std::uint64_t taken = 0;     // messages; runs of a command that ended with 0
  std::uint64_t failed = 0;    // attempts that are made again
  std::uint64_t given_up = 0;  // findings that it was not told, for good
  std::uint64_t waiting = 0;   // findings that are due now
  std::uint32_t failures_in_a_row = 0;
  std::optional<units::Instant> last_taken;
  std::array<std::uint64_t, 6> told{};             // findings, by Telling
  std::map<int, std::uint64_t> exits;              // of a command, by exit code
};

}  // namespace flopsight::app
