// A divided GPU (MIG) over restarts: what is in no instance of it is neither lost nor counted twice.
#include <gtest/gtest.h>

#include <random>

#include "serve/test_ingest.h"

namespace flopsight::app {
namespace {

using test::after;
using test::LabelTexts;
using test::labels_of;
using test::Message;
using test::Totals;

// GPU 0 in instances 1 and 2 (3/7 each), GPU 1 in 1 (3/7) and what the test makes of it.
class Divided : public testing::Test, public test::IngestHarness {
 protected:
  Divided() {
    base_.live.late = units::Seconds(30);
    base_.live.idle = units::Seconds(240);
    base_.live.fleet.integrate.step_default = units::Seconds(15);  // of a GPU that was silent through a restart the cadence is not known
  }
  static LabelTexts labels(int gpu, int instance, const std::string& pod) {
    return labels_of(gpu, pod, {{"GPU_I_ID", std::to_string(instance)}, {"GPU_I_PROFILE", "3g.40gb"}});
  }
  static void add(Message& message, int gpu, int instance, int t) {
    const std::string pod = "pod-" + std::to_string(gpu) + "-" + std::to_string(instance);
    message.gpu(labels(gpu, instance, pod), tensor_at(gpu * 8 + instance, t), t);
  }
  void send(int t, const std::vector<std::pair<int, int>>& instances) {
    Message message;
    for (const auto& [gpu, instance] : instances) add(message, gpu, instance, t);
    now_ = after(t);
    EXPECT_EQ(write(message).status, 204);
  }
  double unsplit_seconds() const {
    Ingest::StoreHandle store = ingest_->store();
    const auto all = store->job_totals({units::Instant{0}, after(40 * 86'400.0)}, std::nullopt);
    double seconds = 0;
    for (const store::JobTotal& total : *all) {
      seconds += static_cast<double>(total.cell.absent(samples::AbsentReason::kUnsplitInstances)) / 1e6;
    }
    return seconds;
  }
  // Of a GPU and all of its instances, by slot.
  std::map<std::int64_t, double> seconds_by_slot(int gpu) const {
    Ingest::StoreHandle store = ingest_->store();
    std::vector<store::GpuId> ids;
    const auto all = store->gpus();
    for (const store::GpuRecord& record : *all) {
      if (record.identity.uuid == labels_of(gpu, "")[1].second) ids.push_back(record.id);
    }
    std::map<std::int64_t, double> out;
    const auto cells = store->gpu_series({std::nullopt, ids}, {units::Instant{0}, after(40 * 86'400.0)}, store->slot());
    for (const store::GpuCell& cell : *cells) out[cell.slot_start.unix_milliseconds] += static_cast<double>(cell.cell.allocated_microseconds()) / 1e6;
    return out;
  }
};

// An instance that stops holds its GPU's slots open for as long as it is waited for.
TEST_F(Divided, a_restart_while_one_instance_is_waited_for_changes_no_total) {
  const auto feed = [&](bool restarts) {
    for (int t = 0; t < 1'200; t += 15) {
      send(t, t < 300 ? std::vector<std::pair<int, int>>{{0, 1}, {0, 2}} : std::vector<std::pair<int, int>>{{0, 1}});
      if (t % 60 != 0) continue;
      flush();
      if (restarts) open();
    }
    flush(true);
    return totals_but_for_clock_differences();
  };
  const Totals with = feed(true);
  const double unsplit = unsplit_seconds();
  fresh("whole");
  EXPECT_EQ(with, feed(false));
  EXPECT_EQ(unsplit, unsplit_seconds());
  EXPECT_NEAR(unsplit, 300 / 7.0 + 900 * 4 / 7.0, 20);
}

TEST_F(Divided, the_rest_of_a_slot_is_written_although_no_instance_comes_back_after_the_restart) {
  const auto feed = [&](bool restarts) {
    for (int t = 0; t < 600; t += 15) {
      send(t, t < 450 ? std::vector<std::pair<int, int>>{{0, 1}, {0, 2}, {1, 1}} : std::vector<std::pair<int, int>>{{0, 1}, {1, 1}});
    }
    flush();
    if (restarts) open();
    now_ = after(600 + 300);  // nothing more comes: they are closed out
    flush();
    if (restarts) open();
    run("else", {7}, 900, 1'200);
    flush(true);
    return totals_but_for_clock_differences();
  };
  const Totals with = feed(true);
  fresh("whole");
  EXPECT_EQ(with, feed(false));
  EXPECT_NEAR(unsplit_seconds(), 450 / 7.0 + 165 * 4 / 7.0 + 615 * 4 / 7.0, 20);
}

TEST_F(Divided, instances_that_are_cut_anew_beside_a_restart_change_no_total) {
  const auto feed = [&](bool restarts) {
    for (int t = 0; t < 900; t += 15) {
      send(t, t < 400 ? std::vector<std::pair<int, int>>{{0, 1}, {0, 2}} : std::vector<std::pair<int, int>>{{0, 3}, {0, 4}});
      if (t == 390 || t == 480 || t == 600) flush();
      if (restarts && (t == 390 || t == 480 || t == 600)) open();
    }
    flush(true);
    return totals_but_for_clock_differences();
  };
  const Totals with = feed(true);
  fresh("whole");
  EXPECT_EQ(with, feed(false));
}

// It was taken for gone, the rest of its slots is written, and then its samples come.
TEST_F(Divided, what_comes_late_of_an_instance_makes_the_rest_less_and_a_gpu_has_no_more_time_than_there_is) {
  const auto feed = [&](bool restarts) {
    for (int t = 0; t < 1'200; t += 15) {
      const bool is_cut_off = t >= 300 && t < 900;
      send(t, is_cut_off ? std::vector<std::pair<int, int>>{{0, 1}} : std::vector<std::pair<int, int>>{{0, 1}, {0, 2}});
      if (t % 60 == 45) flush();
      if (restarts && t % 120 == 105) open();
      if (t != 885) continue;
      for (int late = 300; late < 900; late += 15) {
        Message message;
        add(message, 0, 2, late);
        write(message);
      }
    }
    flush(true);
    return totals_but_for_clock_differences();
  };
  const Totals with = feed(true);
  const auto seconds = seconds_by_slot(0);
  EXPECT_GE(seconds.size(), 20U);
  for (const auto& [slot, allocated] : seconds) EXPECT_LE(allocated, 60 + 1e-4) << slot;
  fresh("whole");
  EXPECT_EQ(with, feed(false));
  EXPECT_NEAR(unsplit_seconds(), 1'200 / 7.0, 30);
}

TEST_F(Divided, an_instance_that_was_silent_and_comes_back_is_not_counted_beside_the_rest) {
  const auto feed = [&](bool restarts) {
    for (int t = 0; t < 1'500; t += 15) {
      const bool is_silent = t >= 300 && t < 900;
      send(t, is_silent ? std::vector<std::pair<int, int>>{{0, 1}} : std::vector<std::pair<int, int>>{{0, 1}, {0, 2}});
      if (t % 60 == 45) flush();
      if (restarts && t % 180 == 165) open();
    }
    flush(true);
    return totals_but_for_clock_differences();
  };
  const Totals with = feed(true);
  for (const auto& [slot, allocated] : seconds_by_slot(0)) EXPECT_LE(allocated, 60 + 1e-4) << slot;
  fresh("whole");
  EXPECT_EQ(with, feed(false));
}

// Of who was silent around a restart, less is known of what was before (its cadence): how much was measured may differ, whose time it was does not.
TEST_F(Divided, restarts_after_any_flush_change_no_allocation_of_a_fleet_whose_instances_come_and_go) {
  constexpr double kRoundedSeconds = 1e-3;
  // By job and by slot of each GPU, and of no instance.
  const auto seconds = [&] {
    std::map<std::string, double> out{{"unsplit", unsplit_seconds()}};
    for (int gpu = 0; gpu < 3; ++gpu) {
      for (const auto& [slot, allocated] : seconds_by_slot(gpu)) out["GPU " + std::to_string(gpu) + " at " + std::to_string(slot)] = allocated;
    }
    Ingest::StoreHandle store = ingest_->store();
    const auto all = store->job_totals({units::Instant{0}, after(40 * 86'400.0)}, std::nullopt);
    for (const store::JobTotal& total : *all) {
      out[total.job == 0 ? "nobody" : store->holder(total.job).job] += static_cast<double>(total.cell.allocated_microseconds()) / 1e6;
    }
    return out;
  };
  for (unsigned seed = 1; seed <= 12; ++seed) {
    std::mt19937 random(seed);
    const auto chance = [&](unsigned of) { return random() % of == 0; };
    // What happens, so that it is the same with and without restarts.
    struct Step {
      std::vector<std::pair<int, int>> sent;
      bool is_flushed = false, is_restarted = false;
    };
    std::vector<Step> steps(120);
    std::map<std::pair<int, int>, bool> is_there;
    for (Step& step : steps) {
      const bool is_begun = &step - steps.data() >= 10;  // and the cadence of everybody known
      for (int gpu = 0; gpu < 3; ++gpu) {
        for (int instance = 1; instance <= 2; ++instance) {
          bool& here = is_there.try_emplace({gpu, instance}, true).first->second;
          if (is_begun && chance(25)) here = !here;
          if (here) step.sent.emplace_back(gpu, instance);
        }
      }
      step.is_flushed = chance(3);
      step.is_restarted = step.is_flushed ? chance(2) : chance(9);
    }
    const auto feed = [&](bool restarts) {
      for (std::size_t i = 0; i < steps.size(); ++i) {
        send(static_cast<int>(i) * 15, steps[i].sent);
        if (steps[i].is_flushed) flush();
        if (restarts && steps[i].is_restarted) open();
      }
      flush(true);
      return seconds();
    };
    fresh("with-" + std::to_string(seed));
    const auto with = feed(true);
    fresh("whole-" + std::to_string(seed));
    const auto whole = feed(false);
    ASSERT_EQ(with.size(), whole.size()) << "seed " << seed;
    for (const auto& [what, value] : with) {
      ASSERT_EQ(whole.count(what), 1U) << "seed " << seed << " " << what;
      EXPECT_NEAR(value, whole.at(what), kRoundedSeconds) << "seed " << seed << " " << what;
      EXPECT_TRUE(!what.starts_with("GPU") || value <= 60 + kRoundedSeconds) << "seed " << seed << " " << what << " " << value;
    }
  }
}

}  // namespace
}  // namespace flopsight::app
