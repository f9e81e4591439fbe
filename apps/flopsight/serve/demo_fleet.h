#pragma once
// A small fleet that does not exist, for a first look: the last hour at once, then a scrape of each host as time goes on.
// Everything that is made of it says "simulated". One thread of its own.

#include <functional>
#include <memory>

#include "serve/ingest.h"

namespace flopsight::app {

class DemoFleet {
 public:
  // `ingest` is borrowed.
  DemoFleet(Ingest& ingest, std::function<units::Instant()> now);
  ~DemoFleet();  // stops

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace flopsight::app
