#include "analysis/group_numbers.h"

#include <initializer_list>

#include "base/check.h"

namespace flopsight::analysis {

std::uint32_t GroupNumbers::of(GroupBy by, samples::HolderId id, const samples::Holder& holder) {
  FLOPSIGHT_CHECK(is_of_holders(by));
  One& one = by_[static_cast<std::size_t>(by)];
  if (id >= one.of_holder.size()) one.of_holder.resize(std::size_t{id} + 1, kUnknown);
  std::uint32_t& number = one.of_holder[id];
  if (number != kUnknown) return number;
  key_.clear();
  const auto put = [&](std::initializer_list<const std::string*> parts) {
    for (const std::string* part : parts) key_.append(*part) += '\0';
  };
  switch (by) {
    case GroupBy::kJob: put({&holder.job, &holder.name_space, &holder.user, &holder.team}); break;
    case GroupBy::kUser: put({&holder.user}); break;
    case GroupBy::kTeam: put({&holder.team}); break;
    default: put({&holder.name_space}); break;
  }
  if (key_.find_first_not_of('\0') == std::string::npos) return number = kNobody;
  return number = one.of_key.try_emplace(key_, static_cast<std::uint32_t>(one.of_key.size() + 1)).first->second;
}

}  // namespace flopsight::analysis
