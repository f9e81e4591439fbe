#include "jobs/grouping.h"

namespace flopsight::jobs {

base::Result<Grouping> Grouping::parse(const std::vector<std::string>& patterns) {
  if (patterns.size() > kPatternsMax) {
    return base::Error{base::ErrorCode::kLimit,
                       "more than " + std::to_string(kPatternsMax) + " patterns"};
  }
  Grouping grouping;
  for (const std::string& text : patterns) {
    FLOPSIGHT_ASSIGN_OR_RETURN(base::Regex regex, base::Regex::parse(text));
    grouping.patterns_.push_back(std::move(regex));
  }
  return grouping;
}

std::vector<std::string> Grouping::patterns() const {
  std::vector<std::string> out;
  for (const base::Regex& regex : patterns_) out.push_back(regex.expression());
  return out;
}

samples::Holder Grouping::group_of(const samples::Holder& holder, const OwnerOf& owner_of) const {
  if (holder.unallocated()) return holder;
  samples::Holder group = holder;
  std::vector<std::optional<std::string_view>> found;
  for (const base::Regex& regex : patterns_) {
    if (!regex.match(holder.job, found)) continue;
    const std::size_t which = regex.group("name").value_or(found.size() > 1 ? 1 : 0);
    if (!found[which] || found[which]->empty()) continue;
    group.job = std::string(*found[which]);
    group.container.clear();
    group.rule = holder.rule + ", pattern " + regex.expression();
    return group;
  }
  if (!use_owners_ || !owner_of) return group;
  if (const auto owner = owner_of(holder.name_space, holder.job)) {
    group.job = owner->name;
    group.container.clear();
    group.rule = holder.rule + ", " +
                 (owner->kind.starts_with("label_") ? owner->kind : "owner " + owner->kind);
  }
  return group;
}

}  // namespace flopsight::jobs
