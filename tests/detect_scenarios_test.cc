// The detectors (src/detect) on the fleets of `flopsight simulate`, whose truth is known: in each scenario that which happens is found, near the
// moment at which it happens, and nothing else; in the fleet in which nothing happens, nothing is.
//
// Minutes are made from the simulation's exact integrals, without scrapes between: what scraping loses and how that is marked is what the tests of
// rollups look at. Of the event reasons the reading in the middle of the minute stands for the minute.
#include <gtest/gtest.h>

#include <map>
#include <memory>

#include "catalog/devices.h"
#include "detect/faults.h"
#include "detect/job.h"
#include "simulation/meter.h"
#include "simulation/truth.h"

namespace flopsight::detect {
namespace {

using simulation::Integral;
using simulation::Meter;
using simulation::Options;
using simulation::Rate;
using simulation::Scenario;
using simulation::Timetable;

constexpr std::int64_t kMinute = 60'000;

Options options_of(Scenario scenario, std::uint32_t gpus, double hours, std::uint64_t seed) {
  Options out;
  out.scenario = scenario;
  out.gpus = gpus;
  out.seed = seed;
  out.model = simulation::default_model(scenario);
  out.labels = simulation::LabelStyle::kSlurm;
  out.window.end = out.window.start + units::Seconds(3600 * hours);
  auto checked = simulation::check(out);
  EXPECT_TRUE(checked.ok());
  return *checked;
}

MinutePoint point_of_integral(const Integral& sum, std::int64_t start, double reference_hertz) {
  MinutePoint out;
  out.start = units::Instant{start};
  out.allocated_seconds = out.measured_seconds = sum.seconds;
  out.ofu_ratio = sum.tensor_cycles_total / reference_hertz / sum.seconds;
  out.tensor_ratio = sum.of(Rate::kTensor) / sum.seconds;
  out.sm_ratio = sum.of(Rate::kSm) / sum.seconds;
  out.clock_hertz = sum.cycles_total / sum.seconds;
  out.power_watts = sum.of(Rate::kPower) / sum.seconds;
  const double bytes = sum.of(Rate::kNvlinkTx) + sum.of(Rate::kNvlinkRx) + sum.of(Rate::kPcieTx) + sum.of(Rate::kPcieRx);
  if (bytes > 0) out.link_bytes_per_second = bytes / sum.seconds;
  out.power_cap_ratio = sum.capped_seconds / sum.seconds;
  return out;
}

// First of a kind, with how it was last.
struct Seen {
  Finding first_told;
  std::int64_t told = 0;  // the start of the minute with which it was found
  bool of_subject = false;
};

class Watch {
 public:
  explicit Watch(const Options& options) : options_(options), timetable_(options), meter_(timetable_) {
    for (std::uint32_t gpu = 0; gpu < options.gpus; ++gpu) gpu_names_.push_back("gpu" + std::to_string(gpu));
    for (std::uint32_t host = 0; host < options.hosts(); ++host) host_names_.push_back("host" + std::to_string(host));
  }

  SubjectNames names() const {
    return {[this](std::uint32_t gpu) { return gpu_names_[gpu]; }, host_names_};
  }

  std::map<std::string, Seen> run() {
    for (std::int64_t t = options_.start_milliseconds(); t + kMinute <= options_.end_milliseconds(); t += kMinute) {
      std::vector<GpuMinute> held;
      for (std::uint32_t slot = 0; slot < timetable_.slots().size(); ++slot) add_slot(slot, t, held);
      faults_.add(held);
      for (const Finding& finding : faults_.findings(names())) see(finding, t, false);
    }
    return std::move(seen_);
  }

 private:
  struct Job {
    std::int64_t start = -1;
    std::unique_ptr<JobDetector> detector;
  };

