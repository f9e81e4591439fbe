#pragma once
// Counters of one GPU from a dcgm-exporter beside it, fetched while a product runs.
//
// An exporter shows what was collected last, and says not when. So readings count from two of its intervals after the product began,
// when what it shows is of this product alone, and one an interval. Three of them are enough. Threads: one.

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/result.h"
#include "net/http_client.h"
#include "validation/experiment.h"

namespace flopsight::app {

class ExporterCounters final : public validation::CounterSource {
 public:
  struct Settings {
    std::string url;
    net::HttpOptions http;
    std::string uuid;  // of the GPU that products run on
    units::Seconds interval{30};
    std::function<double()> now_seconds;  // of a clock that only goes forward
  };
  // Fetches once. Errors: kInvalid where the exporter has no such GPU, or neither its tensor activity nor its clock; those of HttpClient.
  static base::Result<std::unique_ptr<ExporterCounters>> open(Settings settings);

  const std::string& driver_version() const { return driver_version_; }

  base::Status start() override;
  base::Status poll() override;
  bool enough() const override { return sums_.samples >= kReadings; }
  base::Result<validation::Counted> stop() override;

 private:
  static constexpr std::uint64_t kReadings = 3;

  ExporterCounters(Settings settings, net::HttpClient http) : settings_(std::move(settings)), http_(std::move(http)) {}
  // Tensor activity and clock; nothing where a value is absent this time.
  struct Reading {
    double tensor_active_ratio = 0;
    double sm_clock_hertz = 0;
  };
  base::Result<std::optional<Reading>> fetch();

  Settings settings_;
  net::HttpClient http_;
  std::string driver_version_;
  double started_seconds_ = 0;
  double next_seconds_ = 0;
  validation::Counted sums_;
};

}  // namespace flopsight::app
