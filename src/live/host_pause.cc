#include "live/host_pause.h"

#include <algorithm>
#include <limits>
#include <numeric>

#include "base/hash.h"
#include "live/live_fleet.h"

namespace flopsight::live {
namespace {

using samples::AbsentReason;

constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();
// So long before an open slot a scrape may be that holds into it.
constexpr std::int64_t kKeptMilliseconds = 600'000;

// Of tensor activity, the first of the slots of a row.
const std::uint8_t kTensorSlot = row_slot(catalog::Metric::kTensorActive).value();

// A row without tensor activity, or with DCGM's blank for it. NaN and the like are the matter of one GPU.
bool lacks_tensor(const PendingRows& rows, std::size_t i) {
  const std::uint8_t reason = rows.at(i).tensor_reason();
  return !rows.has(i, kTensorSlot) && (reason == 0 || reason == 1 + static_cast<std::uint8_t>(AbsentReason::kBlank));
}

// 0: not known.
std::uint64_t host_number(const samples::GpuIdentity& gpu) {
  return gpu.host.empty() ? 0 : std::max<std::uint64_t>(1, base::hash128(gpu.host).high);
}

double& absent(rollups::Totals& totals, AbsentReason reason) { return totals.absent_seconds[static_cast<std::size_t>(reason)]; }

}  // namespace

void HostPauses::set_list(std::span<const std::uint64_t> hosts) {
  numbers_.resize(hosts.size());
  std::iota(numbers_.begin(), numbers_.end(), 0U);
  std::erase_if(numbers_, [&](std::uint32_t gpu) { return hosts[gpu] == 0; });
  std::stable_sort(numbers_.begin(), numbers_.end(), [&](std::uint32_t a, std::uint32_t b) { return hosts[a] < hosts[b]; });
  list_.clear();
  for (std::uint32_t i = 0; i < numbers_.size(); ++i) {
    const std::uint64_t host = hosts[numbers_[i]];
    if (list_.empty() || list_.back().host != host) list_.push_back({host, i, 0});
    ++list_.back().count;
  }
}

std::span<const std::uint32_t> HostPauses::members(std::uint64_t host) const {
  const auto at = std::lower_bound(list_.begin(), list_.end(), host, [](const Range& range, std::uint64_t h) { return range.host < h; });
  if (at == list_.end() || at->host != host) return {};
  return std::span(numbers_).subspan(at->first, at->count);
}

bool HostPauses::contains(std::uint64_t host, std::int64_t unix_milliseconds) const {
  const auto at = times_.find(host);
  return at != times_.end() && std::binary_search(at->second.begin(), at->second.end(), unix_milliseconds);
}

void HostPauses::add(std::uint64_t host, std::int64_t unix_milliseconds) {
  std::vector<std::int64_t>& times = times_[host];
  const auto at = std::lower_bound(times.begin(), times.end(), unix_milliseconds);
  if (at == times.end() || *at != unix_milliseconds) times.insert(at, unix_milliseconds);
}

void HostPauses::drop_before(std::vector<std::int64_t>& times, std::int64_t limit) {
  times.erase(times.begin(), std::lower_bound(times.begin(), times.end(), limit));
}

// Whether all GPUs of the host that have tensor activity, two at least, lack it in their scrape of that time.
bool LiveFleet::is_host_paused(std::uint64_t host, std::int64_t unix_milliseconds) {
  if (pauses_.contains(host, unix_milliseconds)) return true;
  if (!pauses_.has_list()) {
    std::vector<std::uint64_t> hosts(gpus_.size());
    for (std::size_t i = 0; i < gpus_.size(); ++i) {
      if (gpus_[i].has_tensor && !gpus_[i].away && !gpus_[i].rows.empty()) hosts[i] = host_number(identities_.at(i));
    }
    pauses_.set_list(hosts);
  }
  const std::span<const std::uint32_t> members = pauses_.members(host);
  if (members.size() < 2) return false;
  const bool all = std::all_of(members.begin(), members.end(), [&](std::uint32_t member) {
    const PendingRows& rows = gpus_[member].rows;
    const std::size_t at = rows.first_at_or_after(unix_milliseconds);
    return at < rows.size() && rows.at(at).unix_milliseconds() == unix_milliseconds && lacks_tensor(rows, at);
  });
  if (all) pauses_.add(host, unix_milliseconds);
  return all;
}

void LiveFleet::explain_by_host(GpuIndex index, units::Window window, rollups::GpuTime& rolled) {
  const Gpu& gpu = gpus_[index];
  if (!gpu.has_tensor || !gpu.calibrated) return;
  const bool lacks = std::any_of(rolled.portions.begin(), rolled.portions.end(), [](rollups::Portion& portion) {
    return absent(portion.totals, AbsentReason::kNoTensorCounter) + absent(portion.totals, AbsentReason::kBlank) > 0;
  });
  const std::uint64_t host = lacks ? host_number(rolled.gpu) : 0;
  if (host == 0) return;
  // What a slot measured is not touched, whatever stands in single rows. Where no scrape is in it, the one before holds into it.
  const std::size_t from = gpu.rows.first_at_or_after(window.start.unix_milliseconds);
  const std::size_t to = gpu.rows.first_at_or_after(window.end.unix_milliseconds);
  std::uint64_t lacking = 0, paused = 0;
  for (std::size_t i = from == to && from > 0 ? from - 1 : from; i < to; ++i) {
    if (!lacks_tensor(gpu.rows, i)) continue;
    ++lacking;
    if (is_host_paused(host, gpu.rows.at(i).unix_milliseconds())) ++paused;
  }
  if (paused == 0) return;
  quality_.add("profiler_pause", rolled.gpu.host, paused);
  const double share = static_cast<double>(paused) / static_cast<double>(lacking);
  for (rollups::Portion& portion : rolled.portions) {
    for (const AbsentReason reason : {AbsentReason::kNoTensorCounter, AbsentReason::kBlank}) {
      const double seconds = absent(portion.totals, reason) * share;
      absent(portion.totals, reason) -= seconds;
      absent(portion.totals, AbsentReason::kProfilerPause) += seconds;
    }
  }
}

void LiveFleet::end_pause_round() {
  pauses_.end_round([&](std::uint64_t host) {
    std::int64_t closed = kNever;
    for (const std::uint32_t member : pauses_.members(host)) {
      const Gpu& gpu = gpus_[member];
      if (!gpu.away && !gpu.rows.empty()) closed = std::min(closed, gpu.closed_until);
    }
    return closed == kNever ? closed : closed - kKeptMilliseconds;
  });
}

}  // namespace flopsight::live
