// `flopsight import` as a whole: files into a store, once. Servers are in tests/e2e.
#include <gmock/gmock.h>
#include <gtest/gtest.h>


#include <map>

#include "store/disk.h"
#include "store/store.h"
#include "test_support.h"
#include "wire/gzip.h"

namespace flopsight::app {
namespace {

using namespace test;
using testing::HasSubstr;

// Microseconds by job of everything that the store has.
struct Totals {
  std::int64_t allocated = 0;
  std::int64_t delivered = 0;
  bool operator==(const Totals&) const = default;
};
using ByJob = std::map<std::string, Totals>;

ByJob totals_of(const std::string& folder) {
  ByJob out;
  auto store = store::open_sqlite_store(folder, {});
  EXPECT_TRUE(store.ok()) << store.error().message;
  if (!store.ok()) return out;
  std::map<store::JobId, std::string> names;
  const auto jobs = (*store)->jobs();
  EXPECT_TRUE(jobs.ok());
  for (const auto& job : *jobs) names[job.id] = job.holder.job;
  const auto totals = (*store)->job_totals({{0}, {4'000'000'000'000}}, std::nullopt);
  EXPECT_TRUE(totals.ok());
  for (const auto& total : *totals) {
    out[names[total.job]].allocated += total.cell.allocated_microseconds();
    out[names[total.job]].delivered += total.cell[rollups::CellField::kDelivered];
  }
  return out;
}

// One GPU for `seconds` from 10:00:00 on, every 15 s: tensor 0.5, clock 1500 of 1830 MHz.
std::string gpu_series(const std::string& uuid, const std::string& job, int seconds) {
  const auto samples = static_cast<std::size_t>(seconds / 15);
  const std::string labels = h100(uuid, "n1", "0", "exported_pod=\"" + job + "\"");
  return series(kTensor, labels, 15, times(samples, "0.5")) + series(kClock, labels, 15, times(samples, "1500"));
}

Answer import_file(const std::string& store, const std::string& path, std::vector<std::string> options = {}) {
  std::vector<std::string> arguments = {"import", "--store", store, "--file", path};
  arguments.insert(arguments.end(), options.begin(), options.end());
  return run_program(arguments);
}

TEST(Import, a_file_becomes_the_hours_that_a_report_of_it_has) {
  const TempFolder folder;
  const std::string store = folder.path() + "/store";
  const std::string file = folder.write("a.prom", gpu_series("GPU-a", "train-a", 5400) + gpu_series("GPU-b", "train-b", 900));
  const Answer answer = import_file(store, file);
  EXPECT_EQ(answer.exit_code, 0) << answer.err;
  EXPECT_EQ(answer.err, "");
  EXPECT_THAT(answer.out, HasSubstr("imported 840 samples of 2 GPUs, 90 minutes from "));
  EXPECT_THAT(answer.out, HasSubstr("0 already there\n"));
  const ByJob totals = totals_of(store);
  ASSERT_EQ(totals.size(), 2U);
  EXPECT_EQ(totals.at("train-a").allocated, 5'400'000'000);
  EXPECT_EQ(totals.at("train-b").allocated, 900'000'000);
  EXPECT_NEAR(static_cast<double>(totals.at("train-a").delivered), 5400e6 * 0.5 * 1500 / 1830, 1e4);
}

TEST(Import, a_second_run_adds_nothing_and_says_so) {
  const TempFolder folder;
  const std::string store = folder.path() + "/store";
  const std::string file = folder.write("a.prom.gz", wire::gzip(gpu_series("GPU-a", "train-a", 5400)));
  EXPECT_EQ(import_file(store, file).exit_code, 0);
  const ByJob once = totals_of(store);
  const Answer again = import_file(store, file);
  EXPECT_EQ(again.exit_code, 0) << again.err;
  EXPECT_THAT(again.out, HasSubstr("imported 0 samples of 1 GPUs"));
  EXPECT_THAT(again.out, HasSubstr("720 already there\n"));
  EXPECT_EQ(totals_of(store), once);
}

TEST(Import, windows_that_follow_each_other_make_what_one_makes) {
  const TempFolder folder;
  const std::string file = folder.write("a.prom", gpu_series("GPU-a", "train-a", 7200));
  EXPECT_EQ(import_file(folder.path() + "/whole", file).exit_code, 0);
  for (const auto& [start, end] : {std::pair{"2026-11-29T10:00:00Z", "2026-11-29T10:50:00Z"},
                                   {"2026-11-29T10:50:00Z", "2026-11-29T11:20:30Z"},
                                   {"2026-11-29T11:00:00Z", "2026-11-29T13:00:00Z"}}) {
    const Answer answer = import_file(folder.path() + "/parts", file, {"--start", start, "--end", end});
    EXPECT_EQ(answer.exit_code, 0) << answer.err << answer.out;
  }
  EXPECT_EQ(totals_of(folder.path() + "/parts"), totals_of(folder.path() + "/whole"));
}

// Every 15 s from five seconds past the minute on, so that the last sample of an hour holds into the next.
std::string hour_of_samples(int hour) {
  std::string text;
  for (int i = hour * 240; i < (hour + 1) * 240; ++i) {
    const std::string labels = h100("GPU-a", "n1", "0", "exported_pod=\"train-a\"");
    const std::string time = std::to_string(kStartMilliseconds + 5'000 + i * 15'000);
    text += std::string(kTensor) + "{" + labels + "} 0.5 " + time + "\n" + std::string(kClock) + "{" + labels + "} 1500 " + time + "\n";
  }
  return text;
}

TEST(Import, files_that_follow_each_other_make_what_one_makes) {
  const TempFolder folder;
  const std::string first = folder.write("1.prom", hour_of_samples(0)), second = folder.write("2.prom", hour_of_samples(1));
  EXPECT_EQ(run_program({"import", "--store", folder.path() + "/whole", "--file", first, second}).exit_code, 0);
  EXPECT_THAT(import_file(folder.path() + "/parts", first).out, HasSubstr("imported 480 samples of 1 GPUs, 59.9 minutes from 2026-11-29T10:00:05Z to 2026-11-29T11:00:00Z"));
  EXPECT_EQ(totals_of(folder.path() + "/parts").at("train-a").allocated, 3'595'000'000);
  EXPECT_THAT(import_file(folder.path() + "/parts", second).out, HasSubstr("imported 480 samples of 1 GPUs, 59.9 minutes from 2026-11-29T11:00:05Z to 2026-11-29T12:00:00Z; 0 already there\n"));
  EXPECT_EQ(totals_of(folder.path() + "/parts").at("train-a").allocated, 7'195'000'000);
  EXPECT_EQ(totals_of(folder.path() + "/parts"), totals_of(folder.path() + "/whole"));
}

TEST(Import, that_a_fleet_is_simulated_is_there_already_when_it_comes_again) {
  const TempFolder folder;
  const std::string store = folder.path() + "/store";
  const std::string mark = "flopsight_simulated 1 ";
  const std::string file = folder.write("a.prom", gpu_series("GPU-a", "train-a", 3600) + mark + std::to_string(kStartMilliseconds) + "\n");
  EXPECT_THAT(import_file(store, file).out, HasSubstr("imported 481 samples of 1 GPUs"));
  const Answer again = import_file(store, file);
  EXPECT_EQ(again.exit_code, 0) << again.err;
  EXPECT_THAT(again.out, HasSubstr("imported 0 samples of 1 GPUs"));
  EXPECT_THAT(again.out, HasSubstr("481 already there\n"));
  // In a store of real GPUs it is news.
  const std::string real = folder.path() + "/real";
  EXPECT_EQ(import_file(real, folder.write("b.prom", gpu_series("GPU-a", "train-a", 3600))).exit_code, 0);
  EXPECT_THAT(import_file(real, file).out, HasSubstr("imported 1 samples of 1 GPUs"));
}

TEST(Import, files_in_any_order_of_time_are_put_in_order) {
  const TempFolder folder;
  const std::string labels = h100("GPU-a", "n1", "0", "exported_pod=\"train-a\"");
  // The clock appears half an hour before the tensor counter, and stands behind it in the text.
  std::vector<std::string> late = times(120, "-");
  const std::vector<std::string> half = times(120, "0.5");
  late.insert(late.end(), half.begin(), half.end());
  const std::string tensor = folder.write("1.prom", series(kTensor, labels, 15, late));
  const std::string clock = folder.write("2.prom", series(kClock, labels, 15, times(240, "1500")));
  const std::string store = folder.path() + "/store";
  const Answer answer = run_program({"import", "--store", store, "--file", tensor, clock});
  EXPECT_EQ(answer.exit_code, 0) << answer.err;
  EXPECT_THAT(answer.out, HasSubstr("imported 360 samples"));
  EXPECT_EQ(totals_of(store).at("train-a").allocated, 3'600'000'000);
}

TEST(Import, lines_of_victoria_metrics_are_read) {
  const TempFolder folder;
  std::string text;
  for (const auto& [name, value] : {std::pair{kTensor, "0.5"}, {kClock, "1500"}}) {
    std::string values, stamps;
    for (int i = 0; i < 40; ++i) {
      values += (i > 0 ? "," : "") + std::string(value);
      stamps += (i > 0 ? "," : "") + std::to_string(kStartMilliseconds + i * 15'000);
    }
    text += "{\"metric\":{\"__name__\":\"" + std::string(name) +
            "\",\"UUID\":\"GPU-a\",\"modelName\":\"NVIDIA H100 80GB HBM3\",\"exported_pod\":\"train-a\"},\"values\":[" + values +
            "],\"timestamps\":[" + stamps + "]}\n";
  }
  const std::string store = folder.path() + "/store";
  const Answer answer = import_file(store, folder.write("export.jsonl", text));
  EXPECT_EQ(answer.exit_code, 0) << answer.err;
  EXPECT_THAT(answer.out, HasSubstr("imported 80 samples of 1 GPUs"));
  EXPECT_EQ(totals_of(store).at("train-a").allocated, 600'000'000);
}

TEST(Import, time_before_what_is_closed_is_refused) {
  const TempFolder folder;
  const std::string store = folder.path() + "/store";
  const std::string file = folder.write("a.prom", gpu_series("GPU-a", "train-a", 7200));
  EXPECT_EQ(import_file(store, file, {"--start", "2026-11-29T11:00:00Z"}).exit_code, 0);
  const ByJob before = totals_of(store);
  const Answer older = import_file(store, file, {"--end", "2026-11-29T10:30:00Z"});
  EXPECT_EQ(older.exit_code, 2);
  EXPECT_THAT(older.err, HasSubstr("has GPUs from 2026-11-29T11:00:00Z"));
  EXPECT_THAT(older.err, HasSubstr("time is only added at its end"));
  const Answer both = import_file(store, file);
  EXPECT_EQ(both.exit_code, 1);
  EXPECT_THAT(both.out, HasSubstr("refused: older than what the store has of their GPU"));
  EXPECT_EQ(totals_of(store), before);
}

TEST(Import, what_cannot_be_placed_in_time_is_one_line) {
  const TempFolder folder;
  const std::string store = folder.path() + "/store";
  const Answer untimed = import_file(store, folder.write("a.prom", sample(kClock, "gpu=\"0\"", "1500")));
  EXPECT_EQ(untimed.exit_code, 2);
  EXPECT_THAT(untimed.err, HasSubstr("no sample has a time"));
  const Answer page = import_file(store, folder.write("b.prom", "<html>\n"));
  EXPECT_EQ(page.exit_code, 2);
  EXPECT_THAT(page.err, HasSubstr("b.prom:1:"));
  EXPECT_EQ(import_file(store, folder.path() + "/none").exit_code, 2);
  for (const char* nothing : {"", "\n", "# HELP a b\n", "# EOF\n"}) {
    const Answer empty = import_file(store, folder.write("empty.prom", nothing));
    EXPECT_EQ(empty.exit_code, 2) << nothing;
    EXPECT_THAT(empty.err, HasSubstr("empty.prom: no samples"));
    EXPECT_EQ(empty.out, "");
  }
}

TEST(Import, options_that_do_not_fit_are_refused) {
  const auto error_of = [](std::vector<std::string> options) {
    options.insert(options.begin(), "import");
    const Answer answer = run_program(options);
    EXPECT_EQ(answer.exit_code, 2);
    return answer.err;
  };
  EXPECT_THAT(error_of({}), HasSubstr("expected one of --prometheus, --victoria-metrics or --file"));
  EXPECT_THAT(error_of({"--prometheus", "http://p"}), HasSubstr("expected --start or --since"));
  for (const std::vector<std::string>& more : std::vector<std::vector<std::string>>{
           {"--timeout", "5s"}, {"--insecure-skip-verify"}, {"--server-name", "x"}, {"--header", "A: b"}, {"--basic-user", "u"}}) {
    std::vector<std::string> options = {"--file", "x.prom"};
    options.insert(options.end(), more.begin(), more.end());
    EXPECT_THAT(error_of(options), HasSubstr("need a server")) << more[0];
  }
  EXPECT_THAT(error_of({"--prometheus", "http://p", "--since", "x"}), HasSubstr("--since x"));
  EXPECT_THAT(error_of({"--victoria-metrics", "http://p", "--since", "1h", "--step", "60s"}), HasSubstr("--step needs --prometheus"));
}

TEST(Import, jobs_that_were_told_before_have_their_gpus_to_the_second) {
  const TempFolder folder;
  const std::string store = folder.path() + "/store";
  const std::string labels = h100("GPU-1", "n1", "0", "");
  const std::string path = folder.write("a.prom", series(kTensor, labels, 15, times(40, "0.5")) + series(kClock, labels, 15, times(40, "1500")));
  const std::string jobs = folder.write(
      "jobs.json", R"([{"cluster": "c1", "id": 7, "hosts": "n1", "gpus": ["0"], "start": "2026-11-29T10:01:07Z", "end": "2026-11-29T10:05:03Z"}])");
  ASSERT_EQ(run_program({"jobs", "import", "--store", store, jobs}).exit_code, 0);
  const Answer answer = import_file(store, path);
  ASSERT_EQ(answer.exit_code, 0) << answer.err;
  EXPECT_EQ(totals_of(store)["7"].allocated, 236'000'000);
  EXPECT_EQ(totals_of(store)[""].allocated, 600'000'000 - 236'000'000);
}

TEST(Import, a_store_in_use_is_not_touched) {
  const TempFolder folder;
  const std::string store = folder.path() + "/store";
  const std::string file = folder.write("a.prom", gpu_series("GPU-a", "train-a", 900));
  EXPECT_EQ(import_file(store, file).exit_code, 0);
  const auto lock = store::FolderLock::take(store);
  ASSERT_TRUE(lock.ok());
  const Answer answer = import_file(store, file);
  EXPECT_EQ(answer.exit_code, 2);
  EXPECT_THAT(answer.err, HasSubstr(store));
}

}  // namespace
}  // namespace flopsight::app
