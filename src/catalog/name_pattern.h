#pragma once
// A GPU model's names as a regular expression, for engines that match names themselves: what DeviceCatalog::find() does
// with words, for words in the order in which the catalogue (or the user's file) writes them. Another order has no match,
// which is an unknown model, never another's.
// Threads: pure.

#include <array>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "catalog/devices.h"

namespace flopsight::catalog {

// Words of a GPU name that tell no model apart, in lower case.
inline constexpr std::array<std::string_view, 6> kNoiseWords = {"nvidia",     "tesla", "edition",
                                                                "generation", "gpu",   "corporation"};

// The names of every model as they are written in the built-in table and in a user's CSV (empty: none). A user's row
// replaces the names of a built-in row of the same model.
// Errors: those of the CSV parser.
base::Result<std::map<std::string, std::vector<std::string>>> written_names(std::string_view user_csv);

// An alternative of a regular expression, all characters taken as they are.
std::string regex_escaped(std::string_view text);

// RE2 syntax, for the whole name, in any case of letters: "(?i)…". A MIG suffix, words that tell nothing and the
// device's memory size may be there or not. Empty when no name has a word.
std::string name_pattern(const Device& device, const std::vector<std::string>& names);

}  // namespace flopsight::catalog
