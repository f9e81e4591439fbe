#pragma once
// A GPU that does not exist, and whose tiles, clocks and activity are known: it runs products and has counters, for trying the
// experiment where there is no GPU and for tests that it finds the truth. No figure of it says anything of a real GPU.
//
// Assumed of it: the tensor pipe of a saturating product is busy 93 % of the time (0.90 to 0.95: NVIDIA/DCGM issue 40); under the power limit
// the clock falls with activity a to 0.87 * reference / sqrt(a), at most the maximum (0.87: the best public H100 rates imply 1.55 to 1.63
// of 1830 MHz), and jitters around it by 25 MHz with a memory of a second; 3 us between launches (aiconfigurator, Apache-2.0). The library's
// tile is what gemm/tile_choice.h models for two products of three, and another usual one for the third. Waves fill as gemm/tile.h says.
//
// Counters: activity is the ratio of cycles over the interval before a reading, the clock is read at its end, as DCGM does both.
// The same options give the same answers. Threads: one.

#include <cstdint>
#include <optional>

#include "simulation/random.h"
#include "validation/experiment.h"

namespace flopsight::validation {

struct SimulatedOptions {
  std::uint64_t seed = 1;
  units::Seconds interval{1};  // between readings
  bool says_tile = true;       // as cublasLt does
  double clock_jitter_hertz = 25e6;
  double pipe_ratio = 0.93;
};

class SimulatedGpu final : public Runner, public CounterSource {
 public:
  // The device has SM count, peaks and clocks (checked), and outlives this.
  SimulatedGpu(const catalog::Device& device, const SimulatedOptions& options);

  base::Result<Prepared> prepare(const Case& one) override;
  base::Status mark() override;
  base::Result<units::Seconds> run(std::uint64_t launches) override;
  base::Status start() override;
  base::Status poll() override { return {}; }  // readings are taken as time goes by
  bool enough() const override { return readings_.samples > 0; }
  base::Result<Counted> stop() override;

  // Since mark(): the OFU of the time since then, without sampling.
  double true_ofu_ratio() const;
  double true_clock_hertz_mean() const;

 private:
  // One step at the clock of the moment, in which so many launches were done.
  void pass(double seconds, double launches);
  void change_clock(double seconds);
  double launch_seconds() const;

  const catalog::Device& device_;
  SimulatedOptions options_;
  simulation::Draws draws_;
  // Of the case at hand.
  double reference_hertz_ = 1;
  double peak_seconds_ = 0;    // of a launch's executed FLOPs, at the peak
  double pipe_share_ratio_ = 1;  // of the peak at its clock that a launch runs at: the pipe's times the waves'
  double target_hertz_ = 0;
  // Clock and time.
  double jitter_hertz_ = 0;
  double clock_hertz_ = 0;
  double now_seconds_ = 0;
  double marked_seconds_ = 0;
  // Integrals over time of the clock and of activity times clock: since mark(), and since the last reading.
  struct Cycles {
    double all_total = 0;
    double active_total = 0;
  };
  Cycles marked_;
  Cycles interval_;
  double next_reading_seconds_ = 0;
  bool counting_ = false;
  Counted readings_;  // sums until stop()
};

}  // namespace flopsight::validation
