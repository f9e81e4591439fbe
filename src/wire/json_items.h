#pragma once
// The entries of lists inside a large JSON object, one after another, each as a small
// base::json::Value: memory grows with the text and one entry, not with a tree of everything. For
// documents such as a scheduler's accounting, {"meta": {...}, "jobs": [{...}, ...]}, of hundreds of
// megabytes.
//
// Integers beyond 2^53, and numbers beyond what a double holds (1e999), arrive as text, digits unchanged, since a double would round them or end.
// Errors: kInvalid with the byte where reading stopped (without one for an open
// quote); kLimit for a text over 4 GiB or entries nested deeper than 64.

#include <functional>
#include <span>
#include <string_view>

#include "base/json.h"
#include "base/result.h"

namespace flopsight::wire {

struct JsonItemsOptions {
  std::span<const std::string_view>
      lists;  // members of the root whose entries are handed over one by one
  std::span<const std::string_view> skip;  // keys that are passed over at any depth
};

// `entry` may return an error, which ends the reading and is the answer. Other members of the root
// go to `member`, and so does the name of a list, with an empty one, before its entries.
base::Status read_json_items(
    std::string_view json, const JsonItemsOptions& options,
    const std::function<base::Status(std::string_view list, base::json::Value entry)>& entry,
    const std::function<void(std::string_view key, base::json::Value value)>& member);

}  // namespace flopsight::wire
