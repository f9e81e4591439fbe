#pragma once
// What the service does with samples, as a straight line: bytes to the write-ahead log, to the live fleet, to cells, to the
// store. An answer "accepted" is given only when the bytes are durable.
//
// After a crash, or when a flush could not be written (a full disk), the live fleet is made anew from the store's checkpoint
// and the log, by the same code that took the bytes in.
// Threads: any, but flush() and maintain() by one. One lock is around the fleet, another around the store (store() hands it out), and
// no caller holds both for long: a slow query or a slow disk does not keep samples from coming in.

#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include <tsl/robin_map.h>

#include "base/hash.h"
#include "base/result.h"
#include "base/spare_buffers.h"
#include "engine/engine_reader.h"
#include "engine/engine_store.h"
#include "engine/remote_writer.h"
#include "jobs/owners.h"
#include "live/live_fleet.h"
#include "serve/reserve.h"
#include "store/job_book.h"
#include "store/log.h"
#include "store/store.h"
#include "training_logs/exported_metrics.h"
#include "training_logs/exported_steps.h"
#include "units/time.h"
#include "wire/exposition.h"
#include "wire/remote_write.h"

namespace flopsight::app {

// Where rollups go besides the folder, and who answers questions then.
struct EngineSettings {
  engine::EngineStoreOptions store;    // its slot is the live fleet's
  engine::EngineReaderOptions reader;  // `now` is the question's; its HTTP options are also the writer's
  std::string write_url;
};

struct IngestOptions {
  std::string folder;
  std::optional<EngineSettings> engine;
  live::LiveOptions live;
  store::LogOptions log;
  training_logs::ExportedMetrics metrics = training_logs::ExportedMetrics::builtin();  // in which trainers report their speed
  wire::RemoteWriteLimits remote_write;
  std::size_t decompressed_bytes_max = 256 << 20;
  store::Retention retention;
};

struct WriteAnswer {
  int status = 204;
  int retry_after_seconds = 10;  // of a 503
  std::string text;              // of a refusal: what, which series, why
  std::uint64_t samples = 0;     // taken, duplicates included
  std::uint64_t histograms = 0;  // seen; none is used
  std::uint64_t exemplars = 0;
};

// Counters since the start, for /metrics.
struct IngestCounters {
  std::uint64_t requests = 0;
  std::uint64_t requests_refused = 0;      // 4xx
  std::uint64_t requests_unavailable = 0;  // 5xx
  std::uint64_t samples = 0;               // taken into the fleet
  std::uint64_t samples_unwanted = 0;      // of metrics that nothing is made of
  std::uint64_t samples_duplicate = 0;
  std::uint64_t samples_not_ours = 0;
  std::uint64_t samples_of_owners = 0;     // of kube-state-metrics: whose a pod is, and when it ended
  std::uint64_t samples_reported = 0;      // of trainers: how fast a job says that it trains
  std::uint64_t reported_without_job = 0;  // of these, such that no label names a job of
  std::uint64_t reported_no_measurement = 0;
  std::uint64_t reported_out_of_time = 0;
  std::uint64_t reported_over_limit = 0;
  std::uint64_t samples_too_old = 0;
  std::uint64_t samples_too_new = 0;
  std::uint64_t samples_over_limit = 0;
  std::uint64_t samples_put_off = 0;       // 503: more of a GPU at once than fits between two flushes
  std::uint64_t samples_rejected = 0;      // of malformed series
  std::uint64_t histograms = 0;
  std::uint64_t exemplars = 0;
  std::uint64_t scrapes = 0;
  std::uint64_t malformed_lines = 0;
  std::uint64_t flushes = 0;
  std::uint64_t flush_failures = 0;
  std::uint64_t cells = 0;
  double flush_seconds = 0;  // of the last one
};

struct IngestHealth {
  bool accepting = true;
  std::string why_not;  // "disk full: …"
  units::Instant newest_sample;
  units::Instant newest_written;  // the newest sample that was there when a flush began that closed all it could and wrote it
  std::size_t gpus = 0;
  std::size_t label_sets = 0;
  std::size_t pending_rows = 0;
  std::uint64_t log_bytes = 0;
  std::uint64_t store_bytes = 0;
  bool simulated = false;
};

// Of the engine, since the start.
struct EngineHealth {
  engine::EngineStore::State outbox;
  std::uint64_t samples = 0;
  std::uint64_t samples_rejected = 0;
  std::uint64_t failures = 0;  // attempts that ended without an answer that counts
  std::string error;           // why the last attempt failed; empty: it did not
};

// The last closed slot of a GPU and of a job, for /metrics.
struct LatestGpu {
  float ofu_ratio = -1;  // below 0: not known
  std::int64_t slot_start = 0;
};
struct LatestJob {
  units::Instant slot_start;
  std::int64_t allocated_microseconds = 0;
  std::int64_t measured_microseconds = 0;
  std::int64_t delivered_microseconds = 0;
};

class LoggedLines;  // logged_lines.h

class Ingest {
 public:
  // Takes the folder, opens store and log, replays. `rules` and the catalogue in the options are borrowed.
  static base::Result<std::unique_ptr<Ingest>> open(IngestOptions options, const jobs::LabelRules& rules);
  ~Ingest();

