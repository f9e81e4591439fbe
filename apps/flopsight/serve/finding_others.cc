#include "serve/finding_others.h"

#include <cstdio>

#include "jobs/job_name.h"

namespace flopsight::app {
namespace {

using findings::Record;
using findings::Sighting;

constexpr double kDaySeconds = 86'400;

std::string in_words(const char* format, double value) {
  char text[64];
  std::snprintf(text, sizeof text, format, value);
  return text;
}

Record begin(std::string_view kind, const samples::Holder& holder) {
  Record record;
  record.kind = kind;
  record.severity = findings::find_kind(kind)->severity;
  record.holder = holder;
  record.job = jobs::job_text(holder);
  record.key = std::string(kind) + "/job=" + record.job;
  return record;
}

}  // namespace

Sighting sighting_of(const jobs::AuditFinding& audit, bool is_simulated) {
  Sighting out;
  out.record = begin(findings::kAuditKind, audit.holder);
  out.record.simulated = is_simulated;
  out.record.first = audit.time;
  out.record.text = audit.verdict + ": " + audit.summary;
  out.record.action = "see the job's audit for the formula or peak to correct (docs/audit.md)";
  return out;
}

base::Result<std::vector<Sighting>> wasted_of(store::Reader& store, const AnswerSettings& settings, JobService& jobs, units::Instant end,
                                              double usd_per_day) {
  samples::QualityLog unused;
  const units::Window day{end - units::Seconds(kDaySeconds), end};
  FLOPSIGHT_ASSIGN_OR_RETURN(const analysis::WasteAccount account,
                             answer_waste(store, settings, day, analysis::WasteBy::kJob, std::nullopt, everybody(), &jobs, unused));
  std::vector<Sighting> out;
  for (const analysis::WasteRow& row : account.rows) {
    if (!row.attainable || !row.attainable->usd_lost || *row.attainable->usd_lost < usd_per_day || row.attainable->gpu_hours_lost <= 0) continue;
    samples::Holder holder;
    for (const auto& [name, value] : row.key) {
      if (name == "job") holder.job = value.value_or("");
      if (name == "namespace") holder.name_space = value.value_or("");
    }
    if (holder.job.empty()) continue;
    holder.user = row.user;
    Sighting sighting;
    sighting.record = begin(findings::kWasteKind, holder);
    sighting.record.first = day.start;
    sighting.record.simulated = account.simulated;
    sighting.record.cost = units::GpuHours(row.attainable->gpu_hours_lost);
    sighting.usd_per_gpu_hour = units::UsdPerGpuHour(*row.attainable->usd_lost / row.attainable->gpu_hours_lost);
    sighting.record.evidence = {{"lost_against_attainable_usd", *row.attainable->usd_lost},
                                {"lost_against_attainable_gpu_hours", row.attainable->gpu_hours_lost},
                                {"allocated_gpu_hours", row.gpu_hours.allocated()}};
    if (row.ofu_ratio) sighting.record.evidence.push_back({"ofu_ratio", *row.ofu_ratio});
    sighting.record.text = "lost " + in_words("%.0f", *row.attainable->usd_lost) + " USD in 24 hours against " + row.attainable->reference + " (" +
                           in_words("%.1f", row.attainable->gpu_hours_lost) + " of " + in_words("%.1f", row.gpu_hours.allocated()) + " GPU-hours)";
    sighting.record.action = "see the job's waterfall for where the time goes, and flopsight tune for what to change";
    out.push_back(std::move(sighting));
  }
  return out;
}

}  // namespace flopsight::app
