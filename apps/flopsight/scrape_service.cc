#include "scrape_service.h"
namespace flopsight::app {
struct ScrapeService::State {};
ScrapeService::ScrapeService(std::unique_ptr<State> state) : state_(std::move(state)) {}
ScrapeService::~ScrapeService() = default;
base::Result<std::unique_ptr<ScrapeService>> ScrapeService::start(const ServeConfig&, Ingest&, std::function<units::Instant()>, bool) {
  return std::unique_ptr<ScrapeService>(new ScrapeService(std::make_unique<State>()));
}
void ScrapeService::reload(const ServeConfig&) {}
std::size_t ScrapeService::target_count() const { return 0; }
std::string ScrapeService::targets_json() const { return "{\"targets\":[]}\n"; }
}  // namespace flopsight::app