  void add_slot(std::uint32_t slot, std::int64_t t, std::vector<GpuMinute>& held) {
    const simulation::Segment segment = timetable_.at(slot, t);
    // Minutes in which a job begins or ends are of two jobs.
    if (!segment.held || t + kMinute > segment.job_end) return;
    Job& job = jobs_[slot];
    if (job.start != segment.job_start) {
      job.start = segment.job_start;
      job.detector = std::make_unique<JobDetector>("slot" + std::to_string(slot) + "-" + std::to_string(segment.job_start));
    }
    const simulation::Slot& seat = timetable_.slots()[slot];
    std::vector<GpuMinute> gpus;
    Integral sum;
    for (std::uint32_t gpu = seat.gpu_first; gpu < seat.gpu_first + seat.gpu_count; ++gpu) {
      const Integral integral = meter_.integral(gpu, slot, t, t + kMinute);
      sum.add(integral, 1);
      GpuMinute minute{gpu, gpu / options_.gpus_per_host, false, point_of_integral(integral, t, reference())};
      const std::uint32_t reasons = meter_.read(gpu, slot, t + kMinute / 2, simulation::kInstants).event_reasons;
      minute.point.thermal_ratio = (reasons & 0x68U) != 0 ? 1 : 0;
      minute.point.setting_ratio = (reasons & 0x2U) != 0 ? 1 : 0;
      gpus.push_back(minute);
    }
    job.detector->add(point_of_integral(sum, t, reference()), gpus);
    for (const Finding& finding : job.detector->findings(names())) see(finding, t, timetable_.is_subject(slot));
    held.insert(held.end(), gpus.begin(), gpus.end());
  }

  void see(const Finding& finding, std::int64_t t, bool of_subject) { seen_.try_emplace(finding_key(finding), Seen{finding, t, of_subject}); }
  double reference() const { return options_.device->nvml_max_sm_clock->value; }

