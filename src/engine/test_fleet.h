#pragma once
// For tests only: a small fleet whose cells go to two processes' engine stores and to one embedded store, which is the oracle.
// GPUs close their slots at different times, so that jobs get parts of slots late.

#include <algorithm>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <tuple>
#include <vector>

#include "base/check.h"
#include "engine/engine_store.h"
#include "engine/remote_writer.h"

namespace flopsight::engine::test {

inline constexpr std::int64_t kMinute = 60'000;

inline rollups::Cell random_cell(std::mt19937_64& random) {
  rollups::Totals totals;
  totals.measured_seconds = static_cast<double>(random() % 61);
  totals.absent_seconds[random() % samples::kAbsentReasonCount] = 60 - totals.measured_seconds;
  const double ratio = static_cast<double>(random() % 1000) / 1000;
  totals.delivered_seconds = totals.measured_seconds * ratio;
  totals.tensor_measured_seconds = totals.tensor_seconds = totals.delivered_seconds * 1.04;
  totals.surroundings.energy_joules = static_cast<double>(random() % 42'000);
  if (totals.measured_seconds > 0) {
    totals.extremes.see_ofu(ratio, {0});
    totals.extremes.see_clock(1e6 * static_cast<double>(1000 + random() % 900));
  }
  return rollups::cell_of(totals, {});
}

class TestFleet {
 public:
  static constexpr int kGpus = 8;

  // `start`: of an hour.
  TestFleet(const std::string& folder, std::int64_t start, bool gpu_cells = true) : start_(start), folder_(folder) {
    std::filesystem::remove_all(folder_);
    options_.gpu_cells = gpu_cells;
    for (std::uint64_t i = 0; i < 2; ++i) {
      std::filesystem::create_directories(folder_ + "/" + std::to_string(i));
      open(i);
    }
    std::filesystem::create_directories(folder_ + "/oracle");
    auto oracle = store::open_sqlite_store(folder_ + "/oracle", {});
    FLOPSIGHT_CHECK(oracle.ok());
    oracle_ = std::move(oracle).value();
  }
  ~TestFleet() {
    for (auto& engine : engines_) engine.reset();
    oracle_.reset();
    std::filesystem::remove_all(folder_);
  }

  // As after a crash.
  void open(std::uint64_t shard) {
    engines_[shard].reset();
    options_.shard = shard;
    auto opened = EngineStore::open(folder_ + "/" + std::to_string(shard), options_);
    FLOPSIGHT_CHECK(opened.ok());
    engines_[shard] = std::move(opened).value();
  }

  static samples::GpuIdentity gpu(int n) {
    samples::GpuIdentity gpu;
    // One of them has no UUID.
    if (n != 5) gpu.uuid = "GPU-0000000" + std::to_string(n);
    gpu.host = "n" + std::to_string(n / 4);
    gpu.index = std::to_string(n % 4);
    gpu.model_raw = n < 6 ? "NVIDIA H100 80GB HBM3" : "NVIDIA A100-SXM4-80GB";
    return gpu;
  }
  // Jobs change with the hours and span both processes; names that PromQL and JSON have to escape.
  static samples::Holder holder(int n, std::int64_t hour) {
    samples::Holder holder;
    const char* const names[] = {"train", "", "a \"b\\c\n{}", "eval/x"};
    holder.job = names[(n / 2 + hour) % 4];
    if (holder.job.empty()) return holder;
    holder.name_space = hour % 2 == 0 ? "research" : "";
    holder.user = n % 2 == 0 ? "alice" : "";
    holder.rule = "exported_pod";
    return holder;
  }

  // GPU n closes its slots `lag(n)` slots later than others.
  static std::int64_t lag(int n) { return n == 3 ? 2 : n == 6 ? 95 : 0; }

  // Flush number `minute`: each GPU closes one slot. GPUs of both processes in one go.
  void flush(std::int64_t minute, std::int64_t slots) {
    std::vector<store::Store*> stores = {engines_[0].get(), engines_[1].get(), oracle_.get()};
    for (store::Store* store : stores) FLOPSIGHT_CHECK(store->begin().ok());
    for (int n = 0; n < kGpus; ++n) {
      const std::int64_t slot = minute - lag(n);
      if (slot < 0 || slot >= slots) continue;
      add(*engines_[static_cast<std::size_t>(n % 2)], *oracle_, n, start_ + slot * kMinute);
    }
    for (std::size_t i = 0; i < stores.size(); ++i) {
      store::Store::Checkpoint checkpoint;
      for (int n = 0; n < kGpus; ++n) {
        const std::int64_t closed = std::min(minute - lag(n) + 1, slots);
        if (closed > 0 && (i == 2 || static_cast<int>(i) == n % 2)) {
          checkpoint.closed_until.emplace_back(stores[i]->gpu(gpu(n)), units::Instant{start_ + closed * kMinute});
        }
      }
      FLOPSIGHT_CHECK(stores[i]->commit(checkpoint).ok());
    }
  }
  void run(std::int64_t slots, const std::function<void(std::int64_t minute)>& between = {}) {
    for (std::int64_t minute = 0; minute < slots + 100; ++minute) {
      flush(minute, slots);
      if (between) between(minute);
    }
  }

  // Everything that waits, to an engine. `times`: as if so many acknowledgments were lost.
  base::Result<Delivered> deliver(RemoteWriter& writer, std::uint64_t shard, int times = 1) {
    Delivered all;
    for (;;) {
      const auto letter = engines_[shard]->next();
      FLOPSIGHT_CHECK(letter.ok());
      if (*letter == nullptr) return all;
      for (int i = 0; i < times; ++i) {
        FLOPSIGHT_ASSIGN_OR_RETURN(const Delivered sent, writer.send((*letter)->series));
        all.samples += sent.samples;
        all.rejected += sent.rejected;
        if (all.rejection.empty()) all.rejection = sent.rejection;
      }
      FLOPSIGHT_CHECK(engines_[shard]->delivered((*letter)->id).ok());
    }
  }

  EngineStoreOptions options_;
  std::int64_t start_;
  std::string folder_;
  std::unique_ptr<EngineStore> engines_[2];
  std::unique_ptr<store::Store> oracle_;

 private:
  void add(store::Store& first, store::Store& second, int n, std::int64_t slot_start) {
    const rollups::Cell cell = random_cell(random_);
    const samples::Holder holder = TestFleet::holder(n, slot_start / 3'600'000);
    for (store::Store* store : {&first, &second}) {
      const store::JobId job = holder.unallocated() ? 0 : store->job(holder);
      const samples::GpuIdentity identity = gpu(n);
      FLOPSIGHT_CHECK(store->add({store->gpu(identity), job, {slot_start}, cell}, store->model(identity.model_raw)).ok());
    }
  }
  std::mt19937_64 random_{11};
};

// What readers say (or one entry with the error), by names instead of numbers, and without the fields that an engine does not keep.
using CellText = std::vector<std::int64_t>;
inline CellText text_of(const rollups::Cell& cell, const rollups::Spread& spread = {}) {
  CellText text;
  for (std::size_t i = 0; i < rollups::kCellFieldCount; ++i) {
    if (rollups::cell_fields()[i].merge != rollups::Merge::kLatest) text.push_back(cell.values()[i]);
  }
  for (const auto& bin : spread.bins()) {
    text.push_back(bin.bin);
    text.push_back(bin.microseconds);
  }
  return text;
}
inline std::string name_of(const store::Reader& reader, store::JobId job) {
  if (job == 0) return "nobody";
  const samples::Holder& h = reader.holder(job);
  return h.job + "|" + h.name_space + "|" + h.user + "|" + h.rule;
}
inline std::map<std::string, CellText> totals_of(store::Reader& reader, units::Window window, std::optional<store::JobId> job) {
  std::map<std::string, CellText> out;
  const auto totals = reader.job_totals(window, job);
  if (!totals.ok()) return {{totals.error().message, {}}};
  for (const store::JobTotal& total : *totals) {
    if (job && total.job != *job) continue;
    out[name_of(reader, total.job) + " on " + reader.model_name(total.model)] = text_of(total.cell, total.spread);
  }
  return out;
}
inline std::map<std::pair<std::int64_t, std::string>, CellText> series_of(store::Reader& reader, store::JobId job,
                                                                          units::Window window, units::Seconds step) {
  std::map<std::pair<std::int64_t, std::string>, CellText> out;
  const auto series = reader.job_series(job, window, step);
  if (!series.ok()) return {{{0, series.error().message}, {}}};
  for (const store::JobCell& cell : *series) {
    out[{cell.slot_start.unix_milliseconds, reader.model_name(cell.model)}] = text_of(cell.cell, cell.spread);
  }
  return out;
}
inline std::map<std::string, CellText> gpus_of(store::Reader& reader, units::Window window, std::optional<store::JobId> job) {
  std::map<std::string, CellText> out;
  const auto totals = reader.gpu_totals(window, job);
  if (!totals.ok()) return {{totals.error().message, {}}};
  for (const store::GpuTotal& total : *totals) {
    const auto record = reader.gpus({total.gpu});
    FLOPSIGHT_CHECK(record->size() == 1);
    const samples::GpuIdentity& gpu = record->front().identity;
    out[gpu.uuid + "|" + gpu.host + "|" + gpu.index + "|" + gpu.model_raw + " of " + name_of(reader, total.job)] =
        text_of(total.cell);
  }
  return out;
}
// Holder to keys of its GPUs, and when it was seen for one job.
inline std::map<std::string, std::vector<std::string>> members_of(store::Reader& reader, units::Window window,
                                                                  const std::function<std::string(store::GpuId)>& gpu_name) {
  std::map<std::string, std::vector<std::string>> out;
  const auto members = reader.members(window, std::nullopt);
  if (!members.ok()) return {{members.error().message, {}}};
  for (const store::Member& member : *members) {
    if (member.gpus.empty()) continue;
    std::vector<std::string>& names = out[name_of(reader, member.job)];
    for (const store::GpuId gpu : member.gpus) names.push_back(gpu_name(gpu));
    std::sort(names.begin(), names.end());
  }
  return out;
}

}  // namespace flopsight::engine::test
