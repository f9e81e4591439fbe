// A day of a fleet in a store, and what is asked of it most: every job's totals over 24 hours, and whose GPUs were when. Half of
// the GPUs are in jobs of 512, the others in jobs of 64, 8 and 1, as clusters that train report it; a job lasts some four hours, which
// at 100,000 GPUs makes 45,000 jobs a day. Cells have all quantities of a dcgm-exporter with profiling.
//
// What is asked for reads sums of jobs and spans, not cells of GPUs, of which a large fleet has a hundred million a day. So but for the first
// minute one GPU of a job is written, with the sums of all of them, between the first and the last hour once for ten minutes, and who held
// what is put in its place at the end: the rows that are read are those of the whole fleet.
//
// And a job of 512 GPUs over 30 days, as a service keeps it: minutes of all its GPUs for the last week, ten-minute slots before.
//
// FLOPSIGHT_BENCH_GPUS sets the size, FLOPSIGHT_BENCH_JOB_HOURS how long jobs last, FLOPSIGHT_BENCH_STORE a folder in which the store is left for others (benchmarks/serve.py), ending at FLOPSIGHT_BENCH_END (Unix
// seconds).
#include <cstdlib>
#include <filesystem>
#include <random>

#include <benchmark/benchmark.h>

#include "store/gpu_runs.h"
#include "store/sqlite.h"
#include "store/store.h"

