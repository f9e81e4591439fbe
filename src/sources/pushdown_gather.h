#pragma once
// What a server answered for each set of labels, made into spans; and which GPUs it cannot have said everything of. Those have to be
// read raw, as sums do not tell why a value is missing: only time in which every present step was measured, or a GPU without
// any tensor counter, is taken from sums.
// Threads: one.

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "jobs/holder_table.h"
#include "jobs/label_rules.h"
#include "samples/pushed_span.h"
#include "sources/pushdown.h"
#include "wire/prometheus_api.h"

namespace flopsight::sources {

// Labels that tell GPU, MIG instance and holder apart, but not the names of its host, its model or its place: those may differ between
// copies of one series and change within the window without its being another.
std::vector<std::string> holder_label_names(const Plan& plan, const jobs::LabelRules& rules);

class PushedGather {
 public:
  // Both are borrowed.
  PushedGather(const Plan& plan, const jobs::LabelRules& rules);

  // Sums over steps of one set of holder_label_names(). Counts are of steps at which there was a value within its range.
  struct Sums {
    samples::PushedSpan span;  // without its counts of steps
    std::uint64_t tensor_steps = 0;
    std::uint64_t clock_steps = 0;
    std::uint64_t measured_steps = 0;  // both at once
  };
  // Further labels of the series say who the GPU is and are not compared. Nothing where it names no GPU.
  Sums* sums_of(const wire::ApiSeries& series);
  // Steps at which any sample of the GPU or instance was there, with a value or not.
  void add_presence(const wire::ApiSeries& series, std::uint64_t steps);
  void add_variance(const wire::ApiSeries& series, double hertz2);

  // The spans, one for each GPU and holder, and the GPUs that need raw samples. `tolerance` is how long a series is held.
  PushdownResult take(jobs::HolderTable& holders, units::Seconds step, units::Seconds tolerance);

 private:
  using Labels = std::vector<std::pair<std::string, std::string>>;
  using Entry = std::pair<const Labels, Sums>;
  struct Instance {
    std::vector<const Entry*> entries;
    std::uint64_t presence_steps = 0;
  };
  struct Gpu {
    std::set<std::string> names;                // as the label spells it
    std::map<std::string, Instance> instances;  // "" is the whole GPU
    double variance_hertz2_sum = 0;
    std::uint64_t variance_pieces = 0;

    bool is_divided() const { return !instances.empty() && !instances.rbegin()->first.empty(); }
  };
  // By what names a GPU in this series, and with which MIG instance.
  Gpu* gpu_of(const wire::ApiSeries& series);
  static bool says_everything(const Gpu& gpu, units::Seconds step, units::Seconds tolerance);
  // False where labels of one holder were there at once, which sums cannot be told of one GPU.
  bool add_spans(const Gpu& gpu, jobs::HolderTable& holders, units::Seconds step, units::Seconds tolerance,
                 std::vector<samples::PushedSpan>& out) const;

  const Plan& plan_;
  const jobs::LabelRules& rules_;
  std::set<std::string> compared_;
  std::map<Labels, Sums> sums_;
  std::map<std::string, Gpu> gpus_;  // by normalized UUID
};

}  // namespace flopsight::sources
