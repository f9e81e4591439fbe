#include "serve/scrape_service.h"

#include <algorithm>
#include <mutex>

#include "base/file.h"
#include "base/json.h"
#include "base/text.h"
#include "serve/local_exporters.h"

namespace flopsight::app {
namespace {

using base::json::Array;
using base::json::Object;
using base::json::Value;

std::chrono::milliseconds milliseconds_of(units::Seconds seconds) {
  return std::chrono::milliseconds(static_cast<std::int64_t>(seconds.value * 1000));
}

// What lies in these files may have changed under the same name.
bool has_access(const ServeConfig& c) {
  return !c.scrape_bearer_token_file.empty() || !c.scrape_basic_user.empty() || !c.scrape_ca_file.empty() ||
         !c.scrape_cert_file.empty() || c.scrape_insecure_skip_verify;
}

bool is_same(const ServeConfig& a, const ServeConfig& b) {
  return a.scrape_targets == b.scrape_targets && a.scrape_files == b.scrape_files && a.scrape_dns == b.scrape_dns &&
         a.scrape_interval.value == b.scrape_interval.value && a.scrape_timeout.value == b.scrape_timeout.value &&
         a.scrape_targets_max == b.scrape_targets_max && a.scrape_shard == b.scrape_shard && a.scrape_shards == b.scrape_shards && !has_access(a) && !has_access(b);
}

base::Result<net::HttpOptions> access_of(const ServeConfig& c) {
  net::HttpOptions http;
  const auto path = [](const std::string& text) { return text.empty() ? std::nullopt : std::optional(text); };
  if (!c.scrape_bearer_token_file.empty()) {
    FLOPSIGHT_ASSIGN_OR_RETURN(const std::string token, base::read_file(c.scrape_bearer_token_file));
    http.auth.bearer_token = std::string(base::trim(token));
  }
  if (!c.scrape_basic_user.empty()) {
    FLOPSIGHT_ASSIGN_OR_RETURN(const std::string password, base::read_file(c.scrape_basic_password_file));
    http.auth.basic = {c.scrape_basic_user, std::string(base::trim(password))};
  }
  http.tls = {path(c.scrape_ca_file), path(c.scrape_cert_file), path(c.scrape_key_file), std::nullopt, c.scrape_insecure_skip_verify};
  return http;
}

Value json_of(const TargetHealth& health) {
  Object labels;
  for (const auto& [name, value] : health.labels) labels.emplace_back(name, value);
  Object out = {{"url", health.url}, {"labels", std::move(labels)}};
  const auto known = [&](Value value) { return health.scraped ? std::move(value) : Value(); };
  out.emplace_back("up", known(health.up));
  out.emplace_back("last_scrape", known(units::to_rfc3339(health.last)));
  out.emplace_back("duration_seconds", known(health.duration.value));
  out.emplace_back("samples", known(health.samples));
  out.emplace_back("malformed_lines", known(health.malformed_lines));
  out.emplace_back("error", health.error.empty() ? Value() : Value(health.error));
  out.emplace_back("failures", std::uint64_t{health.failures});
  return out;
}

// "n1" of "http://n1:9400/metrics", "::1" of "http://[::1]:9400/metrics".
std::string host_of(std::string_view url) {
  const std::size_t scheme = url.find("://");
  if (scheme != std::string_view::npos) url.remove_prefix(scheme + 3);
  if (url.starts_with('[')) return std::string(url.substr(1, url.find(']') - 1));
  return std::string(url.substr(0, url.find_first_of(":/?")));
}

}  // namespace

struct ScrapeService::State {
  Ingest& ingest;
  std::function<units::Instant()> now;
  std::vector<std::string> found;  // exporters of this machine
  mutable std::mutex mutex;
  ServeConfig config;
  std::unique_ptr<Scraper> scraper;  // none where nothing is to be scraped
  std::string problem;               // why the last configuration was not taken

