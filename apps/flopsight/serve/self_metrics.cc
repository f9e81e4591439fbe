#include "serve/self_metrics.h"

#include <cmath>
#include <functional>

#include "exposition_page.h"

namespace flopsight::app {
namespace {

std::string labels_of(const samples::Holder& holder) {
  return label("job", holder.job) + label("namespace", holder.name_space) + label("user", holder.user) + label("team", holder.team);
}

void add_fleet(ExpositionPage& page, const Ingest& ingest, const SelfMetricsInputs& in, const Caller& caller) {
  // The last slots that can have been closed: older ones are of jobs and GPUs that are gone.
  const units::Instant since = in.now - units::Seconds(15 * 60);
  ExpositionPage gpu_page, job_page, held_page;
  gpu_page.family("flopsight_gpu_ofu_ratio", "gauge", "OFU of the GPU in its last closed slot; absent where it is not known");
  job_page.family("flopsight_job_ofu_ratio", "gauge", "OFU of the job over its GPUs in the last closed slot");
  held_page.family("flopsight_job_gpus", "gauge", "GPUs that the job held in the last closed slot");
  const double slot_microseconds = in.slot.value * 1e6;
  ingest.for_latest(
      since,
      [&](const samples::GpuIdentity& gpu, const LatestGpu& latest) {
        if (!in.per_gpu || !caller.sees_all() || latest.ofu_ratio < 0) return;
        // Single precision has seven digits.
        gpu_page.sample(std::round(static_cast<double>(latest.ofu_ratio) * 1e6) / 1e6,
                        joined(label("uuid", gpu.uuid) + label("mig_instance", gpu.mig_instance) + label("host", gpu.host) +
                               label("gpu", gpu.index)));
      },
      [&](const samples::Holder& holder, const LatestJob& latest) {
        if (!caller.sees(holder)) return;
        const std::string labels = joined(labels_of(holder));
        held_page.sample(static_cast<double>(latest.allocated_microseconds) / slot_microseconds, labels);
        if (latest.measured_microseconds > 0) {
          job_page.sample(static_cast<double>(latest.delivered_microseconds) / static_cast<double>(latest.measured_microseconds), labels);
        }
      });
  page.family("flopsight_simulated", "gauge", "1: some of the fleet does not exist");
  page.sample(ingest.health().simulated ? 1 : 0);
  for (ExpositionPage* part : {&job_page, &held_page, &gpu_page}) page.append(part->take());
}

void add_telling(ExpositionPage& page, const SelfMetricsInputs& in) {
  const auto n = [](std::uint64_t value) { return static_cast<double>(value); };
  page.one("flopsight_jobs_told", "gauge", "runs of jobs in the book", n(in.jobs_told));
  page.one("flopsight_steps_reported", "gauge", "steps that jobs reported, in the book", n(in.steps_reported));
  page.one("flopsight_training_logs", "gauge", "logs of training jobs that are followed", n(in.telling.logs_followed));
  page.one("flopsight_training_logs_failing", "gauge", "of these, such that could not be read", n(in.telling.logs_failing));
  if (!in.telling.slurm) return;
  const SlurmHealth& slurm = *in.telling.slurm;
  page.one("flopsight_slurm_up", "gauge", "1: the last question to Slurm was answered in full",
           slurm.polls > 0 && slurm.failures_in_a_row == 0 ? 1 : 0);
  page.one("flopsight_slurm_polls_total", "counter", "questions to Slurm", n(slurm.polls));
  page.one("flopsight_slurm_failures_total", "counter", "of these, such that failed in part or whole", n(slurm.failures));
  page.one("flopsight_slurm_gpu_hosts", "gauge", "hosts that Slurm says have GPUs", n(slurm.hosts));
  page.one("flopsight_slurm_unreadable_jobs", "gauge", "jobs of the last answer that could not be read", n(slurm.problems));
}

void add_verdicts(ExpositionPage& page, const SelfMetricsInputs& in, const Caller& caller) {
  page.family("flopsight_job_audit_verdict", "gauge", "1: the verdict of the job's last audit, of the last day (docs/audit.md)");
  for (const jobs::AuditFinding& finding : in.auditing.findings) {
    if (caller.sees(finding.holder)) page.sample(1, joined(labels_of(finding.holder) + label("verdict", finding.verdict)));
  }
}

void add_auditing(ExpositionPage& page, const SelfMetricsInputs& in) {
  page.one("flopsight_models_told", "gauge", "jobs whose model was told", static_cast<double>(in.models_told));
  page.one("flopsight_audits_total", "counter", "audits of what jobs report", static_cast<double>(in.auditing.audits));
  page.one("flopsight_audit_failures_total", "counter", "audits that could not be made", static_cast<double>(in.auditing.failures));
}

void add_findings(ExpositionPage& page, const SelfMetricsInputs& in) {
  if (!in.looking) return;
  const FindingHealth& looking = *in.looking;
  const auto n = [](std::uint64_t value) { return static_cast<double>(value); };
  page.family("flopsight_findings", "gauge", "findings that are kept (docs/findings.md)");
  for (const findings::Count& count : in.finding_counts) {
    page.sample(n(count.records), joined(label("kind", count.kind) + label("severity", detect::severity_name(count.severity)) +
                                         label("state", findings::state_name(count.state))));
  }
  if (looking.looked_until) {
    page.one("flopsight_findings_lag_seconds", "gauge", "from the end of the last minute that was looked at for findings until now",
             (in.now - *looking.looked_until).value);
  }
  page.one("flopsight_findings_rounds_total", "counter", "minutes of data that were looked at", n(looking.minutes));
  page.one("flopsight_findings_failures_total", "counter", "times that a minute could not be read, or a finding not be written", n(looking.failures));
  page.one("flopsight_findings_minute_last_seconds", "gauge", "what the last minute took, reading apart", looking.minute_last_seconds);
  page.one("flopsight_findings_jobs_watched", "gauge", "jobs that are watched", n(looking.jobs_watched));
  page.one("flopsight_findings_jobs_unwatched", "gauge", "jobs of the last minute past limits.findings-jobs", n(looking.jobs_unwatched));
  page.one("flopsight_findings_dropped_total", "counter", "sightings that were left out, past limits.findings", n(looking.dropped));
  page.one("flopsight_silences", "gauge", "silences that are not over", n(in.silences));
}

void add_ingest(ExpositionPage& page, const Ingest& ingest, const SelfMetricsInputs& in) {
  const IngestCounters c = ingest.counters();
  const IngestHealth h = ingest.health();
  const auto n = [](std::uint64_t value) { return static_cast<double>(value); };
  page.one("flopsight_accepting", "gauge", "1: samples are taken; 0: refused with 503", h.accepting ? 1 : 0);
  page.one("flopsight_remote_write_requests_total", "counter", "remote-write requests", n(c.requests));
  page.family("flopsight_remote_write_refused_total", "counter", "requests answered with an error");
  page.sample(n(c.requests_refused), "status=\"4xx\"");
  page.sample(n(c.requests_unavailable), "status=\"5xx\"");
  page.one("flopsight_samples_total", "counter", "samples taken into rollups", n(c.samples));
  page.family("flopsight_samples_dropped_total", "counter", "samples not used, by reason");
  page.sample(n(c.samples_unwanted), "reason=\"unwanted_metric\"");
  page.sample(n(c.samples_duplicate), "reason=\"duplicate\"");
  page.sample(n(c.samples_not_ours), "reason=\"no_gpu\"");
  page.sample(n(c.samples_too_old), "reason=\"too_old\"");
  page.sample(n(c.samples_too_new), "reason=\"too_new\"");
  page.sample(n(c.samples_over_limit), "reason=\"limit\"");
  page.sample(n(c.samples_put_off), "reason=\"put_off\"");
  page.sample(n(c.samples_rejected), "reason=\"malformed_series\"");
  page.sample(n(c.histograms), "reason=\"histogram\"");
  page.sample(n(c.exemplars), "reason=\"exemplar\"");
  page.one("flopsight_reported_samples_total", "counter", "samples of metrics in which trainers report their speed", n(c.samples_reported));
  page.family("flopsight_reported_samples_dropped_total", "counter", "of these, such that were not used, by reason");
  page.sample(n(c.reported_without_job), "reason=\"no_job\"");
  page.sample(n(c.reported_no_measurement), "reason=\"no_measurement\"");
  page.sample(n(c.reported_out_of_time), "reason=\"out_of_time\"");
  page.sample(n(c.reported_over_limit), "reason=\"limit\"");
  page.one("flopsight_scrapes_total", "counter", "scrapes taken", n(c.scrapes));
  page.one("flopsight_malformed_lines_total", "counter", "lines of scrapes that are none", n(c.malformed_lines));
  page.one("flopsight_gpus", "gauge", "GPUs and MIG instances known", n(h.gpus));
  page.one("flopsight_label_sets", "gauge", "distinct label sets known", n(h.label_sets));
  page.one("flopsight_pending_rows", "gauge", "scrapes of GPUs that are not rolled up yet", n(h.pending_rows));
  if (h.newest_sample.unix_milliseconds > 0) {
    page.one("flopsight_lag_seconds", "gauge", "age of the newest sample", (in.now - h.newest_sample).value);
  }
  page.one("flopsight_flushes_total", "counter", "flushes to the store", n(c.flushes));
  page.one("flopsight_flush_failures_total", "counter", "flushes that failed", n(c.flush_failures));
  page.one("flopsight_flush_last_seconds", "gauge", "duration of the last flush", c.flush_seconds);
  page.one("flopsight_cells_total", "counter", "rollup cells written", n(c.cells));
  page.one("flopsight_store_bytes", "gauge", "size of the store", n(h.store_bytes));
  page.one("flopsight_log_bytes", "gauge", "size of the write-ahead log", n(h.log_bytes));
  page.family("flopsight_quality_total", "counter", "what was wrong with the data, by code (docs/report.md)");
  for (const samples::QualityEntry& entry : ingest.quality()) page.sample(n(entry.count), "code=\"" + entry.code + "\"");
}

void add_engine(ExpositionPage& page, const Ingest& ingest) {
  const std::optional<EngineHealth> h = ingest.engine_health();
  if (!h) return;
  const auto n = [](std::uint64_t value) { return static_cast<double>(value); };
  page.one("flopsight_engine_up", "gauge", "1: the engine took what was sent last; 0: it waits", h->error.empty() ? 1 : 0);
  page.one("flopsight_engine_waiting_bytes", "gauge", "what waits for the engine, of engine.outbox-bytes", n(h->outbox.bytes));
  page.one("flopsight_engine_waiting_parcels", "gauge", "the same in parcels, each of up to a thousand slots of jobs or GPUs",
           n(h->outbox.parcels));
  page.one("flopsight_engine_lag_seconds", "gauge", "from the oldest slot that waits to the newest", h->outbox.lag.value);
  page.one("flopsight_engine_samples_total", "counter", "samples that the engine took", n(h->samples));
  page.one("flopsight_engine_samples_rejected_total", "counter", "samples that it will never take", n(h->samples_rejected));
  page.one("flopsight_engine_failures_total", "counter", "attempts to send that have to be made again", n(h->failures));
}

// Each family with a sample for every receiver.
void add_receivers(ExpositionPage& page, const std::vector<ReceiverHealth>& receivers) {
  if (receivers.empty()) return;
  const auto labels = [](const ReceiverHealth& r) { return label("receiver", r.name) + label("type", type_name(r.type)); };
  const auto family = [&](std::string_view name, std::string_view type, std::string_view help, const std::function<double(const ReceiverHealth&)>& value) {
    page.family(name, type, help);
    for (const ReceiverHealth& r : receivers) page.sample(value(r), joined(labels(r)));
  };
  const auto n = [](std::uint64_t value) { return static_cast<double>(value); };
  family("flopsight_notify_up", "gauge", "1: the last message to the receiver was taken, or there was none; 0: it failed and is sent again",
         [](const ReceiverHealth& r) { return r.failures_in_a_row == 0 ? 1 : 0; });
  family("flopsight_notify_messages_total", "counter", "messages that were taken; of a command, runs that ended with 0", [&](const ReceiverHealth& r) { return n(r.taken); });
  family("flopsight_notify_failures_total", "counter", "attempts that failed and are made again", [&](const ReceiverHealth& r) { return n(r.failed); });
  family("flopsight_notify_waiting_findings", "gauge", "findings that the receiver is to be told of now", [&](const ReceiverHealth& r) { return n(r.waiting); });
  family("flopsight_notify_given_up_findings_total", "counter", "changes of findings that the receiver would not be told of", [&](const ReceiverHealth& r) { return n(r.given_up); });
  page.family("flopsight_notify_findings_total", "counter", "changes of findings that were told, by what happened");
  for (const ReceiverHealth& r : receivers) {
    for (std::size_t i = 0; i < r.told.size(); ++i) {
      if (r.told[i] > 0) page.sample(n(r.told[i]), joined(labels(r) + label("transition", telling_name(static_cast<notify::Telling>(i)))));
    }
  }
  page.family("flopsight_notify_command_exits_total", "counter", "runs of a command that came to their end, by exit code");
  for (const ReceiverHealth& r : receivers) {
    for (const auto& [code, runs] : r.exits) page.sample(n(runs), joined(labels(r) + label("code", std::to_string(code))));
  }
  page.family("flopsight_notify_last_success_timestamp_seconds", "gauge", "when a message was taken last, in Unix seconds");
  for (const ReceiverHealth& r : receivers) {
    if (r.last_taken) page.sample(static_cast<double>(r.last_taken->unix_milliseconds) / 1000, joined(labels(r)));
  }
}

}  // namespace

std::string self_metrics(const Ingest& ingest, const SelfMetricsInputs& in, const Caller& caller) {
  ExpositionPage page;
  add_fleet(page, ingest, in, caller);
  add_verdicts(page, in, caller);
  // The service's own health is of everybody's jobs.
  if (!caller.sees_all()) return page.take();
  add_ingest(page, ingest, in);
  add_telling(page, in);
  add_auditing(page, in);
  add_findings(page, in);
  add_engine(page, ingest);
  add_receivers(page, in.receivers);
  const auto n = [](std::uint64_t value) { return static_cast<double>(value); };
  page.one("flopsight_http_connections", "gauge", "open connections", n(in.server.connections_open));
  page.one("flopsight_http_requests_total", "counter", "requests", n(in.server.requests_total));
  page.family("flopsight_http_refused_total", "counter", "requests and connections turned away, by reason");
  page.sample(n(in.server.connections_refused_total), "reason=\"connections\"");
  page.sample(n(in.server.malformed_total), "reason=\"malformed\"");
  page.sample(n(in.server.timeouts_total), "reason=\"timeout\"");
  page.sample(n(in.server.body_too_large_total), "reason=\"body_too_large\"");
  page.sample(n(in.server.overloaded_total), "reason=\"overloaded\"");
  page.sample(n(in.server.tls_failures_total), "reason=\"tls\"");
  page.sample(n(in.queries.unauthorized), "reason=\"unauthorized\"");
  page.sample(n(in.queries.over_limit), "reason=\"query_limit\"");
  page.one("flopsight_queries_total", "counter", "answered questions to the API", n(in.queries.queries));
  page.one("flopsight_query_seconds_total", "counter", "time they took", in.queries.seconds);
  page.one("flopsight_query_seconds_max", "gauge", "the slowest of them", in.queries.seconds_max);
  page.one("process_resident_memory_bytes", "gauge", "resident memory", resident_bytes());
  return page.take();
}

}  // namespace flopsight::app
