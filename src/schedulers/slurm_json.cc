// JSON of sacct, squeue, scontrol, sinfo and slurmrestd. Between versions (data_parser v0.0.37 to
// v0.0.43 were seen) a number became {"set", "infinite", "number"}, a state a list, a node list an
// object; each value is taken in every shape it has had.
#include <algorithm>

#include "base/json.h"
#include "base/text.h"
#include "schedulers/slurm.h"
#include "schedulers/slurm_values_internal.h"
#include "wire/json_items.h"

namespace flopsight::schedulers {
namespace {

using base::Error;
using base::ErrorCode;
using base::Result;
using base::json::Value;
using namespace slurm;

constexpr std::string_view kLists[] = {"jobs", "nodes"};
// Large, and nothing in them for us. A step's use of its GPUs is under tres.consumed.
constexpr std::string_view kSkip[] = {
    "statistics", "required",          "comment",         "stdout",         "stderr",
    "stdin",      "stdout_expanded",   "stderr_expanded", "stdin_expanded", "submit_line",
    "script",     "working_directory", "allocated_nodes", "environment",    "requested"};

struct Number {
  std::optional<double> value;  // absent: null, not set, no number
  bool infinite = false;
};

Number number_in(const Value* value) {
  if (value == nullptr) return {};
  if (const double* number = value->as_number()) return {*number, false};
  if (const std::string* text = value->as_string()) return {base::parse_number(*text), false};
  if (value->as_object() == nullptr) return {};
  const auto is_true = [&](std::string_view key) {
    const Value* flag = value->find(key);
    return flag != nullptr && flag->as_bool() != nullptr && *flag->as_bool();
  };
  if (is_true("infinite")) return {std::nullopt, true};
  const Value* set = value->find("set");
  if (set != nullptr && !is_true("set")) return {};
  return {number_in(value->find("number")).value, false};
}

std::optional<std::uint64_t> count_in(const Value* value) {
  const auto number = number_in(value).value;
  if (!number || *number < 0 || *number > 9e15 ||
      *number != static_cast<double>(static_cast<std::uint64_t>(*number))) {
    return std::nullopt;
  }
  return static_cast<std::uint64_t>(*number);
}

std::optional<std::uint32_t> small_count_in(const Value* value) {
  const auto count = count_in(value);
  if (!count || *count > UINT32_MAX) return std::nullopt;
  return static_cast<std::uint32_t>(*count);
}

// A text; of a list its first; of a number its digits.
std::string text_in(const Value* value) {
  if (value == nullptr) return {};
  if (const std::string* text = value->as_string()) return *text;
  if (const double* number = value->as_number()) return base::json::number_text(*number);
  if (const base::json::Array* list = value->as_array())
    return list->empty() ? "" : text_in(&list->front());
  if (value->as_object() != nullptr) {
    const auto number = number_in(value).value;
    return number ? base::json::number_text(*number) : "";
  }
  return {};
}

const Value* at(const Value& value, std::string_view key) { return value.find(key); }
const Value* at(const Value& value, std::string_view key, std::string_view inner) {
  const Value* found = value.find(key);
  return found == nullptr ? nullptr : found->find(inner);
}

// A list of hosts: a text, a list of texts, or the object that holds one of them.
std::string hosts_in(const Value* value) {
  if (value == nullptr) return {};
  if (const base::json::Array* list = value->as_array()) {
    std::string out;
    for (const Value& item : *list) out += (out.empty() ? "" : ",") + text_in(&item);
    return out;
  }
  if (value->as_object() != nullptr) return hosts_in(value->find("list"));
  return text_in(value);
}

// A state among flags ("COMPLETING"), which may come first.
std::string state_in(const Value* value) {
  constexpr std::string_view kBase[] = {"PENDING",   "RUNNING",   "SUSPENDED", "COMPLETED",
                                        "CANCELLED", "FAILED",    "TIMEOUT",   "NODE_FAIL",
                                        "PREEMPTED", "BOOT_FAIL", "DEADLINE",  "OUT_OF_MEMORY"};
  if (const base::json::Array* list = value == nullptr ? nullptr : value->as_array()) {
    for (const Value& item : *list) {
      std::string state = state_of(text_in(&item));
      if (std::find(std::begin(kBase), std::end(kBase), state) != std::end(kBase)) return state;
    }
  }
  return state_of(text_in(value));
}

class Reader {
 public:
  explicit Reader(const SlurmOptions& options) : collector_(options) {}

