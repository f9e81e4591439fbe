#include <algorithm>
#include <atomic>
#include <cmath>

#include "store/disk.h"
#include "store/put_aside.h"
#include "store/sqlite_schema.h"
#include "store/sqlite_store_internal.h"
#include "store/sqlite_transaction.h"
#include "wire/column_codec.h"

namespace flopsight::store {
namespace {

base::Hash128 job_key(const samples::Holder& holder) { return base::hash128(holder.job + '\0' + holder.name_space); }

void fill(std::string& into, const std::string& from, bool& changed) {
  if (!into.empty() || from.empty()) return;
  into = from;
  changed = true;
}

std::uint8_t known_names(const samples::GpuIdentity& identity) {
  std::uint8_t bits = 0;
  for (std::size_t i = 0; i < 8; ++i) {
    if (!(identity.*kGpuNames[i]).empty()) bits = static_cast<std::uint8_t>(bits | 1U << i);
  }
  return bits;
}

// The columns kGpuColumns from `first` on.
samples::GpuIdentity identity_of(const Statement& row, int first) {
  samples::GpuIdentity identity;
  for (int i = 0; i < 8; ++i) identity.*kGpuNames[i] = std::string(row.text(first + i));
  return identity;
}

// SQLite's own errors name the file already.
base::Result<std::int64_t> named_once(base::Result<std::int64_t> result, const std::string& path) {
  return result.ok() || result.error().message.starts_with(path) ? std::move(result) : std::move(result).within(path);
}

}  // namespace

base::Hash128 gpu_key(const samples::GpuIdentity& identity) {
  if (!identity.uuid.empty()) {
    return base::hash128("u" + samples::normalized_uuid(identity.uuid) + '\0' + identity.mig_instance);
  }
  return base::hash128("i" + identity.host + '\0' + identity.index + '\0' + identity.mig_instance);
}

SqliteStore::SqliteStore(Database database, std::string path, SqliteStoreOptions options)
    : database_(std::move(database)),
      path_(std::move(path)),
      options_(options),
      slot_seconds_(std::llround(options.slot.value)) {}

void SqliteStore::note(std::string line) {
  constexpr std::size_t kNotesMax = 100;
  if (notes_.size() < kNotesMax) notes_.push_back(std::move(line));
}

void SqliteStore::miss(std::string_view place, std::string line) {
  unreadable_.add(samples::kNotReadable, place);
  note(std::move(line));
}

std::vector<std::string> SqliteStore::take_notes() { return std::exchange(notes_, {}); }

base::Status SqliteStore::load() {
  FLOPSIGHT_ASSIGN_OR_RETURN(
      Statement gpus, database_.prepare("SELECT id, first_unix_milliseconds, " + std::string(kGpuColumns) + " FROM gpus ORDER BY id"));
  for (;;) {
    FLOPSIGHT_ASSIGN_OR_RETURN(const bool row, gpus.step());
    if (!row) break;
    const samples::GpuIdentity identity = identity_of(gpus, 2);
    if (gpus.integer(0) != static_cast<std::int64_t>(gpus_.size()) + 1) {
      return base::Error{base::ErrorCode::kCorrupt, path_ + ": GPUs are missing from its table"};
    }
    base::add_one(gpus_) = {gpu_key(identity), gpus.integer(1), 0, known_names(identity), false};
    gpu_ids_.emplace(gpus_.back().key, static_cast<GpuId>(gpus_.size()));
    instances_.add(static_cast<GpuId>(gpus_.size()), identity);
  }
  FLOPSIGHT_ASSIGN_OR_RETURN(
      Statement jobs, database_.prepare("SELECT id, job, namespace, container, user, team, rule FROM jobs ORDER BY id"));
  for (;;) {
    FLOPSIGHT_ASSIGN_OR_RETURN(const bool row, jobs.step());
    if (!row) break;
    samples::Holder holder;
    std::string* const texts[] = {&holder.job, &holder.name_space, &holder.container, &holder.user, &holder.team, &holder.rule};
    for (int i = 0; i < 6; ++i) *texts[i] = std::string(jobs.text(i + 1));
    if (jobs.integer(0) != static_cast<std::int64_t>(jobs_.size()) + 1) {
      return base::Error{base::ErrorCode::kCorrupt, path_ + ": jobs are missing from its table"};
    }
    add_job(holder);
  }
  FLOPSIGHT_ASSIGN_OR_RETURN(Statement models, database_.prepare("SELECT model_raw FROM models ORDER BY id"));
  for (;;) {
    FLOPSIGHT_ASSIGN_OR_RETURN(const bool row, models.step());
    if (!row) break;
    models_.emplace_back(models.text(0));
    models_dirty_.push_back(false);
    model_ids_.emplace(models_.back(), static_cast<ModelId>(models_.size()));
  }
  return load_checkpoint();
}

base::Status SqliteStore::load_checkpoint() {
  FLOPSIGHT_ASSIGN_OR_RETURN(Statement simulated, database_.prepare("SELECT 1 FROM meta WHERE key = 'simulated'"));
  FLOPSIGHT_ASSIGN_OR_RETURN(simulated_, simulated.step());
  simulated.reset();
  FLOPSIGHT_ASSIGN_OR_RETURN(Statement fleet, database_.prepare("SELECT value FROM meta WHERE key = 'fleet_since_unix_milliseconds'"));
  FLOPSIGHT_ASSIGN_OR_RETURN(const bool has_fleet, fleet.step());
  if (has_fleet) fleet_since_ = fleet.integer(0);
  fleet.reset();
  FLOPSIGHT_ASSIGN_OR_RETURN(Statement forgotten, database_.prepare("SELECT value FROM meta WHERE key = 'forgotten_until_unix_milliseconds'"));
  FLOPSIGHT_ASSIGN_OR_RETURN(const bool has_forgotten, forgotten.step());
  if (has_forgotten) forgotten_until_ = forgotten.integer(0);
  forgotten.reset();
  FLOPSIGHT_ASSIGN_OR_RETURN(Statement checkpoint,
                             database_.prepare("SELECT log_segment, closed_until FROM checkpoint"));
  FLOPSIGHT_ASSIGN_OR_RETURN(const bool row, checkpoint.step());
  if (!row && !gpus_.empty()) return base::Error{base::ErrorCode::kCorrupt, path_ + ": its checkpoint is missing"};
  if (!row) return {};
  log_segment_ = static_cast<std::uint32_t>(checkpoint.integer(0));
  FLOPSIGHT_ASSIGN_OR_RETURN(const auto columns, wire::read_columns(checkpoint.blob(1), {}));
  if (columns.size() != 2 || columns[0].size() != columns[1].size()) {
    return base::Error{base::ErrorCode::kCorrupt, path_ + ": its checkpoint is damaged"};
  }
  for (std::size_t i = 0; i < columns[0].size(); ++i) {
    const std::int64_t id = columns[0][i];
    if (id < 1 || id > static_cast<std::int64_t>(gpus_.size())) {
      return base::Error{base::ErrorCode::kCorrupt, path_ + ": its checkpoint names a GPU that it does not have"};
    }
    gpus_[static_cast<std::size_t>(id - 1)].closed_until = columns[1][i];
  }
  FLOPSIGHT_RETURN_IF_ERROR(load_divided());
  return load_spans();
}

base::Result<Statement> SqliteStore::select_names() {
  return database_.prepare("SELECT " + std::string(kGpuColumns) + " FROM gpus WHERE id = ?");
}

base::Result<samples::GpuIdentity> SqliteStore::names_of(Statement& select, GpuId id) {
  select.reset();
  select.bind(1, id);
  FLOPSIGHT_ASSIGN_OR_RETURN(const bool row, select.step());
  return row ? identity_of(select, 0) : samples::GpuIdentity{};
}

GpuId SqliteStore::gpu(const samples::GpuIdentity& identity) {
  const base::Hash128 key = gpu_key(identity);
  const std::uint8_t names = known_names(identity);
  const auto [id, is_new] = gpu_ids_.emplace(key, static_cast<GpuId>(gpus_.size() + 1));
  if (is_new) {
    base::add_one(gpus_) = {key, 0, 0, names, false};
    new_names_[id] = identity;
    instances_.add(id, identity);
    return id;
  }
  Gpu& known = gpus_[id - 1];
  if ((names & ~known.names) == 0) return id;
  // Seldom: an exporter that says more than the one before.
  auto change = new_names_.find(id);
  if (change == new_names_.end()) {
    auto select = select_names();
    auto before = select.ok() ? names_of(*select, id) : base::Result<samples::GpuIdentity>(select.error());
    change = new_names_.emplace(id, before.ok() ? std::move(before).value() : identity).first;
  }
  bool changed = false;
  for (const auto name : kGpuNames) fill(change->second.*name, identity.*name, changed);
  known.names = static_cast<std::uint8_t>(known.names | names);
  return id;
}

JobId SqliteStore::add_job(const samples::Holder& holder) {
  const auto id = static_cast<JobId>(jobs_.size() + 1);
  const auto [first, is_new_name] = job_ids_.emplace(job_key(holder), id);
  if (!is_new_name) {
    JobId last = first;
    while (next_of_name_[last - 1] != 0) last = next_of_name_[last - 1];
    next_of_name_[last - 1] = id;
  }
  jobs_.push_back(holder);
  base::add_one(next_of_name_) = 0;
  return id;
}

JobId SqliteStore::job(const samples::Holder& holder) {
  // One of the name and namespace that had no other user and no other team: what an exporter does not say, another may.
  const auto differs = [](const std::string& known, const std::string& now) { return !known.empty() && !now.empty() && known != now; };
  for (JobId id = job_ids_.find(job_key(holder)).value_or(0); id != 0; id = next_of_name_[id - 1]) {
    samples::Holder known = jobs_[id - 1];
    if (!options_.one_job_a_name && (differs(known.user, holder.user) || differs(known.team, holder.team))) continue;
    bool changed = false;
    fill(known.user, holder.user, changed);
    fill(known.team, holder.team, changed);
    if (changed) {
      jobs_.replace(id - 1, known);
      jobs_to_write_.insert(id);
      names_version_ = next_version();
    }
    return id;
  }
  const JobId id = add_job(holder);
  jobs_to_write_.insert(id);
  return id;
}

std::uint64_t SqliteStore::next_version() {
  static std::atomic<std::uint64_t> last = 0;
  return ++last;
}

ModelId SqliteStore::model(std::string_view model_raw) {
  const auto [at, is_new] = model_ids_.emplace(std::string(model_raw), static_cast<ModelId>(models_.size() + 1));
  if (is_new) {
    models_.emplace_back(model_raw);
    models_dirty_.push_back(true);
  }
  return at->second;
}

const std::string& SqliteStore::model_name(ModelId id) const {
  static const std::string unknown;
  return id >= 1 && id <= models_.size() ? models_[id - 1] : unknown;
}

std::vector<std::pair<base::Hash128, units::Instant>> SqliteStore::closed_until() const {
  std::vector<std::pair<base::Hash128, units::Instant>> out;
  for (const Gpu& gpu : gpus_) {
    if (gpu.closed_until != 0) out.emplace_back(gpu.key, units::Instant{gpu.closed_until});
  }
  return out;
}

std::vector<JobId> SqliteStore::last_jobs(const base::Hash128& gpu_key) const {
  std::vector<JobId> jobs;
  const auto id = gpu_ids_.find(gpu_key);
  if (!id || *id > first_spans_.size()) return jobs;
  const std::int64_t closed = gpus_[*id - 1].closed_until;
  const auto see = [&](const Span& span) {
    if (span.job != 0 && span.end == closed) jobs.push_back(span.job);
  };
  see(first_spans_[*id - 1]);
  if (const auto more = more_spans_.find(*id); more != more_spans_.end()) std::for_each(more->second.begin(), more->second.end(), see);
  return jobs;
}

base::Result<std::unique_ptr<Store>> open_sqlite_store(const std::string& folder, SqliteStoreOptions options) {
  const std::string path = folder + "/flopsight.db";
  if (options.read_only && !real_disk().size(path).ok()) {
    return base::Error{base::ErrorCode::kNotFound, folder + ": no store there, expected the folder of flopsight serve or flopsight import"};
  }
  std::string damage;
  for (int attempt = 0;; ++attempt) {
    const auto opened = [&]() -> base::Result<std::unique_ptr<SqliteStore>> {
      FLOPSIGHT_ASSIGN_OR_RETURN(
          Database database,
          Database::open(path, options.read_only ? Database::Mode::kReadOnly : Database::Mode::kReadWrite));
      if (options.read_only) {
        FLOPSIGHT_ASSIGN_OR_RETURN(const std::int64_t slot, named_once(slot_of_store(database), path));
        options.slot = units::Seconds(static_cast<double>(slot) / 1000);
      } else {
        // Only of a new file: of another it changes nothing, and writes, for which a full disk has no room.
        FLOPSIGHT_ASSIGN_OR_RETURN(const std::int64_t pages, number(database, "PRAGMA page_count"));
        if (pages == 0) FLOPSIGHT_RETURN_IF_ERROR(database.execute("PRAGMA auto_vacuum = INCREMENTAL"));
        // FULL: a commit survives a power cut, which is what lets the log be dropped behind it.
        FLOPSIGHT_RETURN_IF_ERROR(database.execute(
            "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA wal_autocheckpoint = 4000; "
            "PRAGMA cache_size = -2000; PRAGMA mmap_size = 0; PRAGMA trusted_schema = OFF;"));
        FLOPSIGHT_RETURN_IF_ERROR(prepare_schema(database, milliseconds(options.slot)).within(path));
      }
      auto store = std::make_unique<SqliteStore>(std::move(database), path, options);
      FLOPSIGHT_RETURN_IF_ERROR(store->load());
      return store;
    }();
    if (opened.ok()) {
      auto store = std::move(const_cast<base::Result<std::unique_ptr<SqliteStore>>&>(opened)).value();
      if (!damage.empty()) store->miss("the whole store", damage);
      return std::unique_ptr<Store>(std::move(store));
    }
    if (opened.error().code != base::ErrorCode::kCorrupt || options.read_only || attempt > 0) return opened.error();
    const auto aside = put_aside(path);
    if (!aside.ok()) return opened.error();
    damage = opened.error().message + "; put aside as " + *aside + ", a new store was begun: rollups before " +
                "what the log still holds are not in it";
  }
}

}  // namespace flopsight::store
