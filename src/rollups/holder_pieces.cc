#include <algorithm>

#include "rollups/pieces_internal.h"
#include "rollups/screen.h"

namespace flopsight::rollups {
namespace {

struct Held {
  std::vector<samples::HolderId> holders;
  bool bridged = false;
};

// The holders of each scrape, label gaps bridged.
std::vector<Held> bridged_holders(const samples::GpuTimeline& timeline, const Frame& frame,
                                  double bridge_intervals, samples::QualityLog& quality) {
  std::vector<Held> held;
  held.reserve(timeline.scrapes.size());
  for (const samples::GpuScrape& s : timeline.scrapes) held.push_back({s.holders, false});
  std::uint64_t bridged = 0;
  std::size_t last_named = held.size();
  for (std::size_t i = 0; i < held.size(); ++i) {
    if (held[i].holders.empty()) continue;
    if (last_named < held.size() && i > last_named + 1 &&
        held[i].holders == held[last_named].holders &&
        (timeline.scrapes[i].time - timeline.scrapes[last_named].time).value <=
            (bridge_intervals + 1.01) * frame.steps[i].value) {
      for (std::size_t j = last_named + 1; j < i; ++j) {
        held[j] = {held[i].holders, true};
        bridged += frame.window.contains(timeline.scrapes[j].time);
      }
    }
    last_named = i;
  }
  quality.add("label_gap_bridged", gpu_label(timeline.gpu), bridged);
  return held;
}

}  // namespace

std::vector<HolderPiece> holder_pieces(const samples::GpuTimeline& timeline, const Frame& frame,
                                       double bridge_intervals, samples::QualityLog& quality) {
  const auto& scrapes = timeline.scrapes;
  const std::vector<Held> held =
      bridged_holders(timeline, frame, bridge_intervals, quality);
  std::vector<HolderPiece> pieces;
  pieces.reserve(scrapes.size() + 2);
  const auto push = [&](units::Instant start, units::Instant end, const Held& who, bool seen,
                        const samples::GpuScrape* scrape = nullptr,
                        const samples::GpuScrape* next = nullptr) {
    start = std::max(start, frame.window.start);
    end = std::min(end, frame.window.end);
    if (start < end) pieces.push_back({start, end, who.holders, who.bridged, seen, scrape, next});
  };
  if (scrapes.empty()) {
    push(frame.window.start, frame.window.end, {}, false);
    return pieces;
  }
  const units::Seconds before = scrapes.front().time - frame.window.start;
  const bool phase = before.value > 0 && before <= frame.steps.front();
  push(frame.window.start, scrapes.front().time, phase ? held.front() : Held{}, phase,
       phase ? &scrapes.front() : nullptr);
  for (std::size_t i = 0; i < scrapes.size(); ++i) {
    const units::Instant here = scrapes[i].time;
    if (i + 1 == scrapes.size()) {
      push(here, here + frame.steps[i], held[i], true, &scrapes[i]);
      push(here + frame.steps[i], frame.window.end, {}, false);
      continue;
    }
    const units::Instant next = scrapes[i + 1].time;
    if ((next - here).value <= frame.gap_intervals * frame.steps[i].value) {
      push(here, next, held[i], true, &scrapes[i], &scrapes[i + 1]);
    } else {
      push(here, here + frame.steps[i], held[i], true, &scrapes[i]);
      const bool same = held[i].holders == held[i + 1].holders;
      push(here + frame.steps[i], next, same ? held[i] : Held{}, false);
    }
  }
  return pieces;
}

}  // namespace flopsight::rollups
