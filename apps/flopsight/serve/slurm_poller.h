#pragma once
// Asks Slurm once an interval (serve/slurm_query.h) and hands its jobs and nodes to a sink. Of a poll
// of which a part failed, the other part is handed over; nothing is handed over when everything
// failed, since silence is not the end of all jobs. A cluster without jobs is an answer. Threads: one
// of its own polls and calls the sink; every function here may be called by any.

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "schedulers/job.h"
#include "serve/slurm_query.h"
#include "units/time.h"

namespace flopsight::app {

struct SlurmPollerOptions {
  SlurmSource source;
  std::chrono::milliseconds interval{30'000};
  // How far back the first poll reads the accounting, and how much of it each poll reads again:
  // slurmdbd learns of ends late.
  units::Seconds history{86'400};
  units::Seconds overlap{600};
  // Hosts and their GPUs change rarely, and of a large cluster they are long to tell.
  std::uint32_t polls_between_nodes = 20;
};

struct SlurmHealth {
  std::uint64_t polls = 0;     // ended, well or not
  std::uint64_t failures = 0;  // of which a part or everything failed
  std::uint32_t failures_in_a_row = 0;
  std::optional<units::Instant> last_success;  // of a poll without a failure
  std::string last_error;                      // one line; stays after a success
  std::uint64_t hosts = 0;                     // that have GPUs, as they were told last
  std::uint64_t jobs = 0;                      // of the last poll that had any answer
  std::uint64_t problems = 0;                  // jobs that could not be read, in that poll
  std::string last_problem;
};

struct SlurmTelling {
  std::vector<schedulers::Job> jobs;
  std::vector<schedulers::Node> nodes;  // with the polls that ask for them; else none
  bool is_whole = false;                // all jobs that hold something now are among them
};
using SlurmSink = std::function<void(const SlurmTelling&)>;

class SlurmPoller {
 public:
  // Begins at once.
  SlurmPoller(SlurmPollerOptions options, SlurmSink sink, std::function<units::Instant()> clock);
  ~SlurmPoller();  // stops
  SlurmPoller(const SlurmPoller&) = delete;
  SlurmPoller& operator=(const SlurmPoller&) = delete;

  // Returns when the sink will not be called any more; a question under way is given up.
  void stop();
  SlurmHealth health() const;

 private:
  void run();
  void poll();

  const SlurmPollerOptions options_;
  const SlurmSink sink_;
  const std::function<units::Instant()> clock_;
  SlurmQuery query_;
  mutable std::mutex mutex_;
  std::condition_variable stopped_;
  bool stopping_ = false;
  // Of the thread that polls.
  std::uint32_t polls_until_nodes_ = 0;
  std::optional<units::Instant> accounted_;  // when the accounting was read last
  SlurmHealth health_;
  std::thread thread_;
};

}  // namespace flopsight::app
