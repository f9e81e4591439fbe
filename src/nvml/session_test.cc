#include "nvml/session.h"

#include <gtest/gtest.h>

#include "nvml/test_driver.h"

namespace flopsight::nvml {
namespace {

using catalog::Metric;

std::unique_ptr<Session> opened(const char* library = FLOPSIGHT_FAKE_NVML) {
  auto session = Session::open(library);
  EXPECT_TRUE(session.ok()) << (session.ok() ? "" : session.error().message);
  return session.ok() ? std::move(session).value() : nullptr;
}

Values between(Session& session, const TestDriver& driver, const Device& device, double from_seconds, double to_seconds) {
  driver.set_seconds(from_seconds);
  const GpmSample before = session.take_sample(device);
  driver.set_seconds(to_seconds);
  const GpmSample after = session.take_sample(device);
  Values values = session.read(device);
  session.add_activity(before, after, values);
  return values;
}

TEST(Session, a_gpu_says_who_it_is_and_what_holds_now_in_our_units) {
  const TestDriver driver("driver version = 550.54.15\n" + hopper(0));
  const auto session = opened();
  EXPECT_EQ(session->driver_version(), "550.54.15");
  const auto devices = session->devices();
  ASSERT_TRUE(devices.ok());
  ASSERT_EQ(devices->size(), 1U);
  const Device& device = devices->front();
  EXPECT_EQ(device.name, "NVIDIA H100 80GB HBM3");
  EXPECT_EQ(device.uuid, "GPU-00000000-1111-2222-3333-444455556666");
  EXPECT_EQ(device.pci_bus_id, "00000000:10:00.0");
  EXPECT_EQ(device.index, 0U);
  EXPECT_EQ(device.minor_number, 3U);
  EXPECT_TRUE(device.gpm());
  EXPECT_FALSE(device.mig);
  const Values values = session->read(device);
  EXPECT_DOUBLE_EQ(values[Metric::kSmClock].number(), 1755e6);
  EXPECT_DOUBLE_EQ(values[Metric::kSmClockMax].number(), 1980e6);
  EXPECT_DOUBLE_EQ(values[Metric::kPower].number(), 612.5);
  EXPECT_DOUBLE_EQ(values[Metric::kPowerLimit].number(), 700);
  EXPECT_DOUBLE_EQ(values[Metric::kEnergy].number(), 123456.789);
  EXPECT_DOUBLE_EQ(values[Metric::kEventReasons].number(), 4);
  EXPECT_DOUBLE_EQ(values[Metric::kTemperature].number(), 61);
  EXPECT_DOUBLE_EQ(values[Metric::kGpuUtil].number(), 0.99);
  EXPECT_DOUBLE_EQ(values[Metric::kFramebufferUsed].number(), 68719476736.0);
}

TEST(Session, activity_is_the_mean_between_two_samples) {
  const TestDriver driver(hopper(0) + "at 10\ngpu 0 gpm 5 = 90\n");
  const auto session = opened();
  const Device device = session->devices()->front();
  const Values values = between(*session, driver, device, 8, 12);
  EXPECT_DOUBLE_EQ(values[Metric::kTensorActive].number(), (0.525 * 2 + 0.90 * 2) / 4);
  EXPECT_DOUBLE_EQ(values[Metric::kSmActive].number(), 0.91);
  EXPECT_DOUBLE_EQ(values[Metric::kPcieTx].number(), 512 * 1048576.0);
  // GPM lists what NVLink received first.
  EXPECT_DOUBLE_EQ(values[Metric::kNvlinkRx].number(), 100 * 1048576.0);
  EXPECT_DOUBLE_EQ(values[Metric::kNvlinkTx].number(), 200 * 1048576.0);
}

TEST(Session, cycle_counters_are_read_where_the_driver_has_them) {
  const std::string rates = "gpu 0 gpm_rate 248 = 1755000000\ngpu 0 gpm_rate 249 = 1000000000\ngpu 0 gpm_rate 250 = 900000000\n";
  {
    const TestDriver driver(hopper(0) + rates);
    const auto session = opened();
    const Values values = between(*session, driver, session->devices()->front(), 1, 3);
    EXPECT_DOUBLE_EQ(values[Metric::kSmCyclesElapsed].number(), 3 * 1755e6);
    EXPECT_DOUBLE_EQ(values[Metric::kMmaCyclesActive].number(), 3 * 900e6);
  }
  const TestDriver older("driver gpm_id_max = 98\n" + hopper(0) + rates);
  const auto session = opened();
  const Values values = between(*session, older, session->devices()->front(), 1, 3);
  EXPECT_EQ(values[Metric::kSmCyclesElapsed].absence(), Absence::kNotSupported);
  // What the driver does know is not lost by asking for what it does not.
  EXPECT_DOUBLE_EQ(values[Metric::kTensorActive].number(), 0.525);
}

TEST(Session, one_sample_is_not_yet_a_mean) {
  const TestDriver driver(hopper(0));
  const auto session = opened();
  const Device device = session->devices()->front();
  Values values;
  session->add_activity(GpmSample(), session->take_sample(device), values);
  EXPECT_EQ(values[Metric::kTensorActive].absence(), Absence::kNotYetSampled);
}

TEST(Session, a_gpu_before_hopper_has_no_activity_and_says_so) {
  const TestDriver driver("gpu 0 name = NVIDIA A100-SXM4-80GB\ngpu 0 uuid = GPU-a\ngpu 0 sm_clock_mhz = 1410\ngpu 0 power_milliwatts = 390000\n");
  const auto session = opened();
  const Device device = session->devices()->front();
  EXPECT_EQ(device.gpm_absence, Absence::kNotSupported);
  const Values values = between(*session, driver, device, 0, 1);
  EXPECT_EQ(values[Metric::kTensorActive].absence(), Absence::kNotSupported);
  EXPECT_DOUBLE_EQ(values[Metric::kSmClock].number(), 1410e6);
  EXPECT_EQ(values[Metric::kTemperature].absence(), Absence::kNotSupported);
}

TEST(Session, an_old_driver_is_asked_by_the_old_names) {
  const TestDriver driver(hopper(0) + "gpu 0 processes = 41:1000\ngpu 0 memory_reserved_bytes = 0\n");
  const auto session = opened(FLOPSIGHT_FAKE_NVML_OLD);
  const Device device = session->devices()->front();
  EXPECT_EQ(device.gpm_absence, Absence::kNoFunction);
  const Values values = between(*session, driver, device, 0, 1);
  EXPECT_EQ(values[Metric::kTensorActive].absence(), Absence::kNoFunction);
  EXPECT_DOUBLE_EQ(values[Metric::kEventReasons].number(), 4);
  EXPECT_DOUBLE_EQ(values[Metric::kFramebufferUsed].number(), 68719476736.0);
  const auto processes = session->processes(device);
  ASSERT_TRUE(processes.ok());
  ASSERT_EQ(processes->size(), 1U);
  EXPECT_EQ(processes->front().pid, 41U);
}

TEST(Session, what_the_driver_calls_impossible_or_no_number_is_not_a_value) {
  const TestDriver driver(hopper(0) + "gpu 0 gpm 5 = 5200\ngpu 0 gpm 2 = nan\ngpu 0 fails nvmlDeviceGetPowerUsage = 4\n"
                          "gpu 0 fails nvmlDeviceGetMemoryInfo_v2 = 25\n");
  const auto session = opened();
  const Values values = between(*session, driver, session->devices()->front(), 0, 1);
  EXPECT_EQ(values[Metric::kTensorActive].absence(), Absence::kImplausible);
  EXPECT_EQ(values[Metric::kPower].absence(), Absence::kNoPermission);
  EXPECT_EQ(values[Metric::kFramebufferUsed].absence(), Absence::kVersionMismatch);
  EXPECT_FALSE(values[Metric::kSmActive].present());
  EXPECT_DOUBLE_EQ(values[Metric::kDramActive].number(), 0.33);
}

TEST(Session, a_refused_layout_of_gpm_is_told) {
  const TestDriver driver(hopper(0) + "driver fails nvmlGpmMetricsGet = 25\n");
  const auto session = opened();
  const Values values = between(*session, driver, session->devices()->front(), 0, 1);
  EXPECT_EQ(values[Metric::kTensorActive].absence(), Absence::kVersionMismatch);
}

TEST(Session, instances_of_mig_have_profiles_and_activity_of_their_own) {
  const TestDriver driver(hopper(0) + "gpu 0 mig = on\n"
                          "gpu 0 instance 3 name = NVIDIA H100 80GB HBM3 MIG 3g.40gb\ngpu 0 instance 3 gpm 5 = 80\n"
                          "gpu 0 instance 3 memory_used_bytes = 5000\n"
                          "gpu 0 instance 9 name = NVIDIA H100 80GB HBM3 MIG 1c.2g.20gb\n"
                          "gpu 0 instance 10 name = NVIDIA H100 80GB HBM3 MIG 1c.2g.20gb\ngpu 0 instance 10 gpu_instance = 9\n");
  const auto session = opened();
  const Device device = session->devices()->front();
  EXPECT_TRUE(device.mig);
  // Two compute instances divide GPU instance 9.
  ASSERT_EQ(device.instances.size(), 2U);
  EXPECT_EQ(device.instances[0].gpu_instance, 3U);
  EXPECT_EQ(device.instances[0].profile, "3g.40gb");
  EXPECT_EQ(device.instances[1].profile, "2g.20gb");
  const GpmSample before = session->take_sample(device, device.instances[0]);
  driver.set_seconds(1);
  Values values;
  session->add_activity(before, session->take_sample(device, device.instances[0]), values);
  EXPECT_DOUBLE_EQ(values[Metric::kTensorActive].number(), 0.80);
  EXPECT_DOUBLE_EQ(session->memory_used(device.instances[0]).number(), 5000);
}

TEST(Session, processes_of_all_kinds_are_listed_once) {
  const TestDriver driver(hopper(0) + "gpu 0 processes = 41:1000 42\ngpu 0 mps_processes = 42 43:7\ngpu 0 graphics_processes = 41:1000 44\n");
  const auto session = opened();
  const auto processes = session->processes(session->devices()->front());
  ASSERT_TRUE(processes.ok());
  std::vector<std::uint32_t> pids;
  for (const Process& process : *processes) pids.push_back(process.pid);
  EXPECT_EQ(pids, (std::vector<std::uint32_t>{41, 42, 43, 44}));
  EXPECT_EQ((*processes)[0].used_bytes, 1000U);
  EXPECT_EQ((*processes)[1].used_bytes, std::nullopt);
  EXPECT_EQ((*processes)[0].gpu_instance, std::nullopt);
}

TEST(Session, as_many_processes_as_the_limit_are_read_and_one_more_is_told) {
  std::string list;
  for (std::uint32_t pid = 1; pid <= kProcessesMax; ++pid) list += " " + std::to_string(pid);
  {
    const TestDriver driver(hopper(0) + "gpu 0 processes =" + list + "\n");
    const auto session = opened();
    EXPECT_EQ(session->processes(session->devices()->front())->size(), kProcessesMax);
  }
  const TestDriver driver(hopper(0) + "gpu 0 processes =" + list + " 999999\n");
  const auto session = opened();
  const auto processes = session->processes(session->devices()->front());
  ASSERT_FALSE(processes.ok());
  EXPECT_EQ(processes.error().code, base::ErrorCode::kLimit);
}

TEST(Session, as_many_gpus_as_the_limit_are_listed_and_one_more_is_an_error) {
  std::string script;
  for (std::uint32_t i = 0; i < kDevicesMax; ++i) script += "gpu " + std::to_string(i) + " name = NVIDIA T4\n";
  {
    const TestDriver driver(script);
    EXPECT_EQ(opened()->devices()->size(), kDevicesMax);
  }
  const TestDriver driver(script + "gpu 64 name = NVIDIA T4\n");
  const auto devices = opened()->devices();
  ASSERT_FALSE(devices.ok());
  EXPECT_EQ(devices.error().message, "65 GPUs on one host (expected at most 64)");
}

TEST(Session, xid_errors_are_handed_out_once) {
  const TestDriver driver(hopper(0) + "at 5\ngpu 0 xid = 31\nat 6\ngpu 0 xid = 79\n");
  const auto session = opened();
  const Device device = session->devices()->front();
  EXPECT_TRUE(session->reports_xids(device));
  EXPECT_TRUE(session->take_xids().empty());
  driver.set_seconds(7);
  const auto events = session->take_xids();
  ASSERT_EQ(events.size(), 2U);
  EXPECT_EQ(events[0].xid, 31U);
  EXPECT_EQ(events[1].xid, 79U);
  EXPECT_EQ(events[1].device, device.handle);
  EXPECT_TRUE(session->take_xids().empty());
}

TEST(Session, without_a_library_or_driver_it_says_what_is_missing) {
  const auto none = Session::open("/nonexistent/libnvidia-ml.so.1");
  ASSERT_FALSE(none.ok());
  EXPECT_EQ(none.error().code, base::ErrorCode::kNotFound);
  EXPECT_NE(none.error().message.find("/nonexistent/libnvidia-ml.so.1"), std::string::npos);
  EXPECT_NE(none.error().message.find("expected the library of an NVIDIA driver"), std::string::npos);
  const auto other = Session::open("libz.so.1");
  ASSERT_FALSE(other.ok());
  EXPECT_EQ(other.error().code, base::ErrorCode::kUnsupported);
  for (const auto& [state, words] : {std::pair("not_loaded", "kernel driver is not loaded"), std::pair("mismatch", "different versions")}) {
    const TestDriver driver(std::string("driver state = ") + state + "\n");
    const auto failed = Session::open(FLOPSIGHT_FAKE_NVML);
    ASSERT_FALSE(failed.ok());
    EXPECT_EQ(failed.error().code, base::ErrorCode::kUnavailable);
    EXPECT_NE(failed.error().message.find(words), std::string::npos) << failed.error().message;
  }
}

}  // namespace
}  // namespace flopsight::nvml
