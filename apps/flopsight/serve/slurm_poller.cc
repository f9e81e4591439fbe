#include "serve/slurm_poller.h"

#include <algorithm>

#include "base/text.h"

namespace flopsight::app {

SlurmPoller::SlurmPoller(SlurmPollerOptions options, SlurmSink sink,
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
  // Each poll begins where the accounting was read last, so that nothing that ended meanwhile is missed.
  const units::Instant since = accounted_ ? *accounted_ - options_.overlap : now - options_.history;
  const bool wants_nodes = polls_until_nodes_ == 0;
  SlurmAnswer answer = query_.ask(since, wants_nodes);
  // Again with the next poll, when it was not told.
  polls_until_nodes_ = answer.nodes.empty() && wants_nodes ? 0 : wants_nodes ? options_.polls_between_nodes : polls_until_nodes_ - 1;
  if (answer.accounted) accounted_ = now;
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
    if (answer.answered()) {
      health_.jobs = answer.jobs.size();
      if (wants_nodes) {
        health_.hosts = static_cast<std::uint64_t>(std::count_if(
            answer.nodes.begin(), answer.nodes.end(), [](const schedulers::Node& node) { return node.gpu_count.value_or(0) > 0; }));
      }
      health_.problems = answer.problem_count;
      if (!answer.problems.empty())
        health_.last_problem = base::printable(answer.problems.front(), 500);
    }
  }
  if (answer.answered()) sink_({std::move(answer.jobs), std::move(answer.nodes), answer.listed});
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
