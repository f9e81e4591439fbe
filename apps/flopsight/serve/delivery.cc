#include "serve/delivery.h"

#include <algorithm>
#include <chrono>

namespace flopsight::app {
namespace {

constexpr std::chrono::milliseconds kIdle{500};
constexpr std::chrono::milliseconds kFirstPause{1'000};
constexpr std::chrono::milliseconds kLongestPause{30'000};

}  // namespace

Delivery::Delivery(Ingest& ingest, std::function<void(const std::string&)> say)
    : ingest_(ingest), say_(std::move(say)), thread_([this] { run(); }) {}

Delivery::~Delivery() {
  {
    const std::scoped_lock lock(mutex_);
    stopping_ = true;
  }
  stopped_.notify_all();
  thread_.join();
}

void Delivery::run() {
  std::chrono::milliseconds pause = kFirstPause;
  bool is_failing = false;
  for (;;) {
    const base::Result<bool> more = ingest_.deliver();
    std::chrono::milliseconds wait{0};
    if (!more.ok()) {
      if (!is_failing) say_("the engine takes nothing, what is sent waits: " + more.error().message);
      is_failing = true;
      wait = pause;
      pause = std::min(2 * pause, kLongestPause);
    } else {
      if (*more && std::exchange(is_failing, false)) say_("the engine takes samples again");
      pause = kFirstPause;
      wait = *more ? std::chrono::milliseconds(0) : kIdle;
    }
    std::unique_lock lock(mutex_);
    if (stopped_.wait_for(lock, wait, [this] { return stopping_; })) return;
  }
}

}  // namespace flopsight::app
