#include "hostgpus/gpu_page.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "hostgpus/gpu_watch.h"
#include "nvml/test_driver.h"

namespace flopsight::app {
namespace {

using catalog::Metric;
using testing::HasSubstr;
using testing::Not;

HostGpus one_gpu() {
  HostGpus host;
  host.host = "n1";
  host.driver = true;
  HostGpu& gpu = host.gpus.emplace_back();
  gpu.sample.gpu.index = "0";
  gpu.sample.gpu.uuid = "GPU-a";
  gpu.sample.gpu.model_raw = "NVIDIA H100 80GB HBM3";
  gpu.sample.values[Metric::kSmClock] = 1.755e9;
  gpu.sample.values[Metric::kTensorActive] = 0.525;
  gpu.sample.values[Metric::kGpuUtil] = 0.99;
  gpu.sample.values[Metric::kPower] = nvml::Absence::kNoPermission;
  gpu.ofu_ratio = 0.5;
  return host;
}

sources::ProcessOwner slurm_job(const std::string& job) {
  sources::ProcessOwner owner;
  owner.slurm_job = job;
  return owner;
}

std::size_t count(const std::string& page, const std::string& what) {
  std::size_t out = 0;
  for (std::size_t at = page.find(what); at != std::string::npos; at = page.find(what, at + 1)) ++out;
  return out;
}

TEST(GpuPage, units_and_labels_are_those_of_a_dcgm_exporter) {
  const std::string page = gpu_page(one_gpu(), false);
  const std::string labels = R"({gpu="0",UUID="GPU-a",modelName="NVIDIA H100 80GB HBM3",Hostname="n1"})";
  EXPECT_THAT(page, HasSubstr("\nDCGM_FI_PROF_PIPE_TENSOR_ACTIVE" + labels + " 0.525\n"));
  EXPECT_THAT(page, HasSubstr("DCGM_FI_DEV_SM_CLOCK" + labels + " 1755\n"));
  EXPECT_THAT(page, HasSubstr("DCGM_FI_DEV_GPU_UTIL" + labels + " 99\n"));
  EXPECT_THAT(page, HasSubstr("flopsight_gpu_up" + labels + " 1\n"));
}

TEST(GpuPage, what_is_not_known_has_a_reason_and_no_value) {
  const std::string page = gpu_page(one_gpu(), false);
  EXPECT_THAT(page, Not(HasSubstr("DCGM_FI_DEV_POWER_USAGE{")));
  EXPECT_THAT(page, HasSubstr(R"(flopsight_gpu_absent{uuid="GPU-a",host="n1",gpu="0",metric="power_watts",reason="no_permission"} 1)"));
}

TEST(GpuPage, tensor_activity_stands_for_all_activity_that_is_missing_for_its_reason) {
  HostGpus host = one_gpu();
  nvml::Values& values = host.gpus[0].sample.values;
  values[Metric::kTensorActive] = values[Metric::kSmActive] = nvml::Absence::kNotSupported;
  values[Metric::kDramActive] = nvml::Absence::kImplausible;
  const std::string page = gpu_page(host, false);
  EXPECT_THAT(page, HasSubstr(R"(metric="tensor_active_ratio",reason="not_supported")"));
  EXPECT_THAT(page, HasSubstr(R"(metric="dram_active_ratio",reason="implausible")"));
  EXPECT_THAT(page, Not(HasSubstr("sm_active_ratio")));
}

TEST(GpuPage, a_stale_page_names_the_gpus_and_nothing_that_was_true_before) {
  const std::string page = gpu_page(one_gpu(), true);
  EXPECT_THAT(page, Not(HasSubstr("DCGM_FI_")));
  EXPECT_THAT(page, Not(HasSubstr("flopsight_gpu_ofu_ratio")));
  EXPECT_THAT(page, HasSubstr("flopsight_gpu_up{gpu=\"0\",UUID=\"GPU-a\",modelName=\"NVIDIA H100 80GB HBM3\",Hostname=\"n1\"} 0\n"));
  EXPECT_THAT(page, HasSubstr("flopsight_agent_driver_up 0\n"));
}

TEST(GpuPage, jobs_that_share_a_gpu_get_a_copy_each_but_for_its_utilization) {
  HostGpus host = one_gpu();
  host.gpus[0].owners = {slurm_job("101"), slurm_job("102")};
  const std::string page = gpu_page(host, false);
  EXPECT_EQ(count(page, "\nDCGM_FI_PROF_PIPE_TENSOR_ACTIVE{"), 2U);
  EXPECT_THAT(page, HasSubstr(R"(Hostname="n1",hpc_job="101"} 0.525)"));
  EXPECT_THAT(page, HasSubstr(R"(Hostname="n1",hpc_job="102"} 0.525)"));
  EXPECT_EQ(count(page, "\nDCGM_FI_DEV_GPU_UTIL{"), 1U);
}

TEST(GpuPage, names_from_outside_cannot_break_out_of_a_label) {
  HostGpus host = one_gpu();
  host.gpus[0].owners = {slurm_job("1\"} 5\nx{a=\"\\")};
  EXPECT_THAT(gpu_page(host, false), HasSubstr(R"(hpc_job="1\"} 5\nx{a=\"\\"} 0.525)"));
}

// --- the reader, over the fake driver -----------------------------------------------------------------

std::shared_ptr<const catalog::DeviceCatalog> builtin() {
  return {std::shared_ptr<void>(), &catalog::DeviceCatalog::builtin()};
}

std::unique_ptr<GpuReader> reader(const nvml::TestDriver& driver) {
  GpuWatchOptions options;
  options.nvml.library_path = FLOPSIGHT_FAKE_NVML;
  options.owners.root = (driver.folder() / "root").string();
  options.host = "n1";
  auto opened = GpuReader::open(options, builtin());
  EXPECT_TRUE(opened.ok()) << (opened.ok() ? "" : opened.error().message);
  return opened.ok() ? std::move(opened).value() : nullptr;
}

constexpr units::Instant kNow{1'790'000'000'000};

TEST(GpuReader, totals_are_the_integral_of_what_was_known) {
  const nvml::TestDriver driver(nvml::hopper(0) + "at 4\ngpu 0 gpm 5 = 10\n");
  const auto gpus = reader(driver);
  gpus->read(kNow);
  driver.set_seconds(4);
  gpus->read(kNow + units::Seconds(4));
  driver.set_seconds(6);
  const HostGpu& gpu = gpus->read(kNow + units::Seconds(6)).gpus[0];
  EXPECT_DOUBLE_EQ(gpu.ofu_ratio.value(), 0.10 * 1755 / 1830);
  EXPECT_DOUBLE_EQ(gpu.totals.measured_seconds, 6);
  EXPECT_NEAR(gpu.totals.ofu_seconds, (0.525 * 4 + 0.10 * 2) * 1755 / 1830, 1e-12);
}

TEST(GpuReader, a_gpu_that_the_catalogue_does_not_know_is_counted_by_the_maximum_that_nvml_tells) {
  const nvml::TestDriver driver(nvml::hopper(0) + "gpu 0 name = NVIDIA X999\n");
  const auto gpus = reader(driver);
  gpus->read(kNow);
  driver.set_seconds(1);
  const HostGpu gpu = gpus->read(kNow + units::Seconds(1)).gpus[0];
  EXPECT_EQ(gpu.reference_source, "scraped_nvml_max");
  EXPECT_DOUBLE_EQ(gpu.ofu_ratio.value(), 0.525 * 1755 / 1980);
  const nvml::TestDriver silent(nvml::hopper(0) + "gpu 0 name = NVIDIA X999\ngpu 0 sm_clock_max_mhz = -\n");
  const auto others = reader(silent);
  others->read(kNow);
  silent.set_seconds(1);
  const HostGpu other = others->read(kNow + units::Seconds(1)).gpus[0];
  EXPECT_EQ(other.ofu_ratio, std::nullopt);
  EXPECT_THAT(missing_ofu(other), HasSubstr("no OFU: NVIDIA X999 is not in the GPU catalogue"));
}

TEST(GpuReader, as_many_jobs_of_a_gpu_as_the_limit_are_shown_and_one_more_is_counted) {
  std::string pids;
  for (std::size_t pid = 1; pid <= kOwnersMax + 1; ++pid) pids += " " + std::to_string(pid);
  const nvml::TestDriver driver(nvml::hopper(0) + "gpu 0 processes =" + pids.substr(0, pids.rfind(' ')) + "\nat 5\ngpu 0 processes =" + pids + "\n");
  for (std::size_t pid = 1; pid <= kOwnersMax + 1; ++pid) {
    const auto folder = driver.folder() / "root" / "proc" / std::to_string(pid);
    std::filesystem::create_directories(folder);
    std::ofstream(folder / "stat") << pid << " (a) S 1 1 1 0 -1 0 1 0 0 0 0 0 0 0 20 0 1 0 100 1 1\n";
    std::ofstream(folder / "cgroup") << "0::/slurm/uid_1/job_" << 1000 + pid << "\n";
  }
  const auto gpus = reader(driver);
  EXPECT_EQ(gpus->read(kNow).gpus[0].owners.size(), kOwnersMax);
  EXPECT_EQ(gpus->latest().owners_dropped, 0U);
  driver.set_seconds(5);
  EXPECT_EQ(gpus->read(kNow + units::Seconds(5)).gpus[0].owners.size(), kOwnersMax);
  EXPECT_EQ(gpus->latest().owners_dropped, 1U);
}

}  // namespace
}  // namespace flopsight::app
