// `sacct -P` and `sacct -p`: columns between bars, nothing escaped. A job's name may hold a bar
// itself; where one column alone is free text, that one takes the surplus.
#include <algorithm>
#include <array>

#include "base/text.h"
#include "schedulers/slurm.h"
#include "schedulers/slurm_values_internal.h"

namespace flopsight::schedulers {
namespace {

using base::Error;
using base::ErrorCode;
using base::Result;
using namespace slurm;

constexpr std::size_t kColumnsMax = 512;

enum Column : std::size_t {
  kCluster,
  kJobIdRaw,
  kJobId,
  kJobName,
  kUser,
  kAccount,
  kPartition,
  kQos,
  kState,
  kSubmit,
  kStart,
  kEnd,
  kElapsedRaw,
  kElapsed,
  kTimelimitRaw,
  kTimelimit,
  kAllocTres,
  kNodeList,
  kNNodes,
  kExitCode,
  kRestarts,
  kUsage,
  kColumns
};
constexpr std::array<std::string_view, kColumns> kNames = {
    "cluster",    "jobidraw", "jobid",        "jobname",       "user",      "account",
    "partition",  "qos",      "state",        "submit",        "start",     "end",
    "elapsedraw", "elapsed",  "timelimitraw", "timelimit",     "alloctres", "nodelist",
    "nnodes",     "exitcode", "restarts",     "tresusageintot"};
// What users write, and bars with it.
constexpr std::string_view kFree[] = {
    "jobname",   "comment", "admincomment", "systemcomment", "submitline", "workdir", "constraints",
    "container", "extra",   "wckey",        "stdout",        "stderr",     "stdin"};

struct Table {
  std::vector<std::string> header;
  std::array<std::size_t, kColumns> at{};  // index into a row; header.size(): not there
  std::vector<std::size_t> free;
  bool bar_at_end = false;  // -p
};

Result<Table> table_of(std::string_view line) {
  Table table;
  if (line.ends_with('|')) {
    table.bar_at_end = true;
    line.remove_suffix(1);
  }
  table.header = base::split(line, '|');
  if (table.header.size() > kColumnsMax)
    return Error{ErrorCode::kLimit, "line 1: more than 512 columns"};
  table.at.fill(table.header.size());
  for (std::size_t i = 0; i < table.header.size(); ++i) {
    const std::string name = base::to_lower(base::trim(table.header[i]));
    for (std::size_t column = 0; column < kColumns; ++column) {
      if (kNames[column] == name) table.at[column] = i;
    }
    if (std::find(std::begin(kFree), std::end(kFree), name) != std::end(kFree))
      table.free.push_back(i);
  }
  const auto missing = [&](Column column) { return table.at[column] == table.header.size(); };
  if (missing(kJobIdRaw) && missing(kJobId)) {
    return Error{ErrorCode::kInvalid,
                 "line 1: no column JobIDRaw, expected the header of `sacct -P` (without -n)"};
  }
  for (const Column column : {kState, kStart, kEnd}) {
    if (missing(column)) {
      return Error{ErrorCode::kInvalid, "line 1: no column " + std::string(kNames[column]) +
                                            ", expected --format=" + std::string(sacct_columns())};
    }
  }
  return table;
}

class Reader {
 public:
  Reader(Table table, const SlurmOptions& options)
      : table_(std::move(table)), collector_(options) {}

  base::Status row(std::string_view line, std::size_t number) {
    where_ = "line " + std::to_string(number);
    if (table_.bar_at_end && line.ends_with('|')) line.remove_suffix(1);
    fields_ = base::split(line, '|');
    if (!fit()) {
      collector_.problem(where_, std::to_string(fields_.size()) + " columns, expected " +
                                     std::to_string(table_.header.size()) + "; left out");
      return {};
    }
    const std::string_view raw = field(kJobIdRaw).empty() ? field(kJobId) : field(kJobIdRaw);
    if (const std::size_t dot = raw.find('.'); dot != std::string_view::npos) {
      collector_.skip_step();
      note_utilization(raw.substr(0, dot));
      return {};
    }
    if (number_of(raw)) return job(raw);
    // "12_[4-5%2]": the tasks of an array that have not begun.
    if (raw.find('[') != std::string_view::npos && is_pending(state_of(field(kState)))) return {};
    collector_.problem(where_, "JobID " + base::printable(raw, 40) +
                                   " is no raw id, expected the column JobIDRaw as well (--format=JobIDRaw,…); left out");
    return {};
  }

  Parsed finish() {
    if (table_.at[kAllocTres] == table_.header.size()) {
      collector_.problem("line 1", "no column AllocTRES: how many GPUs the jobs held is not known; ask for --format=" + std::string(sacct_columns()));
    }
    return collector_.finish("sacct -P");
  }

 private:
  std::string_view field(Column column) const {
    const std::size_t at = table_.at[column];
    return at < fields_.size() ? base::trim(fields_[at]) : std::string_view();
  }

