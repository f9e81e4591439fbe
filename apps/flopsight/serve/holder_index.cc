#include "serve/holder_index.h"

#include <algorithm>
#include <utility>

namespace flopsight::app {

void HolderIndex::begin(Basis basis) {
  asked_most_ = std::max(std::exchange(asked_, 0), asked_most_ - asked_most_ / 8);
  if (basis_ == basis && table_.size() <= 2 * asked_most_ + kOthersMax) return;
  const std::size_t asked_most = asked_most_;
  *this = {};
  asked_most_ = asked_most;
  basis_ = std::move(basis);
}

std::optional<samples::HolderId> HolderIndex::known(store::JobId job) {
  ++asked_;
  if (job >= of_job_.size() || of_job_[job] == kUnknown) return std::nullopt;
  return of_job_[job];
}

samples::HolderId HolderIndex::of(store::JobId job, const samples::Holder& holder, const jobs::Grouping::OwnerOf& owner_of) {
  if (const auto id = known(job)) return *id;
  if (job >= of_job_.size()) of_job_.resize(std::size_t{job} + 1, kUnknown);
  return of_job_[job] = table_.intern(basis_->grouping != nullptr ? basis_->grouping->group_of(holder, owner_of) : holder);
}

analysis::GroupNumbers& HolderIndex::groups() {
  if (changes_ != table_.changes()) groups_.forget();
  changes_ = table_.changes();
  return groups_;
}

}  // namespace flopsight::app
