// Who had which GPUs: members of a window, out of spans.
#include <algorithm>
#include <map>

#include "base/packed_name.h"
#include "base/text.h"
#include "jobs/job_name.h"
#include "store/gpu_runs.h"
#include "store/sqlite_store_internal.h"

namespace flopsight::store {
namespace {

constexpr units::Window kEver{{0}, {std::int64_t{1} << 52}};

// GPUs that some of the time nobody held.
std::vector<GpuId> gpus_of_nobody(const std::vector<std::pair<GpuId, units::Window>>& present, const std::vector<Held>& spans,
                                  units::Window window) {
  std::vector<std::int64_t> held_milliseconds(present.empty() ? 0 : present.back().first + std::size_t{1});
  for (const Held& span : spans) {
    const std::int64_t length = std::min(span.window.end, window.end).unix_milliseconds -
                                std::max(span.window.start, window.start).unix_milliseconds;
    for (const GpuId gpu : span.gpus) {
      if (gpu < held_milliseconds.size()) held_milliseconds[gpu] += length;
    }
  }
  std::vector<GpuId> gpus;
  for (const auto& [id, seen] : present) {
    if (held_milliseconds[id] < seen.end.unix_milliseconds - seen.start.unix_milliseconds) gpus.push_back(id);
  }
  return gpus;
}

}  // namespace

base::Result<std::vector<JobId>> SqliteStore::find_job(std::string_view text) {
  const base::Error missing{base::ErrorCode::kNotFound, "no job with the id " + base::printable(text, 80)};
  const auto named = jobs::parse_job_text(text);
  if (!named) return missing;
  std::vector<JobId> exact, by_name;
  bool is_ambiguous = false;
  const std::string packed = base::packed_name(named->job);
  for (JobId id = 1; id <= jobs_.size(); ++id) {
    if (!jobs_.is_of_job(id - 1, packed)) continue;
    const samples::Holder holder = this->holder(id);
    if (holder.name_space == named->name_space) exact.push_back(id);
    if (!named->name_space.empty()) continue;
    is_ambiguous = is_ambiguous || (!by_name.empty() && this->holder(by_name.front()).name_space != holder.name_space);
    by_name.push_back(id);
  }
  if (!exact.empty()) return exact;
  if (is_ambiguous) {
    return base::Error{base::ErrorCode::kInvalid, "several jobs are called " + base::printable(text, 80) + ", such as " +
                                                      jobs::job_text(holder(by_name.front())) + " and " + jobs::job_text(holder(by_name.back()))};
  }
  if (by_name.empty()) return missing;
  return by_name;
}

std::function<base::Result<std::vector<Member>>()> SqliteStore::members_beside(units::Window window) {
  // What a flush has not written yet, only its connection sees.
  if (flushing_) return {};
  if (!beside_) {
    auto opened = Database::open(path_, Database::Mode::kReadOnly);
    if (!opened.ok() || !opened->execute("PRAGMA cache_size = -500; PRAGMA mmap_size = 0;").ok()) return {};
    beside_ = std::move(opened).value();
  }
  return [this, window] { return members_in(*beside_, window, std::nullopt); };
}

base::Result<std::vector<Member>> SqliteStore::members_in(Database& database, units::Window window, std::optional<JobId> job) const {
  FLOPSIGHT_ASSIGN_OR_RETURN(std::vector<Held> spans, held_in(database, job, job ? kEver : window));
  window = kept(window);
  std::erase_if(spans, [&](const Held& span) { return span.window.end.unix_milliseconds <= forgotten_until_; });
  std::vector<Member> members;
  if (job) {
    members.push_back({*job, {}, {}});
  } else {
    std::vector<std::pair<GpuId, units::Window>> seen = present(window);
    add_rests(seen, window);
    members.push_back({0, {}, gpus_of_nobody(seen, spans, window)});
  }
  // Numbers are sorted and not spans, which are large; those of one job stay as they came.
  std::vector<std::pair<JobId, std::uint32_t>> order;
  order.reserve(spans.size());
  for (std::size_t i = 0; i < spans.size(); ++i) order.emplace_back(spans[i].job, static_cast<std::uint32_t>(i));
  std::sort(order.begin(), order.end());
  members.reserve(1 + order.size());
  for (const auto& of : order) {
    Held& span = spans[of.second];
    if (members.back().job != span.job) members.push_back({span.job, {}, {}});
    Member& member = members.back();
    if (member.ever.end.unix_milliseconds == 0 || span.window.start < member.ever.start) member.ever.start = span.window.start;
    member.ever.end = std::max(member.ever.end, span.window.end);
    if (!(span.window.start < window.end && span.window.end > window.start)) continue;
    if (member.gpus.empty()) {
      member.gpus = std::move(span.gpus);
    } else {
      member.gpus.insert(member.gpus.end(), span.gpus.begin(), span.gpus.end());
    }
  }
  for (Member& member : members) make_distinct(member.gpus);
  return members;
}

// GPUs that are cut into instances have slots of what no instance is. Nothing comes of them themselves, so that they are never closed: they were there
// for as long as their instances.
void SqliteStore::add_rests(std::vector<std::pair<GpuId, units::Window>>& present, units::Window window) const {
  std::map<GpuId, units::Window> rests;
  instances_.for_all([&](GpuId instance, const base::Hash128& key) {
    const auto whole = gpu_ids_.find(key);
    if (!whole) return;
    const Gpu& gpu = gpus_[*whole - 1];
    if (gpu.first == 0 || gpu.closed_until != 0) return;
    const units::Window seen{std::max(window.start, units::Instant{gpu.first}),
                             std::min(window.end, units::Instant{gpus_[instance - 1].closed_until})};
    if (!(seen.start < seen.end)) return;
    const auto [at, is_new] = rests.emplace(*whole, seen);
    at->second.end = std::max(at->second.end, seen.end);
  });
  if (rests.empty()) return;
  present.insert(present.end(), rests.begin(), rests.end());
  std::sort(present.begin(), present.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
}

void SqliteStore::make_whole(std::vector<GpuId>& gpus) const {
  instances_.make_whole(gpus, [&](const base::Hash128& key) { return gpu_ids_.find(key); });
}

}  // namespace flopsight::store