  // Makes the row as wide as the header, if that can be done in one way only.
  bool fit() {
    const std::size_t columns = table_.header.size();
    if (fields_.size() == columns) return true;
    if (fields_.size() < columns || table_.free.size() != 1) return false;
    const std::size_t at = table_.free[0], surplus = fields_.size() - columns;
    for (std::size_t i = 0; i < surplus; ++i) fields_[at] += "|" + fields_[at + 1 + i];
    const auto first = fields_.begin() + static_cast<std::ptrdiff_t>(at) + 1;
    fields_.erase(first, first + static_cast<std::ptrdiff_t>(surplus));
    return true;
  }

  void note_utilization(std::string_view id) {
    const auto used = gpu_utilization_of_tres(field(kUsage));
    Job* job = collector_.last_with_id(id);
    if (!used || job == nullptr) return;
    job->slurm_gpu_utilization_total =
        std::max(job->slurm_gpu_utilization_total.value_or(0), *used);
  }

  base::Status job(std::string_view id) {
    Draft draft;
    draft.where = where_ + ", job " + std::string(id);
    Job& job = draft.job;
    job.id = std::string(id);
    job.cluster = std::string(field(kCluster));
    job.name = std::string(field(kJobName));
    job.user = std::string(field(kUser));
    job.account = std::string(field(kAccount));
    job.partition = std::string(field(kPartition));
    job.qos = std::string(field(kQos));
    job.state = state_of(field(kState));
    set_relations(field(kJobId), job);
    bool readable = true;
    FLOPSIGHT_RETURN_IF_ERROR(set_moment(kSubmit, draft, draft.submit, readable));
    FLOPSIGHT_RETURN_IF_ERROR(set_moment(kStart, draft, draft.start, readable));
    FLOPSIGHT_RETURN_IF_ERROR(set_moment(kEnd, draft, draft.end, readable));
    if (!readable) return {};
    const auto raw = number_of(field(kElapsedRaw));
    draft.elapsed_seconds =
        raw ? std::optional<double>(static_cast<double>(*raw)) : clock_of(field(kElapsed));
    set_limit(job);
    set_exit(field(kExitCode), job);
    if (const auto count = number_of(field(kRestarts)); count && *count <= UINT32_MAX) {
      job.restart_count = static_cast<std::uint32_t>(*count);
    }
    if (const auto count = number_of(field(kNNodes)); count && *count <= UINT32_MAX) {
      job.node_count = static_cast<std::uint32_t>(*count);
    }
    draft.allocated_nothing = said(field(kAllocTres)).empty();
    collector_.read_gpus(field(kAllocTres), "AllocTRES", draft);
    draft.nodes = std::string(field(kNodeList));
    return collector_.add(std::move(draft));
  }

  // A job whose times cannot be read is a problem; a missing zone is one of the whole text.
  base::Status set_moment(Column column, const Draft& draft, std::optional<Moment>& out,
                          bool& readable) {
    auto moment = moment_of(field(column), collector_.options());
    if (moment.ok()) {
      out = *moment;
      return {};
    }
    if (moment.error().code == ErrorCode::kUnsupported) {
      return Error{ErrorCode::kInvalid, draft.where + ", " + std::string(kNames[column]) + ": " +
                                            moment.error().message};
    }
    if (readable)
      collector_.problem(
          draft.where, std::string(kNames[column]) + ": " + moment.error().message + "; left out");
    readable = false;
    return {};
  }

  // "12_3" is task 3 of array 12, "12+1" part 1 of the heterogeneous job 12.
  static void set_relations(std::string_view shown, Job& job) {
    if (const std::size_t bar = shown.find('_'); bar != std::string_view::npos) {
      job.array_job_id = number_of(shown.substr(0, bar));
      job.array_task_id = number_of(shown.substr(bar + 1));
    }
    if (const std::size_t plus = shown.find('+'); plus != std::string_view::npos) {
      job.het_job_id = number_of(shown.substr(0, plus));
      if (const auto offset = number_of(shown.substr(plus + 1)); offset && *offset <= UINT32_MAX) {
        job.het_offset = static_cast<std::uint32_t>(*offset);
      }
    }
  }

  void set_limit(Job& job) const {
    const std::string_view raw = field(kTimelimitRaw), text = field(kTimelimit);
    job.time_limit_infinite = raw == "UNLIMITED" || text == "UNLIMITED";
    if (const auto minutes = number_of(raw)) {
      job.time_limit = units::Seconds(static_cast<double>(*minutes) * 60);
    } else if (const auto seconds = clock_of(text)) {
      job.time_limit = units::Seconds(*seconds);
    }
  }

  Table table_;
  Collector collector_;
  std::string where_;
  std::vector<std::string> fields_;
};

}  // namespace

Result<Parsed> read_sacct_text(std::string_view text, const SlurmOptions& options) {
  std::size_t number = 0;
  std::optional<Reader> reader;
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    std::string_view line = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    ++number;
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (base::trim(line).empty()) continue;
    if (reader) {
      FLOPSIGHT_RETURN_IF_ERROR(reader->row(line, number));
      continue;
    }
    FLOPSIGHT_ASSIGN_OR_RETURN(Table table, table_of(line));
    reader.emplace(std::move(table), options);
  }
  if (!reader) return Error{ErrorCode::kInvalid, "empty, expected the header of `sacct -P`"};
  return reader->finish();
}

}  // namespace flopsight::schedulers