  base::Status entry(std::string_view list, const Value& value) {
    ++number_;
    where_ = std::string(list) + " entry " + std::to_string(number_);
    if (value.as_object() == nullptr) {
      collector_.problem(where_,
                         "found " + std::string(value.kind()) + ", expected an object; left out");
      return {};
    }
    if (list == "nodes") return node(value);
    Draft draft;
    draft.job.id = text_in(at(value, "job_id"));
    draft.where = "job " + base::printable(draft.job.id, 40) + " (" + where_ + ")";
    // Of the accounting (sacct, slurmdb), times are an object of their own.
    auto readable = at(value, "time") != nullptr ? accounted(value, draft) : live(value, draft);
    if (!readable.ok()) {
      collector_.problem(draft.where, readable.error().message + "; left out");
      return {};
    }
    FLOPSIGHT_RETURN_IF_ERROR(collector_.add(std::move(draft)));
    steps(value);
    return {};
  }

  void member(std::string_view key, const Value& value) {
    if (key == "meta") meta_ = value;
    const base::json::Array* list = value.as_array();
    found_list_ |= list != nullptr && std::find(std::begin(kLists), std::end(kLists), key) != std::end(kLists);
    if (key == "errors" && list != nullptr) {
      for (const Value& error : *list) {
        const std::string what = error.as_object() != nullptr
                                     ? text_in(error.find("description")).empty()
                                           ? text_in(error.find("error"))
                                           : text_in(error.find("description"))
                                     : text_in(&error);
        if (!what.empty()) collector_.problem("errors", base::printable(what));
      }
    }
    if (seen_.size() < 200) seen_ += (seen_.empty() ? "" : ", ") + base::printable(key, 30);
  }

  bool found_list() const { return found_list_; }
  const std::string& seen() const { return seen_; }
  Parsed finish() { return collector_.finish(source()); }

 private:
  // "sacct --json, Slurm 25.05.2, data_parser/v0.0.43".
  std::string source() const {
    const auto of = [](const Value* value, std::string_view key) {
      return value == nullptr ? nullptr : value->find(key);
    };
    const Value* slurm = of(&meta_, "slurm") != nullptr ? of(&meta_, "slurm") : of(&meta_, "Slurm");
    const Value* plugin = of(&meta_, "plugin");
    std::string parser = text_in(of(plugin, "data_parser"));
    if (parser.empty()) parser = text_in(of(plugin, "type"));
    std::string out = "JSON";
    if (const std::string release = text_in(of(slurm, "release")); !release.empty())
      out += ", Slurm " + release;
    if (!parser.empty()) out += ", " + parser;
    return base::printable(out, 120);
  }

  base::Status moment(const Value* value, std::string_view key, std::optional<Moment>& out) {
    auto found = moment_of(text_in(value), collector_.options());
    if (!found.ok()) return found.error().within(key);
    out = *found;
    return {};
  }

  void names(const Value& value, Job& job) {
    job.cluster = text_in(at(value, "cluster"));
    job.name = text_in(at(value, "name"));
    job.account = text_in(at(value, "account"));
    job.partition = text_in(at(value, "partition"));
    job.qos = text_in(at(value, "qos"));
  }

  void relations(std::optional<std::uint64_t> array, std::optional<std::uint64_t> task,
                 std::optional<std::uint64_t> het, const Value* offset, Job& job) {
    if (array && *array > 0 && task) {
      job.array_job_id = array;
      job.array_task_id = task;
    }
    if (het && *het > 0) {
      job.het_job_id = het;
      job.het_offset = small_count_in(offset);
    }
  }

  void limit(const Value* minutes, Job& job) {
    const Number number = number_in(minutes);
    job.time_limit_infinite = number.infinite;
    if (number.value) job.time_limit = units::Seconds(*number.value * 60);
  }

  void set_exit_of(const Value* value, Job& job) {
    if (value == nullptr) return;
    if (const auto status = count_in(value)) return set_exit_status(*status, job);
    if (const auto code = small_count_in(value->find("return_code")))
      job.exit_code = static_cast<std::int32_t>(*code);
    const Value* signal = value->find("signal");
    if (signal == nullptr) return;
    const Value* id =
        signal->find("id") != nullptr ? signal->find("id") : signal->find("signal_id");
    if (const auto number = small_count_in(id))
      job.exit_signal = static_cast<std::int32_t>(*number);
  }

