#pragma once
// What the readers of Slurm's forms share: single values, and the finishing of a job.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "schedulers/gres.h"
#include "schedulers/job.h"
#include "schedulers/slurm.h"

namespace flopsight::schedulers::slurm {

// Nothing for "", "(null)", "N/A", "None", "None assigned", "Unknown", "NONE", "INVALID" and such.
std::string_view said(std::string_view text);
// The whole text as a number of 64 bits.
std::optional<std::uint64_t> number_of(std::string_view text);
// "CANCELLED by 1004" and "CANCELLED+" are "CANCELLED".
std::string state_of(std::string_view text);
// Whether a job in this state still has (or waits for) its GPUs, so that an end is Slurm's
// expectation.
bool is_open(std::string_view state);
bool is_pending(std::string_view state);
// "365-01:02:03", "01:02:03", "02:03", in seconds.
std::optional<double> clock_of(std::string_view text);
// "3:0": code and signal.
void set_exit(std::string_view text, Job& job);
// The status that wait() gives, as Slurm before 23.02 prints it in JSON.
void set_exit_status(std::uint64_t status, Job& job);

// A time as it was printed: one point, or two in a doubled hour.
struct Moment {
  std::int64_t first_unix_seconds = 0;
  std::int64_t second_unix_seconds = 0;
};
// "2025-10-26T02:30:00", with or without "+0100", or Unix seconds; nothing where nothing is said.
base::Result<std::optional<Moment>> moment_of(std::string_view text, const SlurmOptions& options);

// A job whose values are not yet judged together.
struct Draft {
  Job job;
  std::string where;
  std::optional<Moment> submit;
  std::optional<Moment> start;
  std::optional<Moment> end;
  std::optional<double> elapsed_seconds;
  GpuCounts gpus;           // of the allocation
  bool asked_none = false;  // it is known that the job asked for no GPU
  bool gpus_unreadable = false;   // the allocation names GPUs, and their number cannot be read: it is not 0
  bool allocated_nothing = false; // the allocation names no resource at all, not even a processor: it says nothing
  std::string nodes;        // a node list
};

class Collector {
 public:
  explicit Collector(const SlurmOptions& options) : options_(options) {}

  const SlurmOptions& options() const { return options_; }
  void problem(std::string where, std::string what);
  // The GPUs of an allocation, which `column` tells; a number of them that cannot be read is a problem, and not 0.
  void read_gpus(std::string_view tres, std::string_view column, Draft& draft);
  // Errors: kLimit.
  base::Status add(Draft draft);
  base::Status add(Node node);
  void skip_step() { ++parsed_.steps_skipped; }
  // The last job of this id, or nullptr.
  Job* last_with_id(std::string_view id);
  // `source` is what printed it.
  Parsed finish(const std::string& source);

 private:
  base::Status check_room() const;
  bool set_times(Draft& draft);
  void set_gpus(Draft& draft);

  const SlurmOptions& options_;
  Parsed parsed_;
  std::size_t hosts_ = 0;            // of all jobs
  bool tracks_gpus_ = false;         // an entry "gres/gpu" was seen: a job without one has none
  struct Silent {
    std::size_t job = 0;
    std::string where;
    bool allocated_nothing = false;
  };
  std::vector<Silent> silent_;  // jobs whose allocation names no GPU
};

// What a node says of its GPUs, in four places.
struct NodeGpus {
  GpuCounts configured;  // TRES
  GpuCounts used;
  GresGpus gres;
  GresGpus gres_used;
  bool gres_given = false;  // if only to say that there is none
};
void set_node_gpus(Node& node, const NodeGpus& gpus);

}  // namespace flopsight::schedulers::slurm
