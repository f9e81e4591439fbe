#include "jobs/job_file.h"

#include <algorithm>

#include "base/csv.h"
#include "base/json.h"
#include "base/text.h"
#include "jobs/label_rules.h"

namespace flopsight::jobs {
namespace {

using base::Error;
using base::ErrorCode;
using base::Result;

constexpr std::size_t kHostsMax = 65'536;
constexpr std::size_t kHostsPerFileMax = 1'000'000;
constexpr long kGpuIndexMax = 1023;  // no host has more

bool all_digits(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

// "01-03,7" after "n": n01 n02 n03 n7.
Result<std::vector<std::string>> expand_bracket(std::string_view inside) {
  std::vector<std::string> out;
  for (const std::string& part : base::split(inside, ',')) {
    const std::size_t dash = part.find('-');
    const std::string first = part.substr(0, dash);
    const std::string last = dash == std::string::npos ? first : part.substr(dash + 1);
    if (!all_digits(first) || !all_digits(last) || first.size() > 9 || last.size() > 9) {
      return Error{ErrorCode::kInvalid,
                   "\"" + base::printable(part, 40) + "\", expected a number or a-b"};
    }
    const long from = std::stol(first), to = std::stol(last);
    if (to < from) return Error{ErrorCode::kInvalid, "\"" + part + "\" counts down"};
    if (static_cast<std::size_t>(to - from) >= kHostsMax - out.size()) {
      return Error{ErrorCode::kLimit, "more than " + std::to_string(kHostsMax) + " hosts"};
    }
    for (long i = from; i <= to; ++i) {
      std::string number = std::to_string(i);
      if (number.size() < first.size()) number.insert(0, first.size() - number.size(), '0');
      out.push_back(std::move(number));
    }
  }
  return out;
}

// One name with any number of brackets: "r[1-2]n[01-04]".
base::Status expand_name(std::string_view name, std::vector<std::string>& out) {
  std::vector<std::string> names = {""};
  while (!name.empty()) {
    const std::size_t open = name.find('[');
    const std::string_view plain = name.substr(0, open);
    if (plain.find(']') != std::string_view::npos) {
      return Error{ErrorCode::kInvalid, "']' without '['"};
    }
    std::vector<std::string> tails = {""};
    std::size_t after = name.size();
    if (open != std::string_view::npos) {
      const std::size_t close = name.find(']', open);
      if (close == std::string_view::npos) return Error{ErrorCode::kInvalid, "'[' is not closed"};
      FLOPSIGHT_ASSIGN_OR_RETURN(tails, expand_bracket(name.substr(open + 1, close - open - 1)));
      after = close + 1;
    }
    if (names.size() * tails.size() + out.size() > kHostsMax) {
      return Error{ErrorCode::kLimit, "more than " + std::to_string(kHostsMax) + " hosts"};
    }
    std::vector<std::string> next;
    for (const std::string& head : names) {
      for (const std::string& tail : tails) next.push_back(head + std::string(plain) + tail);
    }
    names = std::move(next);
    name.remove_prefix(after);
  }
  out.insert(out.end(), names.begin(), names.end());
  return {};
}

base::Status add_gpu(std::string_view text, JobRecord& job) {
  const std::string gpu(base::trim(text));
  if (gpu.empty()) return {};
  const Error wrong{ErrorCode::kInvalid,
                    "gpus: \"" + base::printable(gpu, 40) +
                        "\", expected an index, a range of indices, a UUID or a PCI bus id"};
  const std::size_t dash = gpu.find('-');
  const std::string first = gpu.substr(0, dash),
                    last = dash == std::string::npos ? first : gpu.substr(dash + 1);
  if (all_digits(first) && all_digits(last) && first.size() < 5 && last.size() < 5) {
    const long from = std::stol(first), to = std::stol(last);
    if (to < from || to > kGpuIndexMax) return wrong;
    for (long i = from; i <= to; ++i) {
      const std::string index = std::to_string(i);
      // Named twice, it is one GPU.
      if (std::find(job.gpu_indices.begin(), job.gpu_indices.end(), index) == job.gpu_indices.end()) job.gpu_indices.push_back(index);
    }
  } else if (gpu.find(':') != std::string::npos && gpu.find('.') != std::string::npos) {
    job.gpu_bus_ids.push_back(gpu);
  } else if (const std::string lower = base::to_lower(gpu);
             lower.starts_with("gpu-") || lower.starts_with("mig-") ||
             std::count(gpu.begin(), gpu.end(), '-') == 4) {
    job.gpu_uuids.push_back(gpu);
  } else {
    return wrong;
  }
  return {};
}

base::Status set_time(std::string_view field, std::string_view text,
                      std::optional<units::Instant>& out) {
  text = base::trim(text);
  if (text.empty() || text == "null" || text == "Unknown") return {};
  out = units::parse_instant(text);
  if (out) return {};
  return Error{ErrorCode::kInvalid, std::string(field) + ": \"" + base::printable(text, 40) +
                                        "\", expected RFC 3339 with an offset, or Unix seconds"};
}

// Lists inside one cell are separated by ';', ' ' or '|' (',' too, outside brackets).
std::vector<std::string> cell_list(std::string_view cell) {
  std::vector<std::string> out(1);
  int depth = 0;
  for (const char c : cell) {
    if (c == '[') ++depth;
    if (c == ']') --depth;
    if (c == ';' || c == '|' || c == ' ' || (c == ',' && depth <= 0)) {
      out.emplace_back();
    } else {
      out.back() += c;
    }
  }
  std::erase(out, "");
  return out;
}

// Which field a column or key is; empty for one that says nothing of who held which GPU when.
std::string_view field_of(std::string_view name) {
  constexpr std::pair<std::string_view, std::string_view> kNames[] = {
      {"job", "job"},        {"job_id", "job"},       {"jobid", "job"},
      {"id", "job"},         {"user", "user"},        {"team", "team"},
      {"account", "team"},   {"project", "team"},     {"namespace", "namespace"},
      {"hosts", "hosts"},    {"host", "hosts"},       {"nodes", "hosts"},
      {"node", "hosts"},     {"gpus", "gpus"},        {"gpu", "gpus"},
      {"gpu_index", "gpus"}, {"gpu_indices", "gpus"}, {"indices", "gpus"},
      {"gpu_uuid", "gpus"},  {"gpu_uuids", "gpus"},   {"uuid", "gpus"},
      {"uuids", "gpus"},     {"start", "start"},      {"start_time", "start"},
      {"end", "end"},        {"end_time", "end"}};
  for (const auto& [known, field] : kNames) {
    if (known == name) return field;
  }
  return {};
}

// A misspelt column that decides who held what must not be passed over: without GPUs a job holds
// the whole host.
base::Status check_field_name(std::string_view name) {
  if (!field_of(name).empty()) return {};
  const std::string lower = base::to_lower(name);
  for (const std::string_view telling : {"gpu", "host", "node", "uuid", "start", "end", "job"}) {
    if (lower.find(telling) != std::string::npos) {
      return Error{ErrorCode::kInvalid,
                   "\"" + base::printable(name, 40) +
                       "\" is no field of a job, expected job, user, team, namespace, hosts, "
                       "gpus, start or end"};
    }
  }
  return {};
}

base::Status set_field(JobRecord& job, std::string_view name, const std::string& text) {
  const std::string_view field = field_of(name);
  if (field == "job") job.job = std::string(base::trim(text));
  if (field == "user") job.user = std::string(base::trim(text));
  if (field == "team") job.team = std::string(base::trim(text));
  if (field == "namespace") job.name_space = std::string(base::trim(text));
  if (field == "hosts") {
    for (const std::string& item : cell_list(text)) {
      auto hosts = expand_hosts(item);
      if (!hosts.ok()) return hosts.error().within("hosts");
      if (job.hosts.size() + hosts->size() > kHostsMax) {
        return Error{ErrorCode::kLimit, "hosts: more than " + std::to_string(kHostsMax)};
      }
      job.hosts.insert(job.hosts.end(), hosts->begin(), hosts->end());
    }
  }
  if (field == "gpus") {
    for (const std::string& item : cell_list(text)) FLOPSIGHT_RETURN_IF_ERROR(add_gpu(item, job));
  }
  if (field == "start") return set_time(field, text, job.start);
  if (field == "end") return set_time(field, text, job.end);
  return {};
}

base::Status check_record(const JobRecord& job) {
  if (job.job.empty()) return Error{ErrorCode::kInvalid, "job: missing or empty"};
  if (job.hosts.empty() && job.gpu_uuids.empty()) {
    return Error{ErrorCode::kInvalid,
                 "job " + base::printable(job.job, 60) + ": neither hosts nor GPU UUIDs"};
  }
  if (job.start && job.end && *job.end < *job.start) {
    return Error{ErrorCode::kInvalid,
                 "job " + base::printable(job.job, 60) + ": ends before it starts"};
  }
  return {};
}

Error too_many_hosts() {
  return Error{ErrorCode::kLimit,
               "more than " + std::to_string(kHostsPerFileMax) + " hosts in the file"};
}

Result<std::string> scalar_text(const base::json::Value& value) {
  if (value.is_null()) return std::string();
  if (const std::string* text = value.as_string()) return *text;
  if (const double* number = value.as_number()) return base::json::number_text(*number);
  return Error{ErrorCode::kInvalid,
               "found " + std::string(value.kind()) + ", expected text or a number"};
}

Result<std::vector<JobRecord>> parse_json_jobs(std::string_view text) {
  FLOPSIGHT_ASSIGN_OR_RETURN(const base::json::Value root, base::json::parse(text));
  const base::json::Value* list = root.find("jobs") != nullptr ? root.find("jobs") : &root;
  if (list->as_array() == nullptr) {
    return Error{ErrorCode::kInvalid, "expected a list of jobs or {\"jobs\": [...]}"};
  }
  std::vector<JobRecord> jobs;
  std::size_t hosts = 0;
  for (const base::json::Value& entry : *list->as_array()) {
    auto job = record_from_json(entry);
    if (job.ok() && (hosts += job->hosts.size()) > kHostsPerFileMax) job = too_many_hosts();
    if (!job.ok()) return job.error().within("entry " + std::to_string(jobs.size() + 1));
    jobs.push_back(std::move(job).value());
  }
  return jobs;
}

Result<std::vector<JobRecord>> parse_csv_jobs(std::string_view text) {
  FLOPSIGHT_ASSIGN_OR_RETURN(const base::CsvTable table, base::parse_csv(text));
  if (table.column("job") < 0 && table.column("job_id") < 0) {
    return Error{ErrorCode::kInvalid, "line 1: no column \"job\""};
  }
  for (const std::string& name : table.header) {
    auto status = check_field_name(base::trim(name));
    if (!status.ok()) return status.error().within("line 1");
  }
  std::vector<JobRecord> jobs;
  std::size_t hosts = 0;
  for (const base::CsvRow& row : table.rows) {
    JobRecord job;
    base::Status status;
    for (std::size_t i = 0; i < table.header.size() && status.ok(); ++i) {
      status = set_field(job, base::trim(table.header[i]), row.fields[i]);
    }
    if (status.ok()) status = check_record(job);
    if (status.ok() && (hosts += job.hosts.size()) > kHostsPerFileMax) status = too_many_hosts();
    if (!status.ok()) return status.error().within("line " + std::to_string(row.line));
    jobs.push_back(std::move(job));
  }
  return jobs;
}

}  // namespace

base::Status check_job_key(std::string_view key) {
  FLOPSIGHT_RETURN_IF_ERROR(check_field_name(key));
  if (!field_of(key).empty()) return {};
  return Error{ErrorCode::kInvalid, "\"" + base::printable(key, 60) + "\" is no key of a job; docs/jobs.md lists them"};
}

Result<JobRecord> record_from_json(const base::json::Value& entry) {
  if (entry.as_object() == nullptr) {
    return Error{ErrorCode::kInvalid, "expected an object, found " + std::string(entry.kind())};
  }
  JobRecord job;
  for (const auto& [key, value] : *entry.as_object()) {
    FLOPSIGHT_RETURN_IF_ERROR(check_field_name(key));
    if (field_of(key).empty()) continue;
    base::json::Array items =
        value.as_array() != nullptr ? *value.as_array() : base::json::Array{value};
    for (const base::json::Value& item : items) {
      auto text = scalar_text(item);
      if (!text.ok()) return text.error().within(key);
      FLOPSIGHT_RETURN_IF_ERROR(set_field(job, key, *text));
    }
  }
  FLOPSIGHT_RETURN_IF_ERROR(check_record(job));
  return job;
}

bool JobRecord::holds(const samples::GpuIdentity& gpu) const {
  const auto same = [](std::string (*normalized)(std::string_view), const std::string& mine) {
    return [normalized, of_gpu = normalized(mine)](const std::string& text) {
      return normalized(text) == of_gpu;
    };
  };
  if (!gpu.uuid.empty() &&
      std::any_of(gpu_uuids.begin(), gpu_uuids.end(), same(samples::normalized_uuid, gpu.uuid))) {
    return true;
  }
  const bool host_matches = std::any_of(
      hosts.begin(), hosts.end(), [&](const auto& host) { return same_host(host, gpu.host); });
  if (!host_matches || (is_of_instances && gpu.mig_instance.empty())) return false;
  if (gpu_indices.empty() && gpu_bus_ids.empty()) return gpu_uuids.empty();
  if (!gpu.pci_bus_id.empty() && std::any_of(gpu_bus_ids.begin(), gpu_bus_ids.end(),
                                             same(samples::normalized_bus_id, gpu.pci_bus_id))) {
    return true;
  }
  return std::find(gpu_indices.begin(), gpu_indices.end(), gpu.index) != gpu_indices.end();
}

samples::Holder JobRecord::holder() const {
  samples::Holder holder;
  holder.job = job;
  holder.name_space = name_space;
  holder.user = user;
  holder.team = team;
  holder.rule = rule;
  return holder;
}

bool is_of_slurm(std::string_view text) {
  text = base::trim(text);
  const std::string line = base::to_lower(text.substr(0, text.find('\n')));
  if (text.starts_with("JobId=") || text.starts_with("NodeName=")) return true;
  if (line.find('|') != std::string::npos && line.find("jobid") != std::string::npos) return true;
  if ((!text.starts_with('{') && !text.starts_with('[')) || text.find("\"job_id\"") == std::string_view::npos) return false;
  // What of its keys no jobs file has: "meta" is beside the jobs, and lost where somebody took them out.
  constexpr std::string_view kKeys[] = {"\"meta\"", "\"job_state\"", "\"derived_exit_code\"", "\"tres_alloc_str\"", "\"association\""};
  return std::any_of(std::begin(kKeys), std::end(kKeys), [&](std::string_view key) { return text.find(key) != std::string_view::npos; });
}

Result<std::vector<JobRecord>> parse_jobs(std::string_view text) {
  const std::string_view start = base::trim(text);
  if (is_of_slurm(start)) {
    return Error{ErrorCode::kUnsupported, "output of Slurm, expected a jobs file; `flopsight jobs import` reads it into a store, and `flopsight report --store` uses it there"};
  }
  if (start.starts_with('[') || start.starts_with('{')) return parse_json_jobs(text);
  return parse_csv_jobs(text);
}

Result<std::vector<std::string>> expand_hosts(std::string_view expression) {
  std::vector<std::string> out;
  int depth = 0;
  std::size_t begin = 0;
  for (std::size_t i = 0; i <= expression.size(); ++i) {
    const char c = i < expression.size() ? expression[i] : ',';
    if (c == '[') ++depth;
    if (c == ']') --depth;
    if (c != ',' || (depth > 0 && i < expression.size())) continue;
    const std::string_view name = base::trim(expression.substr(begin, i - begin));
    begin = i + 1;
    if (!name.empty()) FLOPSIGHT_RETURN_IF_ERROR(expand_name(name, out));
  }
  return out;
}

}  // namespace flopsight::jobs
