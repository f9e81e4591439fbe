// Who had which GPUs: members of a window, out of spans.
#include <algorithm>
#include <unordered_map>

#include "base/text.h"
#include "store/sqlite_store_internal.h"

namespace flopsight::store {
namespace {

constexpr units::Window kEver{{0}, {std::int64_t{1} << 52}};

// GPUs that some of the time nobody held.
std::vector<GpuId> gpus_of_nobody(const std::vector<std::pair<GpuId, units::Window>>& present, const std::vector<Held>& spans,
                                  units::Window window) {
  std::unordered_map<GpuId, std::int64_t> held_milliseconds;
  for (const Held& span : spans) {
    held_milliseconds[span.gpu] += (std::min(span.window.end, window.end).unix_milliseconds -
                                    std::max(span.window.start, window.start).unix_milliseconds);
  }
  std::vector<GpuId> gpus;
  for (const auto& [id, seen] : present) {
    const auto held = held_milliseconds.find(id);
    const std::int64_t seen_milliseconds = seen.end.unix_milliseconds - seen.start.unix_milliseconds;
    if (held == held_milliseconds.end() || held->second < seen_milliseconds) gpus.push_back(id);
  }
  return gpus;
}

}  // namespace

base::Result<JobId> SqliteStore::find_job(std::string_view text) {
  const auto number = base::parse_number(text);
  const bool is_id = number && *number >= 1 && *number <= static_cast<double>(jobs_.size());
  if (!is_id || std::to_string(static_cast<JobId>(*number)) != text) {
    return base::Error{base::ErrorCode::kNotFound, "no job with the id " + base::printable(text, 40)};
  }
  return static_cast<JobId>(*number);
}

base::Result<std::vector<Member>> SqliteStore::members(units::Window window, std::optional<JobId> job) {
  FLOPSIGHT_ASSIGN_OR_RETURN(const std::vector<Held> spans, held(job, job ? kEver : window));
  std::map<JobId, Member> members;
  if (!job) members[0].gpus = gpus_of_nobody(present(window), spans, window);
  if (job) members[*job].job = *job;
  for (const Held& span : spans) {
    Member& member = members[span.job];
    member.job = span.job;
    if (member.ever.end.unix_milliseconds == 0 || span.window.start < member.ever.start) member.ever.start = span.window.start;
    member.ever.end = std::max(member.ever.end, span.window.end);
    if (span.window.start < window.end && span.window.end > window.start) member.gpus.push_back(span.gpu);
  }
  std::vector<Member> out;
  for (auto& [id, member] : members) {
    std::sort(member.gpus.begin(), member.gpus.end());
    member.gpus.erase(std::unique(member.gpus.begin(), member.gpus.end()), member.gpus.end());
    out.push_back(std::move(member));
  }
  return out;
}

}  // namespace flopsight::store
