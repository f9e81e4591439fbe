#include "samples/quality.h"

#include <algorithm>

#include "samples/absent.h"

namespace flopsight::samples {
namespace {

constexpr std::size_t kPlacesMax = 3;

struct CodeText {
  std::string_view code;
  std::string_view meaning;
};

constexpr CodeText kCodes[] = {
    {"band_from_clock_limits",
     "a busy GPU with fewer than two clock readings near its tensor activity: its part of the band spans every clock up to the maximum"},
    {"clock_from_other_scrape",
     "the SM clock came from another scrape, up to one interval older than the tensor activity"},
    {"conflicting_duplicate",
     "one GPU, one metric, one time, two values: the first was used"},
    {"counter_reset", "a cumulative counter fell: that step was left out"},
    {"counter_uncalibrated",
     "cycle counters and tensor activity disagree by more than a quarter: the counters were not used"},
    {"counter_multiplicity_unknown",
     "the SM multiplicity of the cycle counters could not be told; they were not used"},
    {"counter_route_difference",
     "OFU from cycle counters and from tensor activity times clock, compared where both exist"},
    {"duplicate", "the same sample more than once (shared GPU, replica, a repeated scrape): counted once"},
    {"empty_scrape", "an endpoint or file answered without a single sample: a missing scrape"},
    {"endpoint_down", "an endpoint did not answer: its GPUs are unmeasured"},
    {"exporter_pod_ignored", "pod labels that name the exporter itself were not taken for a job"},
    {"gpu_without_model", "nothing names the GPU's model: no peak, and no OFU without a clock that was scraped"},
    {"gpu_without_uuid", "identified by host and index, which are not the same in every tool"},
    {"held_instances_not_placed",
     "a scheduler gave the job MIG instances, and which they are is not known: index_map in the rules can say it"},
    {"held_not_attributed",
     "a scheduler gave the job more GPU time than was attributed to it: which GPUs of their host it had was not said, or only after "
     "the slots at its begin and end were closed; that time is among the time of no job"},
    {"held_number_unknown", "a scheduler gave the job hosts and did not say how many of their GPUs: its GPU-hours are not known"},
    {"held_not_seen", "GPU time that a scheduler gave the job and no sample was of: unmeasured"},
    {"holder_after_end", "samples labelled with a job after the end that its scheduler or jobs file tells: not the job's"},
    {"host_not_seen", "a jobs file or a scheduler names a host of which there is no sample: misspelt, down, or not scraped"},
    {kNotReadable, "samples or rollups that were kept and cannot be read any more: what is missing for it may be in this answer's window"},
    {"label_gap_bridged",
     "samples without job labels between two of the same job on the same GPU: given to that job"},
    {"label_conflict", "job labels and scheduler or jobs file disagree; the labels were used"},
    {"late_instance", "a MIG instance said more of a slot after what it leaves over of its GPU was written to an engine: left out"},
    {"log_zone_doubtful",
     "the times of a training log were read in a zone in which they do not fit the activity of the job's GPUs; nothing was shifted"},
    {"malformed_line", "a line that is not the exposition format was skipped; the rest was used"},
    {"mfu_discrepancy", "what the job reports of itself does not fit its model and its OFU: see its audit"},
    {"mig_profile_unknown", "a MIG instance whose share of the GPU cannot be told: left unmeasured"},
    {"ofu_above_one",
     "OFU above 1: the SM clock ran above the tensor-peak clock; above about 1.1 the catalogue row is "
     "wrong"},
    {"owners_not_told", "the server did not say whose pods are: the pods of one job are shown apart"},
    {"partial_answer", "the server said that its answer is partial"},
    {"possible_hang",
     "utilization at 100 % with tensor activity 0 and low power: kernels that wait for each other look so"},
    {"out_of_range_time", "a timestamp before 1970 or after 9999: the sample was left out"},
    {"price_unknown", "no price for the GPU model: no dollars for groups that hold it"},
    {"reported_without_job", "a trainer exports its speed under labels that name no job"},
    {"reported_mfu_not_told", "the server did not say what trainers exported of their own speed"},
    {"reported_without_times", "steps of a training log without times: its dates have no offset, and no zone is configured for it"},
    {"server_warning", "the server sent a warning with its answer"},
    {"simulated", "SIMULATED: samples of a fleet that does not exist"},
    {"shared_gpu", "several jobs at once on one GPU: its time was split equally among them"},
    {"tensor_zero_while_busy",
     "tensor activity exactly 0 while SMs are busy and power is high: no matrix work, or a stuck counter"},
    {"timestamps_ignored", "only one point in time per GPU: treated as an instant"},
    {"untimed_scrape", "a scrape without timestamps beside others that have them: its time is unknown"},
    {"model_without_clock", "the catalogue has the GPU model, and no clock or peak of it that anybody has published"},
    {"unknown_model", "GPU model not in the catalogue: no peak, no neighbour's peak"},
    {"ignored_metric", "samples left out by an ignore rule"},
};

}  // namespace

std::string_view quality_meaning(std::string_view code) {
  for (const CodeText& text : kCodes) {
    if (text.code == code) return text.meaning;
  }
  for (std::size_t i = 0; i < kAbsentReasonCount; ++i) {
    const auto reason = static_cast<AbsentReason>(i);
    if (absent_reason_name(reason) == code) return absent_reason_meaning(reason);
  }
  return "";
}

void QualityLog::add(std::string_view code, std::string_view where, std::uint64_t count) {
  if (count == 0) return;
  auto at = noted_.find(code);
  if (at == noted_.end()) at = noted_.emplace(std::string(code), Noted{}).first;
  Noted& noted = at->second;
  noted.count += count;
  if (noted.places.size() < kPlacesMax &&
      std::find(noted.places.begin(), noted.places.end(), where) == noted.places.end()) {
    noted.places.emplace_back(where);
  }
}

void QualityLog::merge(const QualityLog& other) {
  for (const auto& [code, noted] : other.noted_) {
    // The count goes with the first place; further places are only noted.
    add(code, noted.places.front(), noted.count);
    for (const std::string& place : noted.places) {
      add(code, place, 1);
      --noted_.find(code)->second.count;
    }
  }
}

std::uint64_t QualityLog::count(std::string_view code) const {
  const auto at = noted_.find(code);
  return at == noted_.end() ? 0 : at->second.count;
}

std::vector<QualityEntry> QualityLog::entries() const {
  std::vector<QualityEntry> out;
  for (const auto& [code, noted] : noted_) {
    QualityEntry entry{code, noted.count, "", std::string(quality_meaning(code))};
    for (const std::string& place : noted.places) {
      entry.where += (entry.where.empty() ? "" : "; ") + place;
    }
    if (noted.places.size() == kPlacesMax && noted.count > kPlacesMax) entry.where += "; ...";
    out.push_back(std::move(entry));
  }
  return out;
}

}  // namespace flopsight::samples
