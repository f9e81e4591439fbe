// Time, money and shape: windows, intervals, prices, groupings, reference clocks, CSV.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "test_support.h"

namespace flopsight::app {
namespace {

using namespace test;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

void expect_adds_up(const Value& summary, const std::string& where) {
  const double allocated = number(summary, "gpu_hours_allocated");
  EXPECT_NEAR(allocated, number(summary, "gpu_hours_delivered") + number(summary, "gpu_hours_lost") +
                             number(summary, "gpu_hours_unmeasured"), 1e-12) << where;
  EXPECT_NEAR(number(summary, "coverage_ratio"), 1 - number(summary, "gpu_hours_unmeasured") / allocated, 1e-9) << where;
  if (text(summary, "ofu_ratio") == "null") return;
  EXPECT_LE(number(summary, "ofu_ratio_low"), number(summary, "ofu_ratio") + 1e-12) << where;
  EXPECT_GE(number(summary, "ofu_ratio_high") + 1e-12,
            number(summary, "gpu_hours_delivered") / allocated) << where;
  double waterfall = 0;
  for (const char* part : {"ofu_ratio", "clock_loss_ratio", "tensor_idle_sm_busy_ratio", "sm_idle_ratio",
                           "tensor_idle_unsplit_ratio", "unmeasured_ratio"}) {
    const double share = number(summary, std::string("waterfall.") + part);
    if (!std::isnan(share)) waterfall += share;
  }
  EXPECT_NEAR(waterfall, 1, 1e-9) << where;
}

TEST(ReportWindow, delivered_lost_and_unmeasured_add_up_to_allocated_everywhere) {
  const std::string a = h100("GPU-a", "n1", "0", "pod=\"p\""), b = h100("GPU-b", "n1", "1", "pod=\"p\"");
  const std::string c = h100("GPU-c", "n2", "0", "pod=\"q\""), d = h100("GPU-d", "n2", "1");
  const Value r = report(Input{
      {series(kTensor, a, 15, {"0.5", "0.6", "0.55", "140737488355328", "0.4"}) +
       series(kClock, a, 15, {"1830", "1755", "1980", "1830", "1410"}) +
       series("DCGM_FI_PROF_SM_ACTIVE", a, 15, {"0.9", "0.8", "-", "0.9", "0.7"}) +
       series(kTensor, b, 30, {"0.1", "-", "0.2"}) + series(kClock, b, 30, times(3, "1830")) +
       series(kTemperature, c, 15, times(5, "40")) + series(kTensor, d, 15, {"0.01", "0.02", "-", "-", "-"}) +
       series(kClock, d, 15, {"1980", "1980", "-", "-", "-"})},
      {"--start", "2026-11-29T09:59:50Z", "--end", "2026-11-29T10:03:00Z"},
      {}});
  expect_adds_up(at(r, "fleet"), "fleet");
  EXPECT_NEAR(number(r, "fleet.gpu_hours_allocated"), 4 * 190.0 / 3600, 1e-12);
  for (const char* name : {"p", "q", "null"}) expect_adds_up(job(r, name), name);
}

TEST(ReportWindow, a_window_cuts_the_samples_and_everything_before_and_after_is_left_out) {
  const std::string labels = h100("GPU-a", "n1", "0");
  const Value r = report(Input{{series(kTensor, labels, 60, {"0.9", "0.2", "0.4", "0.9"}) +
                                series(kClock, labels, 60, times(4, "1830"))},
                               {"--start", "2026-11-29T10:01:00Z", "--end", "2026-11-29T10:03:00Z"},
                               {}});
  EXPECT_EQ(text(r, "window.start"), "2026-11-29T10:01:00Z");
  EXPECT_EQ(text(r, "window.end"), "2026-11-29T10:03:00Z");
  EXPECT_NEAR(number(r, "fleet.ofu_ratio"), 0.3, 1e-12);
  EXPECT_NEAR(number(r, "fleet.gpu_hours_allocated"), 120.0 / 3600, 1e-12);
}

TEST(ReportWindow, of_samples_outside_of_the_window_nothing_is_noted) {
  const std::string labels = h100("GPU-a", "n1", "0");
  const auto blanks = [&](const char* start, const char* end) {
    return quality(report(Input{{series(kTensor, labels, 60, {"0.2", "140737488355328", "0.4", "140737488355328", "140737488355328"}) +
                                 series(kClock, labels, 60, times(5, "1830"))},
                                {"--start", start, "--end", end},
                                {}}), "blank");
  };
  EXPECT_EQ(blanks("2026-11-29T10:00:00Z", "2026-11-29T10:03:00Z"), 1);
  EXPECT_EQ(blanks("2026-11-29T10:00:00Z", "2026-11-29T10:05:00Z"), 3);
}

TEST(ReportWindow, a_window_in_the_middle_of_a_sample_takes_its_part) {
  const std::string labels = h100("GPU-a", "n1", "0");
  const Value r = report(Input{{series(kTensor, labels, 60, {"0.2", "0.6", "0.6"}) + series(kClock, labels, 60, times(3, "1830"))},
                               {"--start", "1795946430", "--end", "2026-11-29T11:01:30+01:00"},
                               {}});
  EXPECT_NEAR(number(r, "fleet.ofu_ratio"), 0.4, 1e-12);
  EXPECT_EQ(number(r, "fleet.coverage_ratio"), 1);
}

TEST(ReportWindow, since_reaches_back_from_the_end_or_from_now) {
  const std::string labels = h100("GPU-a", "n1", "0");
  const std::string scrape = series(kTensor, labels, 60, times(3, "0.5")) + series(kClock, labels, 60, times(3, "1830"));
  const Value to_end = report(Input{{scrape}, {"--since", "1m", "--end", "2026-11-29T10:02:00Z"}, {}});
  EXPECT_EQ(text(to_end, "window.start"), "2026-11-29T10:01:00Z");
  EXPECT_EQ(number(to_end, "fleet.coverage_ratio"), 1);
  const Value to_now = report(Input{{scrape}, {"--since", "2h"}, {}});
  EXPECT_EQ(text(to_now, "window.start"), "2026-11-29T10:00:00Z");
  EXPECT_EQ(text(to_now, "window.end"), "2026-11-29T12:00:00Z");
  EXPECT_NEAR(number(to_now, "fleet.gpu_hours_allocated"), 2, 1e-12);
  EXPECT_NEAR(number(to_now, "fleet.coverage_ratio"), 180.0 / 7200, 1e-9);
}

TEST(ReportWindow, a_window_beside_all_samples_is_refused_with_the_times_that_there_are) {
  const std::string labels = h100("GPU-a", "n1", "0");
  const test::TempFolder folder;
  const std::string file = folder.write("a.prom", series(kTensor, labels, 60, times(3, "0.5")) + series(kClock, labels, 60, times(3, "1830")));
  for (const auto& [start, end] : {std::pair("2026-11-29T11:00:00Z", "2026-11-29T11:30:00Z"), std::pair("2026-11-29T09:00:00Z", "2026-11-29T10:00:00Z")}) {
    const test::Answer answer = test::run_program({"report", "--file", file, "--start", start, "--end", end});
    EXPECT_NE(answer.exit_code, 0);
    EXPECT_EQ(answer.out, "");
    EXPECT_NE(answer.err.find(std::string("no sample between ") + start), std::string::npos) << answer.err;
    EXPECT_NE(answer.err.find("from 2026-11-29T10:00:00Z to 2026-11-29T10:02:00Z"), std::string::npos) << answer.err;
  }
}

TEST(ReportWindow, a_scrape_without_times_has_ratios_and_no_hours) {
  const Value r = report(sample(kTensor, h100("GPU-a", "n1", "0"), "0.5") + sample(kClock, h100("GPU-a", "n1", "0"), "1830"));
  EXPECT_EQ(text(r, "window.start"), "null");
  EXPECT_EQ(text(r, "fleet.gpu_hours_allocated"), "null");
  EXPECT_EQ(text(r, "fleet.gpu_hours_lost"), "null");
  EXPECT_EQ(number(r, "fleet.ofu_ratio"), 0.5);
  EXPECT_TRUE(assumes(r, "instant"));
}

TEST(ReportWindow, the_interval_is_read_from_the_series_and_time_is_weighted) {
  // Two hosts scraped every 10 s and every 60 s for two minutes: each is half of the fleet.
  const std::string fast = h100("GPU-a", "n1", "0"), slow = h100("GPU-b", "n2", "0");
  const Value r = report(series(kTensor, fast, 10, times(12, "0.8")) + series(kClock, fast, 10, times(12, "1830")) +
                         series(kTensor, slow, 60, times(2, "0.2")) + series(kClock, slow, 60, times(2, "1830")));
  EXPECT_NEAR(number(r, "fleet.ofu_ratio"), 0.5, 1e-9);
  EXPECT_NEAR(number(r, "fleet.gpu_hours_allocated"), 240.0 / 3600, 1e-9);
  EXPECT_NEAR(number(r, "fleet.coverage_ratio"), 1, 1e-9);
}

TEST(ReportWindow, an_unusual_interval_is_no_row_of_gaps) {
  const std::string labels = h100("GPU-a", "n1", "0");
  const Value r = report(series(kTensor, labels, 600, times(6, "0.5")) + series(kClock, labels, 600, times(6, "1830")));
  EXPECT_NEAR(number(r, "fleet.coverage_ratio"), 1, 1e-12);
  EXPECT_NEAR(number(r, "fleet.gpu_hours_allocated"), 1, 1e-12);
}

TEST(ReportWindow, one_lost_scrape_is_held_over_and_a_longer_hole_is_a_gap) {
  const std::string labels = h100("GPU-a", "n1", "0");
  const auto with = [&](const std::vector<std::string>& tensor, std::vector<std::string> clock) {
    return report(series(kTensor, labels, 30, tensor) + series(kClock, labels, 30, clock));
  };
  const Value one = with({"0.5", "0.5", "-", "0.5", "0.5", "0.5", "0.5", "0.5"},
                         {"1830", "1830", "-", "1830", "1830", "1830", "1830", "1830"});
  EXPECT_NEAR(number(one, "fleet.coverage_ratio"), 1, 1e-12);
  const Value four = with({"0.5", "0.5", "0.5", "-", "-", "-", "-", "0.5"},
                          {"1830", "1830", "1830", "-", "-", "-", "-", "1830"});
  EXPECT_NEAR(number(four, "fleet.coverage_ratio"), 0.5, 1e-12);
  EXPECT_NEAR(number(four, "fleet.ofu_ratio"), 0.5, 1e-12) << "a gap is not idle time";
}

TEST(ReportWindow, a_price_of_no_model_is_said_and_costs_nobody_the_others) {
  const std::string scrape = series(kTensor, h100("GPU-a", "n1", "0"), 900, times(4, "0.5")) + series(kClock, h100("GPU-a", "n1", "0"), 900, times(4, "1830"));
  const auto with = [&](const std::string& prices) { return run_report_on({{scrape}, {"--prices", "@p", "--format", "json"}, {{"p", prices}}}).err; };
  EXPECT_THAT(with(R"({"H100": 2, "L40s": 1, "*": 3})"), AllOf(HasSubstr("prices: H100: not in the catalogue, which has "), HasSubstr("H100-SXM5-80GB"),
                                                              HasSubstr("prices: L40s: not in the catalogue, which has L40S"), Not(HasSubstr("*:"))));
  EXPECT_THAT(with("model,team,usd_per_gpu_hour\nh100-sxm5-80gb,,2\nH100-SXM5-80GB,x,2\n"), HasSubstr("h100-sxm5-80gb: not in the catalogue, which has H100-SXM5-80GB;"));
  EXPECT_EQ(with("model,usd_per_gpu_hour\nH100-SXM5-80GB,2\nNVIDIA L40S,1\nNVIDIA-H100-80GB-HBM3,2\n*,1\n"), "");
}

TEST(ReportWindow, prices_are_used_exactly_and_only_where_they_are_known) {
  const std::string a = h100("GPU-a", "n1", "0", "pod=\"p\"");
  const std::string b = "gpu=\"0\",UUID=\"GPU-b\",modelName=\"NVIDIA L40S\",Hostname=\"n2\",pod=\"q\"";
  const std::string scrape = series(kTensor, a, 900, {"0.25", "0.25", "140737488355328", "0.25"}) +
                             series(kClock, a, 900, times(4, "1830")) + series(kTensor, b, 900, times(4, "0.5")) +
                             series(kClock, b, 900, times(4, "2520"));
  const Value known = report(Input{{scrape}, {"--prices", "@p.csv"},
                                   {{"p.csv", "model,usd_per_gpu_hour\nH100-SXM5-80GB,4\nNVIDIA L40S,1.5\n"}}});
  EXPECT_NEAR(number(job(known, "p"), "cost_usd"), 4, 1e-9);
  EXPECT_NEAR(number(job(known, "p"), "cost_lost_usd"), 4 * 0.75 * 0.75, 1e-9);
  EXPECT_NEAR(number(job(known, "p"), "cost_unmeasured_usd"), 1, 1e-9);
  EXPECT_NEAR(number(job(known, "q"), "cost_usd"), 1.5, 1e-9);
  EXPECT_NEAR(number(known, "fleet.cost_usd"), 5.5, 1e-9);

  const Value partly = report(Input{{scrape}, {"--prices", "@p.json"}, {{"p.json", R"({"H100-SXM5-80GB": 4})"}}});
  EXPECT_NEAR(number(job(partly, "p"), "cost_usd"), 4, 1e-9);
  EXPECT_EQ(text(job(partly, "q"), "cost_usd"), "null");
  EXPECT_EQ(text(partly, "fleet.cost_usd"), "null") << "a sum that leaves out a part is no sum";
  EXPECT_GE(quality(partly, "price_unknown"), 1);

  const Value any = report(Input{{scrape}, {"--prices", "@p.json"}, {{"p.json", R"({"L40S": 0, "*": 2})"}}});
  EXPECT_NEAR(number(job(any, "p"), "cost_usd"), 2, 1e-9);
  EXPECT_EQ(number(job(any, "q"), "cost_usd"), 0) << "free is a price";

  const Value none = report(scrape);
  EXPECT_EQ(text(none, "fleet.cost_usd"), "null");
  EXPECT_EQ(quality(none, "price_unknown"), 0);
}

TEST(ReportWindow, an_instant_has_no_cost) {
  const std::string labels = h100("GPU-a", "n1", "0");
  const Value r = report(Input{{sample(kTensor, labels, "0.5") + sample(kClock, labels, "1830")},
                               {"--prices", "@p.json"},
                               {{"p.json", R"({"*": 2})"}}});
  EXPECT_EQ(text(r, "fleet.cost_usd"), "null");
}

TEST(ReportWindow, values_above_one_are_shown_and_explained) {
  const std::string labels = h100("GPU-a", "n1", "0");
  const Value r = report(series(kTensor, labels, 15, times(4, "1")) + series(kClock, labels, 15, times(4, "1980")));
  EXPECT_NEAR(number(r, "fleet.ofu_ratio"), 1980.0 / 1830, 1e-12);
  EXPECT_NEAR(number(r, "fleet.clock_loss_ratio"), 1 - 1980.0 / 1830, 1e-12);
  EXPECT_LT(number(r, "fleet.gpu_hours_lost"), 0);
  EXPECT_EQ(quality(r, "ofu_above_one"), 4);
  expect_adds_up(at(r, "fleet"), "fleet");
}

TEST(ReportWindow, the_reference_clock_may_be_given_or_be_the_maximum) {
  const std::string labels = h100("GPU-a", "n1", "0");
  const std::string scrape = sample(kTensor, labels, "0.5") + sample(kClock, labels, "990");
  const std::string with_max = scrape + sample("DCGM_FI_DEV_MAX_SM_CLOCK", labels, "2000");
  const auto clock = [](const std::string& text_of_scrape, const char* option) {
    return report(Input{{text_of_scrape}, {"--reference-clock", option}, {}});
  };
  EXPECT_NEAR(number(clock(scrape, "990"), "fleet.ofu_ratio"), 0.5, 1e-12);
  EXPECT_EQ(text(clock(scrape, "990"), "gpus.0.reference_clock_source"), "override");
  EXPECT_NEAR(number(clock(scrape, "nvml-max"), "fleet.ofu_ratio"), 0.25, 1e-12);
  EXPECT_EQ(text(clock(scrape, "nvml-max"), "gpus.0.reference_clock_source"), "catalog_nvml_max");
  EXPECT_NEAR(number(clock(with_max, "nvml-max"), "fleet.ofu_ratio"), 0.2475, 1e-12);
  EXPECT_EQ(text(clock(with_max, "nvml-max"), "gpus.0.reference_clock_source"), "scraped_nvml_max");
  EXPECT_EQ(text(clock(with_max, "auto"), "gpus.0.reference_clock_source"), "catalog_tensor_peak");
}

TEST(ReportWindow, an_unknown_model_with_a_scraped_maximum_has_an_unverified_reference) {
  const std::string labels = "gpu=\"0\",UUID=\"GPU-a\",modelName=\"NVIDIA X9000\"";
  const Value r = report(sample(kTensor, labels, "0.5") + sample(kClock, labels, "1000") +
                         sample("DCGM_FI_DEV_MAX_SM_CLOCK", labels, "2000"));
  EXPECT_NEAR(number(r, "fleet.ofu_ratio"), 0.25, 1e-12);
  EXPECT_EQ(text(r, "gpus.0.reference_clock_source"), "scraped_nvml_max");
  EXPECT_EQ(quality(r, "unknown_model"), 1);
  EXPECT_TRUE(assumes(r, "not verified"));
}

std::string three_jobs() {
  std::string scrape;
  const std::vector<std::vector<std::string>> rows = {
      {"GPU-a", "n1", "0", "pod=\"low\",namespace=\"x\",user=\"ann\",team=\"t\"", "0.1"},
      {"GPU-b", "n1", "1", "pod=\"mid\",namespace=\"x\",user=\"bob\",team=\"t\"", "0.5"},
      {"GPU-c", "n2", "0", "pod=\"high\",namespace=\"y\",user=\"ann\",team=\"u\"", "0.9"}};
  for (const auto& row : rows) {
    const std::string labels = h100(row[0], row[1], row[2], row[3]);
    scrape += series(kTensor, labels, 15, times(4, row[4])) + series(kClock, labels, 15, times(4, "1830"));
  }
  return scrape;
}

TEST(ReportWindow, groups_are_ordered_by_what_was_lost_and_top_keeps_the_first) {
  const Value all = report(three_jobs());
  EXPECT_EQ(text(all, "groups.0.key.job"), "low");
  EXPECT_EQ(text(all, "groups.1.key.job"), "mid");
  EXPECT_EQ(text(all, "groups.2.key.job"), "high");
  const Value top = report(Input{{three_jobs()}, {"--top", "1"}, {}});
  EXPECT_EQ(count(top, "groups"), 1U);
  EXPECT_EQ(text(top, "groups.0.key.job"), "low");
  EXPECT_EQ(number(top, "groups_omitted_count"), 2);
  EXPECT_EQ(number(top, "fleet.gpu_count"), 3) << "the fleet is whole";
  EXPECT_EQ(number(report(Input{{three_jobs()}, {"--top", "9"}, {}}), "groups_omitted_count"), 0);
  const Answer table = run_report_on({{three_jobs()}, {"--top", "1"}, {}});
  EXPECT_NE(table.out.find("2 more"), std::string::npos) << table.out;
}

TEST(ReportWindow, each_grouping_has_its_own_key) {
  const std::vector<std::tuple<const char*, std::size_t, const char*, const char*>> expected = {
      {"job", 3, "key.job", "low"},      {"user", 2, "key.user", "ann"}, {"team", 2, "key.team", "t"},
      {"namespace", 2, "key.namespace", "x"}, {"host", 2, "key.host", "n1"}, {"gpu", 3, "key.gpu", "GPU-a"},
      {"model", 1, "key.model", "H100-SXM5-80GB"}};
  for (const auto& [by, groups, key, first] : expected) {
    const Value r = report(Input{{three_jobs()}, {"--by", by}, {}});
    EXPECT_EQ(count(r, "groups"), groups) << by;
    EXPECT_EQ(text(at(r, "groups.0"), key), first) << by;
    EXPECT_EQ(text(r, "by"), by);
  }
}

TEST(ReportWindow, csv_has_one_line_a_group_and_an_empty_cell_for_what_is_unknown) {
  const std::string unmeasured = series(kTemperature, h100("GPU-d", "n3", "0", "pod=\"a,\\\"b\""), 15, times(4, "40"));
  const Answer answer = run_report_on({{three_jobs() + unmeasured}, {"--format", "csv"}, {}});
  ASSERT_EQ(answer.exit_code, 0) << answer.err;
  const std::vector<std::string> lines = base::split(base::trim(answer.out), '\n');
  ASSERT_EQ(lines.size(), 5U) << answer.out;
  EXPECT_TRUE(lines[0].starts_with("job,namespace,user,team,gpu_count,gpu_hours_allocated,")) << lines[0];
  EXPECT_EQ(base::split(lines[0], ',').size(), base::split(lines[1], ',').size());
  EXPECT_TRUE(lines[1].starts_with("low,x,ann,t,1,")) << lines[1];
  EXPECT_TRUE(lines[4].starts_with("\"a,\"\"b\",,,,1,")) << lines[4];
  EXPECT_EQ(answer.out.find("nan"), std::string::npos);
  EXPECT_EQ(answer.out.find("null"), std::string::npos);
}

TEST(ReportWindow, json_has_every_key_of_the_contract) {
  const Value r = report(three_jobs());
  for (const char* path : {"window.start", "window.end", "source", "fleet", "groups", "gpus", "quality", "assumptions"}) {
    EXPECT_EQ(text(r, path).find("(no "), std::string::npos) << path;
  }
  for (const char* key : {"gpu_count", "gpu_hours_allocated", "gpu_hours_delivered", "gpu_hours_lost",
                          "gpu_hours_unmeasured", "ofu_ratio", "ofu_ratio_low", "ofu_ratio_high", "tensor_active_ratio",
                          "sm_clock_hertz_mean", "coverage_ratio", "cost_usd", "cost_lost_usd", "cost_unmeasured_usd"}) {
    EXPECT_EQ(text(at(r, "fleet"), key).find("(no "), std::string::npos) << key;
    EXPECT_EQ(text(at(r, "groups.0"), key).find("(no "), std::string::npos) << key;
  }
  for (const char* key : {"uuid", "mig_instance", "host", "index", "model", "model_raw", "job", "shared_by",
                          "reference_clock_hertz", "reference_clock_source", "tensor_active_ratio", "sm_clock_hertz",
                          "ofu_ratio", "coverage_ratio", "absent_reason"}) {
    EXPECT_EQ(text(at(r, "gpus.0"), key).find("(no "), std::string::npos) << key;
  }
}

TEST(ReportWindow, several_files_are_one_fleet) {
  const Value r = report(Input{{sample(kTensor, h100("GPU-a", "n1", "0"), "0.2") + sample(kClock, h100("GPU-a", "n1", "0"), "1830"),
                                sample(kTensor, h100("GPU-b", "n2", "0"), "0.4") + sample(kClock, h100("GPU-b", "n2", "0"), "1830")},
                               {},
                               {}});
  EXPECT_EQ(number(r, "fleet.gpu_count"), 2);
  EXPECT_NEAR(number(r, "fleet.ofu_ratio"), 0.3, 1e-12);
}

TEST(ReportWindow, a_fleet_that_does_not_exist_says_so) {
  const Value r = report("flopsight_simulated 1\n" + three_jobs());
  EXPECT_TRUE(text(r, "source").starts_with("SIMULATED")) << text(r, "source");
  EXPECT_EQ(quality(r, "simulated"), 1);
}

}  // namespace
}  // namespace flopsight::app
