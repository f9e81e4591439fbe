// LiveFleet over weeks: what is over is forgotten.
#include "live/live_fleet.h"

namespace flopsight::live {

std::vector<bool> LiveFleet::forget_sets(std::span<const HolderSetId> used_sets) {
  std::vector<bool> is_used(holder_sets_.size(), false);
  is_used[0] = true;  // nobody
  for (const HolderSetId set : used_sets) is_used[set] = true;
  for (const auto& [gpu, closed] : before_start_) is_used[closed] = true;
  for (const Gpu& gpu : gpus_) {
    for (std::size_t i = 0; i < gpu.rows.size(); ++i) is_used[gpu.rows.at(i).holders] = true;
  }
  std::vector<bool> has_set(holders_.size(), false);
  free_sets_.clear();
  for (HolderSetId set = 1; set < holder_sets_.size(); ++set) {
    if (is_used[set]) {
      for (const samples::HolderId holder : holder_sets_[set]) has_set[holder] = true;
      continue;
    }
    // One that is free already is in no map.
    if (!holder_sets_[set].empty()) set_of_.erase(holder_sets_[set]);
    holder_sets_[set] = {};
    free_sets_.push_back(set);
  }
  // Only a short way to what set_of_ knows.
  set_with_ = {};
  last_key_ = UINT64_MAX;
  return has_set;
}

LiveFleet::Forgotten LiveFleet::forget_unused(std::span<const HolderSetId> used_sets) {
  Forgotten out;
  out.label_sets.resize(bindings_.size(), false);
  std::vector<bool> is_used = forget_sets(used_sets);
  const auto round_before = static_cast<std::uint8_t>(forget_round_ - 1);
  for (LabelSetId id = 0; id < bindings_.size(); ++id) {
    Binding& binding = bindings_[id];
    if (binding.is_free) continue;
    if (binding.used_round == forget_round_ || binding.used_round == round_before) {
      if (binding.has_holder) is_used[binding.holder] = true;
      continue;
    }
    binding = {};
    binding.is_free = true;
    free_label_sets_.push_back(id);
    out.label_sets[id] = true;
  }
  ++forget_round_;
  for (Gpu& gpu : gpus_) {
    if (gpu.speaks != 0 && bindings_[gpu.speaks - 1].is_free) gpu.speaks = 0;
  }
  out.holders.resize(holders_.size());
  for (samples::HolderId id = 0; id < holders_.size(); ++id) out.holders[id] = !is_used[id];
  holders_.keep_only(is_used);
  return out;
}

}  // namespace flopsight::live
