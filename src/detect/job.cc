#include "detect/job.h"

#include <algorithm>

#include "base/median.h"
#include "detect/words_internal.h"

namespace flopsight::detect {
namespace {

constexpr std::size_t kLevelMinutes = 60;
constexpr double kCriticalSize = 0.5;

Finding begin(FindingKind kind, const std::string& job, units::Instant first, units::Instant last) {
  Finding out;
  out.kind = kind;
  out.severity = info_of(kind).severity;
  out.job = job;
  out.first = first;
  out.last = last;
  return out;
}

}  // namespace

void JobDetector::add(const MinutePoint& job, std::span<const GpuMinute> gpus) {
  regression_.add(job);
  const std::optional<Regression>& open = regression_.open();
  if (!open || (suspects_ && suspects_->moment() != open->first)) suspects_.reset();
  if (open) {
    if (!suspects_) suspects_ = std::make_unique<KeptSuspects>(open->first);
    suspects_->see(regression_.history());
  }
  stall_.add(job);
  peers_.add(gpus);
}

std::optional<double> JobDetector::level_ofu_ratio() const {
  const Recent<KeptMinute>& history = regression_.history();
  if (history.size() < kLevelMinutes) return std::nullopt;
  std::vector<double> values;
  for (std::size_t i = history.size() - kLevelMinutes; i < history.size(); ++i) values.push_back(history[i].ofu_ratio());
  return base::median(std::move(values));
}

Finding JobDetector::regression_finding(const Regression& open) const {
  Finding out = begin(FindingKind::kRegression, job_, open.first, open.last);
  if (open.size_ratio() <= kCriticalSize) out.severity = Severity::kCritical;
  out.evidence = {{"ofu_before_ratio", open.before_ofu_ratio},
                  {"ofu_after_ratio", open.after_ofu_ratio},
                  {"size_ratio", open.size_ratio()},
                  {"confidence_ratio", open.confidence_ratio},
                  {"found_unix_seconds", static_cast<double>(open.found.unix_milliseconds) / 1000}};
  out.series_name = "ofu_ratio";
  for (const KeptMinute& minute : regression_.history()) out.series.push_back({minute.start(), minute.ofu_ratio()});
  out.suspects = suspects_->all();
  // With a slow GPU or a changed label: evaluations have neither.
  if (open.may_be_evaluation && !suspects_->coincide()) out.severity = Severity::kInfo;
  out.cost = open.cost;
  out.text = "OFU fell from " + percent(open.before_ofu_ratio) + " to " + percent(open.after_ofu_ratio) + " at " +
             units::to_rfc3339(open.first) + "; " + in_words("%.1f", open.cost.value) + " GPU-hours lost since";
  if (out.severity == Severity::kInfo) out.text += "; it may be an evaluation, if it ends within " + std::to_string(kEvaluationMinutesMax) + " minutes of work";
  return out;
}

Finding JobDetector::stall_finding(const Stall& open) const {
  Finding out = begin(open.hang ? FindingKind::kHang : FindingKind::kStall, job_, open.first, open.last);
  out.evidence = {{"tensor_before_ratio", open.working_tensor_ratio}, {"tensor_ratio", open.tensor_ratio}};
  if (open.sm_ratio) out.evidence.push_back({"sm_active_ratio", *open.sm_ratio});
  if (open.working_power_watts) out.evidence.push_back({"power_before_watts", *open.working_power_watts});
  if (open.power_watts) out.evidence.push_back({"power_watts", *open.power_watts});
  out.cost = open.cost;
  out.text = open.hang ? "hangs: kernels wait on the GPUs (SMs busy " + percent(*open.sm_ratio) + "), no tensor work, " +
                             in_words("%.0f W", *open.power_watts) + " instead of " + in_words("%.0f W", *open.working_power_watts) +
                             ", links silent"
                       : std::string("does no tensor work any more");
  out.text += " since " + units::to_rfc3339(open.first) + "; " + in_words("%.1f", open.cost.value) + " GPU-hours since";
  return out;
}

std::vector<Finding> JobDetector::findings(const SubjectNames& names, std::span<const double> family, std::span<const LabelChange> changes,
                                           std::span<const Finding> faults) {
  std::vector<Finding> out = peers_.findings(job_, names);
  if (regression_.open()) {
    std::vector<Finding> about_gpus = out;
    for (const Finding& fault : faults) {
      if (!info_of(fault.kind).data_quality) about_gpus.push_back(fault);
    }
    suspects_->see(coincidences(regression_.open()->first, about_gpus, changes));
    out.push_back(regression_finding(*regression_.open()));
  }
  if (stall_.open()) out.push_back(stall_finding(*stall_.open()));
  const std::optional<double> level = level_ofu_ratio();
  const auto below = level ? family_shortfall(*level, family) : std::nullopt;
  if (below) {
    const Recent<KeptMinute>& history = regression_.history();
    Finding finding = begin(FindingKind::kBelowFamily, job_, history[history.size() - kLevelMinutes].start(), history.back().start());
    finding.evidence = {{"ofu_ratio", *level},
                        {"family_ofu_median_ratio", below->family_ofu_ratio},
                        {"size_ratio", below->size_ratio},
                        {"deviation_ratio", below->deviation_ratio}};
    finding.text = "OFU is " + percent(*level) + ", the median of its family's other runs " + percent(below->family_ofu_ratio);
    out.push_back(std::move(finding));
  }
  return out;
}

}  // namespace flopsight::detect
