// `scontrol show job -d` and `scontrol show node -d`: records of Key=Value. A value may hold blanks
// and, where a user chose it (a job's name, paths, comments), anything that looks like another key;
// those stand last on their line and are taken to its end. With -o everything is one line, and a
// job's name ends where the last " UserId=" before the list of nodes begins.
#include <algorithm>

#include "base/text.h"
#include "schedulers/slurm.h"
#include "schedulers/slurm_values_internal.h"

namespace flopsight::schedulers {
namespace {

using base::Error;
using base::ErrorCode;
using base::Result;
using namespace slurm;

constexpr std::string_view kToTheEnd[] = {"JobName",       "Command", "WorkDir", "StdErr",
                                          "StdIn",         "StdOut",  "Comment", "AdminComment",
                                          "SystemComment", "Extra",   "OS"};
constexpr std::size_t kRecordBytesMax = std::size_t{4} << 20;

struct Field {
  std::string_view key;
  std::string_view value;
};

bool is_key_character(char c) {
  return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' ||
         c == '/' || c == ':' || c == '.' || c == '&' || c == '*';
}

// The key whose '=' is the next in text, if it begins at `at` or after a blank: its first
// character, or npos.
std::size_t key_before(std::string_view text, std::size_t equals) {
  std::size_t begin = equals;
  while (begin > 0 && is_key_character(text[begin - 1])) --begin;
  const bool apart = begin == 0 || text[begin - 1] == ' ';
  return begin < equals && apart && text[begin] >= 'A' && text[begin] <= 'Z'
             ? begin
             : std::string_view::npos;
}

void fields_of_line(std::string_view line, std::vector<Field>& out) {
  std::size_t key_at = std::string_view::npos, value_at = 0;
  const auto close = [&](std::size_t end) {
    if (key_at == std::string_view::npos) return;
    out.push_back({line.substr(key_at, value_at - 1 - key_at),
                   base::trim(line.substr(value_at, end - value_at))});
  };
  for (std::size_t equals = line.find('='); equals != std::string_view::npos;
       equals = line.find('=', equals + 1)) {
    const std::size_t begin = key_before(line, equals);
    if (begin == std::string_view::npos || (key_at != std::string_view::npos && begin < value_at))
      continue;
    close(begin);
    key_at = begin;
    value_at = equals + 1;
    const std::string_view key = line.substr(begin, equals - begin);
    if (std::find(std::begin(kToTheEnd), std::end(kToTheEnd), key) != std::end(kToTheEnd)) break;
  }
  close(line.size());
}

// The one line of -o, cut so that each part can be read like a line of its own.
void fields_of_one_line(std::string_view line, std::vector<Field>& out) {
  const std::size_t name = line.find(" JobName=");
  const std::size_t user = line.substr(0, line.find(" NodeList=")).rfind(" UserId=");
  if (name == std::string_view::npos || user == std::string_view::npos || user < name)
    return fields_of_line(line, out);
  std::string_view head = line.substr(0, user);
  const std::size_t het = head.find(" HetJobIdSet=");
  if (het != std::string_view::npos && het > name) head = head.substr(0, het);
  fields_of_line(head, out);
  fields_of_line(line.substr(user), out);
}

class Record {
 public:
  std::vector<Field> fields;
  std::size_t line = 0;

  std::string_view get(std::string_view key) const {
    const auto found = std::find_if(fields.begin(), fields.end(),
                                    [&](const Field& field) { return field.key == key; });
    return found == fields.end() ? std::string_view() : said(found->value);
  }
  bool has(std::string_view key) const {
    return std::any_of(fields.begin(), fields.end(),
                       [&](const Field& field) { return field.key == key; });
  }
};

class Reader {
 public:
  explicit Reader(const SlurmOptions& options) : collector_(options) {}

  base::Status read(const Record& record) {
    if (record.has("JobId")) return job(record);
    if (record.has("NodeName")) return node(record);
    collector_.problem("line " + std::to_string(record.line),
                       "neither JobId= nor NodeName=; left out");
    return {};
  }
  void too_long(std::size_t line) {
    collector_.problem("line " + std::to_string(line),
                       "a record over " + std::to_string(kRecordBytesMax) + " bytes; left out");
  }
  Parsed finish() { return collector_.finish("scontrol show"); }

