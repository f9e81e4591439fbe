#include "analysis/waste.h"

#include <gtest/gtest.h>

#include <cmath>

namespace flopsight::analysis {
namespace {

constexpr double kYearHours = 8760;

struct World {
  std::vector<samples::Holder> holders;
  WasteOptions options;

  samples::HolderId job(const std::string& name, const std::string& user, const std::string& team) {
    samples::Holder holder;
    holder.job = name;
    holder.user = user;
    holder.team = team;
    holders.push_back(holder);
    return static_cast<samples::HolderId>(holders.size() - 1);
  }
  // GPUs of a model that a holder had for some hours, at an OFU, `unmeasured` of the time unseen.
  rollups::GpuTime time(std::optional<samples::HolderId> holder, std::uint32_t gpus, double hours, double ofu, double unmeasured = 0,
                        const std::string& model = "NVIDIA H100 80GB HBM3") const {
    rollups::GpuTime gpu;
    gpu.device = catalog::DeviceCatalog::builtin().find(model);
    gpu.gpu.model_raw = model;
    gpu.is_many = true;
    for (std::uint32_t i = 0; i < gpus; ++i) gpu.members.push_back(i);
    rollups::Portion portion;
    portion.holder = holder;
    rollups::Totals& t = portion.totals;
    t.allocated_seconds = 3600 * hours * gpus;
    t.measured_seconds = t.sm_known_seconds = t.allocated_seconds * (1 - unmeasured);
    t.delivered_seconds = ofu * t.measured_seconds;
    t.tensor_measured_seconds = t.tensor_within_sm_known_seconds = t.delivered_seconds * 1.1;
    t.sm_active_seconds = 0.8 * t.measured_seconds;
    t.causes.clock_power_seconds = t.tensor_measured_seconds - t.delivered_seconds;
    t.causes.host_seconds = 0.05 * t.measured_seconds;
    gpu.portions.push_back(portion);
    return gpu;
  }
  WasteAccount account(const std::vector<rollups::GpuTime>& times) const {
    WasteBuilder builder([&](samples::HolderId id) -> const samples::Holder& { return holders.at(id); }, options);
    for (const rollups::GpuTime& one : times) builder.add(one);
    return builder.finish(std::nullopt);
  }
};

ModelTable target(const std::string& ratio) { return *parse_targets("model,attainable_ofu_ratio\n*," + ratio + "\n"); }
Prices price(const std::string& usd) { return *Prices::parse("model,usd_per_gpu_hour\n*," + usd + "\n"); }

const WasteRow& row(const WasteAccount& account, const std::string& name) {
  for (const WasteRow& one : account.rows) {
    if (one.key.front().second.value_or("") == name) return one;
  }
  ADD_FAILURE() << name;
  return account.total;
}

// A widely quoted figure: one node of eight GPUs wastes $380,000 a year. It is what a node with an OFU of 42 % loses against 98 % of the peak,
// which no program reaches, at $9.7 per GPU-hour; the node costs $680,000 then.
TEST(Waste, the_quoted_380000_dollars_need_a_price_of_9_7_and_a_reference_of_98_percent) {
  World world;
  world.options.targets = target("0.98");
  world.options.prices = price("9.7");
  const WasteAccount account = world.account({world.time(world.job("a", "u", "t"), 8, kYearHours, 0.421)});
  EXPECT_NEAR(*account.total.attainable->usd_lost, 380'000, 1'000);
  EXPECT_NEAR(account.total.usd->allocated(), 679'776, 1);
}

// At $3, and against the half of the peak that good kernels reach, that node loses a twentieth of the quoted figure, and a worse one, at 32 %, a
// tenth of it.
TEST(Waste, at_3_dollars_against_an_attainable_half_it_is_a_tenth_at_most) {
  World world;
  world.options.targets = target("0.5");
  world.options.prices = price("3");
  const auto job = world.job("a", "u", "t");
  EXPECT_NEAR(*world.account({world.time(job, 8, kYearHours, 0.421)}).total.attainable->usd_lost, 16'609, 1);
  EXPECT_NEAR(*world.account({world.time(job, 8, kYearHours, 0.32)}).total.attainable->usd_lost, 37'843, 1);
}

TEST(Waste, hours_and_dollars_add_up_by_cause_and_by_row) {
  World world;
  world.options.prices = price("2.5");
  world.options.by = WasteBy::kTeam;
  const WasteAccount account = world.account({world.time(world.job("a", "u", "x"), 8, 10, 0.4, 0.1), world.time(world.job("b", "v", "y"), 4, 5, 0.2),
                                              world.time(world.job("c", "w", "x"), 2, 1, 0.3), world.time(std::nullopt, 3, 7, 0)});
  ASSERT_EQ(account.rows.size(), 3U);
  WasteAmounts sum, usd;
  for (const WasteRow& one : account.rows) {
    sum.add(one.gpu_hours, 1);
    usd.add(*one.usd, 1);
    EXPECT_NEAR(one.gpu_hours.of(WastePart::kDelivered) + one.gpu_hours.lost() + one.gpu_hours.of(WastePart::kUnmeasured),
                one.gpu_hours.allocated(), 1e-9);
  }
  EXPECT_NEAR(account.total.gpu_hours.allocated(), 80 + 20 + 2 + 21, 1e-9);
  for (std::size_t i = 0; i < kWastePartCount; ++i) {
    EXPECT_NEAR(sum.parts[i], account.total.gpu_hours.parts[i], 1e-9);
    EXPECT_NEAR(usd.parts[i], 2.5 * sum.parts[i], 1e-9);
  }
  EXPECT_NEAR(account.total.gpu_hours.of(WastePart::kUnmeasured), 8, 1e-9);
  EXPECT_GT(account.total.gpu_hours.of(WastePart::kClockPowerCap), 0);
  EXPECT_EQ(row(account, "x").job_count, 2U);
  EXPECT_EQ(row(account, "").job_count, 0U);  // nobody's time is a row
}

TEST(Waste, unmeasured_time_is_never_lost_and_never_against_the_attainable) {
  World world;
  world.options.targets = target("0.5");
  const WasteAccount account = world.account({world.time(world.job("a", "u", "t"), 8, 10, 0, 1)});
  EXPECT_EQ(account.total.gpu_hours.lost(), 0);
  EXPECT_NEAR(account.total.gpu_hours.of(WastePart::kUnmeasured), 80, 1e-9);
  EXPECT_FALSE(account.total.attainable);
  EXPECT_EQ(account.total.attainable_absent_reason, "nothing was measured");
}

TEST(Waste, without_a_target_the_best_run_of_the_family_is_the_reference_and_without_another_run_there_is_none) {
  World world;
  const FamilyRule families = FamilyRule::builtin();
  world.options.families = &families;
  world.options.by = WasteBy::kJob;
  const auto a = world.job("llama-1", "ada", "t"), b = world.job("llama-2", "ada", "t"), c = world.job("other", "ada", "t");
  const WasteAccount account = world.account({world.time(a, 8, 10, 0.4), world.time(b, 8, 10, 0.3), world.time(c, 8, 10, 0.1)});
  EXPECT_NEAR(row(account, "llama-2").attainable->gpu_hours_lost, 8, 1e-9);
  EXPECT_NEAR(row(account, "llama-1").attainable->gpu_hours_lost, 0, 1e-9);
  EXPECT_EQ(row(account, "llama-2").attainable->reference, "best of its family: 0.40, llama-1");
  EXPECT_FALSE(row(account, "other").attainable);
  EXPECT_EQ(row(account, "other").attainable_absent_reason, "no target, and no other run of its family");
  EXPECT_EQ(account.rows.front().key.front().second, "llama-2");  // what could be saved comes first
  // What is known of some is not known of all.
  EXPECT_NEAR(account.total.attainable->gpu_hours_measured, 160, 1e-9);
}

TEST(Waste, a_run_of_minutes_is_no_reference_and_what_is_above_the_reference_lost_nothing) {
  World world;
  const FamilyRule families = FamilyRule::builtin();
  world.options.families = &families;
  world.options.by = WasteBy::kJob;
  const auto a = world.job("llama-1", "ada", "t"), b = world.job("llama-2", "ada", "t");
  const WasteAccount account = world.account({world.time(a, 8, 0.2, 0.6), world.time(b, 8, 10, 0.3)});
  EXPECT_NEAR(row(account, "llama-1").attainable->gpu_hours_lost, 0, 1e-9);
  EXPECT_NEAR(row(account, "llama-2").attainable->gpu_hours_lost, 0, 1e-9);
}

TEST(Waste, prices_are_by_model_and_team_and_one_that_is_unknown_leaves_no_dollars) {
  World world;
  world.options.by = WasteBy::kTeam;
  const auto a = world.job("a", "u", "x"), b = world.job("b", "v", "y");
  world.options.prices = *Prices::parse(R"({"H100-SXM5-80GB": 3, "teams": {"x": {"*": 1}}})");
  const auto both = [&] {
    return world.account({world.time(a, 1, 10, 0.4), world.time(b, 1, 10, 0.4), world.time(b, 1, 10, 0.4, 0, "NVIDIA A100-SXM4-80GB")});
  };
  EXPECT_NEAR(row(both(), "x").usd->allocated(), 10, 1e-9);
  EXPECT_FALSE(row(both(), "y").usd);
  EXPECT_FALSE(both().total.usd);
  EXPECT_EQ(row(both(), "x").usd_absent_reason, "");
  EXPECT_EQ(row(both(), "y").usd_absent_reason, "no price for A100-SXM4-80GB");
  EXPECT_EQ(both().total.usd_absent_reason, "no price for A100-SXM4-80GB");
  world.options.prices = *Prices::parse("team,model,usd_per_gpu_hour\n,*,2\nx,*,1\n");
  EXPECT_NEAR(row(both(), "y").usd->allocated(), 40, 1e-9);
  EXPECT_NEAR(both().total.usd->allocated(), 50, 1e-9);
}

TEST(Waste, mistakes_in_tables_are_named) {
  const auto message = [](const std::string& text) {
    const auto parsed = parse_targets(text);
    return parsed.ok() ? std::string("ok") : parsed.error().message;
  };
  EXPECT_EQ(message("model,attainable_ofu_ratio\n*,50\n"), "line 2: \"50\", expected an attainable OFU as a ratio, 0 to 1");
  EXPECT_EQ(message("a,b\n"), "line 1: expected the columns model and attainable_ofu_ratio, and perhaps team");
  EXPECT_EQ(message(R"({"H100": "x"})"), "key \"H100\": \"\"x\"\", expected an attainable OFU as a ratio, 0 to 1");
  EXPECT_EQ(message(R"({"teams": {"x": 1}})"), "team \"x\": expected an object of models");
  EXPECT_EQ(message(R"({"teams": {"x": {"*": 0.4}}})"), "ok");
}

}  // namespace
}  // namespace flopsight::analysis
