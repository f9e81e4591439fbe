#pragma once
// The arithmetic of the report as PromQL, so that the server returns a few numbers per GPU and job and not its raw
// samples. For each GPU and holder and over the window, at each step:
//
//   sum and count of  activity * on(UUID) clock,  of  activity,  and of  clock
//   first and last step of the clock, with all labels that say who the GPU is
//   count of steps at which anything of the GPU was there      variance of the clock while busy
//
// seven queries in all: a sum and its count travel packed in one number.
//
// Values outside the physical range are filtered in the expression, as judge.h does here. A sample holds for
// just under two scrape intervals (last_over_time), whatever the server's own look-back is. Copies of a series
// (replicas, pods of an exporter) fold into one by their mean over everything but GPU and holder: a maximum would be
// above either of two replicas that scrape at different moments.
//
// What PromQL cannot say is left to raw samples. Of all GPUs, and Plan::reason says why: cycle counters, tensor activity and clock
// that name the GPU by different labels, uncalibrated activity, a jobs file. Of single GPUs (PushdownResult::need_raw): several
// holders at once, and any step at which something of the GPU was there and was not measured, as sums do not tell the reason.
// Screening (frozen readings) needs raw samples and is not done here; the report says so.
//
// Threads: one.

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "jobs/holder_table.h"
#include "jobs/label_rules.h"
#include "samples/pushed_span.h"
#include "samples/quality.h"
#include "sources/prometheus_client.h"

namespace flopsight::sources {

// What the server has that matters.
struct Plan {
  std::vector<std::string> gpu_metrics;  // names of aliases that exist there
  std::string tensor_names;              // regular expression of names, one scale
  double tensor_scale = 1;
  std::string clock_names;
  double clock_scale = 1;
  std::string clock_max_names;
  double clock_max_scale = 1;
  std::string presence_names;  // of one device metric besides the clock, may be empty
  std::string gpu_label;       // the label that joins activity and clock: "UUID"
  units::Seconds interval{60};  // of the scrapes, as seen at the end of the window
  bool has_pod_owners = false;  // kube-state-metrics is among what it has
  bool simulated = false;  // some of the server's fleet does not exist
  bool can_push_down = false;
  std::string reason;  // why not
};

// Errors: those of the client; kNotFound when the server has no metric of a GPU exporter in the window.
base::Result<Plan> make_plan(PrometheusClient& client, const std::string& match,
                             const jobs::LabelRules& rules, units::Window window);

struct PushdownOptions {
  std::string match;  // further matchers, "cluster=\"a\""
  units::Window window;
  units::Seconds step{60};
  // A server refuses queries over too many samples; pieces of the window keep below this many steps of series.
  double series_steps_max = 6e6;
};

// A GPU by the join label's values that name it.
struct GpuNames {
  std::string host;
  std::set<std::string> values;
};

struct PushdownResult {
  std::vector<samples::PushedSpan> spans;
  // GPUs that need raw samples after all, by normalized UUID. They have no spans.
  std::map<std::string, GpuNames> need_raw;

  // Takes the spans of these GPUs (normalized UUIDs) away, and has those that had some read raw.
  void read_raw(const std::set<std::string>& uuids);
};

base::Result<PushdownResult> push_down(PrometheusClient& client, const Plan& plan,
                                       const PushdownOptions& options, const jobs::LabelRules& rules,
                                       jobs::HolderTable& holders, samples::QualityLog& quality,
                                       const std::function<void(PrometheusProgress)>& progress);

// For what lasts, windows of over two hours are looked at every five minutes.
inline units::Seconds coarse_step(units::Window window, units::Seconds step) {
  return window.length() > units::Seconds(7200) && step < units::Seconds(300) ? units::Seconds(300) : step;
}

// Warnings and partial answers of the server, into the log.
void note_answer(const wire::ApiAnswer& answer, samples::QualityLog& quality);

// A selector of raw samples: all GPU metrics of the plan, of the GPUs given (all when empty).
std::string raw_selector(const Plan& plan, const std::string& match, const std::vector<std::string>& gpus);

// Text as the inside of a PromQL string, with regular-expression characters escaped.
std::string regex_literal(std::string_view text);

}  // namespace flopsight::sources
