#pragma once
// The HTTP API: which path means what, who may, and what a wrong question is told. Answers are JSON; errors are
// {"error": one line} with 400 (malformed), 401, 403, 404, 405, 413, 415, 422 (over a limit of queries), 500, 503.
// Threads: handle() from any.

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <string>

#include "serve/access.h"
#include "serve/answer.h"
#include "serve/finding_service.h"
#include "serve/ingest.h"
#include "serve/job_audit.h"
#include "serve/job_service.h"
#include "net/http_server.h"
#include "serve/self_metrics.h"
#include "serve/serve_config.h"

namespace flopsight::app {

struct TargetRow;  // scraper.h

struct RouteSettings {
  ServeConfig config;
  std::shared_ptr<const Access> access;
  std::shared_ptr<const AnswerSettings> answers;
};

class Routes {
 public:
  // `ingest` and `jobs` are borrowed. `now`: the wall clock. `targets`: JSON of the scrape targets' health.
  Routes(Ingest& ingest, JobService& jobs, RouteSettings settings, std::function<units::Instant()> now,
         std::function<std::string()> targets, std::function<net::ServerCounters()> server_counters);

  std::optional<net::ServerResponse> head(const net::ServerRequest& head) const;
  net::ServerResponse handle(const net::ServerRequest& request);

  // For /metrics; before the first request.
  void set_telling(std::function<TellingHealth()> telling) { telling_ = std::move(telling); }
  void set_auditing(std::function<AuditingHealth()> auditing) { auditing_ = std::move(auditing); }
  // Without it the paths of findings are not there; before the first request. `health` of who looks for them.
  void set_findings(FindingService* findings, std::function<FindingHealth()> health) {
    findings_ = findings;
    looking_ = std::move(health);
  }
  void set_receivers(std::function<std::vector<ReceiverHealth>()> receivers) { receivers_ = std::move(receivers); }
  // Called with each job whose model was told; before the first request.
  void set_model_told(std::function<void(const samples::Holder&)> model_told) { model_told_ = std::move(model_told); }
  // New settings from the next request on.
  void replace(RouteSettings settings);
  // Until then, and after it, only /healthz and what else is for anybody is answered.
  void set_ready(bool ready) { ready_ = ready; }

 private:
  struct Route;
  std::shared_ptr<const RouteSettings> current() const;
  net::ServerResponse dispatch(const net::ServerRequest& request, const RouteSettings& settings);
  net::ServerResponse write(const net::ServerRequest& request);
  net::ServerResponse tell_jobs(const net::ServerRequest& request);
  bool is_known(const store::ReportedKey& key, const Caller& caller);
  net::ServerResponse tell_mfu(const net::ServerRequest& request, const Caller& caller);
  net::ServerResponse tell_model(const net::ServerRequest& request, const Caller& caller);
  net::ServerResponse query(const net::ServerRequest& request, const RouteSettings& settings, const Caller& caller);
  net::ServerResponse fleet(const net::ServerRequest& request, const RouteSettings& settings, const Caller& caller);
  net::ServerResponse jobs(const net::ServerRequest& request, const RouteSettings& settings, const Caller& caller);
  net::ServerResponse mfu(const net::ServerRequest& request, const RouteSettings& settings, const Caller& caller);
  net::ServerResponse job(const net::ServerRequest& request, const RouteSettings& settings, const Caller& caller);
  net::ServerResponse whole_job(const std::string& id, units::Window window, const AnswerSettings& answers, const Caller& caller);
  // waste_routes.cc, with phases() and advice()
  net::ServerResponse waste(const net::ServerRequest& request, const RouteSettings& settings, const Caller& caller);
  net::ServerResponse phases(const std::string& id, units::Window window, const RouteSettings& settings, const Caller& caller);
  net::ServerResponse advice(const std::string& id, units::Window window, const RouteSettings& settings, const Caller& caller);
  net::ServerResponse fleet_series(const net::ServerRequest& request, const RouteSettings& settings, const Caller& caller);
  net::ServerResponse all_gpus(const net::ServerRequest& request, const RouteSettings& settings, const Caller& caller);
  net::ServerResponse gpu_series(const net::ServerRequest& request, const RouteSettings& settings, const Caller& caller);
  net::ServerResponse search(const net::ServerRequest& request, const RouteSettings& settings, const Caller& caller);
  // finding_routes.cc
  net::ServerResponse change(const net::ServerRequest& request, const Caller& caller);
  net::ServerResponse findings(const net::ServerRequest& request, const RouteSettings& settings, const Caller& caller);
  net::ServerResponse finding(const net::ServerRequest& request, const Caller& caller);
  net::ServerResponse act(const net::ServerRequest& request, const Caller& caller);
  net::ServerResponse silences(const net::ServerRequest& request, const RouteSettings& settings, const Caller& caller);
  net::ServerResponse add_silence(const net::ServerRequest& request, const Caller& caller);
  net::ServerResponse end_silence(const net::ServerRequest& request);
  void mention_findings(std::span<analysis::JobAnswer> jobs, const Caller& caller) const;
  void mention_findings(analysis::Report& report, const Caller& caller) const;
  void count_findings(SelfMetricsInputs& inputs) const;
  AnswerSettings answer_settings(const RouteSettings& settings);

  Ingest& ingest_;
  JobService& jobs_;
  std::function<units::Instant()> now_;
  std::function<std::string()> targets_;
  std::function<net::ServerCounters()> server_counters_;
  std::function<TellingHealth()> telling_;
  std::function<AuditingHealth()> auditing_;
  FindingService* findings_ = nullptr;
  std::function<FindingHealth()> looking_;
  std::function<std::vector<ReceiverHealth>()> receivers_;
  std::function<void(const samples::Holder&)> model_told_;
  mutable std::mutex mutex_;
  std::shared_ptr<const RouteSettings> settings_;
  mutable QueryCounters counters_;
  HolderIndex holders_;  // used while a question has the store
  JobAudits audits_;
  std::atomic<bool> ready_{false};
};

}  // namespace flopsight::app