  WriteAnswer remote_write(wire::RemoteWriteVersion version, std::string_view compressed, units::Instant now);
  // A scrape's text. `labels` are the target's own, added where the sample has none of the name; `target` tells GPUs without
  // UUID apart. Samples without timestamps were read at `now`.
  base::Status scrape(const std::string& target, std::span<const wire::Label> labels, std::string_view text,
                      std::string_view content_type, units::Instant now);

  // Closes what can be closed and writes it. Called every few seconds by one thread.
  // `more` says that a backlog is left for the next call, which may come at once.
  base::Status flush(units::Instant now, bool everything = false);
  bool more() const { return more_; }
  // Samples are put off until a flush makes room: do not wait for its time.
  bool wants_flush() const { return wants_flush_; }
  // A bounded piece of the store's housekeeping. True: there is more.
  bool maintain(units::Instant now);

  // Who held what, from schedulers and jobs files; for what is closed from now on. Pods that kube-state-metrics says have
  // ended are added to it.
  void set_jobs(std::vector<jobs::JobRecord> records);
  // From where on rollups are not closed, which is long ago when a backlog comes in.
  std::optional<units::Instant> oldest_open() const;
  // Steps of jobs that trainers exported and that are complete, once. Until the caller says that all that it took is kept, the log keeps them too.
  std::vector<training_logs::ExportedSteps::OfJob> take_reported(units::Instant now);
  void reported_is_kept();
  // Holders of GPUs that kube-state-metrics knows the owner of.
  std::vector<store::PodOwner> owned_pods() const;
  void set_retention(const store::Retention& retention);

  // The store, locked while the handle lives.
  class StoreHandle {
   public:
    StoreHandle(std::mutex& mutex, store::Store& store) : lock_(mutex), store_(store) {}
    store::Store* operator->() { return &store_; }
    store::Store& operator*() { return store_; }

   private:
    std::unique_lock<std::mutex> lock_;
    store::Store& store_;
  };
  StoreHandle store();

  // For one question: the store, locked while the handle lives, or a reader of the engine, which locks nothing.
  class ReaderHandle {
   public:
    ReaderHandle(std::unique_lock<std::mutex> lock, store::Reader& reader) : lock_(std::move(lock)), reader_(&reader) {}
    ReaderHandle(std::unique_ptr<store::Reader> own, std::shared_ptr<void> ticket)
        : own_(std::move(own)), reader_(own_.get()), ticket_(std::move(ticket)) {}
    store::Reader* operator->() { return reader_; }
    store::Reader& operator*() { return *reader_; }

   private:
    std::unique_lock<std::mutex> lock_;
    std::unique_ptr<store::Reader> own_;
    store::Reader* reader_;
    std::shared_ptr<void> ticket_;
  };
  base::Result<ReaderHandle> reader(units::Instant now);

  // Sends the oldest of what waits for the engine. True: there may be more. For one thread, which is not that of flush().
  // kUnavailable: later.
  base::Result<bool> deliver();
  // Nothing without an engine.
  std::optional<EngineHealth> engine_health() const;

  IngestCounters counters() const;
  IngestHealth health() const;
  std::vector<samples::QualityEntry> quality() const;
  samples::QualityLog log_unreadable() const;  // what the log held, was to be read and could not be
  std::vector<std::string> take_notes();  // for the log: what was lost, what was put aside

  // Calls sink(identity, holder text, latest) for GPUs with a closed slot at or after `since`.
  void for_latest(units::Instant since,
                  const std::function<void(const samples::GpuIdentity&, const LatestGpu&)>& gpu,
                  const std::function<void(const samples::Holder&, const LatestJob&)>& job) const;

 private:
  struct Target;
  class RemoteWriteSink;
  class ScrapeSink;

