#include "jobs/holder_table.h"

#include <algorithm>
#include <numeric>

#include "base/room.h"
#include "jobs/label_rules.h"

namespace flopsight::jobs {
namespace {

constexpr std::string samples::Holder::* kDetails[] = {
    &samples::Holder::name_space, &samples::Holder::container, &samples::Holder::user,
    &samples::Holder::team};

// Takes over what `known` lacks, counted in `changes`, unless the two contradict each other.
bool fill_in(samples::Holder& known, const samples::Holder& other, std::uint64_t& changes) {
  for (const auto detail : kDetails) {
    if (!(known.*detail).empty() && !(other.*detail).empty() && known.*detail != other.*detail) return false;
  }
  for (const auto detail : kDetails) {
    if (!(known.*detail).empty() || (other.*detail).empty()) continue;
    known.*detail = other.*detail;
    ++changes;
  }
  return true;
}

base::Hash128 hash_of(const samples::Holder& holder) {
  std::string key;
  for (const std::string* field :
       {&holder.job, &holder.name_space, &holder.container, &holder.user, &holder.team}) {
    key += *field;
    key += '\0';
  }
  return base::hash128(key);
}

}  // namespace

samples::HolderId HolderTable::intern(const samples::Holder& holder) {
  const base::Hash128 hash = hash_of(holder);
  const auto fresh = free_.empty() ? static_cast<samples::HolderId>(holders_.size()) : free_.back();
  if (const auto known = ids_.find(hash)) return *known;
  const auto [first, is_new_job] = first_of_job_.emplace(base::hash128(holder.job), fresh);
  if (!is_new_job) {
    for (samples::HolderId id = first;; id = next_of_job_[id]) {
      if (fill_in(holders_[id], holder, changes_)) {
        ids_.set(hash, id);
        return id;
      }
      if (next_of_job_[id] != id) continue;
      next_of_job_[id] = fresh;
      break;
    }
  }
  ids_.set(hash, fresh);
  if (free_.empty()) {
    base::add_one(holders_);
    base::add_one(next_of_job_);
  } else {
    free_.pop_back();
  }
  holders_[fresh] = holder;
  next_of_job_[fresh] = fresh;
  return fresh;
}

bool HolderTable::has(std::string_view name_space, std::string_view job) const {
  const auto first = first_of_job_.find(base::hash128(job));
  if (!first) return false;
  for (samples::HolderId id = *first;; id = next_of_job_[id]) {
    if (holders_[id].name_space == name_space) return true;
    if (next_of_job_[id] == id) return false;
  }
}

void HolderTable::keep_only(const std::vector<bool>& is_used) {
  const auto is_kept = [&](samples::HolderId id) { return id < is_used.size() && is_used[id] && !holders_[id].unallocated(); };
  // What was interned with fewer fields is found through its job's name again.
  base::HashNumbers ids, first_of_job;
  std::vector<samples::HolderId> next_of_job(next_of_job_.size());
  std::iota(next_of_job.begin(), next_of_job.end(), samples::HolderId{0});
  for (samples::HolderId id = 0; id < holders_.size(); ++id) {
    if (!is_kept(id)) continue;
    ids.emplace(hash_of(holders_[id]), id);
    const base::Hash128 job = base::hash128(holders_[id].job);
    if (first_of_job.find(job)) continue;
    // Those of one name stay in the order in which they came.
    samples::HolderId last = id;
    for (samples::HolderId of = *first_of_job_.find(job);; of = next_of_job_[of]) {
      if (is_kept(of)) {
        if (!first_of_job.emplace(job, of).second) next_of_job[last] = of;
        last = of;
      }
      if (next_of_job_[of] == of) break;
    }
  }
  free_.clear();
  for (samples::HolderId id = 0; id < holders_.size(); ++id) {
    if (is_kept(id)) continue;
    holders_[id] = {};
    free_.push_back(id);
  }
  ids_ = std::move(ids);
  first_of_job_ = std::move(first_of_job);
  next_of_job_ = std::move(next_of_job);
}

void HolderTable::complete(samples::HolderId id, const samples::Holder& facts) {
  (void)fill_in(holders_[id], facts, changes_);
}

HolderTable HolderTable::mapped(const std::function<samples::Holder(const samples::Holder&)>& change) const {
  HolderTable out;
  for (const samples::Holder& holder : holders_) out.holders_.push_back(change(holder));
  return out;
}

JobTable::JobTable(std::vector<JobRecord> records) : records_(std::move(records)) {
  for (std::uint32_t i = 0; i < records_.size(); ++i) {
    for (const std::string& host : records_[i].hosts) by_short_host_[short_host(host)].push_back(i);
    for (const std::string& uuid : records_[i].gpu_uuids) {
      by_uuid_[samples::normalized_uuid(uuid)].push_back(i);
    }
    by_name_[records_[i].job].push_back(i);
  }
}

std::vector<const JobRecord*> JobTable::holding(const samples::GpuIdentity& gpu) const {
  std::vector<std::uint32_t> found;
  const auto collect = [&](const Index& index, const std::string& key) {
    const auto at = index.find(key);
    if (at == index.end()) return;
    for (const std::uint32_t i : at->second) {
      if (records_[i].holds(gpu)) found.push_back(i);
    }
  };
  collect(by_short_host_, short_host(gpu.host));
  collect(by_uuid_, samples::normalized_uuid(gpu.uuid));
  std::sort(found.begin(), found.end());
  found.erase(std::unique(found.begin(), found.end()), found.end());
  std::vector<const JobRecord*> out;
  for (const std::uint32_t i : found) out.push_back(&records_[i]);
  return out;
}

std::vector<const JobRecord*> JobTable::named(const std::string& job) const {
  std::vector<const JobRecord*> out;
  if (const auto at = by_name_.find(job); at != by_name_.end()) {
    for (const std::uint32_t i : at->second) out.push_back(&records_[i]);
  }
  return out;
}

}  // namespace flopsight::jobs
