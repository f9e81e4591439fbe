#pragma once
// What a webhook is posted and a command gets: JSON of findings with what happened to each, and the environment of a command.
// docs/formats/notifications.md is the contract. Threads: values, pure functions.

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "notify/plan.h"

namespace flopsight::notify {

inline constexpr int kMessageVersion = 1;

struct Message {
  std::string_view receiver;
  std::string_view external_url;  // empty: no links
  units::Instant now;
  std::span<const Due> due;
  std::size_t more = 0;  // that are due as well, and follow
  bool is_test = false;  // nothing happened
};

// One document; a line of text for each finding is in it as well, for people.
std::string message_json(const Message& message);

// FLOPSIGHT_TRANSITION, FLOPSIGHT_KIND, FLOPSIGHT_HOST, … of the first finding. Values are one line without control characters.
std::vector<std::pair<std::string, std::string>> command_environment(const Message& message);

// "opened: hang: job ml/train, host n1: text".
std::string line_of(const Due& due);

}  // namespace flopsight::notify
