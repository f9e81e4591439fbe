// The parts of the error in the report's three forms.

#include <gtest/gtest.h>

#include <cmath>

#include "model/error_band.h"
#include "test_support.h"

namespace flopsight::app {
namespace {

using namespace test;  // NOLINT: the report's small language

// Two jobs one after the other on a GPU, a sample every 30 s, whose clock jumps between two readings.
Input two_jobs() {
  const auto of = [](const std::string& pod, const std::vector<std::string>& tensor, const std::vector<std::string>& clock) {
    const std::string labels = h100("GPU-1", "n1", "0", "pod=\"" + pod + "\",namespace=\"x\"");
    return series(kTensor, labels, 30, tensor) + series(kClock, labels, 30, clock);
  };
  std::vector<std::string> first(40, "0.5"), second(40, "0.25"), clocks;
  for (int i = 0; i < 40; ++i) clocks.push_back(i % 2 == 0 ? "1590" : "1610");
  const std::vector<std::string> none(20, "-");
  std::vector<std::string> first_tensor(first.begin(), first.begin() + 20), second_tensor = none, first_clock(clocks.begin(), clocks.begin() + 20), second_clock = none;
  second_tensor.insert(second_tensor.end(), second.begin(), second.begin() + 20);
  second_clock.insert(second_clock.end(), clocks.begin(), clocks.begin() + 20);
  return {{of("a", first_tensor, first_clock) + of("b", second_tensor, second_clock)}, {}, {}};
}

double part(const Value& group, const char* id, const char* end) { return number(find(group, "error_parts", "id", id), end); }

TEST(ReportError, json_has_every_part_of_every_group_and_of_the_fleet) {
  const Value root = report(two_jobs());
  for (const Value& group : {job(root, "a"), job(root, "b"), at(root, "fleet")}) {
    ASSERT_EQ(count(group, "error_parts"), 8U);
    double low = number(group, "ofu_ratio"), high = low, low2 = 0, high2 = 0;
    const Value parts = at(group, "error_parts");
    for (const Value& one : *parts.as_array()) {
      if (text(one, "in_band") == "added") low += number(one, "low_ratio"), high += number(one, "high_ratio");
      if (text(one, "in_band") == "quadrature") low2 += std::pow(number(one, "low_ratio"), 2), high2 += std::pow(number(one, "high_ratio"), 2);
    }
    EXPECT_NEAR(number(group, "error_band.low_ratio"), low - std::sqrt(low2), 1e-12);
    EXPECT_NEAR(number(group, "error_band.high_ratio"), high + std::sqrt(high2), 1e-12);
    EXPECT_EQ(number(group, "error_band.confidence_ratio"), 0.9);
    EXPECT_EQ(text(group, "error_band.unknown.0"), "tile");
  }
  // Readings that differ by 20 MHz: 14.1 MHz of spread, 20 samples of 0.5 of 1830 MHz.
  EXPECT_NEAR(part(job(root, "a"), "clock_sampling", "high_ratio"), 1.67 * 0.5 * 14.14 / 1830 / std::sqrt(20), 5e-5);
  // Each job has two ends of 30 s in its 600 s; for the fleet only those of the window count.
  EXPECT_NEAR(part(job(root, "a"), "job_ends", "high_ratio"),
              1.645 * 30 * std::sqrt(2 * model::end_activity_variance(number(job(root, "a"), "ofu_ratio")) / 3) / 600, 1e-9);
  EXPECT_LT(part(at(root, "fleet"), "job_ends", "high_ratio"), part(job(root, "a"), "job_ends", "high_ratio"));
  EXPECT_EQ(text(root, "error_sources.coverage"), "unmeasured time taken as idle and as peak");
}

TEST(ReportError, an_instant_has_no_ends_and_one_reading_spans_every_clock) {
  const std::string labels = h100("GPU-1", "n1", "0", "pod=\"a\"");
  const Value root = report(sample(kTensor, labels, "0.5") + sample(kClock, labels, "1500"));
  const Value a = job(root, "a");
  EXPECT_EQ(text(find(a, "error_parts", "id", "clock_sampling"), "basis"), "bounded");
  EXPECT_EQ(part(a, "job_ends", "high_ratio"), 0);
  EXPECT_NEAR(part(a, "clock_sampling", "low_ratio"), -number(a, "ofu_ratio"), 1e-12);
}

TEST(ReportError, without_ofu_there_is_no_error_either) {
  const Value root = report(sample(kClock, h100("GPU-1", "n1", "0"), "1500"));
  EXPECT_EQ(text(root, "fleet.error_band"), "null");
  EXPECT_EQ(text(root, "fleet.error_parts"), "null");
}

TEST(ReportError, the_table_has_the_parts_where_they_are_asked_for) {
  Input input = two_jobs();
  EXPECT_EQ(run_report_on(input).out.find("Error of OFU"), std::string::npos);
  input.options = {"--errors"};
  const Answer answer = run_report_on(input);
  ASSERT_EQ(answer.exit_code, 0) << answer.err;
  for (const char* expected : {"Error of OFU, in points", "90 % band", "clock_sampling", "job_ends", "coverage: unmeasured time taken as idle and as peak"}) {
    EXPECT_NE(answer.out.find(expected), std::string::npos) << expected << "\n" << answer.out;
  }
  input.options = {"--errors", "--format", "csv"};
  const Answer refused = run_report_on(input);
  EXPECT_EQ(refused.exit_code, 2);
  EXPECT_NE(refused.err.find("--errors is for table and json"), std::string::npos) << refused.err;
}

}  // namespace
}  // namespace flopsight::app
