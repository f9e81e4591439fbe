#include "jobs/holder_list.h"

#include <cstring>
#include <utility>

#include "base/room.h"

namespace flopsight::jobs {
namespace {

constexpr std::string samples::Holder::* kDetails[] = {&samples::Holder::name_space, &samples::Holder::container, &samples::Holder::user,
                                                       &samples::Holder::team, &samples::Holder::rule};
constexpr std::size_t kUnusedMin = 1'000;

}  // namespace

std::uint32_t HolderList::details_of(const samples::Holder& holder) {
  std::string text;
  for (const auto detail : kDetails) {
    const auto length = static_cast<std::uint32_t>((holder.*detail).size());
    text.append(reinterpret_cast<const char*>(&length), sizeof(length));
    text += holder.*detail;
  }
  return number_of(text);
}

std::uint32_t HolderList::number_of(std::string_view details) {
  const auto [number, is_new] = detail_numbers_.emplace(base::hash128(details), static_cast<std::uint32_t>(detail_texts_.size()));
  if (is_new) detail_texts_.push_back(details);
  return number;
}

void HolderList::push_back(const samples::Holder& holder) {
  base::add_one(details_) = details_of(holder);
  jobs_.push_back(holder.job);
}

void HolderList::replace(std::size_t number, const samples::Holder& holder) {
  jobs_.replace(number, holder.job);
  details_.at(number) = details_of(holder);
  if (detail_texts_.size() > 2 * size() + kUnusedMin) forget_unused();
}

void HolderList::forget_unused() {
  const base::TextList before = std::exchange(detail_texts_, {});
  detail_numbers_.clear();
  for (std::uint32_t& details : details_) details = number_of(before[details]);
}

samples::Holder HolderList::operator[](std::size_t number) const {
  samples::Holder holder;
  holder.job = jobs_[number];
  const char* at = detail_texts_[details_[number]].data();
  for (const auto detail : kDetails) {
    std::uint32_t length = 0;
    std::memcpy(&length, at, sizeof(length));
    (holder.*detail).assign(at + sizeof(length), length);
    at += sizeof(length) + length;
  }
  return holder;
}

}  // namespace flopsight::jobs
