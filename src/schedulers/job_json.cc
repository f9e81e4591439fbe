#include "schedulers/job_json.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "base/json_mistake.h"
#include "base/text.h"

namespace flopsight::schedulers {
namespace {

using base::Error;
using base::ErrorCode;
using base::Result;
using base::Status;
using base::json::Array;
using base::json::Object;
using base::json::Value;
using base::json::wrong;

constexpr double kWholeNumberMax = 9007199254740992.0;  // 2^53

Value time_or_null(const std::optional<units::Instant>& time) {
  return time ? Value(units::to_rfc3339(*time)) : Value();
}

Value text_or_null(const std::string& text) { return text.empty() ? Value() : Value(text); }

template <typename T>
Value count_or_null(const std::optional<T>& number) {
  return number ? Value(static_cast<double>(*number)) : Value();
}

Array strings(const std::vector<std::string>& texts) {
  Array out;
  for (const std::string& text : texts) out.emplace_back(text);
  return out;
}

Result<std::string> text_in(std::string_view key, const Value& value) {
  if (value.is_null()) return std::string();
  if (value.as_string() != nullptr) return *value.as_string();
  const double* number = value.as_number();
  // Above 2^53 JSON's numbers lose digits: an id has to come as text then.
  if (number != nullptr && std::abs(*number) <= kWholeNumberMax) return base::json::number_text(*number);
  return wrong(key, value, "text");
}

template <typename T>
Status count_in(std::string_view key, const Value& value, std::optional<T>& out) {
  if (value.is_null()) return {};
  // Above 2^53 JSON's numbers lose digits: those have to come as text.
  const double limit =
      std::min(kWholeNumberMax, static_cast<double>(std::numeric_limits<T>::max()));
  std::optional<double> number;
  if (value.as_number() != nullptr) number = *value.as_number();
  if (value.as_string() != nullptr) number = base::parse_number(*value.as_string());
  const double least = std::numeric_limits<T>::is_signed ? -limit : 0;
  if (!number || *number != std::floor(*number) || *number < least || *number > limit) {
    return wrong(key, value, "a whole number");
  }
  out = static_cast<T>(*number);
  return {};
}

Status time_in(std::string_view key, const Value& value, std::optional<units::Instant>& out) {
  if (value.is_null()) return {};
  if (value.as_string() != nullptr) {
    out = units::parse_instant(*value.as_string());
  } else if (value.as_number() != nullptr) {
    out = units::parse_instant(base::json::number_text(*value.as_number()));
  }
  const bool is_time = out && out->unix_milliseconds >= 0;
  return is_time ? Status() : wrong(key, value, "RFC 3339 with an offset, or Unix seconds, from 1970 on");
}

Status hosts_in(std::string_view key, const Value& value, std::vector<std::string>& out) {
  if (value.is_null()) return {};
  const Array items = value.as_array() != nullptr ? *value.as_array() : Array{value};
  for (const Value& item : items) {
    if (item.as_string() == nullptr) return wrong(key, item, "host names, such as \"n[01-04]\"");
    auto hosts = jobs::expand_hosts(*item.as_string());
    if (!hosts.ok()) return hosts.error().within(std::string(key));
    out.insert(out.end(), hosts->begin(), hosts->end());
  }
  return {};
}

Status strings_in(std::string_view key, const Value& value, std::vector<std::string>& out) {
  if (value.is_null()) return {};
  const Array* items = value.as_array();
  if (items == nullptr) return wrong(key, value, "a list");
  for (const Value& item : *items) {
    FLOPSIGHT_ASSIGN_OR_RETURN(std::string text, text_in(key, item));
    out.push_back(std::move(text));
  }
  return {};
}

Status group_in(const Value& value, GpuGroup& group) {
  if (value.as_object() == nullptr)
    return wrong("gpus", value, "{\"type\", \"count\", \"is_mig\"}");
  for (const auto& [key, item] : *value.as_object()) {
    if (key == "type") {
      FLOPSIGHT_ASSIGN_OR_RETURN(group.type, text_in("gpus.type", item));
    } else if (key == "count") {
      std::optional<std::uint32_t> count;
      FLOPSIGHT_RETURN_IF_ERROR(count_in("gpus.count", item, count));
      group.count = count.value_or(0);
    } else if (key == "is_mig") {
      if (item.as_bool() == nullptr) return wrong("gpus.is_mig", item, "true or false");
      group.is_mig = *item.as_bool();
    } else {
      return Error{ErrorCode::kInvalid,
                   "gpus: \"" + base::printable(key, 40) + "\" is no key of it"};
    }
  }
  return {};
}

Status allocation_in(const Value& value, Allocation& allocation) {
  if (value.as_object() == nullptr)
    return wrong("allocations", value, "{\"hosts\", \"gpu_indices\", \"gpus_per_host\"}");
  for (const auto& [key, item] : *value.as_object()) {
    if (key == "hosts") {
      FLOPSIGHT_RETURN_IF_ERROR(hosts_in("allocations.hosts", item, allocation.hosts));
    } else if (key == "gpu_indices") {
      FLOPSIGHT_RETURN_IF_ERROR(
          strings_in("allocations.gpu_indices", item, allocation.gpu_indices));
    } else if (key == "gpu_uuids") {
      FLOPSIGHT_RETURN_IF_ERROR(strings_in("allocations.gpu_uuids", item, allocation.gpu_uuids));
    } else if (key == "gpus_per_host") {
      FLOPSIGHT_RETURN_IF_ERROR(
          count_in("allocations.gpus_per_host", item, allocation.gpus_per_host));
    } else {
      return Error{ErrorCode::kInvalid,
                   "allocations: \"" + base::printable(key, 40) + "\" is no key of it"};
    }
  }
  return {};
}

// A list of groups by type, as it is written out.
bool is_groups(const Value& value) {
  return value.as_array() != nullptr && !value.as_array()->empty() &&
         value.as_array()->front().as_object() != nullptr;
}

constexpr std::pair<std::string_view, std::string Job::*> kTexts[] = {
    {"cluster", &Job::cluster}, {"namespace", &Job::cluster},   {"id", &Job::id},
    {"job", &Job::id},          {"job_id", &Job::id},           {"name", &Job::name},
    {"user", &Job::user},       {"account", &Job::account},     {"team", &Job::account},
    {"project", &Job::account}, {"partition", &Job::partition}, {"qos", &Job::qos},
    {"state", &Job::state},     {"source", &Job::source}};
constexpr std::pair<std::string_view, std::optional<units::Instant> Job::*> kTimes[] = {
    {"submit", &Job::submit},
    {"start", &Job::start},
    {"start_time", &Job::start},
    {"end", &Job::end},
    {"end_time", &Job::end}};

// What the hand-written keys say of GPUs and hosts, until both are known.
struct Held {
  std::vector<std::string> hosts;
  Object record;  // for jobs::record_from_json
};

Status number_in(std::string_view key, const Value& value, Job& job, bool& known) {
  known = true;
  if (key == "array_job_id") return count_in(key, value, job.array_job_id);
  if (key == "array_task_id") return count_in(key, value, job.array_task_id);
  if (key == "het_job_id") return count_in(key, value, job.het_job_id);
  if (key == "het_offset") return count_in(key, value, job.het_offset);
  if (key == "gpu_count") return count_in(key, value, job.gpu_count);
  if (key == "node_count") return count_in(key, value, job.node_count);
  if (key == "exit_code") return count_in(key, value, job.exit_code);
  if (key == "exit_signal") return count_in(key, value, job.exit_signal);
  if (key == "restart_count") {
    std::optional<std::uint32_t> count;
    FLOPSIGHT_RETURN_IF_ERROR(count_in(key, value, count));
    job.restart_count = count.value_or(0);
    return {};
  }
  if (key == "time_limit_infinite") {
    if (value.as_bool() == nullptr) return wrong(key, value, "true or false");
    job.time_limit_infinite = *value.as_bool();
    return {};
  }
  if (key == "time_limit_seconds" || key == "slurm_gpu_utilization_total") {
    if (value.is_null()) return {};
    if (value.as_number() == nullptr || *value.as_number() < 0)
      return wrong(key, value, "a number from 0");
    if (key == "time_limit_seconds") {
      job.time_limit = units::Seconds(*value.as_number());
    } else {
      job.slurm_gpu_utilization_total = *value.as_number();
    }
    return {};
  }
  known = false;
  return {};
}

Status field_in(const std::string& key, const Value& value, Job& job, Object& by_hand) {
  for (const auto& [name, member] : kTexts) {
    if (name != key) continue;
    FLOPSIGHT_ASSIGN_OR_RETURN(job.*member, text_in(key, value));
    return {};
  }
  for (const auto& [name, member] : kTimes) {
    if (name == key) return time_in(key, value, job.*member);
  }
  bool known = false;
  FLOPSIGHT_RETURN_IF_ERROR(number_in(key, value, job, known));
  if (known) return {};
  if (key == "gpus" && value.as_number() != nullptr) return count_in(key, value, job.gpu_count);
  if (key == "gpus" &&
      (is_groups(value) || (value.as_array() != nullptr && value.as_array()->empty()))) {
    for (const Value& item : *value.as_array())
      FLOPSIGHT_RETURN_IF_ERROR(group_in(item, job.gpus.emplace_back()));
    return {};
  }
  if (key == "allocations") {
    if (value.as_array() == nullptr) return wrong(key, value, "a list");
    for (const Value& item : *value.as_array()) {
      FLOPSIGHT_RETURN_IF_ERROR(allocation_in(item, job.allocations.emplace_back()));
    }
    return {};
  }
  FLOPSIGHT_RETURN_IF_ERROR(jobs::check_job_key(key));
  by_hand.emplace_back(key, value);
  return {};
}

// Indices and a count are of the same GPUs: of two that differ nobody knows which is right.
Status check_count(const Job& job, const jobs::JobRecord& record) {
  const bool by_index_alone = !record.gpu_indices.empty() && record.gpu_uuids.empty() && record.gpu_bus_ids.empty();
  if (!job.gpu_count || !by_index_alone || record.hosts.empty() || *job.gpu_count == record.gpu_indices.size() * record.hosts.size()) return {};
  return Error{ErrorCode::kInvalid, "gpu_count: found " + std::to_string(*job.gpu_count) + ", and gpus names " + std::to_string(record.gpu_indices.size()) +
                                        (record.hosts.size() > 1 ? " on each of " + std::to_string(record.hosts.size()) + " hosts" : "")};
}

Status check(const Job& job) {
  if (job.id.empty()) return Error{ErrorCode::kInvalid, "id: missing or empty"};
  if (job.start && job.end && *job.end < *job.start) {
    return Error{ErrorCode::kInvalid,
                 "job " + base::printable(job.id, 60) + ": ends before it starts"};
  }
  return {};
}

}  // namespace

Value to_json(const Job& job) {
  Array groups;
  for (const GpuGroup& group : job.gpus) {
    groups.emplace_back(Object{{"type", text_or_null(group.type)},
                               {"count", Value(static_cast<double>(group.count))},
                               {"is_mig", group.is_mig}});
  }
  Array allocations;
  for (const Allocation& allocation : job.allocations) {
    Object item{{"hosts", strings(allocation.hosts)},
                {"gpu_indices", strings(allocation.gpu_indices)},
                {"gpus_per_host", count_or_null(allocation.gpus_per_host)}};
    if (!allocation.gpu_uuids.empty())
      item.emplace_back("gpu_uuids", strings(allocation.gpu_uuids));
    allocations.emplace_back(std::move(item));
  }
  Object out;
  out.emplace_back("cluster", text_or_null(job.cluster));
  out.emplace_back("id", job.id);
  for (const auto& [key, value] :
       {std::pair<const char*, Value>{"array_job_id", count_or_null(job.array_job_id)},
        {"array_task_id", count_or_null(job.array_task_id)},
        {"het_job_id", count_or_null(job.het_job_id)},
        {"het_offset", count_or_null(job.het_offset)}}) {
    out.emplace_back(key, value);
  }
  out.emplace_back("name", text_or_null(job.name));
  out.emplace_back("user", text_or_null(job.user));
  out.emplace_back("account", text_or_null(job.account));
  out.emplace_back("partition", text_or_null(job.partition));
  out.emplace_back("qos", text_or_null(job.qos));
  out.emplace_back("state", text_or_null(job.state));
  out.emplace_back("submit", time_or_null(job.submit));
  out.emplace_back("start", time_or_null(job.start));
  out.emplace_back("end", time_or_null(job.end));
  out.emplace_back("time_limit_seconds", job.time_limit ? Value(job.time_limit->value) : Value());
  out.emplace_back("time_limit_infinite", job.time_limit_infinite);
  out.emplace_back("restart_count", static_cast<double>(job.restart_count));
  out.emplace_back("exit_code", count_or_null(job.exit_code));
  out.emplace_back("exit_signal", count_or_null(job.exit_signal));
  out.emplace_back("gpu_count", count_or_null(job.gpu_count));
  out.emplace_back("gpus", std::move(groups));
  out.emplace_back("node_count", count_or_null(job.node_count));
  out.emplace_back("allocations", std::move(allocations));
  out.emplace_back("slurm_gpu_utilization_total", Value(job.slurm_gpu_utilization_total));
  out.emplace_back("source", text_or_null(job.source));
  return out;
}

Job from_record(const jobs::JobRecord& record) {
  Job job;
  job.cluster = record.name_space;
  job.id = record.job;
  job.user = record.user;
  job.account = record.team;
  job.start = record.start;
  job.end = record.end;
  Allocation allocation;
  allocation.hosts = record.hosts;
  allocation.gpu_indices = record.gpu_indices;
  allocation.gpu_uuids = record.gpu_uuids;
  if (!record.gpu_indices.empty()) {
    allocation.gpus_per_host = static_cast<std::uint32_t>(record.gpu_indices.size());
    job.gpu_count = static_cast<std::uint32_t>(record.gpu_indices.size() * record.hosts.size());
  } else if (!record.gpu_uuids.empty()) {
    job.gpu_count = static_cast<std::uint32_t>(record.gpu_uuids.size());
  }
  job.allocations.push_back(std::move(allocation));
  return job;
}

Result<Job> job_from_json(const Value& value) {
  if (value.as_object() == nullptr) {
    return Error{ErrorCode::kInvalid, "expected an object, found " + std::string(value.kind())};
  }
  Job job;
  Object by_hand;
  for (const auto& [key, item] : *value.as_object())
    FLOPSIGHT_RETURN_IF_ERROR(field_in(key, item, job, by_hand));
  FLOPSIGHT_RETURN_IF_ERROR(check(job));
  if (by_hand.empty()) return job;
  by_hand.emplace_back("job", job.id);
  FLOPSIGHT_ASSIGN_OR_RETURN(const jobs::JobRecord record, jobs::record_from_json(by_hand));
  const Job told = from_record(record);
  FLOPSIGHT_RETURN_IF_ERROR(check_count(job, record));
  if (!job.gpu_count) job.gpu_count = told.gpu_count;
  Allocation held = told.allocations.front();
  if (job.gpu_count && !held.gpus_per_host && held.gpu_uuids.empty() && !held.hosts.empty() &&
      *job.gpu_count % held.hosts.size() == 0) {
    held.gpus_per_host = static_cast<std::uint32_t>(*job.gpu_count / held.hosts.size());
  }
  job.allocations.push_back(std::move(held));
  return job;
}

namespace {

// Names are kept, and shown in every answer. (What a scheduler itself printed is cut where it is read.)
Status check_lengths(const Job& job) {
  for (const auto& [name, member] : kTexts) {
    const bool is_name = member == &Job::id || member == &Job::cluster;
    if (is_name && std::any_of((job.*member).begin(), (job.*member).end(), [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7f; })) {
      return Error{ErrorCode::kInvalid, std::string(name) + ": a control character in it"};
    }
    if ((job.*member).size() > kTextBytesMax) {
      return Error{ErrorCode::kLimit, std::string(name) + ": longer than " + std::to_string(kTextBytesMax) + " bytes"};
    }
  }
  for (const Allocation& allocation : job.allocations) {
    for (const auto* texts : {&allocation.hosts, &allocation.gpu_uuids}) {
      for (const std::string& text : *texts) {
        if (text.size() > kTextBytesMax) return Error{ErrorCode::kLimit, "hosts and UUIDs: one longer than " + std::to_string(kTextBytesMax) + " bytes"};
      }
    }
  }
  return {};
}

}  // namespace

Result<std::vector<Job>> parse_told_jobs(std::string_view json_text) {
  FLOPSIGHT_ASSIGN_OR_RETURN(const Value root, base::json::parse(json_text));
  const Value* list = root.find("jobs") != nullptr ? root.find("jobs") : &root;
  if (list->as_array() == nullptr)
    return Error{ErrorCode::kInvalid, "expected a list of jobs or {\"jobs\": [...]}"};
  if (list->as_array()->size() > kJobsPerTextMax) {
    return Error{ErrorCode::kLimit, "more than " + std::to_string(kJobsPerTextMax) + " jobs"};
  }
  std::vector<Job> out;
  std::size_t hosts = 0;
  for (const Value& entry : *list->as_array()) {
    auto job = job_from_json(entry);
    Status fits = job.ok() ? check_lengths(*job) : Status(job.error());
    if (fits.ok() && (hosts += host_count(*job)) > kHostsPerTextMax) {
      fits = Error{ErrorCode::kLimit, "more than " + std::to_string(kHostsPerTextMax) + " hosts in all jobs together"};
    }
    if (!fits.ok()) return fits.error().within("entry " + std::to_string(out.size() + 1));
    out.push_back(std::move(job).value());
  }
  return out;
}

}  // namespace flopsight::schedulers
