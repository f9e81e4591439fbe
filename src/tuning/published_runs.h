#pragma once
// For tests: published runs against predictions, and how docs/tune-accuracy.md says it. Not part of the program.

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <string>
#include <vector>

#include "base/csv.h"
#include "base/file.h"
#include "flops/test_rows.h"

namespace flopsight::tuning::test {

inline std::vector<flops::test::Row> published_rows(const std::string& name) {
  const auto table = base::parse_csv(base::read_file(FLOPSIGHT_SOURCE_DIR "/tests/fixtures/tuning/" + name).value());
  std::vector<flops::test::Row> out;
  for (const base::CsvRow& row : table->rows) {
    flops::test::Row one;
    for (std::size_t i = 0; i < table->header.size(); ++i) one.cells[table->header[i]] = row.fields[i];
    out.push_back(std::move(one));
  }
  return out;
}

struct Errors {
  std::size_t runs = 0;
  double median_ratio = 0;           // with sign
  double median_absolute_ratio = 0;
  double p90_absolute_ratio = 0;
};

inline Errors errors_of(std::vector<double> errors) {
  Errors out;
  out.runs = errors.size();
  if (errors.empty()) return out;
  const auto at = [&](double share) {
    std::sort(errors.begin(), errors.end());
    return errors[static_cast<std::size_t>(share * static_cast<double>(errors.size() - 1))];
  };
  out.median_ratio = at(0.5);
  for (double& e : errors) e = std::abs(e);
  out.median_absolute_ratio = at(0.5);
  out.p90_absolute_ratio = at(0.9);
  return out;
}

inline std::string line(const std::string& name, const Errors& e) {
  char text[96];
  std::snprintf(text, sizeof text, " | %zu | %+.1f %% | %.1f %% | %.1f %% |\n", e.runs, 100 * e.median_ratio, 100 * e.median_absolute_ratio, 100 * e.p90_absolute_ratio);
  return "| " + name + text;
}

// Parts of the page.
std::string experts_section();  // published_experts_test.cc
std::string serving_section();  // published_serving_test.cc

}  // namespace flopsight::tuning::test
