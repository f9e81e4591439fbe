#pragma once
// Which scrapes of a host are known to be without profiling counters on all of its GPUs at once: a profiler holds them
// (rollups/screen.h says why). GPUs of a host are closed one after another, and closing drops their rows, so the first one decides
// for all and what it found is kept here until the last of them is closed.
//
// Memory: 8 bytes for each scrape in which a host was paused, until it is closed; the list of GPUs by host only while some of
// them lack tensor activity. Threads: one at a time.

#include <cstddef>
#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

namespace flopsight::live {

class HostPauses {
 public:
  // The GPUs of one host, as numbers. `hosts`: for each GPU its host, 0 for those that are not looked at.
  bool has_list() const { return !list_.empty(); }
  void set_list(std::span<const std::uint64_t> hosts);
  std::span<const std::uint32_t> members(std::uint64_t host) const;

  bool contains(std::uint64_t host, std::int64_t unix_milliseconds) const;
  void add(std::uint64_t host, std::int64_t unix_milliseconds);

  // The list is given back, and the scrapes that are older than `needed_from` says of their host; without a list nobody knows it.
  template <typename NeededFrom>
  void end_round(NeededFrom needed_from) {
    if (!has_list()) return;
    for (auto at = times_.begin(); at != times_.end();) {
      drop_before(at->second, needed_from(at->first));
      at = at->second.empty() ? times_.erase(at) : std::next(at);
    }
    list_ = {};
    numbers_ = {};
  }

 private:
  static void drop_before(std::vector<std::int64_t>& times, std::int64_t limit);

  struct Range {
    std::uint64_t host = 0;
    std::uint32_t first = 0;  // of numbers_
    std::uint32_t count = 0;
  };
  std::vector<Range> list_;  // by host
  std::vector<std::uint32_t> numbers_;
  std::unordered_map<std::uint64_t, std::vector<std::int64_t>> times_;  // ascending
};

}  // namespace flopsight::live