 private:
  base::Status job(const Record& record) {
    Draft draft;
    Job& job = draft.job;
    job.id = std::string(record.get("JobId"));
    draft.where = "line " + std::to_string(record.line) + ", job " + base::printable(job.id, 40);
    job.name = std::string(record.get("JobName"));
    job.user = std::string(record.get("UserId").substr(0, record.get("UserId").rfind('(')));
    job.account = std::string(record.get("Account"));
    job.partition = std::string(record.get("Partition"));
    job.qos = std::string(record.get("QOS"));
    job.state = state_of(record.get("JobState"));
    relations(record, job);
    bool readable = true;
    FLOPSIGHT_RETURN_IF_ERROR(moment(record, "SubmitTime", draft, draft.submit, readable));
    FLOPSIGHT_RETURN_IF_ERROR(moment(record, "StartTime", draft, draft.start, readable));
    FLOPSIGHT_RETURN_IF_ERROR(moment(record, "EndTime", draft, draft.end, readable));
    if (!readable) return {};
    draft.elapsed_seconds = clock_of(record.get("RunTime"));
    job.time_limit_infinite = record.get("TimeLimit") == "UNLIMITED";
    if (const auto limit = clock_of(record.get("TimeLimit")))
      job.time_limit = units::Seconds(*limit);
    if (!is_open(job.state)) set_exit(record.get("ExitCode"), job);
    if (const auto count = number_of(record.get("Restarts")); count && *count <= UINT32_MAX) {
      job.restart_count = static_cast<std::uint32_t>(*count);
    }
    const std::string_view nodes = record.get("NumNodes");  // of a pending job "1-2"
    if (const auto count = number_of(nodes); count && *count <= UINT32_MAX) {
      job.node_count = static_cast<std::uint32_t>(*count);
    }
    const std::string_view tres = record.has("AllocTRES") ? record.get("AllocTRES") : record.get("TRES");
    draft.allocated_nothing = tres.empty();
    collector_.read_gpus(tres, "TRES", draft);
    add_types(record.get("JOB_GRES"), draft.gpus);
    draft.gpus.has_shares |= names_shares(record.get("JOB_GRES"));
    // -d says "(null)" of a job that was given no resource at all.
    draft.asked_none =
        record.has("JOB_GRES") && record.get("JOB_GRES").find("gpu") == std::string_view::npos;
    draft.nodes = std::string(record.get("NodeList"));
    detail(record, draft);
    return collector_.add(std::move(draft));
  }

  // Of which type the GPUs are, where the cluster's accounting counts them without: JOB_GRES of -d has the same GPUs with theirs.
  static void add_types(std::string_view job_gres, GpuCounts& gpus) {
    if (!gpus.groups.empty() || !gpus.count) return;
    const auto typed = gpus_of_gres(job_gres);
    if (typed.ok() && typed->counts.count == gpus.count) gpus.groups = typed->counts.groups;
    std::erase_if(gpus.groups, [](const GpuGroup& group) { return group.type.empty(); });
    if (typed.ok() && gpus.groups.size() != typed->counts.groups.size()) gpus.groups.clear();
  }

  void relations(const Record& record, Job& job) {
    const auto task = number_of(record.get("ArrayTaskId"));
    if (task) {
      job.array_job_id = number_of(record.get("ArrayJobId"));
      job.array_task_id = task;
    }
    job.het_job_id = number_of(record.get("HetJobId"));
    if (const auto offset = number_of(record.get("HetJobOffset"));
        offset && *offset <= UINT32_MAX) {
      job.het_offset = static_cast<std::uint32_t>(*offset);
    }
  }

  base::Status moment(const Record& record, std::string_view key, const Draft& draft,
                      std::optional<Moment>& out, bool& readable) {
    auto found = moment_of(record.get(key), collector_.options());
    if (found.ok()) {
      out = *found;
      return {};
    }
    if (found.error().code == ErrorCode::kUnsupported) {
      return Error{ErrorCode::kInvalid,
                   draft.where + ", " + std::string(key) + ": " + found.error().message};
    }
    if (readable)
      collector_.problem(draft.where,
                         std::string(key) + ": " + found.error().message + "; left out");
    readable = false;
    return {};
  }

