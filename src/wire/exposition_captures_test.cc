// Every capture of a real exporter in tests/fixtures, parsed whole. The counts and sums were taken
// from the files by other means (a regular expression per line, in another language). Values were
// summed in the order of the text in doubles, so the sums are equal to the last bit.
#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <set>
#include <string>

#include "base/file.h"
#include "wire/exposition.h"

namespace flopsight::wire {
namespace {

std::string fixture(const std::string& name) {
  auto text = base::read_file(FLOPSIGHT_SOURCE_DIR "/tests/fixtures/" + name);
  EXPECT_TRUE(text.ok()) << name;
  return std::move(text).value();
}

struct Tally : ExpositionSink {
  void sample(const ExpositionSample& sample) override {
    labels += sample.labels->labels.size();
    if (sample.labels->id != 0) sets.insert(sample.labels->id);
    if (std::isfinite(sample.value)) sum += sample.value;
    std::string key(sample.metric);
    for (const Label& label : sample.labels->labels) {
      key.append(" ").append(label.name).append("=").append(label.value);
    }
    values[key] = sample.value;
  }
  void malformed(const ExpositionError& error) override {
    ADD_FAILURE() << error.line << ":" << error.column << " " << error.expected;
  }
  void type(std::string_view metric, std::string_view type) override {
    types[std::string(metric)] = type;
    ++type_lines;
  }
  // The value of the only sample whose name, and labels if given, start so.
  double only(const std::string& start) const {
    const auto found = values.lower_bound(start);
    EXPECT_TRUE(found != values.end() && found->first.starts_with(start)) << start;
    const auto next = std::next(found);
    EXPECT_TRUE(next == values.end() || !next->first.starts_with(start)) << start;
    return found->second;
  }

