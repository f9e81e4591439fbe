#pragma once
// Which job holds which GPU when. The fleet is cut once into slots (some GPUs of one host, or whole hosts; with
// sharing, a seat on one GPU), and in each slot one job follows another for ever: in period k of its slot a job comes, runs and
// goes, at times that are hashes of (seed, slot, k). So any moment is found without what came before it.
//
// Times are Unix milliseconds. Threads: immutable after construction; 13 bytes a GPU.

#include <cstdint>
#include <span>
#include <vector>

#include "simulation/options.h"

namespace flopsight::simulation {

struct Slot {
  std::uint32_t gpu_first = 0;
  std::uint32_t gpu_count = 1;
  std::uint8_t seat = 0;        // among those of the GPU
  std::uint8_t seats = 1;
  std::uint8_t mig_slices = 0;  // 0: no MIG instance
  std::uint8_t mig_instance = 0;

  // The share of the whole GPU.
  double weight() const { return mig_slices > 0 ? mig_slices / 7.0 : 1.0 / seats; }
};

enum class JobKind : std::uint8_t { kPretrain, kFinetune, kInference, kNotebook, kMoePretrain, kHybridPretrain };

// What is the matter with a stretch of a job (course.h).
enum class Condition : std::uint8_t { kNone, kDebugFlag, kInputStarved, kHung, kSlowClock, kSlowMemory, kThermal };
// The number format in which a job multiplies.
enum class Format : std::uint8_t { kBf16, kFp8, kNvfp4 };

// A stretch of a slot's time, [start, end): one try of a job, a part of it in which something is the matter or is not, or nobody.
struct Segment {
  std::uint32_t slot = 0;
  std::int64_t start = 0;
  std::int64_t end = 0;
  bool held = false;
  JobKind kind = JobKind::kPretrain;
  std::int64_t period = 0;
  std::uint32_t attempt = 0;  // from 0; more than one only where jobs are restarted
  bool restarting = false;    // nobody holds it, and the next attempt comes
  // Of the try as a whole; the same as start and end where it is not divided.
  std::int64_t job_start = 0;
  std::int64_t job_end = 0;
  std::uint8_t stretch = 0;   // number of the part
  bool starts_up = true;      // the part begins with a start-up
  Condition condition = Condition::kNone;
  Format format = Format::kBf16;

  bool is_first() const { return start == job_start; }
  bool is_last() const { return end == job_end; }
};

enum class Exporter { kUp, kDown, kWithoutProfiling };

class Timetable {
 public:
  explicit Timetable(const Options& options);

  std::span<const Slot> slots() const { return slots_; }
  // The slots with a seat on the GPU: ids [first, first + count).
  std::uint32_t first_slot(std::uint32_t gpu) const { return first_slot_[gpu]; }
  std::uint32_t seats(std::uint32_t gpu) const { return slots_[first_slot_[gpu]].seats; }

  Segment at(std::uint32_t slot, std::int64_t t) const;
  // Something happens to the jobs of this slot, as course.h says.
  bool is_subject(std::uint32_t slot) const;
  Exporter exporter(std::uint32_t host, std::int64_t t) const;
  // The host of a restarting segment that reboots meanwhile: its counters begin at 0 then. -1: none.
  std::int64_t rebooting_host(const Segment& segment) const;
  // When an exporter restarts during the segment: the host and [start, end) of its silence; the first scrape after has no
  // profiling fields yet.
  struct Silence {
    std::int64_t host = -1;  // none
    std::int64_t start = 0;
    std::int64_t end = 0;
  };
  Silence silence(const Segment& segment) const;
  // Labels of pods are missing from the scrapes of this interval (the kubelet did not answer).
  bool without_pods(std::uint32_t host, std::int64_t t) const;
  // When in each interval the host is scraped.
  std::int64_t scrape_offset(std::uint32_t host) const;

  const Options& options() const { return options_; }
  std::uint64_t key(const Segment& segment) const;      // of the job's period
  std::uint64_t try_key(const Segment& segment) const;  // of this attempt

 private:
  void lay_out_jobs();
  void lay_out_fleet608();
  void lay_out_seats();
  void add_slot(Slot slot);
  Segment period_at(std::uint32_t slot, std::int64_t t) const;
  Segment attempt_at(Segment job, std::int64_t t) const;
  JobKind kind_of(const Slot& slot, std::uint64_t key) const;

  Options options_;
  std::vector<Slot> slots_;
  std::vector<std::uint32_t> first_slot_;  // by GPU
};

}  // namespace flopsight::simulation
