#include "sources/collector.h"

#include <gtest/gtest.h>

#include "sources/exposition_source.h"

namespace flopsight::sources {
namespace {

using catalog::Metric;
using samples::GpuTimeline;

struct World {
  jobs::HolderTable holders;
  samples::QualityLog quality;
  Collector collector{jobs::LabelRules::builtin(), holders, quality};

  std::vector<GpuTimeline> read(const std::string& text, const std::string& place = "a.prom") {
    const base::Status status = collect_scrape({place, "", text, 0}, collector, quality);
    EXPECT_TRUE(status.ok()) << (status.ok() ? "" : status.error().message);
    return collector.take();
  }
};

TEST(Collector, old_and_new_names_of_one_upgrade_are_one_reading) {
  World world;
  const auto gpus = world.read(
      "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE{gpu=\"0\",UUID=\"GPU-a\",Hostname=\"n1\"} 0.5\n"
      "DCGM_FI_PROF_TENSOR_UTIL_RATIO{gpu=\"0\",UUID=\"GPU-a\",hostname=\"n1\"} 0.5\n");
  ASSERT_EQ(gpus.size(), 1U);
  EXPECT_EQ(gpus[0].scrapes.size(), 1U);
  EXPECT_EQ(world.quality.count("duplicate"), 1U);
}

TEST(Collector, a_gpu_without_uuid_joins_the_one_with_its_host_and_index) {
  World world;
  const auto gpus = world.read(
      "DCGM_FI_DEV_SM_CLOCK{gpu=\"3\",UUID=\"GPU-a\",Hostname=\"n1\"} 1500\n"
      "slurm_job_tensor_gpu{gpu=\"3\",hostname=\"n1\",slurmjobid=\"77\",user=\"ann\"} 40\n");
  ASSERT_EQ(gpus.size(), 1U);
  EXPECT_DOUBLE_EQ(gpus[0].scrapes[0].reading(Metric::kTensorActive).value(), 0.4);
  EXPECT_EQ(world.holders.at(gpus[0].scrapes[0].holders.at(0)).user, "ann");
}

TEST(Collector, values_of_a_mig_parent_go_to_its_instances_and_it_is_no_gpu_of_its_own) {
  World world;
  const auto gpus = world.read(
      "DCGM_FI_DEV_SM_CLOCK{gpu=\"0\",UUID=\"GPU-a\"} 1410\n"
      "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE{gpu=\"0\",UUID=\"GPU-a\",GPU_I_ID=\"1\",GPU_I_PROFILE=\"3g.20gb\"} 0.5\n"
      "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE{gpu=\"0\",UUID=\"GPU-a\",GPU_I_ID=\"2\",GPU_I_PROFILE=\"4g.20gb\"} 0.25\n"
      "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE{gpu=\"0\",UUID=\"GPU-a\"} 0.9\n");
  ASSERT_EQ(gpus.size(), 2U);
  for (const GpuTimeline& gpu : gpus) {
    EXPECT_DOUBLE_EQ(gpu.scrapes[0].reading(Metric::kSmClock).value(), 1.41e9);
    EXPECT_LT(gpu.scrapes[0].reading(Metric::kTensorActive).value(), 0.6);
  }
}

// Whether scrapes have times is asked of what is left of a GPU, after others were joined to it and instances took their share.
TEST(Collector, of_a_parent_whose_timed_scrapes_were_all_its_instances_the_others_are_kept) {
  World world;
  const auto gpus = world.read(
      "DCGM_FI_DEV_SM_CLOCK{gpu=\"0\",UUID=\"GPU-a\"} 1410 1700000000000\n"
      "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE{gpu=\"0\",UUID=\"GPU-a\",GPU_I_ID=\"1\",GPU_I_PROFILE=\"3g.20gb\"} 0.5 1700000000000\n"
      "DCGM_FI_DEV_POWER_USAGE{gpu=\"0\",UUID=\"GPU-a\"} 90\n");
  ASSERT_EQ(gpus.size(), 2U);
  for (const GpuTimeline& gpu : gpus) {
    EXPECT_EQ(gpu.scrapes.size(), 1U);
    EXPECT_EQ(gpu.has_times, gpu.gpu.mig_instance == "1");
  }
}

TEST(Collector, samples_without_times_do_not_join_a_gpu_that_has_some) {
  World world;
  const auto gpus = world.read(
      "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE{gpu=\"3\",UUID=\"GPU-a\",Hostname=\"n1\"} 0.5 1700000000000\n"
      "slurm_job_power_gpu{gpu=\"3\",hostname=\"n1\",slurmjobid=\"77\"} 300000\n");
  ASSERT_EQ(gpus.size(), 1U);
  ASSERT_EQ(gpus[0].scrapes.size(), 1U);
  EXPECT_EQ(gpus[0].scrapes[0].time.unix_milliseconds, 1'700'000'000'000);
}

TEST(Collector, per_process_families_add_up_and_the_device_wins) {
  World world;
  const auto sum = world.read(
      "DCGM_FI_DEV_GPU_UTIL{gpu=\"0\",UUID=\"GPU-a\",pod=\"p1\",vgpu=\"0\"} 60\n"
      "DCGM_FI_DEV_GPU_UTIL{gpu=\"0\",UUID=\"GPU-a\",pod=\"p2\",vgpu=\"1\"} 30\n");
  EXPECT_DOUBLE_EQ(sum[0].scrapes[0].reading(Metric::kGpuUtil).value(), 0.9);
  EXPECT_EQ(sum[0].scrapes[0].holders.size(), 2U);
  const auto device = world.read(
      "DCGM_FI_DEV_GPU_UTIL{gpu=\"0\",UUID=\"GPU-a\",pod=\"p1\",vgpu=\"0\"} 60\n"
      "DCGM_FI_DEV_GPU_UTIL{gpu=\"0\",UUID=\"GPU-a\"} 95\n"
      "DCGM_FI_DEV_GPU_UTIL{gpu=\"0\",UUID=\"GPU-a\",pod=\"p2\",vgpu=\"1\"} 30\n");
  EXPECT_DOUBLE_EQ(device[0].scrapes[0].reading(Metric::kGpuUtil).value(), 0.95);
}

TEST(Collector, masked_uuids_of_two_files_are_two_gpus) {
  World world;
  const std::string text =
      "nvidia_smi_clocks_current_sm_clock_hz{uuid=\"00000000-0000-0000-0000-000000000000\"} 1.98e+09\n";
  ASSERT_TRUE(collect_scrape({"a", "", text, 0}, world.collector, world.quality).ok());
  ASSERT_TRUE(collect_scrape({"b", "", text, 1}, world.collector, world.quality).ok());
  EXPECT_EQ(world.collector.take().size(), 2U);
}

TEST(Collector, gpus_with_masked_uuids_are_told_apart_by_host_and_index) {
  World world;
  std::string text;
  for (const char* uuid : {"GPU-00000000-0000-0000-0000-000000000000", "GPU-xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx"}) {
    for (const char* index : {"0", "1"}) {
      text += std::string("DCGM_FI_DEV_SM_CLOCK{gpu=\"") + index + "\",UUID=\"" + uuid + "\",Hostname=\"" + uuid[4] + "\"} 1500\n";
    }
  }
  EXPECT_EQ(world.read(text).size(), 4U);
}

TEST(Collector, series_of_a_masked_gpu_that_lack_its_index_are_its_own_where_the_host_has_one) {
  World world;
  const auto gpus = world.read("nvidia_smi_gpu_info{uuid=\"00000000-0000-0000-0000-000000000000\",index=\"0\",name=\"NVIDIA L4\"} 1\n"
                               "nvidia_smi_clocks_current_sm_clock_hz{uuid=\"00000000-0000-0000-0000-000000000000\"} 1.98e+09\n");
  ASSERT_EQ(gpus.size(), 1U);
  EXPECT_EQ(gpus[0].gpu.model_raw, "NVIDIA L4");
}

TEST(Collector, instances_of_gpus_with_masked_uuids_are_of_the_gpu_with_their_index) {
  World world;
  const std::string same = "UUID=\"GPU-00000000-0000-0000-0000-000000000000\",Hostname=\"n1\"";
  const auto gpus = world.read("DCGM_FI_DEV_SM_CLOCK{gpu=\"0\"," + same + "} 1500\n" +
                               "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE{gpu=\"0\",GPU_I_ID=\"1\"," + same + "} 0.5\n" +
                               "DCGM_FI_PROF_PIPE_TENSOR_ACTIVE{gpu=\"0\",GPU_I_ID=\"2\"," + same + "} 0.5\n" +
                               "DCGM_FI_DEV_SM_CLOCK{gpu=\"1\"," + same + "} 1400\n");
  ASSERT_EQ(gpus.size(), 3U);
  for (const auto& gpu : gpus) {
    EXPECT_EQ(gpu.scrapes[0].reading(Metric::kSmClock).value(), gpu.gpu.index == "0" ? 1.5e9 : 1.4e9);
  }
}

TEST(Collector, samples_of_other_exporters_make_no_gpu) {
  World world;
  EXPECT_TRUE(world.read("node_cpu_seconds_total{cpu=\"0\"} 1\nnvidia_smi_count 8\n"
                         "DCGM_FI_DEV_COUNT 8\n")
                  .empty());
}

TEST(Scrape, a_malformed_line_is_named_with_file_line_and_column_and_the_rest_is_used) {
  World world;
  const auto gpus = world.read("DCGM_FI_DEV_SM_CLOCK{gpu=\"0\",UUID=\"GPU-a\"} 1500\noops{ 1\n"
                               "DCGM_FI_DEV_SM_CLOCK{gpu=\"1\",UUID=\"GPU-b\"} 1500\n");
  EXPECT_EQ(gpus.size(), 2U);
  ASSERT_EQ(world.quality.entries().size(), 1U);
  EXPECT_TRUE(world.quality.entries()[0].where.starts_with("a.prom:2:")) << world.quality.entries()[0].where;
}

TEST(Scrape, an_empty_one_is_a_missing_scrape_and_a_page_of_html_an_error) {
  World world;
  EXPECT_TRUE(world.read("# only a comment\n").empty());
  EXPECT_EQ(world.quality.count("empty_scrape"), 1U);
  const base::Status html = collect_scrape({"x", "", "<html>\n<body>\n", 0}, world.collector, world.quality);
  ASSERT_FALSE(html.ok());
  EXPECT_TRUE(html.error().message.starts_with("x:1: expected Prometheus text")) << html.error().message;
}

TEST(Scrape, samples_that_say_simulated_are_noted) {
  World world;
  world.read("flopsight_simulated 1\n");
  EXPECT_EQ(world.quality.count("simulated"), 1U);
}

}  // namespace
}  // namespace flopsight::sources
