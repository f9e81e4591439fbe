#include "serve/finding_settings.h"

#include "serve/telling.h"

namespace flopsight::app {

findings::BookOptions book_options(const ServeConfig& config) {
  findings::BookOptions options;
  options.quiet_min = config.findings_quiet;
  options.reopen = config.findings_reopen;
  options.open_max = config.limits_findings;
  options.silences_max = config.limits_silences;
  return options;
}

FindingRoundOptions finding_options(const ServeConfig& config) {
  FindingRoundOptions options;
  options.use = config.findings_use;
  options.watch.kinds_off = {config.findings_off.begin(), config.findings_off.end()};
  options.watch.jobs_max = config.limits_findings_jobs;
  std::vector<base::Regex> daily_load;
  for (const std::string& expression : config.findings_daily_load) {
    auto regex = base::Regex::parse(expression);
    if (regex.ok()) daily_load.push_back(std::move(regex).value());
  }
  options.watch.daily_load = std::make_shared<const std::vector<base::Regex>>(std::move(daily_load));
  options.waste_usd_per_day = static_cast<double>(config.findings_waste_usd_per_day);
  // A slot is closed and written that long after its end; and a minute more.
  options.settle = slot_wait(config) + config.scrape_interval + config.rollup_slot + units::Seconds(60);
  options.retention = config.findings_retention;
  return options;
}

}  // namespace flopsight::app
