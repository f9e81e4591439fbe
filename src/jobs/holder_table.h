#pragma once
// Holders by number, so that a scrape carries an id and not five strings; and jobs files by host, GPU and name.
// Threads: one table, one thread.

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/hash_numbers.h"
#include "jobs/job_file.h"
#include "samples/gpu.h"

namespace flopsight::jobs {

class HolderTable {
 public:
  // Of somebody. The id of an equal holder (all fields but the rule, of which the first is kept), of one with the same job that
  // contradicts no field (exporters differ in what they say of one job; missing fields are filled in), or a new one.
  samples::HolderId intern(const samples::Holder& holder);
  const samples::Holder& at(samples::HolderId id) const { return holders_[id]; }
  std::size_t size() const { return holders_.size(); }  // ids are below it
  std::size_t count() const { return holders_.size() - free_.size(); }
  // Of those that are there: use(id, holder).
  template <typename Use>
  void for_each(const Use& use) const {
    for (samples::HolderId id = 0; id < holders_.size(); ++id) {
      if (!holders_[id].unallocated()) use(id, holders_[id]);
    }
  }
  // Whether any is of this job.
  bool has(std::string_view name_space, std::string_view job) const;
  // What the holder lacks and `facts` have, of namespace, container, user and team.
  void complete(samples::HolderId id, const samples::Holder& facts);
  // Forgets all others, and gives their ids to holders that come; until then those are of nobody. `is_used` is by id.
  void keep_only(const std::vector<bool>& is_used);
  // Grows whenever a holder that there was has changed.
  std::uint64_t changes() const { return changes_; }
  // The same ids, each for what `change` makes of its holder: pods for the job that they are part of.
  HolderTable mapped(const std::function<samples::Holder(const samples::Holder&)>& change) const;

 private:
  std::vector<samples::Holder> holders_;
  base::HashNumbers ids_;           // by all fields
  base::HashNumbers first_of_job_;  // by the job's name
  std::vector<samples::HolderId> next_of_job_;  // of each; its own id where it is the last
  std::vector<samples::HolderId> free_;
  std::uint64_t changes_ = 0;
};

class JobTable {
 public:
  JobTable() = default;
  explicit JobTable(std::vector<JobRecord> records);

  bool empty() const { return records_.empty(); }
  std::span<const JobRecord> records() const { return records_; }
  // Records that hold this GPU at some time, ascending by position in the file.
  std::vector<const JobRecord*> holding(const samples::GpuIdentity& gpu) const;
  // Records of a job's name (a requeued job has several).
  std::vector<const JobRecord*> named(const std::string& job) const;

 private:
  using Index = std::unordered_map<std::string, std::vector<std::uint32_t>>;
  std::vector<JobRecord> records_;
  Index by_short_host_;
  Index by_uuid_;
  Index by_name_;
};

}  // namespace flopsight::jobs
