#include "serve/holder_index.h"

#include <utility>

namespace flopsight::app {

void HolderIndex::begin(Basis basis) {
  if (basis_ == basis && table_.size() <= of_job_.size() + kOthersMax) return;
  *this = {};
  basis_ = std::move(basis);
}

samples::HolderId HolderIndex::of(store::JobId job, const samples::Holder& holder, const jobs::Grouping::OwnerOf& owner_of) {
  if (job >= of_job_.size()) of_job_.resize(std::size_t{job} + 1);
  std::optional<samples::HolderId>& known = of_job_[job];
  if (!known) known = table_.intern(basis_->grouping != nullptr ? basis_->grouping->group_of(holder, owner_of) : holder);
  return *known;
}

analysis::GroupNumbers& HolderIndex::groups() {
  if (changes_ != table_.changes()) groups_.forget();
  changes_ = table_.changes();
  return groups_;
}

}  // namespace flopsight::app
