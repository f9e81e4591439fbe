#pragma once
// A table of a logger (CSV): names of columns that are known, and a column for the step.

#include <optional>
#include <string_view>
#include <vector>

#include "training_logs/formats_internal.h"

namespace flopsight::training_logs {

class Table {
 public:
  // Whether the line is the header of a table with a step and a figure; then it is the one whose rows follow.
  bool header(std::string_view text);
  Extract row(std::string_view text) const;
  bool empty() const { return columns_.empty(); }

 private:
  std::vector<std::optional<Field>> columns_;  // empty where the text is no table
};

}  // namespace flopsight::training_logs