  std::size_t labels = 0;
  std::size_t type_lines = 0;
  double sum = 0;
  std::set<std::uint32_t> sets;
  std::map<std::string, std::string> types;
  std::map<std::string, double> values;
};

struct Capture {
  const char* file;
  std::size_t lines, samples, types, blocks, labels;
  double sum;
};

constexpr Capture kCaptures[] = {
    {"amd_exporter/amd-dme-metrics_mini.txt", 15, 5, 5, 1, 8, 0x1.0cb1p+16},
    {"amd_exporter/issue-fragments.prom", 4, 1, 1, 1, 16, 0},
    {"dcgm_exporter/aicr-h100-eks.prom", 30, 30, 0, 8, 226, 0x1.92e22d0e56040p+9},
    {"dcgm_exporter/kops-conformance.prom", 138, 46, 46, 1, 322, 0x1.2adda975c28f6p+23},
    {"dcgm_exporter/runai-fraction-1_workload.prom", 76, 38, 19, 2, 342, 0x1.1950c4c1cd812p+24},
    {"dcgm_exporter/runai-mig-4_Active_Workloads.prom", 84, 56, 14, 4, 616, 0x1.a5228416e019bp+24},
    {"dcgm_exporter/runai-mig-Empty_mig_disabled.prom", 138, 46, 46, 1, 414, 0x1.94cfc76ffbe77p+29},
    {"dcgm_exporter/runai-mig-Emtpy_MIG_enabled.prom", 42, 14, 14, 1, 126, 0x1.46d3cfeb8a19dp+23},
    {"dcgm_exporter/upcloud-l40s.prom", 69, 23, 23, 1, 161, 0x1.4aeef3bcafa64p+32},
    {"gpu_exporters/linux-x86_64__nvidia-h100-80gb-hbm3__590.48.01__idle.metrics", 396, 132, 132, 2,
     139, 0x1.543ec960bca3ep+37},
    {"gpu_exporters/linux-x86_64__nvidia-h100-80gb-hbm3__590.48.01__load.metrics", 406, 138, 134, 5,
     157, 0x1.8274fa598799ap+37},
    {"gpu_exporters/linux-x86_64__nvidia-h200-mig__590.48.01__load.metrics", 379, 129, 125, 5, 148,
     0x1.39030a15b9ae2p+38},
    {"gpu_exporters/linux-x86_64__nvidia-l40s__595.80__load.metrics", 398, 134, 132, 4, 149,
     0x1.e08fc445bf3ecp+36},
    {"prom_text/prometheus-1histogram.om.txt", 45, 42, 1, 39, 162, 0x1.38p+5},
    {"prom_text/prometheus-alltypes.237mfs.prom.txt", 2332, 1857, 237, 1206, 2749,
     0x1.00002d70a324fp+64},
    {"prom_text/prometheus-alltypes.5mfs.om.txt", 64, 53, 5, 36, 61, 0x1.cf2cae9f1376dp+33},
};

TEST(ExpositionCaptures, every_line_of_every_capture_is_understood) {
  for (const Capture& capture : kCaptures) {
    SCOPED_TRACE(capture.file);
    const std::string text = fixture(capture.file);
    for (const std::uint32_t sets_max : {4'000'000U, 3U, 0U}) {
      ExpositionParser parser({.format = exposition_format("", text), .label_sets_max = sets_max});
      for (int scrape = 0; scrape < 2; ++scrape) {
        Tally tally;
        const ExpositionTotals totals = parser.parse(text, tally);
        EXPECT_EQ(totals.lines, capture.lines);
        EXPECT_EQ(totals.samples, capture.samples);
        EXPECT_EQ(totals.malformed, 0U);
        EXPECT_EQ(tally.type_lines, capture.types);
        EXPECT_EQ(tally.labels, capture.labels);
        EXPECT_EQ(tally.sum, capture.sum);
        if (sets_max > 3) {
          EXPECT_EQ(tally.sets.size(), capture.blocks);
        }
      }
    }
  }
}

Tally tally_of(const std::string& file) {
  const std::string text = fixture(file);
  ExpositionParser parser({.format = exposition_format("", text)});
  Tally tally;
  parser.parse(text, tally);
  return tally;
}

TEST(ExpositionCaptures, values_and_labels_of_eight_h100_are_read) {
  const Tally tally = tally_of("dcgm_exporter/aicr-h100-eks.prom");
  EXPECT_EQ(
      tally.only("DCGM_FI_DEV_POWER_USAGE gpu=0 UUID=GPU-c4529c8d-69c4-b61d-e0bc-7b2460096005 "
                 "pci_bus_id=00000000:53:00.0 device=nvidia0 modelName=NVIDIA H100 80GB HBM3 "
                 "Hostname=gpu-node-1 DCGM_FI_DRIVER_VERSION=580.105.08 container=main "
                 "namespace=dynamo-workload pod=vllm-agg-0-vllmdecodeworker-s65j5 pod_uid="),
      113.611);
  EXPECT_EQ(tally.only("DCGM_FI_DEV_GPU_TEMP gpu=7 UUID=GPU-04d228d3"), 26);
}

TEST(ExpositionCaptures, slices_of_a_mig_gpu_are_told_apart) {
  const Tally tally = tally_of("dcgm_exporter/runai-mig-4_Active_Workloads.prom");
  const std::string slice =
      "gpu=0 UUID=GPU-473571f2-fb37-ef7e-50fe-9885b74a23cd device=nvidia0 "
      "modelName=NVIDIA A100-SXM4-40GB GPU_I_PROFILE=1g.5gb GPU_I_ID=7 ";
  EXPECT_EQ(tally.only("DCGM_FI_DEV_POWER_USAGE " + slice), 112.252);
  EXPECT_EQ(tally.only("DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION " + slice), 6890956);
  EXPECT_EQ(tally.types.at("DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION"), "counter");
}

TEST(ExpositionCaptures, exponents_and_device_names_with_parentheses_are_read) {
  const Tally h100 =
      tally_of("gpu_exporters/linux-x86_64__nvidia-h100-80gb-hbm3__590.48.01__load.metrics");
  EXPECT_EQ(h100.only("nvidia_smi_clocks_current_sm_clock_hz uuid="), 1.98e9);
  const Tally amd = tally_of("amd_exporter/issue-fragments.prom");
  EXPECT_EQ(
      amd.values.begin()->first.find(" card_series=AMD INSTINCT MI200 (MCM) OAM LC MBA HPE C2 "),
      std::string("xgmi_neighbor_5_tx_throughput card_model=102-D65201-00").size());
}

TEST(ExpositionCaptures, samples_with_exemplars_keep_their_own_value) {
  const Tally tally = tally_of("prom_text/prometheus-alltypes.5mfs.om.txt");
  EXPECT_EQ(tally.only("rpc_durations_histogram_seconds_bucket le=-0.0002899999999999998"), 3);
  EXPECT_EQ(tally.only("promhttp_metric_handler_errors_created cause=encoding"),
            1.726839813016397e+09);
}

}  // namespace
}  // namespace flopsight::wire