  Ingest(IngestOptions options, const jobs::LabelRules& rules);
  base::Status start();
  base::Status recover();  // both locks held
  void make_fleet();
  void restore_from_store();
  WriteAnswer apply_remote_write(wire::RemoteWriteVersion version, std::string_view message, units::Instant now,
                                 std::uint32_t segment);
  void apply_scrape(std::string_view body, units::Instant now, std::uint32_t segment);
  void count(live::AddResult result);
  void learn_owner(std::string_view metric, std::span<const jobs::LabelView> labels, double value, std::uint64_t samples);
  struct TimedValue {
    units::Instant time;
    double value = 0;
  };
  void learn_reported(std::string_view metric, std::span<const jobs::LabelView> labels, TimedValue sample, units::Instant now,
                      std::uint32_t segment);
  void stop_accepting(const base::Error& error);
  base::Status write_cells(units::Instant now, bool everything);  // store_mutex_ held
  void look_for_room();  // fleet_mutex_ held
  struct Batch;
  void take(const live::ClosedCell& closed, Batch& batch);  // fleet_mutex_ held
  base::Status write(Batch& batch, bool& begun);            // store_mutex_ held, which goes before the fleet's
  void remember(const Batch& batch);                        // fleet_mutex_ held
  void forget_unused(units::Instant now);                   // fleet_mutex_ held
  std::optional<live::LabelSetId> label_set(const wire::LabelsKey& key, std::span<const wire::Label> labels,
                                            std::string_view scope);

  IngestOptions options_;
  const jobs::LabelRules& rules_;
  std::unique_ptr<LoggedLines> logged_lines_;  // with a lock of its own: needs nothing of the fleet
  Reserve reserve_{options_.folder};           // fleet_mutex_, once it has started
  std::optional<store::FolderLock> lock_;
  std::unique_ptr<store::Log> log_;

  // Of the store, for those who only look: it may be busy for long.
  std::atomic<std::uint64_t> store_bytes_{0};
  std::atomic<bool> store_simulated_{false};
  std::atomic<std::uint64_t> store_unreadable_{0};
  std::atomic<bool> more_{false};
  store::Store::Checkpoint checkpoint_of_all() const;  // fleet_mutex_ held
  std::uint32_t needed_segment() const;  // the first of the log with what is in no cell yet; fleet_mutex_ held
  base::Status let_go_of_log();          // store_mutex_ held
  void look_at_store();                  // store_mutex_ held
  std::string maintain_trouble_;  // store_mutex_

  base::Result<std::unique_ptr<store::Store>> open_store();
  base::Status open_engine();
  base::Status look_at_outbox();  // store_mutex_ held; kLimit: it is full
  std::unique_ptr<engine::RemoteWriter> writer_;  // of the thread that delivers
  std::shared_ptr<std::atomic<int>> questions_ = std::make_shared<std::atomic<int>>(0);
  mutable std::mutex engine_mutex_;  // before no other
  EngineHealth engine_health_;
  std::optional<std::chrono::steady_clock::time_point> rejection_said_;

  mutable std::mutex store_mutex_;
  std::unique_ptr<store::Store> store_;
  engine::EngineStore* engine_ = nullptr;  // what the store is, with an engine

  // Everything below: fleet_mutex_.
  // Messages as they are decompressed: two at once keep a core busy each, and of a large one the room is not kept.
  base::SpareBuffers messages_{2, std::size_t{4} << 20};
  mutable std::mutex fleet_mutex_;
  samples::QualityLog quality_;
  samples::QualityLog log_unreadable_;  // when the process began
  std::optional<std::uint32_t> reported_unkept_segment_;  // the oldest with anything that take_reported() gave and that is not kept yet
  std::unique_ptr<live::LiveFleet> fleet_;
  jobs::JobTable jobs_;
  jobs::OwnerTable owners_;
  training_logs::ExportedSteps reported_{{}};
  std::unique_ptr<wire::RemoteWriteDecoder> decoder_;
  struct Names;  // metric names and label sets, looked up once
  std::unique_ptr<Names> names_;
  std::unordered_map<std::string, std::unique_ptr<Target>> targets_;
  std::vector<LatestGpu> latest_gpus_;
  std::unordered_map<samples::HolderId, LatestJob> latest_jobs_;
  // From the store at the last recovery, for GPUs that have not been seen since.
  tsl::robin_map<base::Hash128, live::ClosedUntil, base::Hash128Hasher> restored_;
  std::map<base::Hash128, rollups::DividedGpu> restored_divided_;
  IngestCounters counters_;
  std::vector<std::string> notes_;
  units::Instant newest_sample_;
  units::Instant newest_written_;
  std::string why_not_;  // not empty: not accepting
  std::string outbox_full_;  // the same
  // What a request is refused with now; empty: it is taken.
  const std::string& closed_for() const { return outbox_full_.empty() && needs_recovery_ ? why_not_ : outbox_full_; }
  bool needs_recovery_ = false;
  std::atomic<bool> wants_flush_{false};

  // The store's numbers of GPUs and holders. Of the thread that flushes.
  struct KnownGpu {
    store::GpuId id = 0;
    store::ModelId model = 0;
    bool has_model = false;
  };
  struct KnownHolder {
    store::JobId id = 0;
    bool is_complete = false;  // user and team are known
  };
  std::vector<KnownGpu> known_gpus_;
  std::vector<KnownHolder> known_holders_;
  units::Instant forgot_;
};

}  // namespace flopsight::app
