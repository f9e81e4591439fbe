// One new minute of a large fleet (detect/test_fleet.h) from the store to the findings on the disk, as the service looks at it: the minute's cells are
// read, all detectors see them, what shows goes to the book, and what changed is written, with everything durable. Cells are stored before
// the clock runs.
#include <benchmark/benchmark.h>

#include <cstdlib>
#include <filesystem>

#include "base/check.h"
#include "detect/test_fleet.h"
#include "findings/book.h"
#include "findings/ledger.h"
#include "store/store.h"

namespace flopsight::findings {
namespace {

using detect::test::Fleet;

struct Folder {
  Folder() {
    std::string name = (std::filesystem::temp_directory_path() / "findings_bench_XXXXXX").string();
    FLOPSIGHT_CHECK(mkdtemp(name.data()) != nullptr);
    path = name;
  }
  ~Folder() { std::filesystem::remove_all(path); }
  std::string path;
};

class Service {
 public:
  Service() {
    store_ = std::move(store::open_sqlite_store(folder_.path, {})).value();
    ledger_ = std::move(Ledger::open(folder_.path, {})).value();
    for (std::uint32_t gpu = 0; gpu < fleet_.gpu_names.size(); ++gpu) {
      samples::GpuIdentity identity;
      identity.uuid = fleet_.gpu_names[gpu];
      identity.host = fleet_.host_names[gpu / 8];
      identity.model_raw = "NVIDIA H100 80GB HBM3";
      gpus_.push_back(store_->gpu(identity));
    }
    for (std::uint32_t job = 0; job < detect::test::kJobs; ++job) {
      samples::Holder holder;
      holder.job = "job" + std::to_string(job);
      jobs_.push_back(store_->job(holder));
    }
    model_ = store_->model("NVIDIA H100 80GB HBM3");
  }

  void store_minute() {
    fleet_.make_cells();
    const units::Instant start = minute();
    store::Store::Checkpoint checkpoint;
    FLOPSIGHT_CHECK(store_->begin().ok());
    for (std::size_t gpu = 0; gpu < gpus_.size(); ++gpu) {
      FLOPSIGHT_CHECK(store_->add({gpus_[gpu], jobs_[gpu / detect::test::kGpusPerJob], start, fleet_.cells[gpu]}, model_).ok());
      checkpoint.closed_until.emplace_back(gpus_[gpu], start + units::Seconds(60));
    }
    FLOPSIGHT_CHECK(store_->commit(checkpoint).ok());
  }

  std::size_t look() {
    const units::Instant start = minute();
    const auto cells = store_->gpu_series({}, {start, start + units::Seconds(60)}, units::Seconds(60));
    FLOPSIGHT_CHECK(cells.ok() && cells->size() == gpus_.size());
    for (std::size_t i = 0; i < cells->size(); ++i) fleet_.cells[i] = (*cells)[i].cell;
    std::vector<Sighting> seen;
    for (detect::Finding& finding : fleet_.run()) {
      Sighting& sighting = seen.emplace_back();
      sighting.record.key = detect::finding_key(finding);
      sighting.record.kind = detect::info_of(finding.kind).name;
      sighting.record.severity = finding.severity;
      sighting.record.job = sighting.record.holder.job = finding.job;
      sighting.record.host = finding.host;
      sighting.record.gpu = finding.gpu;
      sighting.record.first = finding.first;
      sighting.record.last = finding.last;
      sighting.record.text = std::move(finding.text);
      sighting.record.evidence = std::move(finding.evidence);
      sighting.record.series = std::move(finding.series);
      sighting.record.suspects = std::move(finding.suspects);
      sighting.record.cost = finding.cost;
      sighting.usd_per_gpu_hour = units::UsdPerGpuHour(2);
    }
    (void)book_.round(seen, start, start);
    std::set<std::string> keys = book_.take_changed();
    keys.merge(book_.take_updated());
    std::vector<Record> records;
    for (const std::string& key : keys) records.push_back(book_.records().at(key));
    FLOPSIGHT_CHECK(ledger_->put(records, start + units::Seconds(60)).ok());
    return records.size();
  }

 private:
  units::Instant minute() const { return units::Instant{detect::test::kNoiseStart + fleet_.minute * detect::test::kMinuteMilliseconds}; }

  Folder folder_;
  Fleet fleet_;
  Book book_;
  std::unique_ptr<store::Store> store_;
  std::unique_ptr<Ledger> ledger_;
  std::vector<store::GpuId> gpus_;
  std::vector<store::JobId> jobs_;
  store::ModelId model_ = 0;
};

void findings_one_minute_of_100000_gpus(benchmark::State& state) {
  const auto service = std::make_unique<Service>();
  std::size_t written = 0;
  for (auto _ : state) {
    state.PauseTiming();
    service->store_minute();
    state.ResumeTiming();
    written = service->look();
  }
  state.SetLabel(std::to_string(written) + " findings written; the bar is 1 s");
}
BENCHMARK(findings_one_minute_of_100000_gpus)->Unit(benchmark::kMillisecond)->MinTime(1);

}  // namespace
}  // namespace flopsight::findings
