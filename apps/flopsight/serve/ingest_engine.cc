// Ingest with an engine: what waits is delivered, and questions go there.
#include "serve/ingest.h"

#include "base/text.h"

namespace flopsight::app {
namespace {

// Questions to the engine under way; an engine that hangs must not take all the threads that also take samples.
constexpr int kQuestionsMax = 8;

}  // namespace

base::Result<std::unique_ptr<store::Store>> Ingest::open_store() {
  if (options_.engine) {
    engine::EngineStoreOptions engine_options = options_.engine->store;
    engine_options.slot = options_.live.slot;
    FLOPSIGHT_ASSIGN_OR_RETURN(std::unique_ptr<engine::EngineStore> opened,
                               engine::EngineStore::open(options_.folder, engine_options));
    return std::unique_ptr<store::Store>(std::move(opened));
  }
  store::SqliteStoreOptions store_options;
  store_options.slot = options_.live.slot;
  return store::open_sqlite_store(options_.folder, store_options);
}

base::Status Ingest::open_engine() {
  if (!options_.engine) return {};
  const engine::EngineReaderOptions& reading = options_.engine->reader;
  FLOPSIGHT_ASSIGN_OR_RETURN(engine::RemoteWriter writer, engine::RemoteWriter::create(options_.engine->write_url, reading.http));
  writer_ = std::make_unique<engine::RemoteWriter>(std::move(writer));
  // What is wrong with a URL or a file of TLS is wrong at the start.
  if (const auto reader = engine::EngineReader::create(reading); !reader.ok()) return reader.error();
  return {};
}

base::Result<Ingest::ReaderHandle> Ingest::reader(units::Instant now) {
  if (!options_.engine) {
    std::unique_lock lock(store_mutex_);
    return ReaderHandle(std::move(lock), *store_);
  }
  std::shared_ptr<void> ticket(nullptr, [count = questions_](void*) { --*count; });
  if (++*questions_ > kQuestionsMax) {
    return base::Error{base::ErrorCode::kUnavailable,
                       std::to_string(kQuestionsMax) + " questions to the engine are under way; try again"};
  }
  engine::EngineReaderOptions options = options_.engine->reader;
  options.slot = options_.live.slot;
  options.now = now;
  FLOPSIGHT_ASSIGN_OR_RETURN(std::unique_ptr<engine::EngineReader> reader, engine::EngineReader::create(std::move(options)));
  return ReaderHandle(std::move(reader), std::move(ticket));
}

base::Status Ingest::look_at_outbox() {
  if (engine_ == nullptr) return {};
  FLOPSIGHT_ASSIGN_OR_RETURN(const engine::EngineStore::State state, engine_->state());
  std::string error;
  {
    const std::scoped_lock guard(engine_mutex_);
    engine_health_.outbox = state;
    error = engine_health_.error;
  }
  const std::scoped_lock guard(fleet_mutex_);
  outbox_full_ = state.is_full ? "the outbox of the engine is full (engine.outbox-bytes)" + (error.empty() ? "" : ": " + error) : "";
  if (state.is_full) return base::Error{base::ErrorCode::kLimit, outbox_full_};
  return {};
}

base::Result<bool> Ingest::deliver() {
  std::shared_ptr<const engine::EngineStore::Letter> letter;
  {
    const std::scoped_lock guard(store_mutex_);
    if (engine_ == nullptr) return false;
    FLOPSIGHT_ASSIGN_OR_RETURN(letter, engine_->next());
  }
  if (letter == nullptr) return false;
  const auto sent = writer_->send(letter->series);
  std::string note;
  {
    const std::scoped_lock guard(engine_mutex_);
    engine_health_.error = sent.ok() ? "" : base::printable(sent.error().message, 300);
    if (!sent.ok()) {
      ++engine_health_.failures;
      return sent.error();
    }
    engine_health_.samples += sent->samples;
    engine_health_.samples_rejected += sent->rejected;
    const auto now = std::chrono::steady_clock::now();
    if (sent->rejected > 0 && (!rejection_said_ || now - *rejection_said_ > std::chrono::hours(1))) {
      rejection_said_ = now;
      note = "the engine rejects samples, which are not in its answers: " + sent->rejection;
    }
  }
  const std::scoped_lock guard(store_mutex_);
  FLOPSIGHT_RETURN_IF_ERROR(engine_->delivered(letter->id));
  static_cast<void>(look_at_outbox());
  if (!note.empty()) {
    const std::scoped_lock fleet_guard(fleet_mutex_);
    notes_.push_back(std::move(note));
  }
  return true;
}

std::optional<EngineHealth> Ingest::engine_health() const {
  if (!options_.engine) return std::nullopt;
  const std::scoped_lock guard(engine_mutex_);
  return engine_health_;
}

}  // namespace flopsight::app
