#pragma once
// Numbers by the hash of a name (hash.h), in as little memory as lookups of a hundred million a minute allow: 16 bytes an entry, four fifths of them
// used at most, where the usual tables of pairs take 40 to 80. Of the 128 bits 96 are kept: with ten million names two of them are alike at odds
// below 1 in 10^14. Numbers are below 2^32 - 1. Threads: values.

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "base/hash.h"

namespace flopsight::base {

class HashNumbers {
 public:
  std::optional<std::uint32_t> find(const Hash128& hash) const {
    if (entries_.empty()) return std::nullopt;
    const Entry& entry = entries_[place(hash)];
    return entry.number == kNone ? std::nullopt : std::optional(entry.number);
  }
  // The number that is there then, and whether it was put there now.
  std::pair<std::uint32_t, bool> emplace(const Hash128& hash, std::uint32_t number) {
    if ((size_ + 1) * 5 > entries_.size() * 4) grow();
    Entry& entry = entries_[place(hash)];
    if (entry.number != kNone) return {entry.number, false};
    entry = Entry{hash.low, static_cast<std::uint32_t>(hash.high), number};
    ++size_;
    return {number, true};
  }
  void set(const Hash128& hash, std::uint32_t number) {
    if (!emplace(hash, number).second) entries_[place(hash)].number = number;
  }
  void clear() { *this = {}; }
  // All at once: taking out single ones would leave holes that lookups have to pass.
  template <typename IsGone>
  void erase_numbers(const IsGone& is_gone) {
    const auto is_left = [&](const Entry& entry) { return entry.number != kNone && !is_gone(entry.number); };
    size_ = static_cast<std::size_t>(std::count_if(entries_.begin(), entries_.end(), is_left));
    rehash(size_ * 5 / 4 + kSpare, is_left);
  }

  std::size_t size() const { return size_; }
  std::size_t memory_bytes() const { return entries_.capacity() * sizeof(Entry); }

 private:
  static constexpr std::uint32_t kNone = UINT32_MAX;
  static constexpr std::size_t kSpare = 16;
  struct Entry {
    std::uint64_t low = 0;
    std::uint32_t high = 0;
    std::uint32_t number = kNone;
  };

  // Where the hash is or would be. Places are by the upper half of `low`, so that they need not be a power of two.
  std::size_t place(const Hash128& hash) const {
    std::size_t at = static_cast<std::size_t>((hash.low >> 32) * entries_.size() >> 32);
    while (entries_[at].number != kNone && (entries_[at].low != hash.low || entries_[at].high != static_cast<std::uint32_t>(hash.high))) {
      if (++at == entries_.size()) at = 0;
    }
    return at;
  }
  // By half, not to twice: on average that leaves less of it empty.
  void grow() {
    rehash(entries_.size() + entries_.size() / 2 + kSpare, [](const Entry& entry) { return entry.number != kNone; });
  }
  template <typename IsLeft>
  void rehash(std::size_t places, const IsLeft& is_left) {
    std::vector<Entry> before(places);
    before.swap(entries_);
    for (const Entry& entry : before) {
      if (is_left(entry)) entries_[place({entry.low, entry.high})] = entry;
    }
  }

  std::vector<Entry> entries_;
  std::size_t size_ = 0;
};

}  // namespace flopsight::base