  base::Status accounted(const Value& value, Draft& draft) {
    Job& job = draft.job;
    names(value, job);
    job.user = text_in(at(value, "user"));
    if (job.user.empty()) job.user = text_in(at(value, "association", "user"));
    if (job.cluster.empty()) job.cluster = text_in(at(value, "association", "cluster"));
    const Value* state = at(value, "state");
    job.state = state_in(
        state != nullptr && state->find("current") != nullptr ? state->find("current") : state);
    relations(count_in(at(value, "array", "job_id")), count_in(at(value, "array", "task_id")),
              count_in(at(value, "het", "job_id")), at(value, "het", "job_offset"), job);
    FLOPSIGHT_RETURN_IF_ERROR(
        moment(at(value, "time", "submission"), "time.submission", draft.submit));
    FLOPSIGHT_RETURN_IF_ERROR(moment(at(value, "time", "start"), "time.start", draft.start));
    FLOPSIGHT_RETURN_IF_ERROR(moment(at(value, "time", "end"), "time.end", draft.end));
    draft.elapsed_seconds = number_in(at(value, "time", "elapsed")).value;
    limit(at(value, "time", "limit"), job);
    set_exit_of(at(value, "exit_code"), job);
    job.restart_count = small_count_in(at(value, "restart_cnt")).value_or(0);
    job.node_count = small_count_in(at(value, "allocation_nodes"));
    draft.nodes = hosts_in(at(value, "nodes"));
    std::vector<TresEntry> entries;
    const Value* allocated = at(value, "tres", "allocated");
    if (allocated != nullptr && allocated->as_array() != nullptr) {
      for (const Value& item : *allocated->as_array()) {
        if (text_in(item.find("type")) != "gres") continue;
        const auto count = small_count_in(item.find("count"));
        TresEntry entry{text_in(item.find("name")), count.value_or(1)};
        if (count) {
          entries.push_back(std::move(entry));
        } else if (gpus_of_entries({entry}).count) {
          draft.gpus_unreadable = true;
          collector_.problem(draft.where, "tres.allocated: the count of gres/" + base::printable(entry.name, 40) + " is no number of GPUs; its GPUs are not known");
        }
      }
    }
    draft.allocated_nothing = allocated == nullptr || allocated->as_array() == nullptr || allocated->as_array()->empty();
    if (draft.gpus_unreadable) entries.clear();
    draft.gpus = gpus_of_entries(entries);
    return {};
  }

  base::Status live(const Value& value, Draft& draft) {
    Job& job = draft.job;
    names(value, job);
    job.user = text_in(at(value, "user_name"));
    job.state = state_in(at(value, "job_state"));
    relations(count_in(at(value, "array_job_id")), count_in(at(value, "array_task_id")),
              count_in(at(value, "het_job_id")), at(value, "het_job_offset"), job);
    FLOPSIGHT_RETURN_IF_ERROR(moment(at(value, "submit_time"), "submit_time", draft.submit));
    FLOPSIGHT_RETURN_IF_ERROR(moment(at(value, "start_time"), "start_time", draft.start));
    FLOPSIGHT_RETURN_IF_ERROR(moment(at(value, "end_time"), "end_time", draft.end));
    limit(at(value, "time_limit"), job);
    if (!is_open(job.state)) set_exit_of(at(value, "exit_code"), job);
    job.restart_count = small_count_in(at(value, "restart_cnt")).value_or(0);
    job.node_count = small_count_in(at(value, "node_count"));
    draft.nodes = hosts_in(at(value, "nodes"));
    if (draft.nodes.empty()) draft.nodes = hosts_in(at(value, "job_resources", "nodes"));
    const std::string tres = text_in(at(value, "tres_alloc_str"));
    draft.allocated_nothing = said(tres).empty();
    collector_.read_gpus(tres, "tres_alloc_str", draft);
    for (const std::string_view key : {"tres_per_job", "tres_per_node", "tres_per_socket", "tres_per_task"}) {
      draft.gpus.has_shares |= names_shares(text_in(at(value, key)));
    }
    draft.asked_none = asked_for_no_gpu(value);
    return gres_detail(value, draft);
  }