  base::Status begin(const ServeConfig& wanted);
};

base::Status ScrapeService::State::begin(const ServeConfig& wanted) {
  ScraperOptions options;
  options.discovery.targets = wanted.scrape_targets;
  options.discovery.targets.insert(options.discovery.targets.end(), found.begin(), found.end());
  options.discovery.file_sd = wanted.scrape_files;
  options.discovery.dns = wanted.scrape_dns;
  options.discovery.targets_max = wanted.scrape_targets_max;
  options.discovery.shard_index = static_cast<std::uint32_t>(wanted.scrape_shard);
  options.discovery.shard_count = static_cast<std::uint32_t>(wanted.scrape_shards);
  options.interval = milliseconds_of(wanted.scrape_interval);
  options.timeout = milliseconds_of(wanted.scrape_timeout);
  FLOPSIGHT_ASSIGN_OR_RETURN(options.http, access_of(wanted));
  std::unique_ptr<Scraper> next;
  if (!options.discovery.targets.empty() || !options.discovery.file_sd.empty() || !options.discovery.dns.empty()) {
    const auto sink = [this](const Scrape& scrape) {
      return ingest.scrape(std::string(scrape.target), scrape.labels, scrape.text, scrape.content_type, scrape.time);
    };
    FLOPSIGHT_ASSIGN_OR_RETURN(next, Scraper::start(std::move(options), sink, now));
  }
  const std::scoped_lock guard(mutex);
  scraper.swap(next);
  config = wanted;
  return {};
}

ScrapeService::ScrapeService(std::unique_ptr<State> state) : state_(std::move(state)) {}
ScrapeService::~ScrapeService() = default;

base::Result<std::unique_ptr<ScrapeService>> ScrapeService::start(const ServeConfig& config, Ingest& ingest,
                                                                  std::function<units::Instant()> now, bool discover) {
  auto state = std::unique_ptr<State>(new State{ingest, std::move(now), {}, {}, {}, {}, {}});
  if (discover || config.scrape_discover) {
    for (const LocalExporter& exporter : discover_local()) state->found.push_back(exporter.url);
  }
  FLOPSIGHT_RETURN_IF_ERROR(state->begin(config));
  return std::unique_ptr<ScrapeService>(new ScrapeService(std::move(state)));
}

// A configuration that cannot be used leaves the targets as they were; targets_json says why.
void ScrapeService::reload(const ServeConfig& config) {
  if (is_same(config, state_->config) && state_->problem.empty()) return;
  const base::Status begun = state_->begin(config);
  const std::scoped_lock guard(state_->mutex);
  state_->problem = begun.ok() ? "" : "configuration not taken: " + begun.error().message;
}

// Before the first look at files and names, what is configured counts.
std::size_t ScrapeService::target_count() const {
  const std::scoped_lock guard(state_->mutex);
  if (!state_->scraper) return 0;
  const ServeConfig& c = state_->config;
  return std::max(state_->scraper->health().size(),
                  c.scrape_targets.size() + c.scrape_files.size() + c.scrape_dns.size() + state_->found.size());
}

std::set<std::string> ScrapeService::hosts_down(const jobs::LabelRules& rules) const {
  std::vector<TargetHealth> all;
  {
    const std::scoped_lock guard(state_->mutex);
    if (state_->scraper) all = state_->scraper->health();
  }
  std::set<std::string> down;
  for (const TargetHealth& health : all) {
    if (health.up || health.failures < kDownFailures) continue;
    down.insert(host_of(health.url));
    std::vector<jobs::LabelView> labels;
    for (const auto& [name, value] : health.labels) labels.push_back({name, value});
    const std::string host = rules.apply(labels).gpu.host;
    if (!host.empty()) down.insert(host);
  }
  return down;
}

std::string ScrapeService::targets_json(std::span<const TargetHealth> others) const {
  Array targets, problems;
  for (const TargetHealth& health : others) targets.push_back(json_of(health));
  ScraperCounters counters;
  {
    const std::scoped_lock guard(state_->mutex);
    if (!state_->problem.empty()) problems.emplace_back(state_->problem);
    if (state_->scraper) {
      for (const TargetHealth& health : state_->scraper->health()) targets.push_back(json_of(health));
      for (const std::string& problem : state_->scraper->problems()) problems.emplace_back(problem);
      counters = state_->scraper->counters();
    }
  }
  const Object totals = {{"scrapes", counters.scrapes},   {"failures", counters.failures}, {"empty", counters.empty},
                         {"missed", counters.missed},     {"not_taken", counters.sink_failures},
                         {"samples", counters.samples},   {"bytes", counters.bytes},
                         {"malformed_lines", counters.malformed_lines}, {"cut", counters.cut}};
  return base::json::dump(Object{{"targets", std::move(targets)}, {"problems", std::move(problems)}, {"totals", totals}}, 0) + "\n";
}

}  // namespace flopsight::app
