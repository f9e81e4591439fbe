#pragma once
// For tests of the service: an Ingest in a folder that disappears, remote-write messages of a small fleet, and what its store
// then has. Not part of the program.

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/check.h"
#include "serve/ingest.h"
#include "test_support.h"
#include "wire/remote_write.h"
#include "wire/snappy.h"

namespace flopsight::app::test {

using units::Instant;
using LabelTexts = std::vector<std::pair<std::string, std::string>>;

inline Instant after(double seconds) { return Instant{kStartMilliseconds} + units::Seconds(seconds); }

// A remote-write message under construction; `body()` is what a client posts.
class Message {
 public:
  explicit Message(wire::RemoteWriteVersion version = wire::RemoteWriteVersion::kV1) : version_(version) {}

  Message& add(std::string_view metric, const LabelTexts& labels, double value, double seconds) {
    Series series{{{"__name__", std::string(metric)}}, {{after(seconds).unix_milliseconds, value}}};
    series.labels.insert(series.labels.end(), labels.begin(), labels.end());
    std::sort(series.labels.begin(), series.labels.end());
    series_.push_back(std::move(series));
    return *this;
  }
  // What dcgm-exporter says of a GPU: tensor activity and clock.
  Message& gpu(const LabelTexts& labels, double tensor, double seconds, double mhz = 1500) {
    return add(kTensor, labels, tensor, seconds).add(kClock, labels, mhz, seconds);
  }
  std::string plain() const {
    std::vector<wire::RemoteWriteSeriesOut> out;
    for (const Series& series : series_) {
      wire::RemoteWriteSeriesOut one;
      for (const auto& [name, value] : series.labels) one.labels.push_back({name, value});
      one.samples = series.samples;
      out.push_back(std::move(one));
    }
    return wire::encode_remote_write(version_, out);
  }
  std::string body() const { return wire::snappy_compress(plain()); }
  wire::RemoteWriteVersion version() const { return version_; }

 private:
  struct Series {
    LabelTexts labels;
    std::vector<wire::RemoteWriteSample> samples;
  };
  wire::RemoteWriteVersion version_;
  std::vector<Series> series_;
};

inline LabelTexts labels_of(int gpu, const std::string& pod, const LabelTexts& more = {}) {
  LabelTexts labels = {{"gpu", std::to_string(gpu % 8)},
                       {"UUID", "GPU-0000000" + std::to_string(gpu) + "-aaaa-bbbb-cccc-000000000000"},
                       {"modelName", "NVIDIA H100 80GB HBM3"},
                       {"Hostname", "n" + std::to_string(gpu / 8)}};
  if (!pod.empty()) labels.insert(labels.end(), {{"exported_pod", pod}, {"exported_namespace", "a"}});
  labels.insert(labels.end(), more.begin(), more.end());
  return labels;
}

// All fields of the cells of each (job, model), in order.
using Totals = std::map<std::string, std::vector<std::int64_t>>;

class IngestHarness {
 public:
  IngestHarness() { open(); }

  void open() {
    ingest_.reset();
    auto opened = Ingest::open(options(), rules_);
    FLOPSIGHT_CHECK(opened.ok());
    ingest_ = std::move(opened).value();
  }
  IngestOptions options() const {
    IngestOptions options = base_;
    options.folder = folder_.path() + "/" + name_;
    options.live.fleet.catalog = &catalog_;
    options.log.free_bytes_min = base_.log.free_bytes_min == store::LogOptions().free_bytes_min ? 0 : base_.log.free_bytes_min;
    return options;
  }
  // Another store, empty.
  void fresh(const std::string& name) {
    ingest_.reset();
    name_ = name;
    open();
  }
  WriteAnswer write(const Message& message) { return ingest_->remote_write(message.version(), message.body(), now_); }
  void flush(bool everything = false) {
    FLOPSIGHT_CHECK(ingest_->flush(now_, everything).ok());
  }
  // `gpus` of one job from second `from` to `to`, a sample every 15 seconds, the clock on the wall going along.
  void run(const std::string& pod, const std::vector<int>& gpus, int from, int to,
           wire::RemoteWriteVersion version = wire::RemoteWriteVersion::kV1, const LabelTexts& more = {}) {
    for (int t = from; t < to; t += 15) {
      Message message(version);
      for (const int gpu : gpus) message.gpu(labels_of(gpu, pod, more), tensor_at(gpu, t), t, 1400 + (t / 15 * 7 + gpu) % 300);
      now_ = after(t);
      FLOPSIGHT_CHECK(write(message).status == 204);
    }
  }
  static double tensor_at(int gpu, int t) { return 0.2 + ((t / 15 * 37 + gpu * 11) % 60) / 100.0; }

  Totals totals() const {
    Totals out;
    Ingest::StoreHandle store = ingest_->store();
    const auto all = store->job_totals({Instant{0}, after(40 * 86'400.0)}, std::nullopt);
    FLOPSIGHT_CHECK(all.ok());
    for (const store::JobTotal& total : *all) {
      const std::string job = total.job == 0 ? "nobody" : store->holder(total.job).name_space + "/" + store->holder(total.job).job;
      const auto values = total.cell.values();
      out[job + " on " + store->model_name(total.model)].assign(values.begin(), values.end());
    }
    return out;
  }
  // Of a GPU that was closed out before a restart, the difference between the last reading of its clock before and the first one after is not known.
  Totals totals_but_for_clock_differences() const {
    Totals all = totals();
    for (auto& [job, fields] : all) {
      for (const rollups::CellField field : {rollups::CellField::kClockDifferenceCount, rollups::CellField::kClockDifference}) {
        fields[static_cast<std::size_t>(field)] = 0;
      }
    }
    return all;
  }
  // GPU-hours of a job, allocated.
  double hours(const std::string& job) const {
    Ingest::StoreHandle store = ingest_->store();
    const auto all = store->job_totals({Instant{0}, after(40 * 86'400.0)}, std::nullopt);
    double microseconds = 0;
    for (const store::JobTotal& total : *all) {
      const std::string name = total.job == 0 ? "nobody" : store->holder(total.job).job;
      if (name == job) microseconds += static_cast<double>(total.cell.allocated_microseconds());
    }
    return microseconds / 3.6e9;
  }

  TempFolder folder_;
  std::string name_ = "store";
  jobs::LabelRules rules_ = jobs::LabelRules::builtin();
  catalog::DeviceCatalog catalog_ = catalog::DeviceCatalog::builtin();
  IngestOptions base_;
  Instant now_ = after(0);
  std::unique_ptr<Ingest> ingest_;
};

}  // namespace flopsight::app::test