  // All forms of asking are there, and none of them speaks of a GPU.
  static bool asked_for_no_gpu(const Value& value) {
    for (const std::string_view key :
         {"tres_per_job", "tres_per_node", "tres_per_socket", "tres_per_task"}) {
      const Value* asked = value.find(key);
      if (asked == nullptr || asked->as_string() == nullptr ||
          asked->as_string()->find("gpu") != std::string::npos) {
        return false;
      }
    }
    const Value* shared = value.find("shared");  // a job that has its nodes alone has their GPUs
    const std::string sharing = base::to_lower(text_in(shared));
    return sharing != "none" && sharing != "exclusive" && sharing != "user" && sharing != "0";
  }

  // One text for each host, in the hosts' order.
  base::Status gres_detail(const Value& value, Draft& draft) {
    const Value* detail = value.find("gres_detail");
    const base::json::Array* list = detail == nullptr ? nullptr : detail->as_array();
    if (list == nullptr || list->empty()) return {};
    auto hosts = jobs::expand_hosts(said(draft.nodes));
    if (!hosts.ok()) return hosts.error().within("nodes");
    if (hosts->size() != list->size()) {
      collector_.problem(draft.where, "gres_detail has " + std::to_string(list->size()) +
                                          " entries for " + std::to_string(hosts->size()) +
                                          " hosts; which GPUs it holds is not known");
      return {};
    }
    for (std::size_t i = 0; i < list->size(); ++i) {
      auto gpus = gpus_of_gres(text_in(&(*list)[i]));
      if (!gpus.ok()) return gpus.error().within("gres_detail");
      auto& allocations = draft.job.allocations;
      const std::optional<std::uint32_t> count = gpus->counts.count || draft.gpus.has_shares ? gpus->counts.count : 0U;
      if (allocations.empty() || allocations.back().gpu_indices != gpus->indices ||
          allocations.back().gpus_per_host != count) {
        allocations.push_back({{}, std::move(gpus->indices), count});
      }
      allocations.back().hosts.push_back((*hosts)[i]);
    }
    return {};
  }

  void steps(const Value& value) {
    const Value* list = value.find("steps");
    if (list == nullptr || list->as_array() == nullptr) return;
    Job* job = collector_.last_with_id(text_in(at(value, "job_id")));
    for (const Value& step : *list->as_array()) {
      collector_.skip_step();
      const Value* consumed = at(step, "tres", "consumed");
      const Value* total = consumed == nullptr ? nullptr : consumed->find("total");
      if (job == nullptr || total == nullptr || total->as_array() == nullptr) continue;
      for (const Value& item : *total->as_array()) {
        const auto used = number_in(item.find("count")).value;
        if (text_in(item.find("name")) != "gpuutil" || !used) continue;
        job->slurm_gpu_utilization_total =
            std::max(job->slurm_gpu_utilization_total.value_or(0), *used);
      }
    }
  }

  base::Status node(const Value& value) {
    Node node;
    node.name = text_in(at(value, "name"));
    node.state = state_of(text_in(at(value, "state")));
    auto configured = gpus_of_tres(text_in(at(value, "tres")));
    auto used = gpus_of_tres(text_in(at(value, "tres_used")));
    const auto gres = gpus_of_gres(text_in(at(value, "gres")));
    const auto gres_used = gpus_of_gres(text_in(at(value, "gres_used")));
    if (node.name.empty() || !gres.ok() || !gres_used.ok() || !configured.ok() || !used.ok()) {
      collector_.problem("node " + base::printable(node.name, 60) + " (" + where_ + ")",
                         !gres.ok()        ? gres.error().message
                         : !gres_used.ok() ? gres_used.error().message
                                           : "no name or no readable TRES; left out");
      return {};
    }
    set_node_gpus(node, {*configured, *used, *gres, *gres_used, at(value, "gres") != nullptr});
    return collector_.add(std::move(node));
  }

  Collector collector_;
  Value meta_;
  std::string where_;
  std::string seen_;
  std::size_t number_ = 0;
  bool found_list_ = false;
};

}  // namespace

Result<Parsed> read_slurm_json(std::string_view text, const SlurmOptions& options) {
  Reader reader(options);
  FLOPSIGHT_RETURN_IF_ERROR(wire::read_json_items(
      text, {kLists, kSkip},
      [&](std::string_view list, Value entry) { return reader.entry(list, entry); },
      [&](std::string_view key, Value value) { reader.member(key, value); }));
  if (!reader.found_list()) {
    return Error{ErrorCode::kInvalid,
                 "JSON without a list \"jobs\" or \"nodes\" (its keys: " + reader.seen() +
                     "), expected output of sacct, squeue, scontrol or slurmrestd"};
  }
  return reader.finish();
}

}  // namespace flopsight::schedulers
