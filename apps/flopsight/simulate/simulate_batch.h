#pragma once
// Some hosts of a simulated fleet as one remote-write message a round: the samples that Prometheus would have after scraping
// them, staleness markers included. The message is kept between rounds and only its values change, until a label does.
// Threads: a batch belongs to one.

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "simulation/rows.h"
#include "wire/remote_write_template.h"

namespace flopsight::app {

class SimulatedBatch {
 public:
  // Hosts [first, last).
  SimulatedBatch(std::uint32_t host_first, std::uint32_t host_last) : first_(host_first), last_(host_last) {}

  struct How {
    wire::RemoteWriteVersion version = wire::RemoteWriteVersion::kV1;
    std::uint32_t labels_min = 0;
    bool first_round = false;  // no scrape was before it, so nothing can have gone stale
  };
  // The body of the request of the round whose interval begins at `round`; its samples.
  struct Message {
    const std::string* body = nullptr;
    std::uint64_t samples = 0;
  };
  Message fill(const simulation::Timetable& timetable, simulation::Meter& meter, std::int64_t round, const How& how);
  void forget();  // frees the message

 private:
  struct HostRows {
    std::uint32_t host = 0;
    bool profiling = true;
    std::vector<simulation::Row> now;
    std::vector<simulation::Row> gone;  // in the scrape before and not in this one
    bool same_series(const HostRows& other) const;
  };
  HostRows look(const simulation::Timetable& timetable, simulation::Meter& meter, std::uint32_t host, std::int64_t t,
                const How& how) const;
  void build(const simulation::Timetable& timetable, const How& how);
  void set_values(const simulation::Timetable& timetable, simulation::Meter& meter, std::int64_t round);

  std::uint32_t first_;
  std::uint32_t last_;
  std::vector<HostRows> rows_;
  std::optional<wire::RemoteWriteTemplate> message_;
};

}  // namespace flopsight::app
