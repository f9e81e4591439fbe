#include "serve/slurm_poller.h"

#include "base/text.h"

namespace flopsight::app {

SlurmPoller::SlurmPoller(SlurmPollerOptions options, JobSink sink,
                         std::function<units::Instant()> clock)
    : options_(std::move(options)),
      sink_(std::move(sink)),
      clock_(std::move(clock)),
      query_(options_.source) {
  thread_ = std::thread([this] { run(); });
}

SlurmPoller::~SlurmPoller() { stop(); }

void SlurmPoller::stop() {
  query_.stop();
  {
    const std::scoped_lock guard(mutex_);
    stopping_ = true;
  }
  stopped_.notify_all();
  if (thread_.joinable()) thread_.join();
}

SlurmHealth SlurmPoller::health() const {
  const std::scoped_lock guard(mutex_);
  return health_;
}

void SlurmPoller::poll() {
  const units::Instant now = clock_();
  // Each poll begins where the last good one did, so that nothing that ended meanwhile is missed.
  const auto last = health().last_success;
  const units::Instant since = last ? *last - options_.overlap : now - options_.history;
  SlurmAnswer answer = query_.ask(since);
  const std::size_t jobs = answer.jobs.size();
  {
    const std::scoped_lock guard(mutex_);
    if (stopping_) return;
    ++health_.polls;
    if (answer.failures.empty()) {
      health_.failures_in_a_row = 0;
      health_.last_success = now;
    } else {
      ++health_.failures;
      ++health_.failures_in_a_row;
      health_.last_error = base::printable(answer.failures.front(), 500);
    }
    if (answer.answered) {
      health_.jobs = jobs;
      health_.problems = answer.problem_count;
      if (!answer.problems.empty())
        health_.last_problem = base::printable(answer.problems.front(), 500);
    }
  }
  if (jobs > 0) sink_(std::move(answer.jobs));
}

void SlurmPoller::run() {
  std::unique_lock lock(mutex_);
  while (!stopping_) {
    const auto next = std::chrono::steady_clock::now() + options_.interval;
    lock.unlock();
    poll();
    lock.lock();
    stopped_.wait_until(lock, next, [this] { return stopping_; });
  }
}

}  // namespace flopsight::app
