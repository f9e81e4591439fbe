#include "views/jobs_table.h"

#include <fmt/format.h>

#include "base/text.h"
#include "views/text_table.h"

namespace flopsight::views {
namespace {

using text_table::Column;
using text_table::kUnknownCell;
using text_table::short_name;

std::string text(const std::string& value) {
  return value.empty() ? std::string(kUnknownCell) : short_name(value);
}
std::string percent(const std::optional<double>& ratio) {
  return ratio ? fmt::format("{:.1f} %", *ratio * 100) : std::string(kUnknownCell);
}
std::string number(const std::optional<double>& value, int decimals) {
  return value ? fmt::format("{:.{}f}", *value, decimals) : std::string(kUnknownCell);
}
std::string time(const std::optional<units::Instant>& instant) {
  return instant ? units::to_rfc3339(*instant) : std::string(kUnknownCell);
}
std::string gpus(const std::optional<std::uint32_t>& count) {
  return count ? std::to_string(*count) : std::string(kUnknownCell);
}

std::string full_name(const samples::Holder& holder) {
  return short_name(holder.name_space.empty() ? holder.job : holder.job + "@" + holder.name_space);
}

std::string flops(const std::optional<double>& flops_per_second) {
  return flops_per_second ? fmt::format("{:.1f} TFLOP/s", *flops_per_second / 1e12)
                          : std::string(kUnknownCell);
}

const std::string& last_state(const analysis::JobAnswer& job) {
  static const std::string kNone;
  return job.runs.empty() ? kNone : job.runs.back().state;
}

}  // namespace

std::string jobs_table(const std::vector<analysis::JobAnswer>& jobs) {
  if (jobs.empty()) return "no jobs\n";
  std::vector<Column> columns = {
      {"job", {}, true},         {"GPUs", {}, false}, {"GPU-h", {}, false},    {"lost", {}, false},
      {"unmeasured", {}, false}, {"OFU", {}, false},  {"MFU*", {}, false},     {"audit", {}, true}, {"user", {}, true},
      {"state", {}, true},       {"name", {}, true},  {"first seen", {}, true}};
  bool reports = false;
  for (const analysis::JobAnswer& job : jobs) {
    reports = reports || job.reported;
    const std::string cells[] = {
        full_name(job.holder),
        job.gpu_count_unknown ? std::string(kUnknownCell) : text_table::gpu_count(job.summary.gpu_count, job.gpu_count_told.has_value()),
        number(job.summary.gpu_hours_allocated, 1),
        number(job.summary.gpu_hours_lost, 1),
        number(job.summary.gpu_hours_unmeasured, 1),
        percent(job.summary.ofu_ratio),
        job.reported ? percent(job.reported->mfu_ratio) : std::string(kUnknownCell),
        job.audit ? job.audit->verdict : std::string(kUnknownCell),
        text(job.holder.user),
        text(last_state(job)),
        job.runs.empty() ? std::string(kUnknownCell) : text(job.runs.back().name),
        time(job.first)};
    for (std::size_t i = 0; i < columns.size(); ++i) columns[i].cells.push_back(cells[i]);
  }
  text_table::drop_unknown(columns, 6);
  return text_table::render(columns, jobs.size()) +
         (reports ? "\n* as the job itself reports it, by its own FLOPs formula and peak\n" : "");
}

std::string job_text(const analysis::JobAnswer& job) {
  std::string out = full_name(job.holder) + "\n";
  const auto line = [&](std::string_view name, const std::string& value) {
    if (!value.empty() && value != kUnknownCell) out += fmt::format("  {:<14} {}\n", name, value);
  };
  std::string models;
  for (const std::string& model : job.models)
    models += (models.empty() ? "" : ", ") + short_name(model);
  line("user", text(job.holder.user));
  line("team", text(job.holder.team));
  line("GPUs", job.gpu_count_unknown ? "not known: its scheduler did not say how many"
                                     : text_table::gpu_count(job.summary.gpu_count, job.gpu_count_told.has_value()) + (models.empty() ? "" : " " + models));
  line(job.models.empty() && (job.gpu_count_told || job.gpu_count_unknown) ? "held" : "seen", time(job.first) + " to " + time(job.last));
  line("attributed by", text(job.holder.rule));
  line("family", text(job.family));
  line("GPU-hours", fmt::format("{} held, {} delivered, {} lost, {} unmeasured",
                                number(job.summary.gpu_hours_allocated, 2),
                                number(job.summary.gpu_hours_delivered, 2),
                                number(job.summary.gpu_hours_lost, 2),
                                number(job.summary.gpu_hours_unmeasured, 2)));
  line("OFU",
       job.summary.ofu_ratio_low
           ? fmt::format("{} ({} to {})", percent(job.summary.ofu_ratio),
                         percent(job.summary.ofu_ratio_low), percent(job.summary.ofu_ratio_high))
           : percent(job.summary.ofu_ratio));
  if (job.reported) {
    const analysis::Reported& r = *job.reported;
    line("reported MFU", percent(r.mfu_ratio));
    line("reported rate", flops(r.flops_per_second_per_gpu));
    line("implied peak", flops(r.peak_flops_per_second_implied));
    line("tokens/s/GPU", number(r.tokens_per_second_per_gpu, 0));
    line("step", r.step_seconds ? number(r.step_seconds, 3) + " s" : "");
    line("steps", fmt::format("{} used, {} excluded, from {}", r.steps_used, r.steps_excluded,
                              short_name(r.source)));
  }
  if (job.audit) {
    line("audit", job.audit->verdict + ", " + time(job.audit->time));
    line("", base::printable(job.audit->summary, 600));
    std::string ids;
    for (const std::string& id : job.audit->hypotheses) ids += (ids.empty() ? "" : ", ") + id;
    line("explained by", ids);
  }
  for (const schedulers::Job& run : job.runs) {
    line("run", fmt::format("{} {} to {}, {} GPUs, {}{}", text(run.cluster), time(run.start),
                            time(run.end), gpus(run.gpu_count), text(run.state),
                            run.name.empty() ? "" : ", " + short_name(run.name)));
  }
  for (std::size_t i = 0; i < job.members.size() && i < 8; ++i)
    line(i == 0 ? "made of" : "", short_name(job.members[i]));
  if (job.members.size() > 8) line("", fmt::format("and {} more", job.members.size() - 8));
  return out;
}

std::string told_nodes_table(const std::vector<schedulers::Node>& nodes) {
  std::vector<Column> columns = {{"host", {}, true}, {"GPUs", {}, false}, {"allocated", {}, false}, {"type", {}, true}, {"state", {}, true}};
  for (const schedulers::Node& node : nodes) {
    std::string types;
    for (const schedulers::GpuGroup& group : node.gpus) {
      if (!group.type.empty()) types += (types.empty() ? "" : "+") + group.type;
    }
    const std::string cells[] = {short_name(node.name), gpus(node.gpu_count), gpus(node.gpu_count_used), text(types), text(node.state)};
    for (std::size_t i = 0; i < columns.size(); ++i) columns[i].cells.push_back(cells[i]);
  }
  text_table::drop_unknown(columns, 2);
  return text_table::render(columns, nodes.size());
}

std::string told_jobs_table(const std::vector<schedulers::Job>& jobs) {
  if (jobs.empty()) return "no jobs\n";
  std::vector<Column> columns = {{"job", {}, true},   {"start", {}, true}, {"end", {}, true},
                                 {"GPUs", {}, false}, {"type", {}, true},  {"state", {}, true},
                                 {"user", {}, true},  {"hosts", {}, true}, {"name", {}, true}};
  for (const schedulers::Job& job : jobs) {
    std::string hosts;
    for (const schedulers::Allocation& allocation : job.allocations) {
      for (const std::string& host : allocation.hosts) hosts += (hosts.empty() ? "" : ",") + host;
      if (!allocation.gpu_indices.empty()) {
        hosts += "(";
        for (std::size_t i = 0; i < allocation.gpu_indices.size(); ++i)
          hosts += (i > 0 ? "," : "") + allocation.gpu_indices[i];
        hosts += ")";
      }
    }
    const std::string cells[] = {
        short_name(job.cluster.empty() ? job.id : job.id + "@" + job.cluster),
        time(job.start),
        time(job.end),
        gpus(job.gpu_count),
        text(job.gpu_type()),
        text(job.state),
        text(job.user),
        text(hosts),
        text(job.name)};
    for (std::size_t i = 0; i < columns.size(); ++i) columns[i].cells.push_back(cells[i]);
  }
  text_table::drop_unknown(columns, 3);
  return text_table::render(columns, jobs.size());
}

}  // namespace flopsight::views
