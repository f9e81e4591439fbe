#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cmath>

#include "base/text.h"
#include "schedulers/slurm_values_internal.h"

namespace flopsight::schedulers::slurm {
namespace {

using base::Error;
using base::ErrorCode;
using base::Result;

// Before 1970-04 Slurm did not exist; a shorter number is no Unix time.
constexpr std::int64_t kUnixSecondsMin = 8'000'000;
constexpr std::int64_t kUnixSecondsMax = 253'402'300'799;  // the year 9999

std::optional<int> digits(std::string_view text) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || text[0] == '-' || error != std::errc() || end != text.data() + text.size())
    return std::nullopt;
  return value;
}

// "2025-10-26T02:30:00" at the start of text, in seconds as if it were UTC.
std::optional<std::int64_t> local_seconds_of(std::string_view text) {
  if (text.size() < 19 || text[4] != '-' || text[7] != '-' ||
      (text[10] != 'T' && text[10] != ' ') || text[13] != ':' || text[16] != ':') {
    return std::nullopt;
  }
  const auto year = digits(text.substr(0, 4)), month = digits(text.substr(5, 2)),
             day = digits(text.substr(8, 2));
  const auto hour = digits(text.substr(11, 2)), minute = digits(text.substr(14, 2)),
             second = digits(text.substr(17, 2));
  if (!year || !month || !day || !hour || !minute || !second || *hour > 23 || *minute > 59 ||
      *second > 59) {
    return std::nullopt;
  }
  const std::chrono::year_month_day date(std::chrono::year(*year),
                                         std::chrono::month(static_cast<unsigned>(*month)),
                                         std::chrono::day(static_cast<unsigned>(*day)));
  if (!date.ok()) return std::nullopt;
  return std::chrono::sys_days(date).time_since_epoch().count() * std::int64_t{86'400} +
         *hour * 3'600 + *minute * 60 + *second;
}

// Both points in time that a local time may be; nothing for one that the zone leaves out.
std::optional<Moment> readings_of(std::int64_t local_seconds, const base::Zone& zone) {
  const std::int64_t first = zone.unix_seconds(local_seconds);
  if (first + zone.offset_seconds(first) != local_seconds) return std::nullopt;
  const std::int64_t second = zone.unix_seconds(local_seconds, first + 1);
  if (second + zone.offset_seconds(second) != local_seconds) return Moment{first, first};
  return Moment{first, second};
}

// What follows the seconds, as "Z" or "+01:00".
std::optional<std::string> offset_of(std::string_view text) {
  if (text == "Z") return std::string(text);
  if ((text.size() != 5 && text.size() != 6) || (text[0] != '+' && text[0] != '-'))
    return std::nullopt;
  const std::string_view hours = text.substr(1, 2), minutes = text.substr(text.size() - 2);
  if (!digits(hours) || !digits(minutes) || (text.size() == 6 && text[3] != ':'))
    return std::nullopt;
  return std::string(text.substr(0, 3)) + ":" + std::string(minutes);
}

Error no_time(std::string_view text) {
  return {ErrorCode::kInvalid,
          "\"" + base::printable(text, 40) +
              "\", expected a time such as 2025-10-26T02:30:00 or 2025-10-26T02:30:00+0100"};
}

units::Instant instant(std::int64_t unix_seconds) { return {unix_seconds * 1000}; }

}  // namespace

std::string_view said(std::string_view text) {
  text = base::trim(text);
  constexpr std::string_view kNothing[] = {"(null)",  "N/A",     "n/a",           "None",
                                           "none",    "NONE",    "None assigned", "Unknown",
                                           "INVALID", "Invalid", "invalid",       "null"};
  return std::find(std::begin(kNothing), std::end(kNothing), text) == std::end(kNothing) ? text
                                                                                         : "";
}

