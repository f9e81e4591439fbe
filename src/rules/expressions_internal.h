#pragma once
// What recording and alerting rules share: names of labels, selectors, and quantities under all their names.

#include <string>
#include <string_view>
#include <vector>

#include "catalog/metrics.h"
#include "rules/rules.h"
#include "sources/promql_parts.h"

namespace flopsight::rules {


struct Labels {
  explicit Labels(const Options& options);
  std::string gpu;                // "UUID"
  std::string instance, profile;  // of MIG
  std::string unit;               // "UUID, GPU_I_ID": a GPU or an instance of it
  std::string job;                // "flopsight_job, flopsight_namespace" and what the user groups by
};

sources::Reading reading_of(const Options& options);

// One quantity in our unit under all its calibrated names, one term for each scale, joined by `or`; `match`: further matchers.
std::string quantity(const Options& options, catalog::Metric metric, const std::string& aggregation, const std::string& match = {});

// All names of a quantity as a regular expression.
std::string all_names(const std::vector<catalog::Metric>& metrics);

// "15m", "90s", "500ms".
std::string duration(units::Seconds length);

}  // namespace flopsight::rules
