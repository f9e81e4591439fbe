#include "serve/command_serve.h"

#include <array>
#include <cmath>
#include <csignal>
#include <ctime>
#include <mutex>
#include <ostream>

#include <malloc.h>

#include "base/file.h"
#include "base/text.h"
#include "serve/delivery.h"
#include "serve/audit_rounds.h"
#include "serve/demo_fleet.h"
#include "serve/engine_settings.h"
#include "serve/finding_news.h"
#include "serve/finding_rounds.h"
#include "serve/finding_settings.h"
#include "serve/ingest.h"
#include "serve/loaded_config.h"
#include "serve/job_service.h"
#include "serve/late_jobs.h"
#include "serve/log_reading.h"
#include "serve/own_gpus.h"
#include "jobs/job_file.h"
#include "parse_file.h"
#include "serve/routes.h"
#include "serve/scrape_service.h"
#include "serve/telling.h"
#include "error_line.h"

namespace flopsight::app {
namespace {

using base::Result;

rollups::FleetOptions fleet_options(const Loaded& loaded) {
  rollups::FleetOptions options;
  options.catalog = loaded.catalog.get();
  options.integrate.bridge_intervals = loaded.rules.bridge_intervals();
  return options;
}

IngestOptions ingest_options(const Loaded& loaded) {
  const ServeConfig& c = loaded.config;
  IngestOptions options;
  options.folder = c.store;
  options.live.fleet = fleet_options(loaded);
  options.metrics = loaded.metrics;
  options.live.slot = c.rollup_slot;
  options.live.late = slot_wait(c);
  options.live.idle = c.rollup_idle;
  options.live.future_max = c.rollup_future;
  options.live.gap_attribution_max = c.rollup_gap;
  options.live.gpus_max = static_cast<std::uint32_t>(c.limits_gpus);
  options.live.label_sets_max = static_cast<std::uint32_t>(c.limits_label_sets);
  options.live.holders_max = static_cast<std::uint32_t>(c.limits_holders);
  options.log.bytes_max = c.limits_log_bytes;
  options.log.free_bytes_min = c.limits_disk_free_bytes;
  options.remote_write.labels_per_series_max = static_cast<std::uint32_t>(c.limits_labels);
  options.remote_write.label_name_bytes_max = static_cast<std::uint32_t>(c.limits_label_name_bytes);
  options.remote_write.label_value_bytes_max = static_cast<std::uint32_t>(c.limits_label_value_bytes);
  options.remote_write.series_max = static_cast<std::uint32_t>(c.limits_series);
  options.decompressed_bytes_max = c.limits_decompressed_bytes;
  options.retention = {c.retention_fine, c.retention_middle, c.retention_coarse, c.retention_bytes};
  return options;
}

RouteSettings route_settings(const Loaded& loaded) {
  auto answers = std::make_shared<AnswerSettings>();
  answers->fleet = fleet_options(loaded);
  answers->prices = loaded.prices;
  answers->targets = loaded.targets;
  answers->grouping = loaded.grouping;
  answers->families = loaded.families;
  answers->known_wrong = loaded.known_wrong;
  answers->models = loaded.models;
  return {loaded.config, loaded.access, answers};
}

net::ServerOptions server_options(const Loaded& loaded) {
  const ServeConfig& c = loaded.config;
  const auto listen = parse_listen(c.listen);
  net::ServerOptions options;
  options.address = listen->address;
  options.port = listen->port;
  options.tls = loaded.access->tls();
  options.body_bytes_max = c.limits_body_bytes;
  options.bodies_bytes_max = c.limits_bodies_bytes;
  options.connections_max = static_cast<std::uint32_t>(c.limits_connections);
  // Most of them wait for the disk; or, with an engine, half of them for that.
  options.handler_threads = c.engine_url.empty() ? 4 : 16;
  return options;
}

void say(const Env& env, std::string_view line) {
  // Also from the thread that delivers.
  static std::mutex mutex;
  const std::scoped_lock lock(mutex);
  env.err << units::to_rfc3339(env.now()) << " " << base::printable(line, 2'000) << "\n" << std::flush;
}
void say(const Env& env, const std::vector<std::string>& lines) { for (const std::string& line : lines) say(env, line); }

int fail(const base::Error& error, const Env& env) {
  return fail(env, "serve", error);
}

// Waits for a signal, at most a second: 0 when there was none.
int wait_for_signal(const sigset_t& signals) {
  timespec second{1, 0};
  const int got = sigtimedwait(&signals, nullptr, &second);
  return got < 0 ? 0 : got;
}

class Service {
 public:
  Service(const ServeArguments& arguments, const Env& env, Loaded loaded)
      : arguments_(arguments), env_(env), loaded_(std::move(loaded)), slot_wait_(slot_wait(loaded_.config)) {}

  base::Status start() {
    IngestOptions options = ingest_options(loaded_);
    FLOPSIGHT_ASSIGN_OR_RETURN(options.engine, engine_settings(loaded_.config));
    FLOPSIGHT_ASSIGN_OR_RETURN(ingest_, Ingest::open(std::move(options), loaded_.rules));
    for (const std::string& note : ingest_->take_notes()) say(env_, note);
    FLOPSIGHT_ASSIGN_OR_RETURN(jobs_, JobService::open(loaded_.config.store, false));
    jobs_->use_rules(loaded_.rules);
    jobs_->use_clock(env_.now);
    late_ = std::make_unique<LateJobs>(*jobs_);
    if (!jobs_->book().damage().empty()) say(env_, jobs_->book().damage());
    for (const auto& lines : {loaded_.model_mistakes, loaded_.notes}) say(env_, lines);
    FLOPSIGHT_RETURN_IF_ERROR(read_jobs_file());
    attribute(env_.now());
    routes_ = std::make_unique<Routes>(
        *ingest_, *jobs_, route_settings(loaded_), env_.now, [this] { return targets_json(); },
        [this] { return server_ ? server_->counters() : net::ServerCounters{}; });
    FLOPSIGHT_ASSIGN_OR_RETURN(server_, net::HttpServer::start(
                                            server_options(loaded_),
                                            [this](const net::ServerRequest& head) { return routes_->head(head); },
                                            [this](const net::ServerRequest& request) { return routes_->handle(request); }));
    FLOPSIGHT_ASSIGN_OR_RETURN(scraping_, ScrapeService::start(loaded_.config, *ingest_, env_.now, arguments_.demo));
    FLOPSIGHT_RETURN_IF_ERROR(read_own_gpus());
    if (arguments_.demo && scraping_->target_count() == 0 && !own_gpus_) {
      demo_ = std::make_unique<DemoFleet>(*ingest_, env_.now);
      say(env_, "no exporter and no NVIDIA driver answers on this machine: showing a SIMULATED fleet, which does not exist");
    }
    if (!loaded_.config.engine_url.empty()) {
      delivery_ = std::make_unique<Delivery>(*ingest_, [this](const std::string& line) { say(env_, line); });
    }
    FLOPSIGHT_ASSIGN_OR_RETURN(telling_, Telling::start(loaded_.config, *ingest_, *jobs_, env_.now));
    routes_->set_telling([this] { return telling_->health(); });
    auditing_ = std::make_unique<AuditRounds>(*jobs_, route_settings(loaded_).answers);
    auditing_->start([this](units::Instant now) { return ingest_->reader(now); }, env_.now);
    routes_->set_auditing([this] { return auditing_->health(); });
    routes_->set_model_told([this](const samples::Holder& holder) { auditing_->ask(holder); });
    FLOPSIGHT_RETURN_IF_ERROR(look_for_findings());
    routes_->set_ready(true);
    return {};
  }

  void announce() {
    const auto listen = parse_listen(loaded_.config.listen);
    const std::string host = listen->address.find(':') == std::string::npos ? listen->address : "[" + listen->address + "]";
    env_.out << "flopsight: " << (loaded_.access->tls() ? "https" : "http") << "://" << host << ":" << server_->port() << "/\n"
             << std::flush;
  }

  void run(const sigset_t& signals) {
    units::Instant next_flush = env_.now();
    for (;;) {
      const int signal = wait_for_signal(signals);
      if (signal == SIGTERM || signal == SIGINT) return;
      if (signal == SIGHUP) reload();
      const units::Instant now = env_.now();
      // Also when the clock on the wall was set back.
      const bool due = now >= next_flush || ingest_->wants_flush() || (next_flush - now).value > loaded_.config.rollup_slot.value;
      if (due) {
        flush(now);
        next_flush = ingest_->more() ? now : flush_after(now);
      }
      say_notes();
      if ((now - forgotten_).value > 3600) forget(now);
      news_->refresh(now);
      // The store is free in between, for questions.
      if (attribute_late() || ingest_->maintain(now)) continue;
    }
  }

  void stop() {
    say(env_, "stopping");
    routes_->set_ready(false);
    server_->stop();
    looking_->stop();
    news_.reset();
    auditing_->stop();
    demo_.reset();
    own_gpus_.reset();
    scraping_.reset();
    flush(env_.now());
    say_notes();
    telling_.reset();
    delivery_.reset();
    say(env_, "stopped");
  }

 private:
  // When the next slot can be closed: its end, the late window, and the time in which a scrape of every GPU comes. All GPUs close
  // their slot in one flush then, which makes for few and large blocks.
  units::Instant flush_after(units::Instant now) const {
    const ServeConfig& c = loaded_.config;
    const std::int64_t slot = std::llround(c.rollup_slot.value * 1000);
    const std::int64_t delay = std::llround((slot_wait_.value + c.scrape_interval.value + 5) * 1000);
    return units::Instant{((now.unix_milliseconds - delay) / slot + 1) * slot + delay};
  }

  base::Status look_for_findings() {
    FLOPSIGHT_ASSIGN_OR_RETURN(findings_, FindingService::open(loaded_.config.store, book_options(loaded_.config),
                                                               {false, loaded_.config.limits_findings_kept}, env_.now()));
    if (!findings_->damage().empty()) say(env_, findings_->damage());
    looking_ = std::make_unique<FindingRounds>(*ingest_, *jobs_, *findings_, route_settings(loaded_).answers, finding_options(loaded_.config));
    looking_->set_hosts_down([this] { return scraping_ ? scraping_->hosts_down(loaded_.rules) : std::set<std::string>(); });
    looking_->set_audits([this] { return auditing_->health().findings; });
    routes_->set_findings(findings_.get(), [this] { return looking_->health(); });
    FLOPSIGHT_ASSIGN_OR_RETURN(news_, FindingNews::start(loaded_.config, *findings_, env_.now, [this](const std::string& line) { say(env_, line); }));
    routes_->set_receivers([this] { return news_->health(); });
    looking_->start(env_.now);
    return {};
  }

  // A piece of what was closed before its job was told of. True: there is more.
  bool attribute_late() {
    Ingest::StoreHandle store = ingest_->store();
    const auto more = late_->step(*store);
    const std::string trouble = more.ok() ? "" : "jobs that were told late: " + more.error().message;
    if (trouble != late_trouble_ && !trouble.empty()) say(env_, trouble);
    late_trouble_ = trouble;
    return more.ok() && *more;
  }

  // Jobs and steps as old as the oldest rollups.
  void forget(units::Instant now) {
    forgotten_ = now;
    for (bool more = true; more;) {
      const auto forgot = jobs_->book().forget(now - loaded_.config.retention_coarse);
      if (!forgot.ok()) say(env_, "book of jobs: " + forgot.error().message);
      more = forgot.ok() && *forgot;
    }
  }

  base::Status read_own_gpus() {
    FLOPSIGHT_ASSIGN_OR_RETURN(OwnGpus::Started started,
                               OwnGpus::start(loaded_.config, scraping_->target_count() > 0, loaded_.catalog, *ingest_, env_.now));
    for (const std::string& note : started.notes) say(env_, note);
    // Routes read it.
    const std::scoped_lock lock(own_gpus_mutex_);
    own_gpus_ = std::move(started.gpus);
    return {};
  }

  std::string targets_json() {
    if (!scraping_) return "{\"targets\":[]}\n";
    const std::scoped_lock lock(own_gpus_mutex_);
    return own_gpus_ ? scraping_->targets_json(std::array{own_gpus_->health()}) : scraping_->targets_json();
  }

  base::Status read_jobs_file() {
    jobs_file_.clear();
    if (loaded_.config.jobs.empty()) return {};
    FLOPSIGHT_ASSIGN_OR_RETURN(jobs_file_, parse_file(loaded_.config.jobs, jobs::parse_jobs));
    return {};
  }

  // Hands the fleet who held what, for all slots that are still open.
  void attribute(units::Instant now) {
    const ServeConfig& c = loaded_.config;
    const double back_seconds = c.rollup_gap.value + c.rollup_idle.value + 2 * (slot_wait_.value + c.rollup_slot.value);
    std::vector<jobs::JobRecord> records = jobs_file_;
    const units::Instant back = now - units::Seconds(back_seconds);
    auto told = jobs_->records({std::min(back, ingest_->oldest_open().value_or(back)), now + c.rollup_future});
    if (told.ok()) {
      records.insert(records.end(), std::make_move_iterator(told->begin()), std::make_move_iterator(told->end()));
    } else {
      say(env_, "jobs: " + told.error().message);
    }
    ingest_->set_jobs(std::move(records));
    if (const base::Status kept = jobs_->keep_owners(ingest_->owned_pods(), now); !kept.ok()) {
      say(env_, "owners of pods: " + kept.error().message);
    }
  }

  // What others found out by themselves.
  void say_notes() {
    for (const std::string& note : telling_->take_notes()) say(env_, note);
    for (const std::string& note : auditing_->take_notes()) say(env_, note);
    for (const std::string& note : looking_->take_notes()) say(env_, note);
  }

  void flush(units::Instant now) {
    attribute(now);
    telling_->keep_reported(now);
    const base::Status flushed = ingest_->flush(now);
    // Also where there was nothing to flush and there is no room.
    const IngestHealth health = ingest_->health();
    const std::string trouble = !flushed.ok() ? flushed.error().message : health.accepting ? "" : health.why_not;
    // Once, not every minute.
    if (trouble != trouble_) say(env_, trouble.empty() ? "samples are taken again" : "not taking samples: " + trouble);
    trouble_ = trouble;
    for (const std::string& note : ingest_->take_notes()) say(env_, note);
    // What a flush needed for a moment goes back to the system instead of staying with the allocator.
    malloc_trim(0);
  }

  void reload() {
    Result<Loaded> loaded = load(arguments_.config_path, arguments_.flags);
    if (!loaded.ok()) {
      say(env_, "configuration not reloaded: " + loaded.error().message);
      return;
    }
    const std::vector<std::string> kept = keep_until_restart(loaded_.config, loaded->config);
    // Of the address that is listened on, which need not be the one in the file.
    if (const base::Status exposed = check_exposure(loaded->config, *loaded->access); !exposed.ok()) {
      say(env_, "configuration not reloaded: " + exposed.error().message);
      return;
    }
    if (loaded->access->tls().has_value() != loaded_.access->tls().has_value()) {
      say(env_, "configuration not reloaded: TLS cannot be turned on or off without a restart");
      return;
    }
    if (loaded->access->tls()) {
      if (const base::Status tls = server_->reload_tls(*loaded->access->tls()); !tls.ok()) {
        say(env_, "configuration not reloaded: " + tls.error().message);
        return;
      }
    }
    loaded_.config = loaded->config;
    loaded_.access = loaded->access;
    loaded_.prices = loaded->prices;
    loaded_.targets = loaded->targets;
    loaded_.grouping = loaded->grouping;
    loaded_.families = loaded->families;
    loaded_.known_wrong = loaded->known_wrong;
    for (const auto& lines : {loaded->model_mistakes, loaded->notes}) say(env_, lines);
    // A file that cannot be read at all changes nothing.
    if (loaded->models != nullptr || loaded->config.models.empty()) loaded_.models = loaded->models;
    if (const base::Status jobs = read_jobs_file(); !jobs.ok()) say(env_, "jobs file not read: " + jobs.error().message);
    routes_->replace(route_settings(loaded_));
    auditing_->replace(route_settings(loaded_).answers);
    findings_->set_options(book_options(loaded_.config));
    looking_->replace(route_settings(loaded_).answers, finding_options(loaded_.config));
    news_->replace(loaded_.config, env_.now());
    ingest_->set_retention({loaded_.config.retention_fine, loaded_.config.retention_middle,
                            loaded_.config.retention_coarse, loaded_.config.retention_bytes});
    scraping_->reload(loaded_.config);
    if (const base::Status told = telling_->reload(loaded_.config); !told.ok()) say(env_, "Slurm and training logs: " + told.error().message);
    std::string line = "configuration reloaded";
    for (const std::string& key : kept) line += (&key == &kept.front() ? "; changed, but as before until a restart: " : ", ") + key;
    say(env_, line);
  }

  const ServeArguments& arguments_;
  const Env& env_;
  Loaded loaded_;
  const units::Seconds slot_wait_;  // which the fleet was made with
  std::string trouble_;
  std::unique_ptr<Ingest> ingest_;
  std::unique_ptr<JobService> jobs_;
  std::vector<jobs::JobRecord> jobs_file_;
  units::Instant forgotten_;
  std::unique_ptr<LateJobs> late_;
  std::string late_trouble_;
  std::unique_ptr<Telling> telling_;
  std::unique_ptr<AuditRounds> auditing_;
  std::unique_ptr<FindingService> findings_;
  std::unique_ptr<FindingNews> news_;
  std::unique_ptr<FindingRounds> looking_;
  std::unique_ptr<Routes> routes_;
  std::unique_ptr<Delivery> delivery_;
  std::unique_ptr<ScrapeService> scraping_;
  std::mutex own_gpus_mutex_;
  std::unique_ptr<OwnGpus> own_gpus_;  // guarded by it
  std::unique_ptr<DemoFleet> demo_;
  std::unique_ptr<net::HttpServer> server_;
};

}  // namespace

int run_serve(const ServeArguments& arguments, const Env& env) {
  // Before any thread starts, so that all inherit it and only run() sees them.
  sigset_t signals;
  sigemptyset(&signals);
  for (const int signal : {SIGTERM, SIGINT, SIGHUP}) sigaddset(&signals, signal);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);
  std::signal(SIGPIPE, SIG_IGN);
  // Arenas of a dozen threads would keep a dozen times what one of them needed once.
  mallopt(M_ARENA_MAX, 2);
  Result<Loaded> loaded = load(arguments.config_path, arguments.flags);
  if (!loaded.ok()) return fail(loaded.error(), env);
  Service service(arguments, env, std::move(loaded).value());
  if (const base::Status started = service.start(); !started.ok()) return fail(started.error(), env);
  service.announce();
  service.run(signals);
  service.stop();
  return kExitDone;
}

int run_check_config(const CheckConfigArguments& arguments, const Env& env) {
  const Result<Loaded> loaded = load(arguments.config_path, {});
  if (!loaded.ok()) return fail(env, "check-config", loaded.error());
  for (const std::string& mistake : loaded->model_mistakes) fail(env, "check-config", mistake);
  for (const std::string& note : loaded->notes) fail(env, "check-config", note);
  if (!loaded->model_mistakes.empty()) return kExitUsage;
  env.out << base::printable(arguments.config_path) << ": ok\n";
  return kExitDone;
}

}  // namespace flopsight::app