namespace flopsight::store {
namespace {

using rollups::Cell;
using rollups::CellField;

constexpr std::int64_t kMinute = 60'000;
constexpr std::int64_t kMinutes = 24 * 60;

std::int64_t setting(const char* name, std::int64_t otherwise) {
  const char* text = std::getenv(name);
  return text != nullptr ? std::atoll(text) : otherwise;
}

std::uint64_t mixed(std::uint64_t x) {
  x = (x ^ (x >> 30U)) * 0xBF58476D1CE4E5B9U;
  x = (x ^ (x >> 27U)) * 0x94D049BB133111EBU;
  return x ^ (x >> 31U);
}

// One GPU's minute. Cheap, as there are many.
void fill(Cell& cell, std::uint64_t gpu, std::uint64_t minute, std::int64_t start) {
  const std::uint64_t noise = mixed(gpu * 2'000 + minute);
  const auto part = [&](unsigned shift, std::int64_t low, std::int64_t range, std::int64_t quantum) {
    return (low + static_cast<std::int64_t>(noise >> shift & 0xFFU) * range / 256) / quantum * quantum;
  };
  constexpr std::int64_t kWhole = 60'000'000;
  for (const CellField field : {CellField::kMeasured, CellField::kTensorKnown, CellField::kClockKnown, CellField::kSmKnown,
                                CellField::kDramKnown, CellField::kEnergyKnown, CellField::kEventKnown}) {
    cell[field] = kWhole;
  }
  const std::int64_t tensor = part(0, 24'000'000, 4'000'000, 100);
  cell[CellField::kTensorMeasured] = cell[CellField::kTensor] = cell[CellField::kTensorWithinSmKnown] = tensor;
  cell[CellField::kDelivered] = tensor * 96 / 100 / 100 * 100;
  cell[CellField::kClock] = part(8, 105'000, 3'000, 1);
  cell[CellField::kSmActive] = part(16, 52'000'000, 3'000'000, 1000);
  cell[CellField::kClockSensitivity] = part(24, 40'000'000, 1'000'000, 10'000);
  cell[CellField::kClockBusyCount] = 4;
  cell[CellField::kClockDifferenceCount] = 4;
  cell[CellField::kClockDifference] = part(32, 100, 900, 1);
  cell[CellField::kDramActive] = part(40, 25'000'000, 2'000'000, 1000);
  cell[CellField::kEnergy] = part(48, 38'000, 3'000, 1);
  for (const CellField field : {CellField::kPcieTx, CellField::kPcieRx, CellField::kNvlinkTx, CellField::kNvlinkRx}) {
    cell[field] = part(20, 60'000, 40'000, 16);
  }
  cell[static_cast<CellField>(static_cast<std::size_t>(CellField::kEventFirst) + 2)] = part(4, 0, 60'000'000, 15'000'000);
  cell[CellField::kSampleCount] = 4;
  cell[CellField::kCellCount] = 1;
  cell[CellField::kHoldersMax] = 1;
  cell[CellField::kOfuMin] = part(12, 380'000, 40'000, 100);
  cell[CellField::kOfuMax] = cell[CellField::kOfuMin] + part(28, 0, 40'000, 100);
  cell[CellField::kOfuLast] = cell[CellField::kOfuMin];
  cell[CellField::kOfuLastTime] = start + 45'000;
  cell[CellField::kClockMin] = part(36, 1'600, 100, 15);
  cell[CellField::kClockMax] = cell[CellField::kClockMin] + 60;
}

class Day {
 public:
  Day() : gpus_(setting("FLOPSIGHT_BENCH_GPUS", 4'000)), job_minutes_(60 * setting("FLOPSIGHT_BENCH_JOB_HOURS", 4)) {
    const char* folder = std::getenv("FLOPSIGHT_BENCH_STORE");
    is_kept_ = folder != nullptr;
    folder_ = is_kept_ ? folder : (std::filesystem::temp_directory_path() / "flopsight_store_bench").string();
    end_ = setting("FLOPSIGHT_BENCH_END", 1'790'051'220) * 1000 / kMinute * kMinute;
    const bool is_there = std::filesystem::exists(folder_ + "/flopsight.db");
    std::filesystem::create_directories(folder_);
    store_ = std::move(open_sqlite_store(folder_, {})).value();
    if (is_there) return;
    make();
    store_.reset();
    put_spans();
    store_ = std::move(open_sqlite_store(folder_, {})).value();
  }
  ~Day() {
    store_.reset();
    if (!is_kept_) std::filesystem::remove_all(folder_);
  }
  Store& store() { return *store_; }
  units::Window window() const { return {{end_ - kMinutes * kMinute}, {end_}}; }

 private:
  // GPUs in a row that always go to one job together.
  struct Partition {
    std::int64_t first = 0;
    std::int64_t size = 0;
    std::int64_t until = 0;  // minute at which its job ends
    JobId job = 0;
    std::int64_t since = 0;
  };

  void make() {
    std::vector<Partition> partitions;
    std::int64_t next = 0;
    const std::pair<std::int64_t, std::int64_t> kinds[] = {{512, 50}, {64, 30}, {8, 15}, {1, 5}};
    for (const auto& [size, percent] : kinds) {
      for (std::int64_t left = gpus_ * percent / 100; left > 0 && next < gpus_; left -= size) {
        partitions.push_back({next, std::min(size, gpus_ - next), 0, 0, 0});
        next += size;
      }
    }
    std::vector<GpuId> ids;
    for (std::int64_t i = 0; i < gpus_; ++i) {
      samples::GpuIdentity identity;
      identity.uuid = "GPU-" + std::to_string(i);
      identity.host = "node-" + std::to_string(i / 8);
      identity.index = std::to_string(i % 8);
      identity.model_raw = "NVIDIA H100 80GB HBM3";
      ids.push_back(store_->gpu(identity));
    }
    const ModelId model = store_->model("NVIDIA H100 80GB HBM3");
    std::mt19937_64 random(1);
    std::uint64_t named = 0;
    for (std::int64_t minute = 0, step = 1; minute < kMinutes; minute += step) {
      step = minute < 60 || minute >= kMinutes - 60 ? 1 : 10;
      for (Partition& partition : partitions) {
        if (partition.until > minute) continue;
        partition.until = minute;
        if (partition.job != 0) held_.push_back(partition);
        samples::Holder holder;
        holder.job = "train-" + std::to_string(named++) + "-worker";
        holder.name_space = "team-" + std::to_string(named % 40);
        holder.user = "user-" + std::to_string(named % 300);
        holder.team = holder.name_space;
        holder.rule = "pod";
        partition.job = store_->job(holder);
        partition.since = minute;
        std::exponential_distribution<double> length(1.0 / static_cast<double>(job_minutes_));
        partition.until = minute + 1 + static_cast<std::int64_t>(length(random));
      }
      write(partitions, ids, model, minute, step);
      // As the service does it, so that blocks are what they are there.
      if ((minute + step) % 60 == 0) {
        while (store_->maintain(units::Instant{start_of(minute + step)}, Retention{}).value()) {
        }
      }
    }
    held_.insert(held_.end(), partitions.begin(), partitions.end());
  }

  void put_spans() {
    auto database = Database::open(folder_ + "/flopsight.db", Database::Mode::kReadWrite);
    database->execute("BEGIN; DELETE FROM spans").ok();
    {
      auto insert = database->prepare("INSERT INTO spans(job_id, start_unix_milliseconds, end_unix_milliseconds, is_open, gpus) VALUES(?, ?, ?, ?, ?)");
      for (const Partition& one : held_) {
        std::vector<GpuId> gpus;
        for (std::int64_t i = 0; i < one.size; ++i) gpus.push_back(static_cast<GpuId>(one.first + i + 1));
        insert->bind(1, one.job);
        insert->bind(2, start_of(one.since));
        insert->bind(3, start_of(std::min(one.until, kMinutes)));
        insert->bind(4, one.until >= kMinutes ? 1 : 0);
        insert->bind_blob(5, encode_gpu_runs(gpus));
        insert->run().ok();
      }
    }
    database->execute("COMMIT").ok();
  }
  std::int64_t start_of(std::int64_t minute) const { return end_ - (kMinutes - minute) * kMinute; }

  void write(const std::vector<Partition>& partitions, const std::vector<GpuId>& ids, ModelId model, std::int64_t minute,
             std::int64_t step) {
    const std::int64_t start = start_of(minute);
    store_->begin().ok();
    GpuCell cell;
    cell.slot_start = units::Instant{start};
    for (const Partition& partition : partitions) {
      cell.job = partition.job;
      const bool is_whole = minute == 0;
      for (std::int64_t i = partition.first; i < partition.first + (is_whole ? partition.size : 1); ++i) {
        cell.gpu = ids[static_cast<std::size_t>(i)];
        fill(cell.cell, static_cast<std::uint64_t>(i), static_cast<std::uint64_t>(minute), start);
        for (std::size_t f = 0; f < rollups::kCellFieldCount && !is_whole; ++f) {
          if (rollups::cell_fields()[f].merge == rollups::Merge::kSum) cell.cell[static_cast<CellField>(f)] *= partition.size * step;
        }
        store_->add(cell, model).ok();
      }
    }
    Store::Checkpoint checkpoint;
    for (const GpuId id : ids) checkpoint.closed_until.emplace_back(id, units::Instant{start_of(minute + step)});
    store_->commit(checkpoint).ok();
  }

  std::int64_t gpus_;
  std::int64_t job_minutes_;
  std::int64_t end_;
  bool is_kept_ = false;
  std::string folder_;
  std::unique_ptr<Store> store_;
  std::vector<Partition> held_;
};

Day& day() {
  static Day made;
  return made;
}

class LongJob {
 public:
  static constexpr std::int64_t kGpus = 512;
  static constexpr std::int64_t kDays = 30, kFineDays = 7;

  LongJob() {
    const char* folder = std::getenv("FLOPSIGHT_BENCH_STORE");
    is_kept_ = folder != nullptr;
    folder_ = is_kept_ ? folder : (std::filesystem::temp_directory_path() / "flopsight_store_bench_job").string();
    end_ = setting("FLOPSIGHT_BENCH_END", 1'790'051'220) * 1000 / (60 * kMinute) * 60 * kMinute;
    std::filesystem::create_directories(folder_);
    store_ = std::move(open_sqlite_store(folder_, {})).value();
    make();
  }
  ~LongJob() {
    store_.reset();
    if (!is_kept_) std::filesystem::remove_all(folder_);
  }
  Store& store() { return *store_; }
  units::Window window() const { return {{end_ - kDays * 24 * 60 * kMinute}, {end_}}; }
  JobId job() const { return job_; }

 private:
  void make() {
    for (std::int64_t i = 0; i < kGpus; ++i) {
      samples::GpuIdentity identity;
      identity.uuid = "GPU-" + std::to_string(i);
      identity.host = "node-" + std::to_string(i / 8);
      identity.index = std::to_string(i % 8);
      identity.model_raw = "NVIDIA H100 80GB HBM3";
      ids_.push_back(store_->gpu(identity));
    }
    model_ = store_->model("NVIDIA H100 80GB HBM3");
    samples::Holder holder;
    holder.job = "pretrain";
    holder.name_space = "team-0";
    holder.user = "user-0";
    holder.rule = "pod";
    job_ = store_->job(holder);
    constexpr std::int64_t kAll = kDays * 24 * 60, kFine = kFineDays * 24 * 60;
    for (std::int64_t minute = 0, step = 10; minute < kAll; minute += step) {
      step = minute >= kAll - kFine ? 1 : 10;
      write(minute, step);
      if ((minute + step) % 60 == 0) {
        while (store_->maintain(units::Instant{start_of(minute + step)}, Retention{}).value()) {
        }
      }
    }
  }
  std::int64_t start_of(std::int64_t minute) const { return end_ - (kDays * 24 * 60 - minute) * kMinute; }
  void write(std::int64_t minute, std::int64_t step) {
    store_->begin().ok();
    GpuCell cell;
    cell.slot_start = units::Instant{start_of(minute)};
    cell.job = job_;
    for (std::int64_t i = 0; i < kGpus; ++i) {
      cell.gpu = ids_[static_cast<std::size_t>(i)];
      fill(cell.cell, static_cast<std::uint64_t>(i), static_cast<std::uint64_t>(minute), start_of(minute));
      for (std::size_t f = 0; f < rollups::kCellFieldCount && step > 1; ++f) {
        if (rollups::cell_fields()[f].merge == rollups::Merge::kSum) cell.cell[static_cast<CellField>(f)] *= step;
      }
      store_->add(cell, model_).ok();
    }
    Store::Checkpoint checkpoint;
    for (const GpuId id : ids_) checkpoint.closed_until.emplace_back(id, units::Instant{start_of(minute + step)});
    store_->commit(checkpoint).ok();
  }

  std::int64_t end_ = 0;
  bool is_kept_ = false;
  std::string folder_;
  std::unique_ptr<Store> store_;
  std::vector<GpuId> ids_;
  ModelId model_ = 0;
  JobId job_ = 0;
};

void totals_of_a_job_of_thirty_days(benchmark::State& state) {
  LongJob made;
  std::size_t count = 0;
  for (auto _ : state) {
    const auto gpus = made.store().gpu_totals(made.window(), made.job());
    count = gpus->size();
    benchmark::DoNotOptimize(count);
  }
  state.SetLabel(std::to_string(count) + " GPUs");
}
BENCHMARK(totals_of_a_job_of_thirty_days)->Unit(benchmark::kMillisecond);

void job_totals_of_a_day(benchmark::State& state) {
  Day& made = day();
  std::size_t count = 0;
  for (auto _ : state) {
    auto totals = made.store().job_sums(made.window());
    count = totals->size();
    benchmark::DoNotOptimize(count);
  }
  state.SetLabel(std::to_string(count) + " jobs");
}
BENCHMARK(job_totals_of_a_day)->Unit(benchmark::kMillisecond);

void gpus_held_in_a_day(benchmark::State& state) {
  Day& made = day();
  std::size_t count = 0;
  for (auto _ : state) {
    auto held = made.store().held(std::nullopt, made.window());
    count = held->size();
    benchmark::DoNotOptimize(count);
  }
  state.SetLabel(std::to_string(count) + " spans");
}
BENCHMARK(gpus_held_in_a_day)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace flopsight::store
