#pragma once
// Holders of the store's jobs by number, as a report knows them: what is one group is one holder. Kept from one question to the next, because making
// the holders of a fleet's jobs anew was half of what a question about a day cost.
//
// Only for callers who see everything: what one holder lacks is filled in from others of the same job.
// Threads: one at a time; a question has it while it has the store.

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "analysis/group_numbers.h"
#include "jobs/grouping.h"
#include "jobs/holder_table.h"
#include "store/store.h"

namespace flopsight::app {

class HolderIndex {
 public:
  // What numbers depend on; anything else than the last time, and they are made anew.
  struct Basis {
    std::uint64_t names_version = 0;   // store::Reader
    std::uint64_t owners_version = 0;  // JobService
    std::shared_ptr<const jobs::Grouping> grouping;
    bool operator==(const Basis&) const = default;
  };

  // For one question. Holders that only many questions ago were asked for are forgotten.
  void begin(Basis basis);

  // Of a job that of() was called for; nothing for another.
  std::optional<samples::HolderId> known(store::JobId job);
  // `owner_of` may be empty.
  samples::HolderId of(store::JobId job, const samples::Holder& holder, const jobs::Grouping::OwnerOf& owner_of);
  // Of a job that is in no store.
  samples::HolderId of_told(const samples::Holder& holder) { return table_.intern(holder); }
  const jobs::HolderTable& table() const { return table_; }
  // Once all holders of the question are in the table.
  analysis::GroupNumbers& groups();

 private:
  // Holders of other questions, told and stored, that may be in the table beside twice those of the largest of the last questions.
  static constexpr std::size_t kOthersMax = 20'000;

  std::optional<Basis> basis_;
  jobs::HolderTable table_;
  std::uint64_t changes_ = 0;  // of the table, that `groups_` knows
  std::size_t asked_ = 0;       // by this question; a job may be asked for twice
  std::size_t asked_most_ = 0;  // by the last ones, each counting an eighth less than the one after it
  static constexpr samples::HolderId kUnknown = UINT32_MAX;
  std::vector<samples::HolderId> of_job_;  // by job
  analysis::GroupNumbers groups_;
};

}  // namespace flopsight::app
