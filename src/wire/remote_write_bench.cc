// Decoding remote write as a fleet's Prometheus sends it: messages of 2,000 series with one sample
// each, 20 labels as dcgm-exporter and a Kubernetes scrape configuration make them, 64 GPUs on 8
// nodes, 32 metrics. `snappy` has the decompression in it, which is what one request costs before
// its samples are used; `unwanted` is a message of whose metrics none is read; `unseen` is the
// worst case, 2,000 GPUs whose labels a decoder sees for the first time and has to check. The sink
// does what the real one does first: looks at the name and the key, and adds the values.
#include <benchmark/benchmark.h>

#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "wire/remote_write.h"
#include "wire/snappy.h"

namespace flopsight::wire {
namespace {

constexpr std::size_t kSeries = 2'000;
constexpr std::size_t kGpus = 64;
constexpr std::size_t kUnseenGpus = kSeries;
constexpr std::size_t kMessages = 16;

// Owns what the labels point to.
struct Fleet {
  std::vector<std::string> texts;
  std::vector<RemoteWriteSeriesOut> series;
};

std::string_view keep(Fleet& fleet, std::string text) {
  fleet.texts.push_back(std::move(text));
  return fleet.texts.back();
}

std::vector<Label> labels_of(Fleet& fleet, std::size_t metric, std::size_t gpu) {
  const std::string node = std::to_string(gpu / 8);
  const std::string index = std::to_string(gpu % 8);
  const std::string id = std::to_string(1'000 + gpu);
  const std::string name = "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE_" + std::to_string(metric);
  return {{"DCGM_FI_DRIVER_VERSION", "580.105.08"},
          {"Hostname", keep(fleet, "gpu-node-" + node)},
          {"UUID", keep(fleet, "GPU-c4529c8d-69c4-b61d-e0bc-7b246009" + id)},
          {"__name__", keep(fleet, name)},
          {"cluster", "eu-west-training-1"},
          {"container", "main"},
          {"device", keep(fleet, "nvidia" + index)},
          {"endpoint", "gpu-metrics"},
          {"exported_namespace", "dynamo-workload"},
          {"exported_pod", keep(fleet, "vllm-agg-0-vllmdecodeworker-s6" + id)},
          {"gpu", keep(fleet, index)},
          {"instance", keep(fleet, "10.244." + node + ".17:9400")},
          {"job", "nvidia-dcgm-exporter"},
          {"modelName", "NVIDIA H100 80GB HBM3"},
          {"namespace", "gpu-operator"},
          {"pci_bus_id", keep(fleet, "00000000:" + index + "3:00.0")},
          {"pod", keep(fleet, "nvidia-dcgm-exporter-drq" + node)},
          {"prometheus", "monitoring/k8s"},
          {"prometheus_replica", "prometheus-k8s-0"},
          {"service", "nvidia-dcgm-exporter"}};
}

std::vector<std::string> messages(RemoteWriteVersion version, std::size_t gpus = kGpus) {
  Fleet fleet;
  fleet.texts.reserve(16 * kSeries);
  for (std::size_t i = 0; i < kSeries; ++i) {
    fleet.series.push_back({labels_of(fleet, i / gpus, i % gpus), {{}}});
  }
  std::vector<std::string> out;
  for (std::size_t m = 0; m < kMessages; ++m) {
    for (std::size_t i = 0; i < kSeries; ++i) {
      const std::size_t mix = (i * 7919 + m * 104729) % 10'007;
      fleet.series[i].samples[0] = {1'700'000'000'000 + static_cast<std::int64_t>(m * 15'000),
                                    static_cast<double>(mix) / 10'007};
    }
    out.push_back(encode_remote_write(version, fleet.series));
  }
  return out;
}

struct Sum : RemoteWriteSink {
  explicit Sum(bool wanted_in) : wanted(wanted_in) {}
  bool wants(std::string_view metric) override { return wanted && metric.size() > 4; }
  void series(RemoteWriteSeries& series) override {
    keys ^= series.labels_key().low;
    for (const RemoteWriteSample& sample : series.samples()) sum += sample.value;
  }
  void rejected(std::string_view, std::string_view) override { ++rejections; }
  bool wanted;
  double sum = 0;
  std::uint64_t keys = 0;
  std::uint64_t rejections = 0;
};

void report(benchmark::State& state, std::size_t bytes) {
  state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(kSeries));
  state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(bytes));
  state.counters["bytes_a_sample"] = static_cast<double>(bytes) / kSeries;
}

void decode(benchmark::State& state, RemoteWriteVersion version, bool with_snappy, bool wanted) {
  const std::vector<std::string> plain = messages(version);
  std::vector<std::string> packed;
  for (const std::string& message : plain) packed.push_back(snappy_compress(message));
  RemoteWriteDecoder decoder(7);
  Sum sink(wanted);
  RemoteWriteTotals totals;
  std::string unpacked;
  std::size_t next = 0;
  for (auto _ : state) {
    const std::size_t at = next++ % kMessages;
    if (with_snappy && !snappy_decompress(packed[at], 1 << 24, unpacked).ok()) std::abort();
    const std::string& message = with_snappy ? unpacked : plain[at];
    if (!decoder.decode(version, message, sink, totals).ok()) std::abort();
    benchmark::DoNotOptimize(sink.sum);
  }
  if (sink.rejections != 0) state.SkipWithError("series rejected");
  report(state, plain[0].size());
  state.counters["packed_bytes_a_sample"] = static_cast<double>(packed[0].size()) / kSeries;
}

void decode_unseen(benchmark::State& state, RemoteWriteVersion version) {
  const std::vector<std::string> plain = messages(version, kUnseenGpus);
  const std::string packed = snappy_compress(plain[0]);
  Sum sink(true);
  RemoteWriteTotals totals;
  std::string unpacked;
  for (auto _ : state) {
    RemoteWriteDecoder decoder(7);
    if (!snappy_decompress(packed, 1 << 24, unpacked).ok()) std::abort();
    if (!decoder.decode(version, unpacked, sink, totals).ok()) std::abort();
    benchmark::DoNotOptimize(sink.sum);
  }
  if (sink.rejections != 0) state.SkipWithError("series rejected");
  report(state, plain[0].size());
}

void snappy_only(benchmark::State& state, RemoteWriteVersion version) {
  const std::string plain = messages(version)[0];
  const std::string packed = snappy_compress(plain);
  std::string unpacked;
  for (auto _ : state) {
    if (!snappy_decompress(packed, 1 << 24, unpacked).ok()) std::abort();
    benchmark::DoNotOptimize(unpacked.data());
  }
  report(state, plain.size());
}

void encode(benchmark::State& state, RemoteWriteVersion version, bool with_snappy) {
  Fleet fleet;
  fleet.texts.reserve(16 * kSeries);
  for (std::size_t i = 0; i < kSeries; ++i) {
    fleet.series.push_back({labels_of(fleet, i / kGpus, i % kGpus), {{1'700'000'000'000, 0.5}}});
  }
  std::size_t bytes = 0;
  for (auto _ : state) {
    std::string message = encode_remote_write(version, fleet.series);
    bytes = message.size();
    if (with_snappy) message = snappy_compress(message);
    benchmark::DoNotOptimize(message.data());
  }
  report(state, bytes);
}

constexpr auto kV1 = RemoteWriteVersion::kV1;
constexpr auto kV2 = RemoteWriteVersion::kV2;
BENCHMARK_CAPTURE(decode, v1, kV1, false, true);
BENCHMARK_CAPTURE(decode, v1_snappy, kV1, true, true);
BENCHMARK_CAPTURE(decode, v1_snappy_unwanted, kV1, true, false);
BENCHMARK_CAPTURE(decode_unseen, v1_snappy, kV1);
BENCHMARK_CAPTURE(snappy_only, v1, kV1);
BENCHMARK_CAPTURE(decode, v2, kV2, false, true);
BENCHMARK_CAPTURE(decode, v2_snappy, kV2, true, true);
BENCHMARK_CAPTURE(decode, v2_snappy_unwanted, kV2, true, false);
BENCHMARK_CAPTURE(decode_unseen, v2_snappy, kV2);
BENCHMARK_CAPTURE(snappy_only, v2, kV2);
BENCHMARK_CAPTURE(encode, v1_snappy, kV1, true);
BENCHMARK_CAPTURE(encode, v2_snappy, kV2, true);

}  // namespace
}  // namespace flopsight::wire
