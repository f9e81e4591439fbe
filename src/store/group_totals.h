#pragma once
// Cells of many blocks added up by their two ids: of jobs by job and model, of GPUs by GPU and job. Blocks come by the group of their first ids, so
// that what is being added to stays in the cache.
// Threads: one at a time.

#include <algorithm>
#include <array>
#include <cstdint>
#include <numeric>
#include <tuple>
#include <vector>

#include "store/job_columns.h"
#include "store/sqlite_store_internal.h"

namespace flopsight::store {

template <typename Total, std::uint32_t Total::*kFirst, std::uint32_t Total::*kSecond>
class GroupTotals {
 public:
  // For so many or more: that room is asked for at once costs nothing where it is not used, and that totals move as it grows costs much.
  explicit GroupTotals(std::size_t count_expected) { totals_.reserve(std::min(count_expected, kReservedMax)); }

  // `wanted` of a row's number.
  template <typename Wanted>
  void add(std::int64_t group, const JobColumns& columns, Wanted wanted) {
    if (group != group_) finish();
    group_ = group;
    places_.assign(columns.size(), kNowhere);
    for (std::size_t i = 0; i < columns.size(); ++i) {
      if (wanted(i)) places_[i] = place_of(columns.first_id(i), columns.second_id(i));
    }
    targets_.assign(columns.size(), nullptr);
    for (std::size_t i = 0; i < columns.size(); ++i) {
      if (places_[i] != kNowhere) targets_[i] = &mine_[places_[i]].cell;
    }
    columns.add_to(targets_);
  }

  // Ascending by both ids.
  std::vector<Total> take() {
    finish();
    return std::move(totals_);
  }

 private:
  static constexpr std::size_t kReservedMax = 1 << 18;
  static constexpr std::uint32_t kNowhere = 0xFFFFFFFF;

  std::uint32_t place_of(std::uint32_t first, std::uint32_t second) {
    std::uint32_t* link = &first_of_[first % kGroupSize];
    while (*link != kNowhere) {
      if (mine_[*link].*kSecond == second) return *link;
      link = &next_of_[*link];
    }
    const auto place = static_cast<std::uint32_t>(mine_.size());
    *link = place;
    next_of_.push_back(kNowhere);
    mine_.emplace_back();
    mine_.back().*kFirst = first;
    mine_.back().*kSecond = second;
    return place;
  }
  void finish() {
    // A total is large: places are sorted, and each is moved once.
    places_.resize(mine_.size());
    std::iota(places_.begin(), places_.end(), 0U);
    std::sort(places_.begin(), places_.end(), [&](std::uint32_t a, std::uint32_t b) {
      return std::tie(mine_[a].*kFirst, mine_[a].*kSecond) < std::tie(mine_[b].*kFirst, mine_[b].*kSecond);
    });
    for (const std::uint32_t place : places_) totals_.push_back(std::move(mine_[place]));
    mine_.clear();
    next_of_.clear();
    first_of_.fill(kNowhere);
  }

  std::int64_t group_ = -1;
  std::vector<Total> mine_;
  // Of each first id of the group its first place, and of each place the next of the same first id.
  std::array<std::uint32_t, kGroupSize> first_of_ = [] {
    std::array<std::uint32_t, kGroupSize> none{};
    none.fill(kNowhere);
    return none;
  }();
  std::vector<std::uint32_t> next_of_;
  std::vector<Total> totals_;
  std::vector<std::uint32_t> places_;
  std::vector<rollups::Cell*> targets_;
};

}  // namespace flopsight::store
