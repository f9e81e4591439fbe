#pragma once
// Figures that a trainer exports as Prometheus metrics instead of printing them: which name means what, in which unit.
// Of the frameworks that are read here only Megatron-Core has names of its own (OpenTelemetry, "megatron.training.*"); everything else
// is a user's own and is said in a file.
//
//   training-metrics:
//     - {name: our_trainer_mfu, means: mfu, unit: "%"}
//
// `means` is a group name of a pattern file (patterns.h).

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "training_logs/report.h"

namespace flopsight::training_logs {

class ExportedMetrics {
 public:
  static constexpr std::size_t metrics_max = 1'000;

  static ExportedMetrics builtin();
  // On top of those that are built in. Errors: kInvalid and kLimit with the line.
  static base::Result<ExportedMetrics> parse(std::string_view yaml);

  bool known(std::string_view name) const;
  // Those of one meaning, such as "mfu", and what their values are times to be in the base unit.
  struct Scaled {
    std::string name;
    double base_unit_scale = 1;
  };
  std::vector<Scaled> named(std::string_view means) const;
  // A step that has this figure, its time and nothing else; nothing when the name is not known or the value is no measurement (not a
  // number, negative, or a rate of zero). Which job it is: by the series' labels, like any other sample.
  std::optional<Step> read(std::string_view name, double value, units::Instant time) const;

 private:
  struct Metric {
    std::string name;
    std::string means;
    std::string unit;
  };
  const Metric* find(std::string_view name) const;

  std::vector<Metric> metrics_;
};

}  // namespace flopsight::training_logs
