#pragma once
// Counters of one GPU by NVML: tensor activity between two GPM samples and the SM clock at the end of them, over and over while a product
// runs. Hopper and newer. Threads: one.

#include <functional>
#include <memory>
#include <string>

#include "base/result.h"
#include "nvml/session.h"
#include "validation/experiment.h"

namespace flopsight::app {

class NvmlCounters final : public validation::CounterSource {
 public:
  struct Settings {
    std::string library_path;  // empty: the system's
    std::string uuid;          // of the GPU that products run on
    units::Seconds interval{0.2};
    std::function<double()> now_seconds;  // of a clock that only goes forward
  };
  // Errors: kUnsupported where NVML, the GPU in it or its activity cannot be had, with the reason.
  static base::Result<std::unique_ptr<NvmlCounters>> open(Settings settings);

  const std::string& driver_version() const { return session_->driver_version(); }

  base::Status start() override;
  base::Status poll() override;
  bool enough() const override { return sums_.samples > 0; }
  base::Result<validation::Counted> stop() override { return sums_.mean(); }

 private:
  NvmlCounters(Settings settings, std::unique_ptr<nvml::Session> session, nvml::Device device)
      : settings_(std::move(settings)), session_(std::move(session)), device_(std::move(device)) {}

  Settings settings_;
  std::unique_ptr<nvml::Session> session_;
  nvml::Device device_;
  nvml::GpmSample before_;  // has to go before its session
  double next_seconds_ = 0;
  validation::Counted sums_;
};

}  // namespace flopsight::app