  Options options_;
  Timetable timetable_;
  Meter meter_;
  std::vector<std::string> gpu_names_, host_names_;
  std::map<std::uint32_t, Job> jobs_;
  FaultDetector faults_;
  std::map<std::string, Seen> seen_;
};

simulation::TrueEvent event_of(const Options& options, const std::string& kind) {
  const Timetable timetable(options);
  simulation::TrueEvent out;
  simulation::for_each_truth(
      timetable, [](const simulation::TrueJob&) {},
      [&](const simulation::TrueEvent& event) {
        if (event.kind.starts_with(kind)) out = event;
      });
  EXPECT_GT(out.end, 0) << kind;
  return out;
}

std::string all_of(const std::map<std::string, Seen>& seen, const simulation::TrueEvent& event = {}) {
  std::string out;
  for (const auto& [key, it] : seen) {
    out += key + " told " + std::to_string((it.told - event.start) / kMinute) + " min after: " + it.first_told.text;
    for (const Suspect& suspect : it.first_told.suspects) out += "\n    " + std::string(suspect_name(suspect.kind)) + ": " + suspect.text;
    out += "\n";
  }
  return out;
}

const Seen* of_kind(const std::map<std::string, Seen>& seen, FindingKind kind) {
  for (const auto& [key, it] : seen) {
    if (it.first_told.kind == kind) return &it;
  }
  return nullptr;
}

TEST(Scenarios, a_steady_fleet_has_nothing_the_matter_for_a_day) {
  for (const std::uint64_t seed : {1U, 2U, 3U}) {
    const auto seen = Watch(options_of(Scenario::kSteady, 64, 24, seed)).run();
    EXPECT_TRUE(seen.empty()) << "seed " << seed << "\n" << all_of(seen);
  }
}

TEST(Scenarios, a_debugging_flag_is_a_regression_within_five_minutes_and_the_host_is_the_suspect) {
  for (const std::uint64_t seed : {1U, 2U, 3U, 4U}) {
    const Options options = options_of(Scenario::kDebugFlagRegression, 16, 6, seed);
    const auto event = event_of(options, "debug_flag");
    const auto seen = Watch(options).run();
    const Seen* it = of_kind(seen, FindingKind::kRegression);
    ASSERT_NE(it, nullptr) << seed;
    EXPECT_EQ(seen.size(), 1U) << all_of(seen, event);
    EXPECT_TRUE(it->of_subject);
    EXPECT_LE(it->told + kMinute - event.start, 6 * kMinute) << all_of(seen, event);
    EXPECT_LE(std::abs(it->first_told.first.unix_milliseconds - event.start), 2 * kMinute) << all_of(seen, event);
    EXPECT_NEAR(it->first_told.evidence.at(2).value, 0.4, 0.05);
    ASSERT_FALSE(it->first_told.suspects.empty());
    EXPECT_EQ(it->first_told.suspects[0].kind, SuspectKind::kHostOrInput) << all_of(seen, event);
  }
}

TEST(Scenarios, slow_input_is_a_regression_and_the_host_or_the_input_is_the_suspect) {
  for (const std::uint64_t seed : {1U, 2U, 3U}) {
    const Options options = options_of(Scenario::kInputStarved, 16, 6, seed);
    const auto event = event_of(options, "input_starvation");
    const auto seen = Watch(options).run();
    const Seen* it = of_kind(seen, FindingKind::kRegression);
    ASSERT_NE(it, nullptr) << seed;
    EXPECT_EQ(seen.size(), 1U) << all_of(seen, event);
    EXPECT_LE(it->told + kMinute - event.start, 35 * kMinute) << all_of(seen, event);
    EXPECT_EQ(it->first_told.suspects.at(0).kind, SuspectKind::kHostOrInput) << all_of(seen, event);
  }
}

TEST(Scenarios, the_slow_gpu_is_named_within_twenty_minutes_and_is_the_regressions_first_suspect) {
  for (const std::uint64_t seed : {1U, 2U, 3U, 4U}) {
    const Options options = options_of(Scenario::kStraggler, 32, 6, seed);
    const auto event = event_of(options, "slow_gpu");
    const auto seen = Watch(options).run();
    const std::string name = "gpu" + std::to_string(event.odd.gpu_first);
    const Seen* slow = nullptr;
    for (const auto& [key, it] : seen) {
      const FindingKind kind = it.first_told.kind;
      EXPECT_TRUE(it.first_told.gpu.empty() || it.first_told.gpu == name) << all_of(seen, event);
      if (kind == FindingKind::kStraggler || kind == FindingKind::kSlowClock) slow = &it;
    }
    ASSERT_NE(slow, nullptr) << seed << all_of(seen, event);
    EXPECT_LE(slow->told + kMinute - event.start, 20 * kMinute) << all_of(seen, event);
    EXPECT_LE(std::abs(slow->first_told.first.unix_milliseconds - event.start), 2 * kMinute) << all_of(seen, event);
    const Seen* regression = of_kind(seen, FindingKind::kRegression);
    ASSERT_NE(regression, nullptr) << seed;
    EXPECT_EQ(regression->first_told.suspects.at(0).kind, SuspectKind::kSlowGpu) << all_of(seen, event);
  }
}

TEST(Scenarios, a_hot_host_is_named_within_seven_minutes) {
  for (const std::uint64_t seed : {1U, 2U, 3U}) {
    const Options options = options_of(Scenario::kThermal, 32, 6, seed);
    const auto event = event_of(options, "thermal");
    const auto seen = Watch(options).run();
    const Seen* it = of_kind(seen, FindingKind::kThermal);
    ASSERT_NE(it, nullptr) << all_of(seen, event);
    EXPECT_EQ(it->first_told.host, "host" + std::to_string(event.odd.gpu_first / 8));
    EXPECT_EQ(it->first_told.gpu, "") << all_of(seen, event);
    EXPECT_LE(it->told + kMinute - event.start, 7 * kMinute) << all_of(seen, event);
  }
}

TEST(Scenarios, a_hang_is_told_within_seven_minutes_and_is_no_regression) {
  for (const std::uint64_t seed : {1U, 2U, 3U}) {
    const Options options = options_of(Scenario::kHang, 16, 6, seed);
    const auto event = event_of(options, "hang");
    const auto seen = Watch(options).run();
    const Seen* it = of_kind(seen, FindingKind::kHang);
    ASSERT_NE(it, nullptr) << all_of(seen, event);
    EXPECT_EQ(seen.size(), 1U) << all_of(seen, event);
    EXPECT_LE(it->told + kMinute - event.start, 7 * kMinute) << all_of(seen, event);
    EXPECT_LE(std::abs(it->first_told.first.unix_milliseconds - event.start), kMinute) << all_of(seen, event);
  }
}

}  // namespace
}  // namespace flopsight::detect
