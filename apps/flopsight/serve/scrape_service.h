#pragma once
// Scraping as the service does it: the configuration's targets into the ingest, and their health as JSON.

#include <functional>
#include <memory>
#include <set>
#include <span>
#include <string>

#include "jobs/label_rules.h"
#include "serve/ingest.h"
#include "serve/scraper.h"
#include "serve/serve_config.h"

namespace flopsight::app {

class ScrapeService {
 public:
  // `discover`: also look for exporters on this machine, once. `ingest` is borrowed.
  static base::Result<std::unique_ptr<ScrapeService>> start(const ServeConfig& config, Ingest& ingest,
                                                            std::function<units::Instant()> now, bool discover);
  ~ScrapeService();  // stops

  void reload(const ServeConfig& config);
  std::size_t target_count() const;
  // Hosts of targets that failed kDownFailures times in a row, as their labels and their URLs name them.
  static constexpr std::uint32_t kDownFailures = 3;
  std::set<std::string> hosts_down(const jobs::LabelRules& rules) const;
  // `others`: what is taken in beside the scrapes, listed with the targets.
  std::string targets_json(std::span<const TargetHealth> others = {}) const;

 private:
  struct State;
  explicit ScrapeService(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace flopsight::app