  // "Nodes=n[1-2] CPU_IDs=0 Mem=0 GRES=gpu:a100:2(IDX:0-1)", a line for each set of hosts that got
  // the same; GRES_IDX before Slurm 20.02.
  void detail(const Record& record, Draft& draft) {
    std::vector<Allocation> allocations;
    std::string_view nodes;
    for (const Field& field : record.fields) {
      if (field.key == "Nodes") nodes = said(field.value);
      if ((field.key != "GRES" && field.key != "GRES_IDX") || nodes.empty()) continue;
      auto hosts = jobs::expand_hosts(nodes);
      auto gpus = gpus_of_gres(field.value);
      nodes = {};
      if (!hosts.ok() || !gpus.ok()) {
        collector_.problem(draft.where,
                           (hosts.ok() ? gpus.error().message : hosts.error().message) +
                               "; which GPUs it holds is not known");
        return;
      }
      const auto count = gpus->counts.count || names_shares(field.value) ? gpus->counts.count : 0U;
      allocations.push_back({std::move(hosts).value(), std::move(gpus->indices), count});
    }
    // When a job is over, -d still names its hosts and no longer what it held there.
    const bool any =
        std::any_of(allocations.begin(), allocations.end(),
                    [](const Allocation& allocation) { return allocation.gpus_per_host != 0U; });
    if (any || is_open(draft.job.state)) draft.job.allocations = std::move(allocations);
  }

  base::Status node(const Record& record) {
    Node node;
    node.name = std::string(record.get("NodeName"));
    node.state =
        state_of(record.get("State").substr(0, record.get("State").find_first_of("*~#!%$@^-")));
    const std::string where =
        "line " + std::to_string(record.line) + ", node " + base::printable(node.name, 60);
    auto configured = gpus_of_tres(record.get("CfgTRES"));
    auto used = gpus_of_tres(record.get("AllocTRES"));
    auto gres = gpus_of_gres(record.get("Gres"));
    auto gres_used = gpus_of_gres(record.get("GresUsed"));
    if (!configured.ok() || !used.ok() || !gres.ok() || !gres_used.ok()) {
      const Error& error = !configured.ok() ? configured.error()
                           : !used.ok()     ? used.error()
                           : !gres.ok()     ? gres.error()
                                            : gres_used.error();
      collector_.problem(where, error.message + "; left out");
      return {};
    }
    set_node_gpus(node, {*configured, *used, *gres, *gres_used, record.has("Gres")});
    return collector_.add(std::move(node));
  }

  Collector collector_;
};

bool begins_record(std::string_view line) {
  return line.starts_with("JobId=") || line.starts_with("NodeName=");
}

}  // namespace

Result<Parsed> read_scontrol_text(std::string_view text, const SlurmOptions& options) {
  Reader reader(options);
  Record record;
  std::size_t number = 0, bytes = 0;
  const auto close = [&]() -> base::Status {
    base::Status status;
    if (bytes > kRecordBytesMax) {
      reader.too_long(record.line);
    } else if (!record.fields.empty()) {
      status = reader.read(record);
    }
    record = Record();
    bytes = 0;
    return status;
  };
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    const std::string_view line = base::trim(text.substr(0, end));
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    ++number;
    if (line.empty() || begins_record(line)) FLOPSIGHT_RETURN_IF_ERROR(close());
    if (line.empty()) continue;
    if (record.fields.empty()) record.line = number;
    bytes += line.size();
    if (bytes > kRecordBytesMax) continue;
    // With -o a job's name and its nodes are on the same line.
    if (line.find(" JobName=") != std::string_view::npos &&
        line.find(" NodeList=") != std::string_view::npos) {
      fields_of_one_line(line, record.fields);
    } else {
      fields_of_line(line, record.fields);
    }
  }
  FLOPSIGHT_RETURN_IF_ERROR(close());
  return reader.finish();
}

}  // namespace flopsight::schedulers
