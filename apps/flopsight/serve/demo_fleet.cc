#include "serve/demo_fleet.h"

#include <condition_variable>
#include <thread>

#include "base/check.h"
#include "simulation/options.h"
#include "simulation/text.h"
#include "simulation/timetable.h"

namespace flopsight::app {
namespace {

constexpr std::uint32_t kGpus = 32;
constexpr double kHistorySeconds = 3600;
constexpr double kFutureSeconds = 366 * 86'400.0;

}  // namespace

struct DemoFleet::State {
  Ingest& ingest;
  std::function<units::Instant()> now;
  simulation::Options options;
  std::mutex mutex;
  std::condition_variable wake;
  bool stopping = false;
  std::thread thread;

  void scrape_all(simulation::Scraper& scraper, units::Instant t) {
    for (std::uint32_t host = 0; host < options.hosts(); ++host) {
      const std::string text = scraper.scrape(host, t.unix_milliseconds);
      // A store that takes nothing says so itself.
      if (!text.empty()) static_cast<void>(ingest.scrape("simulated-host-" + std::to_string(host), {}, text, "", t));
    }
  }
  bool wait_until(units::Instant t) {
    std::unique_lock lock(mutex);
    const double seconds = (t - now()).value;
    wake.wait_for(lock, std::chrono::duration<double>(std::max(0.0, seconds)), [this] { return stopping; });
    return !stopping;
  }
  void run() {
    const simulation::Timetable timetable(options);
    simulation::Scraper scraper(timetable);
    for (units::Instant t = options.window.start;; t = t + options.interval) {
      if (t > now() && !wait_until(t)) return;
      {
        const std::scoped_lock lock(mutex);
        if (stopping) return;
      }
      scrape_all(scraper, t);
    }
  }
};

DemoFleet::DemoFleet(Ingest& ingest, std::function<units::Instant()> now)
    : state_(new State{ingest, std::move(now), {}, {}, {}, false, {}}) {
  simulation::Options options;
  options.gpus = kGpus;
  options.window.start = state_->now() - units::Seconds(kHistorySeconds);
  options.window.end = options.window.start + units::Seconds(kFutureSeconds);
  const auto checked = simulation::check(options);
  FLOPSIGHT_CHECK(checked.ok());
  state_->options = *checked;
  state_->thread = std::thread([state = state_.get()] { state->run(); });
}

DemoFleet::~DemoFleet() {
  {
    const std::scoped_lock lock(state_->mutex);
    state_->stopping = true;
  }
  state_->wake.notify_all();
  state_->thread.join();
}

}  // namespace flopsight::app