std::optional<std::uint64_t> number_of(std::string_view text) {
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (text.empty() || error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::string state_of(std::string_view text) {
  text = base::trim(text);
  std::string word(text.substr(0, text.find_first_of(" +,")));
  for (char& c : word) {
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
  }
  return word;
}

bool is_pending(std::string_view state) {
  return state == "PENDING" || state == "REQUEUE_HOLD" || state == "SPECIAL_EXIT";
}

bool is_open(std::string_view state) {
  constexpr std::string_view kOpen[] = {"RUNNING",   "SUSPENDED",  "CONFIGURING",
                                        "RESIZING",  "SIGNALING",  "STOPPED",
                                        "STAGE_OUT", "EXPEDITING", "POWER_UP_NODE"};
  return is_pending(state) ||
         std::find(std::begin(kOpen), std::end(kOpen), state) != std::end(kOpen);
}

std::optional<double> clock_of(std::string_view text) {
  double days = 0;
  const std::size_t dash = text.find('-');
  if (dash != std::string_view::npos) {
    const auto count = digits(text.substr(0, dash));
    if (!count) return std::nullopt;
    days = *count;
    text.remove_prefix(dash + 1);
  }
  double seconds = 0;
  const auto parts = base::split(text.substr(0, text.find('.')), ':');
  if (parts.size() > 3 || (parts.size() < 2 && dash == std::string_view::npos)) return std::nullopt;
  for (const std::string& part : parts) {
    const auto value = digits(part);
    if (!value) return std::nullopt;
    seconds = seconds * 60 + *value;
  }
  // After days, what is missing is on the right: "1-02" is a day and two hours.
  if (dash != std::string_view::npos)
    seconds *= std::pow(60, 3 - static_cast<double>(parts.size()));
  return days * 86'400 + seconds;
}

void set_exit(std::string_view text, Job& job) {
  const std::size_t colon = text.find(':');
  if (const auto code = digits(text.substr(0, colon))) job.exit_code = *code;
  if (colon == std::string_view::npos) return;
  if (const auto signal = digits(text.substr(colon + 1))) job.exit_signal = *signal;
}

void set_exit_status(std::uint64_t status, Job& job) {
  job.exit_code = static_cast<std::int32_t>((status >> 8) & 0xff);
  job.exit_signal = static_cast<std::int32_t>(status & 0x7f);
}

Result<std::optional<Moment>> moment_of(std::string_view text, const SlurmOptions& options) {
  text = said(text);
  if (text.empty() || text == "0") return std::optional<Moment>();
  if (const auto unix_seconds = number_of(text)) {
    const auto t = static_cast<std::int64_t>(std::min<std::uint64_t>(*unix_seconds, INT64_MAX));
    if (t < kUnixSecondsMin || t > kUnixSecondsMax) return no_time(text);
    return std::optional<Moment>(Moment{t, t});
  }
  const auto local = local_seconds_of(text);
  if (!local) return no_time(text);
  if (text.size() > 19) {
    const auto offset = offset_of(text.substr(19));
    if (!offset) return no_time(text);
    std::string rfc(text.substr(0, 19));
    rfc[10] = 'T';
    const auto t = units::parse_instant(rfc + *offset);
    if (!t) return no_time(text);
    return std::optional<Moment>(Moment{t->unix_milliseconds / 1000, t->unix_milliseconds / 1000});
  }
  if (options.zone == nullptr) {
    return Error{
        ErrorCode::kUnsupported,
        "\"" + base::printable(text, 40) +
            "\" gives no offset from UTC, expected the cluster's time zone beside it (--zone)"};
  }
  const auto readings = readings_of(*local, *options.zone);
  if (!readings) {
    return Error{ErrorCode::kInvalid,
                 "\"" + base::printable(text, 40) + "\" does not exist in " + options.zone->name()};
  }
  return readings;
}

void set_node_gpus(Node& node, const NodeGpus& gpus) {
  node.gpu_count = gpus.configured.count ? gpus.configured.count : gpus.gres.counts.count;
  if (!node.gpu_count && gpus.gres_given) node.gpu_count = 0;
  node.gpu_count_used = gpus.used.count ? gpus.used.count : gpus.gres_used.counts.count;
  if (!node.gpu_count_used && (gpus.configured.untyped || node.gpu_count == 0U))
    node.gpu_count_used = 0;
  node.gpus = gpus.configured.groups.empty() ? gpus.gres.counts.groups : gpus.configured.groups;
}

void Collector::problem(std::string where, std::string what) {
  ++parsed_.problem_count;
  if (parsed_.problems.size() < kProblemsMax)
    parsed_.problems.push_back({std::move(where), std::move(what)});
}

void Collector::read_gpus(std::string_view tres, std::string_view column, Draft& draft) {
  auto gpus = gpus_of_tres(tres);
  draft.gpus_unreadable = !gpus.ok();
  if (gpus.ok()) {
    draft.gpus = std::move(gpus).value();
  } else {
    problem(draft.where, std::string(column) + ": " + gpus.error().message + "; its GPUs are not known");
  }
}

base::Status Collector::check_room() const {
  if (parsed_.jobs.size() + parsed_.nodes.size() < options_.jobs_max) return {};
  return Error{ErrorCode::kLimit,
               "more than " + std::to_string(options_.jobs_max) + " jobs and nodes"};
}

// The pair of readings whose distance is what Slurm says that the job ran for. Elapsed leaves out
// suspended time, so the nearest that is not shorter.
bool Collector::set_times(Draft& d) {
  Job& job = d.job;
  if (d.submit) job.submit = instant(d.submit->first_unix_seconds);
  if (is_pending(job.state) || !d.start) return true;  // a start that is expected is none
  if (is_open(job.state)) d.end.reset();               // so is an end
  if (!is_open(job.state) && !d.end) {
    if (!d.elapsed_seconds || d.start->first_unix_seconds != d.start->second_unix_seconds) {
      problem(d.where, job.state + " without an end; left out");
      return false;
    }
    const std::int64_t end =
        d.start->first_unix_seconds + static_cast<std::int64_t>(*d.elapsed_seconds);
    d.end = Moment{end, end};
  }
  // Nothing starts before it was submitted: of two readings that leaves one, unless it leaves none.
  Moment starts = *d.start;
  if (d.submit && starts.first_unix_seconds < d.submit->first_unix_seconds && starts.second_unix_seconds >= d.submit->first_unix_seconds) {
    starts.first_unix_seconds = starts.second_unix_seconds;
  }
  std::int64_t best_start = starts.first_unix_seconds;
  std::int64_t best_end = d.end ? d.end->first_unix_seconds : 0;
  int fitting = 0;
  double best = -1;
  for (const std::int64_t start : {starts.first_unix_seconds, starts.second_unix_seconds}) {
    if (!d.end) break;
    for (const std::int64_t end : {d.end->first_unix_seconds, d.end->second_unix_seconds}) {
      const double over = static_cast<double>(end - start) - d.elapsed_seconds.value_or(0);
      if (over < -1) continue;
      if (best < 0 || over < best - 1) {
        best = std::max(over, 0.0);
        best_start = start;
        best_end = end;
        fitting = 1;
      } else if (over <= best + 1 && (start != best_start || end != best_end)) {
        ++fitting;
      }
    }
  }
  const bool doubled = starts.first_unix_seconds != starts.second_unix_seconds ||
                       (d.end && d.end->first_unix_seconds != d.end->second_unix_seconds);
  if (doubled && (fitting != 1 || !d.elapsed_seconds)) {
    problem(d.where,
            "its times are in the hour that is doubled, and Elapsed does not tell which; the "
            "earlier is taken");
  }
  if (d.end && best_end < best_start) {
    problem(d.where, "ends before it starts; left out");
    return false;
  }
  job.start = instant(best_start);
  if (d.end) job.end = instant(best_end);
  return true;
}

void Collector::set_gpus(Draft& d) {
  Job& job = d.job;
  tracks_gpus_ |= d.gpus.untyped;
  if (d.gpus.contradicts)
    problem(d.where, "the types of its GPUs add up to more than their number, which stands");
  job.gpu_count = d.gpus.count;
  job.gpus = d.gpus.groups;
  if (!job.start) {
    job.gpu_count.reset();
    job.gpus.clear();
    return;
  }
  if (job.gpu_count && !(d.gpus.has_shares && job.gpu_count == 0U)) return;
  if (d.gpus.has_shares) {
    job.gpu_count.reset();
    problem(d.where, "it has shares of GPUs (shard or mps), parts of which nothing says how many GPUs they lie on; its GPUs are not known");
    return;
  }
  // The allocation names no GPU. Hosts with GPUs say more than an accounting that does not track
  // them.
  std::uint64_t total = 0;
  bool all_said = !job.allocations.empty();
  for (const Allocation& allocation : job.allocations) {
    all_said &= allocation.gpus_per_host.has_value();
    total +=
        static_cast<std::uint64_t>(allocation.gpus_per_host.value_or(0)) * allocation.hosts.size();
  }
  if (all_said && !(d.gpus_unreadable && total == 0)) {
    job.gpu_count = static_cast<std::uint32_t>(std::min<std::uint64_t>(total, UINT32_MAX));
  } else if (d.gpus_unreadable) {
    return;
  } else if (d.asked_none) {
    job.gpu_count = 0;
  } else {
    silent_.push_back({parsed_.jobs.size(), d.allocated_nothing ? d.where : std::string(), d.allocated_nothing});
  }
}

base::Status Collector::add(Draft d) {
  FLOPSIGHT_RETURN_IF_ERROR(check_room());
  if (d.job.cluster.empty()) d.job.cluster = options_.cluster;
  if (const auto id = number_of(d.job.id); !id || *id == 0) {
    problem(d.where, "\"" + base::printable(d.job.id, 40) + "\" is no job id; left out");
    return {};
  }
  if (d.job.state.empty()) {
    problem(d.where, "no state; left out");
    return {};
  }
  if (!set_times(d)) return {};
  if (d.job.allocations.empty() && !said(d.nodes).empty() && d.job.start) {
    auto hosts = jobs::expand_hosts(said(d.nodes));
    if (hosts.ok()) {
      hosts_ += hosts->size();
      if (hosts_ > kHostsTotalMax) {
        return base::Error{base::ErrorCode::kLimit, "more than " + std::to_string(kHostsTotalMax) + " hosts in all jobs together"}.within(d.where);
      }
      d.job.allocations.push_back({std::move(hosts).value(), {}, {}});
    } else {
      problem(d.where, "nodes: " + hosts.error().message);
    }
  }
  if (!d.job.start) d.job.allocations.clear();
  set_gpus(d);
  // All of a job's GPUs are on its one host.
  auto& allocations = d.job.allocations;
  if (allocations.size() == 1 && allocations[0].hosts.size() == 1 &&
      !allocations[0].gpus_per_host) {
    allocations[0].gpus_per_host = d.job.gpu_count;
  }
  parsed_.jobs.push_back(std::move(d.job));
  return {};
}

base::Status Collector::add(Node node) {
  FLOPSIGHT_RETURN_IF_ERROR(check_room());
  parsed_.nodes.push_back(std::move(node));
  return {};
}

Job* Collector::last_with_id(std::string_view id) {
  // A job's steps follow it.
  if (parsed_.jobs.empty() || parsed_.jobs.back().id != id) return nullptr;
  return &parsed_.jobs.back();
}

Parsed Collector::finish(const std::string& source) {
  for (const Silent& silent : silent_) {
    if (!tracks_gpus_) break;
    if (silent.allocated_nothing) {
      problem(silent.where, "its allocation names no resource at all, of a job that ran; its GPUs are not known");
      continue;
    }
    Job& job = parsed_.jobs[silent.job];
    job.gpu_count = 0;
    if (job.allocations.size() == 1) job.allocations[0].gpus_per_host = 0;
  }
  for (Job& job : parsed_.jobs) job.source = source;
  return std::move(parsed_);
}

}  // namespace flopsight::schedulers::slurm
