#pragma once
// The two views of one GPU's window that integrate() lays over each other: what was measured when, and who held
// the GPU when. Both are ascending, do not overlap, and are clipped to the window.

#include <optional>
#include <vector>

#include "rollups/integrate.h"

namespace flopsight::rollups {

struct MeasuredPiece {
  units::Instant start;
  units::Instant end;
  samples::Reading ofu;  // or why not
  samples::Reading tensor;
  samples::Reading clock;
  samples::Reading sm_active;
  bool from_counters = false;
};

struct HolderPiece {
  units::Instant start;
  units::Instant end;
  std::vector<samples::HolderId> holders;
  bool bridged = false;
  bool seen = false;  // some scrape covers it
  const samples::GpuScrape* scrape = nullptr;  // that one, and the next if it follows within the gap limit
  const samples::GpuScrape* next = nullptr;
};

// What is common to both.
struct Frame {
  units::Window window;
  std::vector<units::Seconds> steps;  // one for each scrape of the timeline
  units::Seconds step_default;
  double gap_intervals = 2.5;
};

std::vector<MeasuredPiece> measured_pieces(const samples::GpuTimeline& timeline, const Frame& frame,
                                           GpuTime& out, samples::QualityLog& quality);

std::vector<HolderPiece> holder_pieces(const samples::GpuTimeline& timeline, const Frame& frame,
                                       double bridge_intervals, samples::QualityLog& quality);

// One scrape by itself: tensor activity times clock, or why not.
MeasuredPiece gauge_piece(const samples::GpuScrape& scrape, samples::Reading clock,
                          bool tensor_calibrated, const GpuTime& gpu);

// Whether a scrape says anything of tensor work.
bool has_tensor_signal(const samples::GpuScrape& scrape);

}  // namespace flopsight::rollups
