#pragma once
// For tests of the embedded store: one in a folder that disappears, and what it was given, to be added up by hand. Not part of the program.

#include <filesystem>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "store/store.h"

namespace flopsight::store::test {

using rollups::Cell;
using rollups::CellField;
using units::Instant;
using units::Seconds;
using units::Window;

inline constexpr std::int64_t kDay = 1'790'035'200'000 / 86'400'000 * 86'400'000;
inline constexpr std::int64_t kMinute = 60'000;

inline Cell cell_of(std::mt19937_64& random, std::int64_t slot_start) {
  rollups::Totals totals;
  totals.measured_seconds = static_cast<double>(random() % 61);
  totals.absent_seconds[random() % samples::kAbsentReasonCount] = 60 - totals.measured_seconds;
  const double ratio = static_cast<double>(random() % 1000) / 1000;
  totals.delivered_seconds = totals.measured_seconds * ratio;
  totals.tensor_measured_seconds = totals.delivered_seconds * 1.04;
  totals.tensor_seconds = totals.tensor_measured_seconds;
  totals.surroundings.energy_joules = static_cast<double>(random() % 42'000);
  if (totals.measured_seconds > 0) {
    totals.extremes.see_ofu(ratio, Instant{slot_start + static_cast<std::int64_t>(random() % kMinute)});
    totals.extremes.see_clock(1e6 * static_cast<double>(1000 + random() % 900));
  }
  return rollups::cell_of(totals, {});
}

class StoreTest : public testing::Test {
 protected:
  StoreTest() : folder_(testing::TempDir() + "flopsight_store_" +
                        testing::UnitTest::GetInstance()->current_test_info()->name()) {
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
    reopen();
  }
  ~StoreTest() override {
    store_.reset();
    std::filesystem::remove_all(folder_);
  }
  void reopen(SqliteStoreOptions options = {}) {
    store_.reset();
    auto opened = open_sqlite_store(folder_, options);
    ASSERT_TRUE(opened.ok()) << opened.error().message;
    store_ = std::move(opened).value();
  }
  GpuId gpu(int n) {
    samples::GpuIdentity identity;
    identity.uuid = "GPU-" + std::to_string(n);
    identity.host = "n" + std::to_string(n / 8);
    identity.index = std::to_string(n % 8);
    identity.model_raw = "NVIDIA H100 80GB HBM3";
    return store_->gpu(identity);
  }
  JobId job(const std::string& name) {
    samples::Holder holder;
    holder.job = name;
    holder.name_space = "team";
    return store_->job(holder);
  }
  ModelId model() { return store_->model("NVIDIA H100 80GB HBM3"); }
  // Adds to the flush and to the oracle.
  void put(int n, const std::string& job_name, std::int64_t slot_start, std::mt19937_64& random) {
    const GpuCell cell{gpu(n), job_name.empty() ? 0 : job(job_name), {slot_start}, cell_of(random, slot_start)};
    ASSERT_TRUE(store_->add(cell, model()).ok());
    all_.push_back({n, job_name, slot_start, cell.cell});
    closed_[cell.gpu] = std::max(closed_[cell.gpu], slot_start + kMinute);
  }
  void commit(std::uint32_t segment = 1) {
    Store::Checkpoint checkpoint;
    checkpoint.log_segment = segment;
    for (const auto& [id, time] : closed_) checkpoint.closed_until.emplace_back(id, Instant{time});
    const auto done = store_->commit(checkpoint);
    ASSERT_TRUE(done.ok()) << done.error().message;
  }
  std::map<std::string, Cell> totals(Window window) {
    std::map<std::string, Cell> out;
    const auto found = store_->job_totals(window, std::nullopt);
    EXPECT_TRUE(found.ok());
    for (const JobTotal& total : *found) out[name_of(total.job)].merge(total.cell);
    return out;
  }
  std::map<std::string, Cell> oracle(Window window) {
    std::map<std::string, Cell> out;
    for (const Put& p : all_) {
      if (window.contains({p.slot_start})) out[p.job].merge(p.cell);
    }
    return out;
  }
  std::string name_of(JobId id) {
    for (const auto& name : {"a", "b", "c"}) {
      if (job(name) == id) return name;
    }
    return "";
  }

  struct Put {
    int gpu;
    std::string job;
    std::int64_t slot_start;
    Cell cell;
  };
  std::string folder_;
  std::unique_ptr<Store> store_;
  std::vector<Put> all_;
  std::map<GpuId, std::int64_t> closed_;
  std::size_t given_ = 0;
};

}  // namespace flopsight::store::test
