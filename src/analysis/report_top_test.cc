// A report that keeps a few groups says of them what the whole report says, though it adds up no others.
#include <random>

#include <gtest/gtest.h>

#include "analysis/gpu_rows.h"
#include "analysis/report.h"

namespace flopsight::analysis {
namespace {

constexpr const char* kModels[] = {"NVIDIA H100 80GB HBM3", "NVIDIA A100-SXM4-80GB", "a GPU that nobody knows"};

struct Fleet {
  jobs::HolderTable holders;
  rollups::Fleet fleet;
};

rollups::Portion portion(std::mt19937_64& random, std::optional<samples::HolderId> holder) {
  rollups::Portion out;
  out.holder = holder;
  out.totals.allocated_seconds = static_cast<double>(random() % 5) * 60;
  out.totals.measured_seconds = out.totals.allocated_seconds * static_cast<double>(random() % 3) / 2;
  // Few values, so that several groups lose the same and their names decide.
  out.totals.delivered_seconds = out.totals.measured_seconds * static_cast<double>(random() % 4) / 8;
  out.totals.tensor_measured_seconds = out.totals.delivered_seconds;
  return out;
}

Fleet make(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  Fleet out;
  std::vector<samples::HolderId> ids;
  for (int job = 0; job < 40; ++job) {
    samples::Holder holder;
    holder.job = "job-" + std::to_string(job);
    holder.name_space = "space-" + std::to_string(job % 7);
    holder.user = job % 11 == 0 ? "" : "user-" + std::to_string(job % 11);
    holder.team = job % 3 == 0 ? "" : "team-" + std::to_string(job % 3);
    ids.push_back(out.holders.intern(holder));
  }
  const auto any_holder = [&]() -> std::optional<samples::HolderId> {
    if (random() % 8 == 0) return std::nullopt;
    return ids[random() % ids.size()];
  };
  for (int n = 0; n < 150; ++n) {
    rollups::GpuTime gpu;
    gpu.gpu.uuid = "GPU-" + std::to_string(n);
    gpu.gpu.host = "host-" + std::to_string(n / 8);
    gpu.gpu.model_raw = kModels[random() % 3];
    gpu.device = catalog::DeviceCatalog::builtin().find(gpu.gpu.model_raw);
    for (std::uint64_t p = random() % 4; p > 0; --p) gpu.portions.push_back(portion(random, any_holder()));
    out.fleet.gpus.push_back(gpu);
  }
  rollups::GpuTime rest;
  rest.gpu.host = "host-of-the-rest";
  rest.portions.push_back(portion(random, any_holder()));
  out.fleet.rests.push_back(rest);
  return out;
}

Report report(const Fleet& fleet, GroupBy by, std::optional<std::uint64_t> top) {
  ReportOptions options;
  options.by = by;
  options.top = top;
  const FamilyRule families = FamilyRule::builtin();
  options.families = &families;
  options.prices = *Prices::parse("model,team,usd_per_gpu_hour\n*,,1.5\nH100-SXM5-80GB,team-1,2.5\n");
  return build_report(fleet.fleet, fleet.holders, {}, options);
}

TEST(ReportTop, groups_that_are_kept_are_the_first_of_the_whole_report_and_say_the_same) {
  for (const std::uint64_t seed : {1U, 2U, 3U}) {
    const Fleet fleet = make(seed);
    for (const GroupBy by : {GroupBy::kJob, GroupBy::kUser, GroupBy::kTeam, GroupBy::kNamespace, GroupBy::kHost, GroupBy::kGpu, GroupBy::kModel, GroupBy::kFamily}) {
      const Report whole = report(fleet, by, std::nullopt);
      ASSERT_GE(whole.groups.size(), 3U);
      for (const std::size_t top : {std::size_t{1}, std::size_t{2}, whole.groups.size() - 1, whole.groups.size(), whole.groups.size() + 5}) {
        const Report some = report(fleet, by, top);
        const std::size_t kept = std::min(top, whole.groups.size());
        ASSERT_EQ(some.groups.size(), kept) << seed << " " << group_by_name(by);
        EXPECT_EQ(some.groups_omitted_count, whole.groups.size() - kept);
        for (std::size_t i = 0; i < kept; ++i) {
          const Group &a = some.groups[i], &b = whole.groups[i];
          EXPECT_EQ(a.key, b.key) << seed << " " << group_by_name(by) << " " << i << " of " << top;
          EXPECT_EQ(a.weight_seconds, b.weight_seconds);
          EXPECT_EQ(a.summary.gpu_count, b.summary.gpu_count);
          EXPECT_EQ(a.summary.ofu_ratio, b.summary.ofu_ratio);
          EXPECT_EQ(a.summary.gpu_hours_allocated, b.summary.gpu_hours_allocated);
          EXPECT_EQ(a.summary.cost_usd, b.summary.cost_usd);
        }
        EXPECT_EQ(some.fleet.gpu_hours_lost, whole.fleet.gpu_hours_lost);
        EXPECT_EQ(some.fleet.gpu_count, whole.fleet.gpu_count);
      }
    }
  }
}

TEST(ReportTop, rows_of_gpus_alone_are_those_of_the_report) {
  const Fleet fleet = make(4);
  const Report whole = report(fleet, GroupBy::kJob, std::nullopt);
  const std::vector<GpuRow> rows = gpu_rows(fleet.fleet, fleet.holders);
  ASSERT_EQ(rows.size(), whole.gpus.size());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    EXPECT_EQ(rows[i].gpu.uuid, whole.gpus[i].gpu.uuid);
    EXPECT_EQ(rows[i].jobs, whole.gpus[i].jobs);
    EXPECT_EQ(rows[i].ofu_ratio, whole.gpus[i].ofu_ratio);
    EXPECT_EQ(rows[i].absent_reason, whole.gpus[i].absent_reason);
  }
}

}  // namespace
}  // namespace flopsight::analysis
