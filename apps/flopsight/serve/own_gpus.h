#pragma once
// The GPUs of the machine that the service runs on, read by its NVIDIA driver and taken in as if they were scraped: on a machine that
// has a driver and no exporter, there is nothing to configure.
//
// Threads: one of its own; every function here may be called by any.

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "catalog/devices.h"
#include "hostgpus/gpu_watch.h"
#include "serve/ingest.h"
#include "serve/scraper.h"
#include "serve/serve_config.h"

namespace flopsight::app {

class OwnGpus {
 public:
  struct Started {
    std::unique_ptr<OwnGpus> gpus;   // none: they are not to be read
    std::vector<std::string> notes;  // lines for the log
  };
  // By nvml.use: "no" none; "auto" those that a driver lists, unless `is_scraping` or an exporter of this machine answers; "yes" in any
  // case, and then a driver that is not there is an error. `ingest` is borrowed. Takes up to two seconds.
  static base::Result<Started> start(const ServeConfig& config, bool is_scraping, std::shared_ptr<const catalog::DeviceCatalog> catalog,
                                     Ingest& ingest, std::function<units::Instant()> now);

  // As of a target that is scraped.
  TargetHealth health() const;

 private:
  struct State;
  OwnGpus(std::shared_ptr<State> state, std::unique_ptr<GpuWatch> watch);
  std::shared_ptr<State> state_;
  std::unique_ptr<GpuWatch> watch_;
};

}  // namespace flopsight::app
