#include "stop_signals.h"

#include <csignal>

namespace flopsight::app {
namespace {

std::atomic<bool> stop_asked = false;

void ask_to_stop(int) { stop_asked = true; }

}  // namespace

StopSignals::StopSignals() : interrupt_(std::signal(SIGINT, ask_to_stop)), terminate_(std::signal(SIGTERM, ask_to_stop)) { stop_asked = false; }

StopSignals::~StopSignals() {
  std::signal(SIGINT, interrupt_);
  std::signal(SIGTERM, terminate_);
}

const std::atomic<bool>& StopSignals::asked() const { return stop_asked; }

}  // namespace flopsight::app
